"""The order of hits: what makes a score, and the cursor that a page ends with."""

from __future__ import annotations

import pytest

from raddle.model.errors import InvalidInput
from raddle.model.threads.query import parse
from raddle.model.threads.search_fields import ASSISTANT, FIELDS, OUTPUT, THINKING, USER
from raddle.model.threads.search_order import (
    Cursor,
    check_of,
    format_cursor,
    heaviest_of,
    key_of,
    lightest_of,
    parse_cursor,
    score_of,
)

DAY = 86_400_000_000


def test_a_header_weighs_more_than_any_field_and_each_field_more_than_the_next() -> None:
    header = score_of(terms=1, covered=1, level=OUTPUT, age=0)
    fields = [score_of(terms=1, covered=0, level=level, age=0) for level in range(len(FIELDS))]
    assert [header, *fields] == sorted({header, *fields}, reverse=True)


def test_what_being_recent_adds_is_half_after_a_month_and_never_more_than_that_of_now() -> None:
    now, later, of_the_future, old = (
        score_of(terms=0, covered=0, level=OUTPUT, age=age) for age in (0, 30 * DAY, -DAY, 10_000 * DAY)
    )
    assert (now, later, of_the_future) == (1.5, 1.25, 1.5)
    assert old == pytest.approx(1.0)


def test_scored_threads_come_before_others_and_the_newer_first() -> None:
    best, equal, newer, older = (
        key_of(5, "b", score=2.0),
        key_of(5, "c", score=2.0),
        key_of(9, "a"),
        key_of(8, "a"),
    )
    assert sorted([older, newer, equal, best]) == [best, equal, newer, older]


def test_the_level_of_a_message_is_its_heaviest_or_its_lightest_field() -> None:
    fields = 1 << ASSISTANT | 1 << THINKING
    assert (heaviest_of(fields), lightest_of(fields)) == (ASSISTANT, THINKING)
    assert (heaviest_of(0), lightest_of(0)) == (OUTPUT, OUTPUT)
    assert heaviest_of(1 << USER | fields) == USER


def test_a_cursor_is_read_as_it_was_written_and_fits_its_own_query_only() -> None:
    query = parse("glaze", now=DAY)
    cursor = Cursor(DAY, key_of(5, "b", score=2.0), check_of(query))
    again = parse_cursor(format_cursor(cursor), Cursor)
    assert again == cursor
    again.must_fit(query)
    with pytest.raises(InvalidInput, match="belongs to another query"):
        again.must_fit(parse("kiln", now=DAY))


@pytest.mark.parametrize("text", ["", "x", "not a cursor", "é", format_cursor([1, 2])])
def test_a_text_that_no_list_gave_out_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a cursor"):
        parse_cursor(text, Cursor)
