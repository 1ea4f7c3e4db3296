"""Moments as people type them in `before:` and `after:`. Owns the words for time; they mean UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from raddle.model.clock import parse_time

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_UNITS = {
    "s": _SECOND,
    "min": 60 * _SECOND,
    "h": 3600 * _SECOND,
    "d": _DAY,
    "w": 7 * _DAY,
    "mo": 30 * _DAY,
    "y": 365 * _DAY,
}
_AGO = re.compile(r"(\d{1,6})(s|min|h|d|w|mo|y)\Z", re.IGNORECASE | re.ASCII)
_DATE = re.compile(r"(\d{4})(?:-(\d\d?)(?:-(\d\d?))?)?\Z", re.ASCII)


def parse_moment(text: str, now: int) -> int | None:
    """The moment in microseconds since 1970; None where `text` names none.

    `2026`, `2026-11`, `2026-11-30` (their first moment), RFC 3339, `30min 12h 7d 2w 3mo 1y` (that long before
    `now`; a month is 30 days, a year 365), `today`, `yesterday`, `now`.
    """
    text = text.strip()
    named = {"now": now, "today": now - now % _DAY, "yesterday": now - now % _DAY - _DAY}
    if text.lower() in named:
        return named[text.lower()]
    ago = _AGO.match(text)
    if ago is not None:
        return now - int(ago[1]) * _UNITS[ago[2].lower()]
    date = _DATE.match(text)
    if date is None:
        return parse_time(text)
    try:
        moment = datetime(int(date[1]), int(date[2] or 1), int(date[3] or 1), tzinfo=UTC)
    except ValueError:
        return None
    return (moment - _EPOCH) // timedelta(microseconds=1)
