"""Which responses a question about usage is about: a query's part for threads, its part for messages, a span of days.

Owns which filters choose threads and which choose single messages, and what a day is. Were days cut by one
calendar and spans by another, the days of a week would not add up to the week.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace

from raddle.model.clock import format_time
from raddle.model.errors import InvalidInput
from raddle.model.threads.query import Filter, FlagFilter, NameFilter, Query, TimeFilter
from raddle.model.threads.query_match import matches
from raddle.model.threads.query_times import parse_moment
from raddle.model.threads.search_fields import HeaderText, MessageText
from raddle.model.threads.usage import DayOf, Response

Fits = Callable[[Response], bool]

_DATE = re.compile(r"(\d{4})(?:-(\d\d?)(?:-(\d\d?))?)?\Z", re.ASCII)
_NO_TEXTS = ("", "", "", "", "")


class Calendar(NamedTuple):
    """Days in one time zone: the day of a moment, and the first moment of a day, both moments in microseconds."""

    name: str
    day_of: DayOf
    start_of: Callable[[date], int]


def _start_in_utc(day: date) -> int:
    return (day - date(1970, 1, 1)) // timedelta(microseconds=1)


UTC_DAYS = Calendar(name="UTC", day_of=lambda at: format_time(at)[:10], start_of=_start_in_utc)


class Span(NamedTuple):
    """From `start` on and before `end`, in microseconds; None: no bound. Without both, it holds times nobody knows."""

    start: int | None = None
    end: int | None = None

    def holds(self, at: int | None) -> bool:
        """Does it hold this moment?"""
        if self.start is None and self.end is None:
            return True
        if at is None:
            return False
        return (self.start is None or at >= self.start) and (self.end is None or at < self.end)


def span_of(since: str | None, until: str | None, *, now: int, calendar: Calendar) -> Span:
    """The span that two texts name: a day, month or year is whole in it, at either end; InvalidInput for others."""
    start = None if since is None else _moment("since", since, now, calendar, is_end=False)
    end = None if until is None else _moment("until", until, now, calendar, is_end=True)
    if start is not None and end is not None and start >= end:
        raise InvalidInput(
            f"nothing lies between --since {since} and --until {until}", "the earlier one is --since"
        )
    return Span(start, end)


def _moment(option: str, text: str, now: int, calendar: Calendar, *, is_end: bool) -> int:
    try:
        days = _days(text.strip().lower(), now, calendar)
        if days is not None:
            return calendar.start_of(days[1] if is_end else days[0])
    except (ValueError, OverflowError):
        days = None  # the 31st of a short month, or a day after the last one there is
    at = parse_moment(text, now) if _DATE.match(text.strip()) is None else None
    if at is None:
        raise InvalidInput(
            f"{text[:40]!r} is no time for --{option}",
            "a time is 2026-11-30, 2026-11, 7d, 12h, today, yesterday, or RFC 3339",
        )
    return at


def _days(text: str, now: int, calendar: Calendar) -> tuple[date, date] | None:
    """The first day of what is named, and the first after it; None where no day, month or year is named."""
    if text in {"today", "yesterday"}:
        today = date.fromisoformat(calendar.day_of(now))
        first = today - timedelta(days=text == "yesterday")
        return first, first + timedelta(days=1)
    found = _DATE.match(text)
    if found is None:
        return None
    year, month, day = int(found[1]), found[2], found[3]
    first = date(year, int(month or 1), int(day or 1))
    if day is not None:
        return first, first + timedelta(days=1)
    if month is not None:
        return first, (first + timedelta(days=31)).replace(day=1)
    return first, date(year + 1, 1, 1)


def asked_of_threads(query: Query) -> Query:
    """The part of a query that chooses threads: its words, and all filters but those on single responses."""
    return replace(query, filters=tuple(one for one in query.filters if not _is_of_response(one)))


def asked_of_responses(query: Query, span: Span) -> Fits:
    """The other part, as a question to each response: times, roles, whether it was taken back."""
    asked = [one for one in query.filters if _is_of_response(one)]
    has_role: dict[tuple[int, str], bool] = {}

    def fits_role(number: int, one: NameFilter, role: str) -> bool:
        if (number, role) not in has_role:
            alone = Query(text="", filters=(replace(one, is_negative=False),))
            text = MessageText(id="", order=0, role=role, texts=_NO_TEXTS)
            has_role[number, role] = matches(alone, HeaderText(), text)
        return has_role[number, role]

    def is_so(number: int, one: Filter, response: Response) -> bool:
        if isinstance(one, TimeFilter):
            return response.at is not None and (response.at >= one.at) == one.is_after
        if isinstance(one, NameFilter):
            return fits_role(number, one, response.role)
        return response.is_removed

    def fits(response: Response) -> bool:
        return span.holds(response.at) and all(
            is_so(number, one, response) != one.is_negative for number, one in enumerate(asked)
        )

    return fits


def _is_of_response(one: Filter) -> bool:
    match one:
        case TimeFilter():
            return True
        case NameFilter():
            return one.key == "role"
        case FlagFilter():
            return one.flag == "removed"
        case _:
            return False


def local_days(to_local: Callable[[datetime], datetime]) -> Calendar:
    """The calendar of a machine. `to_local`: a moment as the machine's clock on the wall shows it, with its offset;
    of a time without one, that it is meant so."""

    def day_of(at: int) -> str:
        try:
            moment = datetime.fromtimestamp(at // 1_000_000, UTC)
            return to_local(moment).date().isoformat()
        except (OverflowError, ValueError, OSError):  # the first or last hours of the calendar
            return UTC_DAYS.day_of(at)

    def start_of(day: date) -> int:
        try:
            midnight = to_local(datetime(day.year, day.month, day.day))  # noqa: DTZ001  meant in local time
            return (midnight - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        except (OverflowError, ValueError, OSError):
            return UTC_DAYS.start_of(day)

    return Calendar(name="local", day_of=day_of, start_of=start_of)
