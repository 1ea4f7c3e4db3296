"""How things are worded for a person: times, counts, widths, colour. No I/O and no decision about a thread."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import datetime

import click

from raddle.model.clock import parse_time

_STEPS = (
    (60, "second", 1),
    (3600, "minute", 60),
    (86400, "hour", 3600),
    (86400 * 14, "day", 86400),
    (86400 * 60, "week", 86400 * 7),
    (86400 * 365 * 2, "month", 86400 * 30),
)
CONTROL = dict.fromkeys([*range(32), *range(127, 160)])
"""Control characters: a title or a word of a transcript must not move a terminal's cursor or colour."""
_KEEP_LINES = {code: None for code in CONTROL if code not in (9, 10)}


def ago(text: str, now: int) -> str:
    """`2 hours ago`, of RFC 3339 text and now in microseconds; a dash where nobody knows."""
    at = parse_time(text) if text else None
    if at is None or at == 0:
        return "–"
    seconds = (now - at) / 1_000_000
    if seconds < -60:
        return local_day(text)
    if seconds < 10:
        return "just now"
    for limit, unit, size in _STEPS:
        if seconds < limit:
            return f"{count(int(seconds // size), unit)} ago"
    return local_day(text)


def local_day(text: str) -> str:
    """The day in local time: `2026-11-30`."""
    return _local(text).strftime("%Y-%m-%d")


def local_minute(text: str) -> str:
    """Day and minute in local time: `2026-11-30 09:52`; empty where nobody knows."""
    return _local(text).strftime("%Y-%m-%d %H:%M") if parse_time(text) else ""


def _local(text: str) -> datetime:
    return datetime.fromtimestamp((parse_time(text) or 0) / 1_000_000).astimezone()


def count(number: int, noun: str) -> str:
    """`1 thread`, `1,204 threads`, `2 branches`."""
    plural = noun + ("es" if noun.endswith(("s", "x", "ch")) else "s")
    return f"{number:,} {noun if number == 1 else plural}"


def one_line(text: str) -> str:
    """White space folded, control characters out: fit for a table's cell."""
    return " ".join(text.split()).translate(CONTROL)


def safe_lines(text: str) -> str:
    """Lines as they are, control characters out: fit for a terminal."""
    return text.translate(_KEEP_LINES)


def width(text: str) -> int:
    """Columns on a terminal: wide characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or character in "\u200b\u200d\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, columns: int) -> str:
    """At most so many columns, an ellipsis at the end where something went."""
    if width(text) <= columns:
        return text
    kept, used = [], 0
    for character in text:
        used += _columns(character)
        if used > columns - 1:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…"


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Filled with spaces to so many columns."""
    fill = " " * max(columns - width(text), 0)
    return fill + text if right else text + fill


def table(rows: Sequence[Sequence[str]], limits: Sequence[int], *, styles: Sequence[str | None]) -> list[str]:
    """Rows as lines with aligned columns, each cut at its limit; the last column is not padded."""
    cells = [[cut(cell, limit) for cell, limit in zip(row, limits, strict=True)] for row in rows]
    widths = [max((width(row[column]) for row in cells), default=0) for column in range(len(limits))]
    lines = []
    for row in cells:
        parts = []
        for column, cell in enumerate(row):
            padded = cell if column == len(row) - 1 else pad(cell, widths[column])
            parts.append(style(padded, styles[column]))
        lines.append("  ".join(parts).rstrip())
    return lines


def style(text: str, colour: str | None) -> str:
    """`text` in a colour (or `bold`, `dim`); click takes the colour away where no terminal listens."""
    match colour:
        case None:
            return text
        case "bold":
            return click.style(text, bold=True)
        case "dim":
            return click.style(text, dim=True)
        case _:
            return click.style(text, fg=colour)
