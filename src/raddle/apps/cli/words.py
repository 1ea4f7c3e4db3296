"""How things are worded for a person: times, counts, widths, colour. No I/O and no decision about a thread."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

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
_SHORT = {"second": "s", "minute": "min", "hour": "h", "day": "d", "week": "w", "month": "mo"}
_TURNING = [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]
CONTROL = dict.fromkeys([*range(32), *range(127, 160), *_TURNING])
"""Control characters, those that turn the direction of writing included: a title or a word of a transcript must
not move a terminal's cursor, change its colour or hide what follows it."""
_KEEP_LINES = {code: None for code in CONTROL if code not in (9, 10)}
_RETURNS = re.compile(r"\r\n?|[\u2028\u2029\x0b\x0c\x85]")
_NUMBER = re.compile(r"[\d,]+\Z")
_LEAST_COLUMN = 8
_TAIL, _LEAST_TAIL = 8, 6
"""Characters of the end of an id (`actions.threads.find_message` takes it from six on)."""


def ago(text: str, now: int, *, is_short: bool = False) -> str:
    """`2 hours ago` (short: `2h ago`), of RFC 3339 text and now in microseconds; a dash where nobody knows."""
    at = parse_time(text) if text else None
    if at is None or at == 0:
        return "–"
    seconds = (now - at) / 1_000_000
    if seconds < -60:
        return local_day(text)
    if seconds < 10:
        return "now" if is_short else "just now"
    for limit, unit, size in _STEPS:
        if seconds < limit:
            number = int(seconds // size)
            return f"{number}{_SHORT[unit]} ago" if is_short else f"{count(number, unit)} ago"
    return local_day(text)


def local_day(text: str) -> str:
    """The day in local time: `2026-11-30`."""
    return _local(text).date().isoformat()


def local_minute(text: str) -> str:
    """Day and minute in local time: `2026-11-30 09:52`; empty where nobody knows."""
    return _local(text).isoformat(" ", "minutes")[:16] if parse_time(text) else ""


def _local(text: str) -> datetime:
    moment = datetime.fromtimestamp(0, UTC)
    try:
        moment = datetime.fromtimestamp((parse_time(text) or 0) / 1_000_000, UTC)
        return moment.astimezone()
    except (
        OverflowError,
        ValueError,
        OSError,
    ):  # the first or last hours of the calendar, elsewhere on earth
        return moment


def count(number: int, noun: str) -> str:
    """`1 thread`, `1,204 threads`, `2 branches`."""
    plural = noun + ("es" if noun.endswith(("s", "x", "ch")) else "s")
    return f"{number:,} {noun if number == 1 else plural}"


def size(number: int) -> str:
    """`640 bytes`, `3.2 MB`: powers of a thousand, as disks are sold."""
    for unit, of in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= of:
            return f"{number / of:.1f} {unit}"
    return count(number, "byte")


def short_path(path: str) -> str:
    """`~` for the home folder."""
    home = os.path.expanduser("~")  # noqa: PTH111  shown, not opened
    if home.strip("/") and (path == home or path.startswith(home.rstrip("/") + "/")):
        return "~" + path[len(home.rstrip("/")) :]
    return path


def tail(message_id: str) -> str:
    """The end of a message's id, by which a person may name it: its start is a time, which neighbours share."""
    end = message_id[-_TAIL:].lstrip("_.:-")
    return end if len(end) >= _LEAST_TAIL else message_id


def one_line(text: str) -> str:
    """White space folded, control characters out: fit for a table's cell."""
    return " ".join(text.split()).translate(CONTROL)


def safe_lines(text: str) -> str:
    """Lines as they are, control characters out: fit for a terminal."""
    return _RETURNS.sub("\n", text).translate(_KEEP_LINES)


def width(text: str) -> int:
    """Columns on a terminal: wide characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in {"Mn", "Me", "Cf"} or "\u1160" <= character <= "\u11ff":
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
    return "".join(kept).rstrip() + "…" if columns > 0 else ""


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Filled with spaces to so many columns."""
    fill = " " * max(columns - width(text), 0)
    return fill + text if right else text + fill


def wrapped(text: str, columns: int) -> list[tuple[int, int]]:
    """Where one line breaks so that each part has at most so many columns: (start, end) of the parts.

    It breaks after a space where it can, and keeps the spaces that begin the line.
    """
    if not text or (text.isascii() and len(text) <= columns):
        return [(0, len(text))]
    return list(_broken(text, max(columns, 2)))


def _broken(text: str, columns: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        end, used = start, 0
        while end < len(text) and (used := used + _columns(text[end])) <= columns:
            end += 1
        space = text.rfind(" ", start, end + 1) if end < len(text) else -1
        if space > start and not text[start:space].isspace():
            end = space
        yield start, end
        start = end
        while space >= 0 and start < len(text) and text[start] == " ":
            start += 1


def table(
    rows: Sequence[Sequence[str]],
    limits: Sequence[int],
    *,
    styles: Sequence[str | None],
    width: int | None = None,
    shrink: Sequence[int] = (),
) -> list[str]:
    """Rows as lines with aligned columns, each cut at its limit; columns of numbers stand to the right.

    Where all are wider than `width`, the columns `shrink` give way, the first one first.
    """
    return [line.rstrip() for line in columns(rows, limits, styles=styles, width=width, shrink=shrink)]


def columns(
    rows: Sequence[Sequence[str]],
    limits: Sequence[int],
    *,
    styles: Sequence[str | None],
    width: int | None = None,
    shrink: Sequence[int] = (),
) -> list[str]:
    """The same, every line as wide as the others: something may follow."""
    widths = _widths(rows, limits, width, shrink)
    numeric = [_is_numeric([row[column] for row in rows]) for column in range(len(limits))]
    return [
        "  ".join(
            style(pad(cut(cell, widths[at]), widths[at], right=numeric[at]), styles[at])
            for at, cell in enumerate(row)
        )
        for row in rows
    ]


def _widths(
    rows: Sequence[Sequence[str]], limits: Sequence[int], room: int | None, shrink: Sequence[int]
) -> list[int]:
    widths = [
        min(max((width(row[column]) for row in rows), default=0), limit)
        for column, limit in enumerate(limits)
    ]
    if room is not None:
        for column in shrink:
            over = sum(widths) + 2 * (len(widths) - 1) - room
            widths[column] = max(widths[column] - max(over, 0), min(_LEAST_COLUMN, widths[column]))
    return widths


def _is_numeric(cells: Sequence[str]) -> bool:
    """Numbers, below a heading if there is one."""
    return any(map(_NUMBER.match, cells)) and all(map(_NUMBER.match, cells[1:]))


def style(text: str, colour: str | None) -> str:
    """`text` in a colour (or `bold`, `dim`); whoever prints it takes the colour away where no terminal listens."""
    bare = text.rstrip(" ")
    if colour is None or not bare:
        return text
    return _in(colour, bare) + text[len(bare) :]


def _in(colour: str, text: str) -> str:
    match colour:
        case "bold":
            return click.style(text, bold=True)
        case "dim":
            return click.style(text, dim=True)
        case _:
            return click.style(text, fg=colour)
