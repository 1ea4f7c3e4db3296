"""Time as raddle counts it: whole microseconds since 1970, UTC; and RFC 3339 text of it.

Nothing below `wiring` reads a clock of the machine: a `Clock` is handed in, so that tests wind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], int]
"""Returns now, in microseconds since 1970-01-01T00:00:00Z."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)"
    r"(?:[.,](\d{1,9})\d*)?(?:([Zz])|([+-])([01]\d|2[0-3]):?([0-5]\d))?\Z",
    re.ASCII,
)
_USUAL_LENGTHS = (20, 24, 27)
"""Of `2026-11-30T09:52:50Z`, and of the same with milliseconds or microseconds."""
_MICROSECOND = timedelta(microseconds=1)
_LEAST = (datetime(1, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
_GREATEST = (datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC) - _EPOCH) // _MICROSECOND


def system_clock() -> int:
    """Now, by the machine's own clock, in microseconds."""
    import time  # the one place that asks the machine  # noqa: PLC0415

    return time.time_ns() // 1000


def format_time(microseconds: int) -> str:
    """Microseconds since 1970 as `2026-11-30T09:52:50.000001Z`; times outside the years 1 to 9999 are clamped."""
    clamped = min(max(microseconds, _LEAST), _GREATEST)
    moment = _EPOCH + timedelta(microseconds=clamped)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def parse_time(text: str) -> int | None:
    """RFC 3339 text (no zone = UTC, any fraction) as microseconds since 1970; None where it is not a time."""
    if text[-1:] == "Z" and text[4:5] == text[7:8] == "-" and len(text) in _USUAL_LENGTHS and text[10] == "T":
        try:  # what every agent writes, a million times: the parser in C takes a fifth of the time
            return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND
        except ValueError:
            pass  # a leap second, or no time at all: told apart below
    found = _TIME.match(text)
    if found is None:
        return None
    year, month, day, hour, minute, second, fraction, _, sign, zone_hours, zone_minutes = found.groups()
    leap = second == "60"
    try:
        moment = datetime(
            int(year), int(month), int(day), int(hour), int(minute), 59 if leap else int(second), tzinfo=UTC
        )
    except ValueError:
        return None
    micros = (moment - _EPOCH) // _MICROSECOND + (1_000_000 if leap else 0)
    if fraction:
        micros += int(fraction[:6].ljust(6, "0"))
    if sign:
        offset = (int(zone_hours) * 60 + int(zone_minutes)) * 60_000_000
        micros += offset if sign == "-" else -offset
    return micros
