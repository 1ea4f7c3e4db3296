"""How things are worded for a person: times, counts, widths, and text that a terminal can be trusted with."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.apps.cli import words
from raddle.model.clock import format_time
from tests.builders import NOON, SECOND

TEXTS = st.text(
    st.one_of(st.characters(), st.sampled_from("ab \t\n東京e\u0301👨\u200d👩\u202e\x1b\r\u2028")), max_size=60
)


@pytest.mark.parametrize(
    ("seconds", "worded", "short"),
    [
        (0, "just now", "now"),
        (9, "just now", "now"),
        (10, "10 seconds ago", "10s ago"),
        (60, "1 minute ago", "1min ago"),
        (3600, "1 hour ago", "1h ago"),
        (2 * 3600, "2 hours ago", "2h ago"),
        (86_400, "1 day ago", "1d ago"),
        (13 * 86_400, "13 days ago", "13d ago"),
        (14 * 86_400, "2 weeks ago", "2w ago"),
        (60 * 86_400, "2 months ago", "2mo ago"),
        (800 * 86_400, "2024-09-21", "2024-09-21"),
        (-61, "2026-11-30", "2026-11-30"),
    ],
)
def test_an_age_is_told_in_the_unit_that_fits(seconds: int, worded: str, short: str) -> None:
    at = format_time(NOON - seconds * SECOND)
    assert words.ago(at, NOON) == worded
    assert words.ago(at, NOON, is_short=True) == short


@pytest.mark.parametrize("text", ["", "yesterday", "1970-01-01T00:00:00Z"])
def test_an_age_that_nobody_knows_is_a_dash(text: str) -> None:
    assert words.ago(text, NOON) == "–"


@given(st.integers(-(10**18), 10**18))
def test_every_time_has_a_day_and_a_minute(at: int) -> None:
    text = format_time(at)
    assert len(words.local_day(text)) >= 8
    assert words.local_minute(text).startswith(words.local_day(text)) or not words.local_minute(text)
    assert words.ago(text, NOON)


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue", "UTC"])
@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
def test_the_ends_of_the_calendar_are_times_everywhere(
    text: str, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert words.local_minute(text)
    finally:
        monkeypatch.setenv("TZ", "UTC")
        time.tzset()


@pytest.mark.parametrize(
    ("number", "noun", "worded"),
    [
        (0, "thread", "0 threads"),
        (1, "branch", "1 branch"),
        (2, "branch", "2 branches"),
        (1204, "message", "1,204 messages"),
    ],
)
def test_a_count_agrees_with_its_noun(number: int, noun: str, worded: str) -> None:
    assert words.count(number, noun) == worded


@pytest.mark.parametrize(
    ("number", "worded"), [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (3_210_000, "3.2 MB")]
)
def test_a_size_is_told_in_the_unit_that_fits(number: int, worded: str) -> None:
    assert words.size(number) == worded


def test_a_path_below_the_home_folder_starts_with_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert words.short_path("/home/ada/src/moth") == "~/src/moth"
    assert words.short_path("/home/ada") == "~"
    assert words.short_path("/home/adam/src") == "/home/adam/src"
    monkeypatch.setenv("HOME", "/")
    assert words.short_path("/srv/moth") == "/srv/moth"


@given(TEXTS)
def test_one_line_is_one_line_that_moves_no_cursor(text: str) -> None:
    line = words.one_line(text)
    assert len(line.splitlines()) <= 1
    assert all(unicodedata.category(character) != "Cc" for character in line)
    assert "\u202e" not in line
    assert not line.startswith(" ")


@given(TEXTS)
def test_lines_keep_their_breaks_and_lose_what_moves_the_cursor(text: str) -> None:
    kept = words.safe_lines(text)
    assert all(
        unicodedata.category(character) != "Cc" for character in kept.replace("\n", "").replace("\t", "")
    )
    assert "\u202e" not in kept
    if text.isprintable():
        assert kept == "".join(character for character in text if ord(character) not in words.CONTROL)


def test_a_progress_bar_drawn_by_returns_stays_readable() -> None:
    assert words.safe_lines("10%\r20%\r\ndone") == "10%\n20%\ndone"


@pytest.mark.parametrize(
    ("text", "columns"), [("moth", 4), ("東京湾", 6), ("e\u0301", 1), ("ä", 1), ("한글", 4), ("👩\u200d", 2)]
)
def test_wide_characters_take_two_columns_and_marks_none(text: str, columns: int) -> None:
    assert words.width(text) == columns


@given(TEXTS.map(words.one_line), st.integers(1, 40))
def test_a_cut_text_fits_and_says_that_it_was_cut(text: str, columns: int) -> None:
    cut = words.cut(text, columns)
    assert words.width(cut) <= columns
    if words.width(text) <= columns:
        assert cut == text
    else:
        assert cut.endswith("…")
        assert text.startswith(cut[:-1])


@given(TEXTS.map(words.one_line), st.integers(2, 30))
def test_a_wrapped_line_loses_nothing_but_spaces_and_fits(text: str, columns: int) -> None:
    parts = [text[start:end] for start, end in words.wrapped(text, columns)]
    assert all(words.width(part) <= columns for part in parts)
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")
    assert parts


def test_a_line_is_wrapped_after_a_word_where_there_is_one() -> None:
    parts = _parts("never hold a lock for longer than a moment", 12)
    assert parts == ["never hold a", "lock for", "longer than", "a moment"]


def test_a_long_word_is_broken_where_it_must_be() -> None:
    assert _parts("see /a/very/long/path now", 8) == ["see", "/a/very/", "long/pat", "h now"]


def test_the_indentation_of_code_is_kept() -> None:
    assert _parts("    return value", 10) == ["    return", "value"]


def _parts(text: str, columns: int) -> list[str]:
    return [text[start:end] for start, end in words.wrapped(text, columns)]


def test_a_table_is_aligned_under_wide_characters_too() -> None:
    rows = [("名前", "first"), ("name", "second"), ("e\u0301", "third")]
    lines = words.table(rows, (10, 10), styles=(None, None))
    assert [words.width(line[: line.index(row[1])]) for line, row in zip(lines, rows, strict=True)] == [6] * 3


def test_numbers_stand_to_the_right_under_their_heading() -> None:
    rows = [("agent", "new"), ("claude-code", "1,204"), ("codex", "7")]
    assert words.table(rows, (20, 20), styles=(None, None)) == [
        "agent          new",
        "claude-code  1,204",
        "codex            7",
    ]


def test_no_line_of_a_table_ends_in_spaces() -> None:
    rows = [("a", "long enough", ""), ("b", "", "x")]
    assert [line.rstrip() for line in words.table(rows, (5, 20, 5), styles=(None, "dim", None))] == (
        words.table(rows, (5, 20, 5), styles=(None, "dim", None))
    )


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=4), st.integers(40, 90))
def test_a_table_fits_the_width_it_is_given(rows: list[tuple[str, str, str]], room: int) -> None:
    cells = [tuple(map(words.one_line, row)) for row in rows]
    lines = words.table(cells, (80, 80, 80), styles=(None, None, None), width=room, shrink=(2, 1, 0))
    assert all(words.width(line) <= room for line in lines)


@pytest.mark.parametrize(
    ("message_id", "tail"),
    [
        ("10018197-1655-8780-99d6-93421e862d47", "1e862d47"),
        ("m1", "m1"),
        ("msg_-_ab", "msg_-_ab"),
        ("0123_-_-_-_ab", "0123_-_-_-_ab"),
    ],
)
def test_a_message_is_called_by_the_end_of_its_id(message_id: str, tail: str) -> None:
    assert words.tail(message_id) == tail
