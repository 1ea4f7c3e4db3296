"""What every slide has around what it says: its title, where it belongs, and a foot with its number.

Owns the room that is left for the rest, so that nothing is laid over a title, however long that is.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from raddle.actions.presenting.measure import broken, line_height, width_of
from raddle.actions.presenting.slides import (
    EDGE,
    WIDTH,
    Bar,
    Box,
    Colour,
    Paragraph,
    Shape,
    Slide,
    Words,
)

INNER = WIDTH - 2 * EDGE
_OVER_TITLE, _TITLE_TOP, _AFTER_TITLE = 27.0, 47.0, 16.0
_FOOT_LINE, _FOOT_TOP, _FOOT_SIZE, _FOOT_NUMBER = 500.0, 507.0, 10.0, 60.0
_BODY_END = 488.0
_SMALL = 12.0
_TITLES = ((28.0, 2), (24.0, 2), (20.0, 3))
"""(Size, lines) that are tried for a title, one after the other; what is longer is cut."""


class Frame(Struct, frozen=True, kw_only=True):
    """`body`: the room for the rest. `is_cut`: the title is not whole."""

    shapes: tuple[Shape, ...]
    body: Box
    is_cut: bool


def frame(over: str, title: str) -> Frame:
    """The head of a slide. `over`: where it belongs, in small letters above the title."""
    lines, size, is_cut = fitted(title, _TITLES, INNER, bold=True)
    height = len(broken(lines, size, INNER, bold=True)) * line_height(size)
    top = _TITLE_TOP + height + _AFTER_TITLE
    small = Paragraph(
        text=shortened(over, _SMALL, INNER, 1, bold=True), size=_SMALL, colour="accent", bold=True
    )
    shapes: tuple[Shape, ...] = (
        Bar(box=Box(0.0, _OVER_TITLE, 6.0, _TITLE_TOP + height - _OVER_TITLE), fill="accent"),
        Words(box=Box(EDGE, _OVER_TITLE, INNER, line_height(_SMALL)), paragraphs=(small,)),
        Words(
            box=Box(EDGE, _TITLE_TOP, INNER, height),
            paragraphs=(Paragraph(text=lines, size=size, bold=True),),
            is_title=True,
        ),
    )
    return Frame(shapes=shapes, body=Box(EDGE, top, INNER, _BODY_END - top), is_cut=is_cut)


def with_feet(slides: Sequence[Slide], about: str, *, first: int) -> list[Slide]:
    """Slides with their numbers, counted from `first` on, and what they are about."""
    return [_with_foot(slide, about, number) for number, slide in enumerate(slides, start=first)]


def _with_foot(slide: Slide, about: str, number: int) -> Slide:
    room = INNER - _FOOT_NUMBER
    text = shortened(about, _FOOT_SIZE, room, 1)
    height = line_height(_FOOT_SIZE)
    foot: tuple[Shape, ...] = (
        Bar(box=Box(EDGE, _FOOT_LINE, INNER, 0.75), fill="mist"),
        Words(
            box=Box(EDGE, _FOOT_TOP, room, height),
            paragraphs=(Paragraph(text=text, size=_FOOT_SIZE, colour="soft"),),
        ),
        Words(
            box=Box(EDGE + room, _FOOT_TOP, _FOOT_NUMBER, height),
            paragraphs=(Paragraph(text=str(number), size=_FOOT_SIZE, colour="soft", align="right"),),
        ),
    )
    return replace(slide, shapes=(*slide.shapes, *foot))


def fitted(
    text: str, tries: Sequence[tuple[float, int]], width: float, *, bold: bool = False
) -> tuple[str, float, bool]:
    """(The text, its size, was it cut?): in the first (size, lines) of `tries` that holds it, else cut in the last."""
    size, most = tries[-1]
    for one, lines in tries:
        if len(broken(text, one, width, bold=bold)) <= lines:
            return text, one, False
    return shortened(text, size, width, most, bold=bold), size, True


def shortened(text: str, size: float, width: float, most: int, *, bold: bool = False) -> str:
    """At most so many lines of it, with an ellipsis where something went."""
    lines = broken(text, size, width, bold=bold)
    if len(lines) <= most:
        return text
    start, end = lines[most - 1]
    last = text[start:end]
    while last and width_of(f"{last}…", size, bold=bold) > width - size:
        last = last[:-1]
    cut = f"{(text[:start] + last).rstrip()}…"
    while len(broken(cut, size, width, bold=bold)) > most and len(cut) > 1:
        cut = f"{cut[:-2].rstrip()}…"
    return cut


def shade(box: Box, fill: Colour) -> Bar:
    """A panel behind other shapes."""
    return Bar(box=box, fill=fill)
