"""How much room text takes on a slide, before any program has drawn it: never less than it will take.

The one place that knows. Whoever opens the slides has fonts that nobody here knows of, so a character is as wide as in
the wider of Arial and DejaVu Sans, which stand in for each other, and an East Asian one a whole square. A break is
counted on only where every program makes one. What is wider than a line is broken anywhere, as all of them do.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterator

LEADING = 1.25
"""Height of a line, in font sizes; the slides say it in points, so that a taller font does not raise it."""

_BY_WIDTH = {
    0.28: "'ijl",
    0.30: "I",
    0.32: " ,.",
    0.34: "/:;\\|",
    0.36: "f",
    0.38: "-",
    0.40: "()[]t",
    0.42: "!r",
    0.46: '"',
    0.50: "*_`J",
    0.54: "sz",
    0.56: "?Lc",
    0.58: "k",
    0.60: "vxy",
    0.62: "TFaeo",
    0.64: "$0123456789bdghnpqu{}",
    0.70: "ABEKPSVXYZ",
    0.74: "CRU",
    0.76: "HN",
    0.78: "&DG",
    0.80: "OQ",
    0.82: "w",
    0.84: "#+<=>^~",
    0.88: "M",
    0.96: "%",
    0.98: "m",
    1.02: "@W",
}
_WIDTHS = {character: width for width, characters in _BY_WIDTH.items() for character in characters}
_BOLD, _BOLD_NARROW, _NARROW = 1.17, 1.26, 0.5
_SQUARE, _EMOJI, _OTHER = 1.02, 1.4, 1.05
_FIRST_WIDE_ALPHABET, _FIRST_EMOJI = "\u0400", "\U0001f000"
_UPPER, _LOWER, _WIDE_UPPER, _WIDE_LOWER = 0.92, 0.74, 1.12, 0.96
_LIGATURES = "æœǆǉǌÆŒ"


@functools.lru_cache(maxsize=20_000)
def _character(character: str, bold: bool) -> float:
    width = _WIDTHS.get(character)
    if width is None:
        width = _foreign(character)
    return width * (_BOLD_NARROW if width < _NARROW else _BOLD) if bold else width


def _foreign(character: str) -> float:
    category = unicodedata.category(character)
    if category in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return _EMOJI if character >= _FIRST_EMOJI and category == "So" else _SQUARE
    if character in _LIGATURES or category not in ("Ll", "Lu"):
        return _EMOJI if character >= _FIRST_EMOJI else _OTHER
    if character < _FIRST_WIDE_ALPHABET:
        return _UPPER if category == "Lu" else _LOWER
    return _WIDE_UPPER if category == "Lu" else _WIDE_LOWER


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """How wide one line of text is at most, in the unit of `size`."""
    return size * sum(_character(character, bold) for character in text)


def line_height(size: float) -> float:
    """The height of a line in a font of that size."""
    return size * LEADING


def broken(text: str, size: float, width: float, *, bold: bool = False) -> list[tuple[int, int]]:
    """The lines that `text` makes in a box as wide as `width`: (start, end) of each, spaces between them left out.

    There are never more than these when a program draws it.
    """
    lines: list[tuple[int, int]] = []
    start = 0
    for line in text.split("\n"):
        room = width / size
        if may_break_inside(line):
            room -= 1.0  # a mark that may not begin a line takes the character before it along
        lines += [(start + first, start + last) for first, last in _lines(line, room, bold=bold)]
        start += len(line) + 1
    return lines


def may_break_inside(text: str) -> bool:
    """Is there a character after which a line may end without a space?"""
    return not text.isascii() and any(map(_breaks_after, text))


def widest_word(text: str, size: float, *, bold: bool = False) -> float:
    """How wide the widest of its parts is that need not be broken."""
    return max(
        (
            width_of(text[first:last], size, bold=bold)
            for line in _with_places(text)
            for first, last in _words(text, *line)
        ),
        default=0.0,
    )


def _with_places(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in text.split("\n"):
        yield start, start + len(line)
        start += len(line) + 1


def _lines(line: str, room: float, *, bold: bool) -> Iterator[tuple[int, int]]:
    begin, end, used = 0, 0, 0.0
    for first, last in _words(line, 0, len(line)):
        gap = sum(_character(character, bold) for character in line[end:first])
        wide = sum(_character(character, bold) for character in line[first:last])
        if used + gap + wide <= room:
            end, used = last, used + gap + wide
            continue
        if end > begin:
            yield begin, end
        begin, end, used = first, last, wide
        while used > room:
            cut = _fitting(line, begin, end, room, bold=bold)
            yield begin, cut
            used -= sum(_character(character, bold) for character in line[begin:cut])
            begin = cut
    yield begin, max(begin, end)


def _fitting(line: str, begin: int, end: int, room: float, *, bold: bool) -> int:
    """Where a word that is wider than the room is cut; after one character at least."""
    used, at = 0.0, begin
    while at < end:
        used += _character(line[at], bold)
        if used > room and at > begin:
            break
        at += 1
    while begin < at < end and unicodedata.combining(line[at]):
        at += 1
    return at


def _words(line: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a line between which it may be broken."""
    begin = start
    for at in range(start, end):
        if line[at] == " ":
            if at > begin:
                yield begin, at
            begin = at + 1
        elif _breaks_after(line[at]):
            yield begin, at + 1
            begin = at + 1
    if end > begin:
        yield begin, end


def _breaks_after(character: str) -> bool:
    """Chinese and Japanese; of Korean some programs break only the words apart."""
    return (
        "\u3000" <= character <= "\u9fff"
        or "\uff00" <= character <= "\uff60"
        or "\U00020000" <= character <= "\U0003ffff"
    )
