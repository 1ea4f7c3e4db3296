"""Slides as values: what stands where, in points, for whatever program draws them.

Owns the shapes and the looks that they share (sizes, colours by name, the room a slide has). What no shape here can say
does not come onto a slide.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from raddle.actions.presenting.measure import broken, line_height

WIDTH, HEIGHT = 960.0, 540.0
"""Points: 13⅓ by 7½ inches."""
EDGE = 48.0
"""What stays free on the left and on the right."""

Colour = Literal["ink", "soft", "accent", "paper", "panel", "night", "mist"]
Align = Literal["left", "right", "center"]
Anchor = Literal["top", "middle", "bottom"]

INDENT = 1.1
"""Of a bullet, in font sizes."""
CELL_SIDE, CELL_TOP = 7.0, 4.0
"""Points between the edge of a cell and its text."""


class Box(Struct, frozen=True):
    """A place on a slide."""

    left: float
    top: float
    width: float
    height: float


class Paragraph(Struct, frozen=True, kw_only=True):
    """A newline in `text` breaks the line. `before`: points above it. `is_point`: it has a bullet."""

    text: str
    size: float
    colour: Colour = "ink"
    bold: bool = False
    is_point: bool = False
    align: Align = "left"
    before: float = 0.0


class Words(Struct, frozen=True, kw_only=True):
    """Paragraphs in a box, without space around them unless it has a `fill`. `is_title`: it is what the slide is called
    in a list of slides."""

    box: Box
    paragraphs: tuple[Paragraph, ...]
    anchor: Anchor = "top"
    fill: Colour | None = None
    inset: float = 0.0
    is_title: bool = False


class Grid(Struct, frozen=True, kw_only=True):
    """A table; the first row is its header. `heights` and `widths`: points, of each row and column."""

    box: Box
    widths: tuple[float, ...]
    heights: tuple[float, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    size: float


class Image(Struct, frozen=True, kw_only=True):
    """A picture. `description`: for who cannot see it."""

    box: Box
    data: bytes
    description: str


class Bar(Struct, frozen=True, kw_only=True):
    """A rectangle of one colour."""

    box: Box
    fill: Colour


Shape = Words | Grid | Image | Bar


class Slide(Struct, frozen=True, kw_only=True):
    """Shapes, the ones behind first."""

    shapes: tuple[Shape, ...]
    background: Colour = "paper"


class Deck(Struct, frozen=True, kw_only=True):
    """`published`: RFC 3339 of what is newest in it; empty where nobody knows. `author`: whose words these are."""

    title: str
    slides: tuple[Slide, ...]
    published: str = ""
    author: str = ""


def height_of(paragraphs: tuple[Paragraph, ...], width: float) -> float:
    """How high paragraphs stand at most in a box as wide as that, without the space above the first one."""
    total = 0.0
    for at, one in enumerate(paragraphs):
        total += lines_in(one, width) * line_height(one.size) + (one.before if at else 0.0)
    return total


def lines_in(one: Paragraph, width: float) -> int:
    """How many lines a paragraph makes at most."""
    return len(broken(one.text, one.size, room_of(one, width), bold=one.bold))


def room_of(one: Paragraph, width: float) -> float:
    """What a bullet leaves of the width."""
    return width - (INDENT * one.size if one.is_point else 0.0)


def cell_height(text: str, size: float, width: float, *, bold: bool = False) -> float:
    """How high a cell is at most, in a column as wide as that."""
    lines = len(broken(text, size, width - 2 * CELL_SIDE, bold=bold))
    return lines * line_height(size) + 2 * CELL_TOP
