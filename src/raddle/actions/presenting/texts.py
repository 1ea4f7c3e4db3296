"""Texts of handoffs as they are shown, whatever shows them: no character in them that a reader cannot see.

The one place that takes such characters out. A second one would let one through that turns the direction of a line, or
that no XML can hold, and a whole deck would not open.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any

NOTHING = "–"
_TURNING = "\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069"
_UNSEEN = re.compile(
    f"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\ufeff\ufff9-\ufffb{_TURNING}\ud800-\udfff\ufdd0-\ufdef]"
)
_BREAK = re.compile(r"\r\n?|[\n\x0b\x0c\x85\u2028\u2029]")
_MOST_MARKS = 4
_SIGNIFICANT = 6
_GREATEST, _LEAST = 1e15, 1e-4


def shown_lines(text: str) -> list[str]:
    """The lines of `text` that say something, white space folded in each."""
    return [line for part in _BREAK.split(text) if (line := " ".join(_seen(part).split()))]


def shown_line(text: str) -> str:
    """All of it in one line."""
    return " ".join(shown_lines(text))


def shown_text(text: str) -> str:
    """Its lines, with a newline between them."""
    return "\n".join(shown_lines(text))


def value_text(value: Any) -> str:
    """A value that holds no other ones, in words: a number with six significant digits, true as `yes`."""
    match value:
        case None | "":
            return NOTHING
        case bool():
            return "yes" if value else "no"
        case float():
            return _number(value)
        case str():
            return shown_text(value) or NOTHING
        case _:
            return shown_line(str(value))


def counted(number: int, noun: str) -> str:
    """`1 decision`, `2 decisions`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _seen(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    plain = "".join(
        "\ufffd" if ord(one) & 0xFFFE == 0xFFFE else one for one in _UNSEEN.sub("", text.replace("\t", " "))
    )
    return plain if plain.isascii() else _with_few_marks(plain)


def _with_few_marks(text: str) -> str:
    """Without the marks that would pile up on one letter, over the lines above it."""
    kept: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        if marks <= _MOST_MARKS:
            kept.append(character)
    return "".join(kept)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    size = abs(value)
    if size >= _GREATEST or size < _LEAST:
        return f"{value:.{_SIGNIFICANT}g}"
    places = max(2, _SIGNIFICANT - 1 - math.floor(math.log10(size)))
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".")
