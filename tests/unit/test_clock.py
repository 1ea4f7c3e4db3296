"""Time as whole microseconds and as RFC 3339 text, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.model.clock import format_time, parse_time, system_clock

YEAR_ONE, YEAR_9999 = -62_135_596_800_000_000, 253_402_300_799_999_999


@given(st.integers(YEAR_ONE, YEAR_9999))
def test_what_is_formatted_reads_back(microseconds: int) -> None:
    assert parse_time(format_time(microseconds)) == microseconds


@given(st.integers(YEAR_ONE, YEAR_9999), st.integers(YEAR_ONE, YEAR_9999))
def test_text_sorts_as_time_does(one: int, other: int) -> None:
    assert (format_time(one) < format_time(other)) == (one < other)


@given(st.text())
def test_whatever_is_parsed_is_a_time_or_nothing(text: str) -> None:
    found = parse_time(text)
    assert found is None or isinstance(found, int)


@pytest.mark.parametrize(
    ("far", "shown"), [(10**20, "9999-12-31T23:59:59.999999Z"), (-(10**20), "0001-01-01T00:00:00.000000Z")]
)
def test_times_outside_the_calendar_are_clamped(far: int, shown: str) -> None:
    assert format_time(far) == shown


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-30T09:52:50.000001Z",
        "2026-11-30t09:52:50.000001z",
        "2026-11-30 09:52:50,000001",
        "2026-11-30T10:52:50.000001+01:00",
        "2026-11-30T04:22:50.000001-0530",
        "2026-11-30T09:52:50.000001999999Z",
    ],
)
def test_one_moment_has_many_spellings(text: str) -> None:
    assert parse_time(text) == 1_796_032_370_000_001


@pytest.mark.parametrize(
    "text",
    [
        "",
        "noon",
        "2026-11-30",
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-11-30T25:00:00Z",
        "2026-11-30T09:52:50Z\n",
        "2026-11-30T09:52:50+24:00",
        "2026-11-30T09:52:50+01:60",
        "٢٠٢٦-11-30T09:52:50Z",
        "1796032370",
    ],
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert parse_time(text) is None


def test_a_leap_second_is_the_next_minute() -> None:
    assert parse_time("2016-12-31T23:59:60Z") == parse_time("2017-01-01T00:00:00Z")


def test_a_fraction_of_any_length_is_cut_to_microseconds() -> None:
    second = parse_time("2026-11-30T09:52:50Z") or 0
    assert parse_time("2026-11-30T09:52:50.5Z") == second + 500_000
    assert parse_time("2026-11-30T09:52:50.123456789Z") == second + 123_456


def test_the_system_clock_counts_microseconds() -> None:
    assert 1_700_000_000_000_000 < system_clock() < YEAR_9999
