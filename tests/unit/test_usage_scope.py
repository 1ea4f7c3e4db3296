"""Which responses a question about usage is about: days as the reader counts them, filters on turns and threads."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from raddle.model.clock import format_time, parse_time
from raddle.model.errors import InvalidInput
from raddle.model.threads.message import Usage
from raddle.model.threads.query import parse
from raddle.model.threads.usage import Response
from raddle.model.threads.usage_scope import (
    UTC_DAYS,
    Calendar,
    Span,
    asked_of_responses,
    asked_of_threads,
    local_days,
    span_of,
)
from tests.builders import DAY, NOON

TOKYO = timezone(timedelta(hours=9))
LIMA = timezone(timedelta(hours=-5))


def days_of(zone: timezone) -> Calendar:
    """The days of a machine in that zone."""

    def to_local(moment: datetime) -> datetime:
        return moment.replace(tzinfo=zone) if moment.tzinfo is None else moment.astimezone(zone)

    return local_days(to_local)


def moments(since: str | None, until: str | None, calendar: Calendar = UTC_DAYS) -> list[str]:
    """The two ends as text, empty where open; now is noon on 2026-11-30, UTC."""
    span = span_of(since, until, now=NOON, calendar=calendar)
    return ["" if at is None else format_time(at)[:16] for at in span]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026-11-29", "2026-11-29T00:00", "2026-11-30T00:00"),
        ("2026-2", "2026-02-01T00:00", "2026-03-01T00:00"),
        ("2026-12", "2026-12-01T00:00", "2027-01-01T00:00"),
        ("2025", "2025-01-01T00:00", "2026-01-01T00:00"),
        ("today", "2026-11-30T00:00", "2026-12-01T00:00"),
        ("Yesterday", "2026-11-29T00:00", "2026-11-30T00:00"),
    ],
)
def test_a_day_a_month_and_a_year_are_whole_at_either_end(text: str, start: str, end: str) -> None:
    assert moments(text, None) == [start, ""]
    assert moments(None, text) == ["", end]
    assert moments(text, text) == [start, end]


def test_other_times_are_moments() -> None:
    assert moments("7d", "12h") == ["2026-11-23T12:00", "2026-11-30T00:00"]
    assert moments("2026-11-01T10:00:00+02:00", None) == ["2026-11-01T08:00", ""]


def test_days_begin_at_the_readers_midnight() -> None:
    assert moments("2026-11-30", "2026-11-30", days_of(TOKYO)) == ["2026-11-29T15:00", "2026-11-30T15:00"]
    assert moments("today", None, days_of(LIMA)) == ["2026-11-30T05:00", ""]


@pytest.mark.parametrize("text", ["", "soon", "2026-13", "2026-02-30", "0000", "9999-12-31x", "-5"])
def test_what_is_no_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        span_of(text, None, now=NOON, calendar=UTC_DAYS)
    assert "--since" in refused.value.message
    assert "2026-11-30" in refused.value.hint


def test_a_span_that_holds_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nothing lies between"):
        span_of("2026-12-01", "2026-11-01", now=NOON, calendar=UTC_DAYS)


def test_the_days_of_a_calendar_lie_between_their_first_moments() -> None:
    for calendar in (UTC_DAYS, days_of(TOKYO), days_of(LIMA)):
        day = datetime(2026, 11, 30, tzinfo=TOKYO).date()
        start = calendar.start_of(day)
        assert calendar.day_of(start) == "2026-11-30"
        assert calendar.day_of(start + DAY - 1) == "2026-11-30"
        assert calendar.day_of(start - 1) == "2026-11-29"


@pytest.mark.parametrize("at", [-(1 << 62), 1 << 62, parse_time("0001-01-01T00:00:00Z") or 0])
def test_a_time_past_the_calendar_has_a_day_all_the_same(at: int) -> None:
    for calendar in (UTC_DAYS, days_of(TOKYO), days_of(LIMA)):
        assert len(calendar.day_of(at)) == 10


def test_without_bounds_a_time_that_nobody_knows_counts_and_with_one_it_does_not() -> None:
    assert Span().holds(None)
    assert not Span(start=0).holds(None)
    assert not Span(end=0).holds(None)


def test_a_span_holds_its_first_moment_and_not_its_last() -> None:
    span = Span(start=NOON, end=NOON + 2)
    assert [span.holds(at) for at in range(NOON - 1, NOON + 4)] == [False, True, True, False, False]


def fits(query: str, response: Response) -> bool:
    return asked_of_responses(parse(query, now=NOON), Span())(response)


def at_noon(**fields: object) -> Response:
    given = {"id": "m", "usage": Usage(), "at": NOON, "role": "assistant", **fields}
    return Response(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "is_counted"),
    [
        ("", True),
        ("after:2026-11-30", True),
        ("after:2026-12-01", False),
        ("-after:2026-12-01", True),
        ("before:2026-11-30", False),
        ("after:1h before:2026-12", True),
        ("role:assistant", True),
        ("role:user,assist*", True),
        ("role:user", False),
        ("-role:user", True),
        ('-role:"assistant"', False),
        ("is:removed", False),
        ("-is:removed", True),
        ("repo:nowhere words tool:bash has:error", True),
        ("...", False),
    ],
)
def test_times_and_roles_choose_single_turns(query: str, is_counted: bool) -> None:
    assert fits(query, at_noon()) is is_counted


def test_a_turn_that_was_taken_back_counts_unless_it_is_left_out() -> None:
    removed = at_noon(is_removed=True)
    assert [fits(query, removed) for query in ("", "is:removed", "-is:removed")] == [True, True, False]


def test_words_and_filters_on_threads_are_left_to_choose_threads() -> None:
    query = parse("lock repo:moth after:7d -role:user is:removed has:error tool:bash", now=NOON)
    left = asked_of_threads(query)
    assert [one.text for one in left.filters] == ["repo:moth", "has:error", "tool:bash"]
    assert left.terms == query.terms
