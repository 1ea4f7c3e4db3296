"""What was used is counted once, for one thread, and what records do not say stays unsaid."""

from __future__ import annotations

from typing import Any

import pytest

from raddle.model.threads.message import Message, Usage
from raddle.model.threads.tree import TWIN_OF
from raddle.model.threads.usage import (
    WAYS,
    Counted,
    Holder,
    Response,
    Tally,
    counted_once,
    response_of,
    sum_of,
    tally,
)
from raddle.model.threads.usage_scope import UTC_DAYS
from tests.builders import DAY, NOON, a_message

OLD = Holder(id="T-old", title="The first", created_at=NOON, repository="moth", agent="claude-code")
FORK = Holder(id="T-fork", title="The fork", created_at=NOON + DAY, repository="kiln", agent="raddle")


def a_response(response_id: str = "m1", out: int | None = 10, **fields: Any) -> Response:
    used = {name: fields.pop(name) for name in list(fields) if name in Usage.__struct_fields__}
    given = {"role": "assistant", "model": "opus", "at": NOON, **fields}
    return Response(id=response_id, usage=Usage(output_tokens=out, **used), **given)


def by(way: str, *counted: Counted) -> Tally:
    return tally(counted, way, day_of=UTC_DAYS.day_of)


def outputs(found: Tally) -> dict[str | None, int | None]:
    return {row.key: row.tokens.output_tokens for row in found.rows}


def test_a_turn_that_a_fork_shares_counts_once_for_the_older_thread() -> None:
    own = a_response("m2", 5)
    for threads in ([(OLD, [a_response()]), (FORK, [a_response(), own])],) * 2:
        counted = counted_once(threads)
        assert outputs(by("thread", *counted)) == {"T-old": 10, "T-fork": 5}
        threads.reverse()


def test_a_resumed_session_that_begins_with_the_first_one_is_the_one_that_goes_on_longer() -> None:
    first = Holder(id="T-z", created_at=NOON, last_activity_at=NOON + 5)
    resumed = Holder(id="T-a", created_at=NOON, last_activity_at=NOON + 9)
    (only,) = counted_once([(resumed, [a_response()]), (first, [a_response()])])
    assert only.holder is first


def test_of_two_threads_of_one_moment_the_lesser_id_has_the_shared_turn() -> None:
    twin = Holder(id="T-a", created_at=OLD.created_at)
    (only,) = counted_once([(OLD, [a_response()]), (twin, [a_response()])])
    assert only.holder is twin


def test_a_thread_without_a_time_has_a_shared_turn_last() -> None:
    timeless = Holder(id="T-a")
    (only,) = counted_once([(timeless, [a_response()]), (FORK, [a_response()])])
    assert only.holder is FORK


def test_a_turn_that_was_half_written_in_the_older_thread_counts_whole_for_it() -> None:
    half, whole = a_response(out=2, rev=1, model="opus"), a_response(out=90, rev=3, input_tokens=7)
    (only,) = counted_once([(OLD, [half]), (FORK, [whole])])
    assert (only.holder, only.response.usage) == (OLD, whole.usage)


def test_a_thread_into_which_a_turn_was_only_copied_has_it_after_all_others() -> None:
    copy = response_of(a_message("m1", usage=Usage(output_tokens=10), extra={"copied_from": FORK.id}))
    assert copy is not None
    for threads in ([(OLD, [copy]), (FORK, [a_response()])],) * 2:
        (only,) = counted_once(threads)
        assert only.holder is FORK
        threads.reverse()
    (only,) = counted_once([(OLD, [copy])])
    assert only.holder is OLD


def test_a_message_without_usage_is_not_counted() -> None:
    assert response_of(a_message()) is None


def test_a_second_message_of_one_id_in_a_broken_file_counts_as_the_first() -> None:
    first = response_of(a_message("m1", usage=Usage(output_tokens=9)))
    second = response_of(a_message("m9", usage=Usage(output_tokens=4), extra={TWIN_OF: "m1"}))
    assert first is not None
    assert second is not None
    assert [one.response.usage.output_tokens for one in counted_once([(OLD, [second, first])])] == [9]


def test_sub_agents_are_part_of_the_sum_and_stand_apart() -> None:
    counted = counted_once([(OLD, [a_response("a", 10), a_response("b", 3, is_sidechain=True)])])
    (row,) = by("thread", *counted).rows
    assert (row.tokens.output_tokens, row.sidechain.output_tokens) == (13, 3)
    assert (row.tokens.messages, row.sidechain.messages) == (2, 1)


def test_what_was_read_from_a_cache_and_written_to_it_stands_apart() -> None:
    one = a_response(input_tokens=4, cache_read_tokens=14_000, cache_write_tokens=62)
    (row,) = by("model", Counted(OLD, one)).rows
    tokens = row.tokens
    assert (tokens.input_tokens, tokens.cache_read_tokens, tokens.cache_write_tokens) == (4, 14_000, 62)
    assert tokens.together == 4 + 10 + 14_000 + 62


def test_what_no_record_says_is_not_nought() -> None:
    total = by("day", Counted(OLD, a_response()), Counted(OLD, a_response("m2"))).total.tokens
    assert (total.output_tokens, total.input_tokens, total.cache_read_tokens) == (20, None, None)


def test_a_negative_count_says_nothing() -> None:
    total = by("day", Counted(OLD, a_response(out=-1, input_tokens=3))).total.tokens
    assert (total.output_tokens, total.input_tokens) == (None, 3)


def test_a_cost_that_records_name_is_summed_exactly_and_apart() -> None:
    counted = [Counted(OLD, a_response(f"m{number}", cost_usd=0.1)) for number in range(10)]
    tokens = by("day", *counted, Counted(OLD, a_response("free"))).total.tokens
    assert (tokens.recorded_cost_usd, tokens.recorded_cost_messages, tokens.messages) == (1.0, 10, 11)


@pytest.mark.parametrize("cost", [-1.0, float("inf"), float("nan"), 1e300])
def test_what_is_no_amount_of_money_is_not_summed(cost: float) -> None:
    tokens = by("day", Counted(OLD, a_response(cost_usd=cost))).total.tokens
    assert (tokens.recorded_cost_usd, tokens.recorded_cost_messages) == (None, 0)


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("message", {"m1": 10, "m2": 5}),
        ("thread", {"T-old": 10, "T-fork": 5}),
        ("agent", {"claude-code": 10, "raddle": 5}),
        ("model", {"opus": 10, None: 5}),
        ("repo", {"moth": 10, "kiln": 5}),
        ("day", {"2026-11-30": 10, None: 5}),
        ("role", {"assistant": 10, "judge": 5}),
    ],
)
def test_the_sums_are_by(way: str, expected: dict[str | None, int]) -> None:
    other = a_response("m2", 5, at=None, model="", role="judge")
    assert outputs(by(way, Counted(OLD, a_response()), Counted(FORK, other))) == expected


def test_days_stand_in_their_order_and_all_else_by_size() -> None:
    counted = [Counted(OLD, a_response(f"m{at}", at, at=NOON + at * DAY, model=str(at))) for at in (2, 1, 3)]
    assert [row.key for row in by("day", *counted).rows] == ["2026-12-01", "2026-12-02", "2026-12-03"]
    assert [row.key for row in by("model", *counted).rows] == ["3", "2", "1"]


def test_a_row_of_a_thread_or_message_can_be_told_in_words() -> None:
    one = Counted(OLD, a_response())
    told = {way: (row.holder, row.response) for way in WAYS for row in by(way, one).rows}
    assert (told.pop("message"), told.pop("thread")) == ((OLD, one.response), (OLD, None))
    assert set(told.values()) == {(None, None)}


def test_rows_that_are_left_out_add_up_with_those_that_are_shown() -> None:
    counted = [
        Counted(OLD, a_response(f"m{at}", at, cost_usd=0.3, is_sidechain=at == 2, model=str(at)))
        for at in range(1, 5)
    ]
    found = by("model", *counted)
    whole, rest = sum_of(found.rows), sum_of(found.rows[1:])
    assert (whole.tokens, whole.sidechain) == (found.total.tokens, found.total.sidechain)
    assert rest.tokens.output_tokens == 6
    assert sum_of(()).tokens.output_tokens is None


def test_a_row_says_over_how_many_threads_it_goes() -> None:
    counted = [Counted(OLD, a_response()), Counted(OLD, a_response("m2")), Counted(FORK, a_response("m3"))]
    (row,) = by("model", *counted).rows
    assert row.threads == 2


def test_the_time_of_a_turn_is_its_own_clock_not_its_place_in_the_thread() -> None:
    moved = Message(
        id="m", role="assistant", ts="2026-11-01T00:00:00Z", seq=NOON, usage=Usage(output_tokens=1)
    )
    response = response_of(moved)
    assert response is not None
    assert by("day", Counted(OLD, response)).rows[0].key == "2026-11-01"
    timeless = response_of(Message(id="m", role="assistant", seq=NOON, usage=Usage(output_tokens=1)))
    assert timeless is not None
    assert timeless.at is None
