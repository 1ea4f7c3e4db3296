"""Moments as people type them."""

from __future__ import annotations

import pytest

from raddle.model.clock import format_time, parse_time
from raddle.model.threads.query_times import parse_moment

NOW = parse_time("2026-11-30T09:52:50Z") or 0


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-30", "2026-11-30T00:00:00.000000Z"),
        ("2026-1-2", "2026-01-02T00:00:00.000000Z"),
        ("2026-11", "2026-11-01T00:00:00.000000Z"),
        ("2026", "2026-01-01T00:00:00.000000Z"),
        ("2026-11-30T08:00:00+02:00", "2026-11-30T06:00:00.000000Z"),
        ("now", "2026-11-30T09:52:50.000000Z"),
        ("Today", "2026-11-30T00:00:00.000000Z"),
        ("yesterday", "2026-11-29T00:00:00.000000Z"),
        ("90s", "2026-11-30T09:51:20.000000Z"),
        ("30min", "2026-11-30T09:22:50.000000Z"),
        ("12h", "2026-11-29T21:52:50.000000Z"),
        ("7D", "2026-11-23T09:52:50.000000Z"),
        ("2w", "2026-11-16T09:52:50.000000Z"),
        ("1mo", "2026-10-31T09:52:50.000000Z"),
        ("1y", "2025-11-30T09:52:50.000000Z"),
    ],
)
def test_dates_times_and_how_long_ago(text: str, moment: str) -> None:
    found = parse_moment(text, NOW)
    assert found is not None
    assert format_time(found) == moment


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-13", "2026-02-30", "7m", "-7d", "7 d", "٢٠٢٦", "0000-01-01"]
)
def test_what_names_no_moment(text: str) -> None:
    assert parse_moment(text, NOW) is None
