"""The one slide of a phase: its headline, its foremost results on cards, the first of what it decided and left open.

A look at the phase, not the whole of it: what does not fit here stands on the slides after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from raddle.actions.presenting.document import Part
from raddle.actions.presenting.frame import fitted, frame, shade, shortened
from raddle.actions.presenting.measure import broken, line_height, width_of
from raddle.actions.presenting.slides import Box, Paragraph, Shape, Slide, Words, height_of
from raddle.actions.presenting.texts import counted

_GAP, _INSET = 16.0, 16.0
_CARD_HEIGHT, _MOST_CARDS = 116.0, 6
_VALUE_SIZES = (40.0, 34.0, 28.0, 24.0, 20.0)
_LABEL, _LABEL_LINES = 14.0, 2
_LEFT = 0.56
_FACTS = 13.0
_HEAD, _SAID = 13.0, 15.0
_MOST_SAID = 4
_SAID_LINES = 3

Card = tuple[str, str]


def phase_slide(part: Part, over: str) -> Slide:
    """`over`: what stands above the headline."""
    head = frame(over, part.headline)
    body = head.body
    facts = facts_of(part, body.width)
    shapes: list[Shape] = list(head.shapes)
    if facts:
        height = line_height(_FACTS)
        shapes.append(
            Words(
                box=Box(body.left, body.top + body.height - height, body.width, height),
                paragraphs=(Paragraph(text=facts, size=_FACTS, colour="soft"),),
            )
        )
        body = Box(body.left, body.top, body.width, body.height - height - _GAP)
    has_said = bool(part.decisions or part.questions)
    left = body.width * _LEFT if has_said else body.width
    in_a_row = 2 if has_said else 3
    cards = _cards(part, (left - _GAP * (in_a_row - 1)) / in_a_row)
    if cards:
        shapes += _placed(cards, Box(body.left, body.top, left, body.height), in_a_row)
    if has_said:
        start = left + _GAP * 1.5 if cards else 0.0
        shapes += _said(part, Box(body.left + start, body.top, body.width - start, body.height))
    return Slide(shapes=tuple(shapes))


def is_whole(part: Part, over: str) -> bool:
    """Does the slide of the phase have all of its headline?"""
    return not frame(over, part.headline).is_cut


def facts_of(part: Part, width: float) -> str:
    """What to go on with, whose words these are, and when, in a line; the artifacts are counted where they are many."""
    named = "Go on with " + ", ".join(part.artifacts)
    if not part.artifacts:
        named = ""
    elif not names_artifacts(part, width):
        named = f"{counted(len(part.artifacts), 'artifact')} to go on with"
    who = " ".join(filter(None, (part.published[:10], f"by {part.author}" if part.author else "")))
    rests = f"rests on {counted(len(part.evidence), 'conversation')}" if part.evidence else ""
    return shortened(" · ".join(filter(None, (named, who, rests))), _FACTS, width, 1)


def names_artifacts(part: Part, width: float) -> bool:
    """Are they few enough to be named in the line of facts?"""
    return width_of("Go on with " + ", ".join(part.artifacts), _FACTS) <= width * 0.6


def _cards(part: Part, width: float) -> list[Card]:
    """(Name, value) of the first results that a card can hold."""
    top = part.results[:1]
    room = width - 2 * _INSET
    found = [
        (row[0], row[1]) for table in top if not table.title for row in table.rows if _fits_a_card(row, room)
    ]
    return found[:_MOST_CARDS]


def _fits_a_card(row: Sequence[str], room: float) -> bool:
    name, value = row
    return (
        "\n" not in value
        and len(broken(value, _VALUE_SIZES[-1], room, bold=True)) == 1
        and len(broken(name, _LABEL, room)) <= _LABEL_LINES
    )


def _placed(cards: Sequence[Card], room: Box, in_a_row: int) -> list[Shape]:
    width = (room.width - _GAP * (in_a_row - 1)) / in_a_row
    rows = -(-len(cards) // in_a_row)
    height = min(_CARD_HEIGHT, (room.height - _GAP * (rows - 1)) / rows)
    inner = width - 2 * _INSET
    tries = [(one, 1) for one in _VALUE_SIZES]
    size = min(fitted(value, tries, inner, bold=True)[1] for _, value in cards)
    shapes: list[Shape] = []
    for at, (name, value) in enumerate(cards):
        across, down = at % in_a_row, at // in_a_row
        box = Box(room.left + across * (width + _GAP), room.top + down * (height + _GAP), width, height)
        shapes += _card(name, value, size, box)
    return shapes


def _card(name: str, value: str, size: float, box: Box) -> list[Shape]:
    room = box.width - 2 * _INSET
    text = (
        Paragraph(text=value, size=size, bold=True, colour="accent"),
        Paragraph(text=name, size=_LABEL, colour="soft"),
    )
    while height_of(text, room) > box.height and size > _LABEL:
        size -= 2.0
        text = (Paragraph(text=value, size=size, bold=True, colour="accent"), text[1])
    inner = Box(box.left + _INSET, box.top, room, box.height)
    return [
        shade(box, "panel"),
        Words(box=inner, paragraphs=text, anchor="middle"),
    ]


def _said(part: Part, box: Box) -> list[Shape]:
    """The first decisions and questions, each in a few lines, and how many more there are."""
    room = box.width - 2 * _INSET
    paragraphs: tuple[Paragraph, ...] = ()
    for most in range(_MOST_SAID, 0, -1):
        paragraphs = tuple(
            one
            for title, texts in (("Decided", part.decisions), ("Open", part.questions))
            for one in _first(title, texts, most, room)
        )
        if height_of(paragraphs, room) <= box.height - 2 * _INSET:
            break
    height = min(box.height, height_of(paragraphs, room) + 2 * _INSET)
    inner = Box(box.left + _INSET, box.top + _INSET, room, height - 2 * _INSET)
    return [
        shade(Box(box.left, box.top, box.width, height), "panel"),
        Words(box=inner, paragraphs=paragraphs),
    ]


def _first(title: str, texts: Sequence[str], most: int, room: float) -> list[Paragraph]:
    if not texts:
        return []
    lines = _SAID_LINES if most > 1 else 2
    head = Paragraph(text=title, size=_HEAD, colour="accent", bold=True, before=12.0)
    points = [
        Paragraph(
            text=shortened(text.replace("\n", " "), _SAID, room - _SAID * 1.1, lines),
            size=_SAID,
            is_point=True,
            before=5.0,
        )
        for text in texts[:most]
    ]
    left = len(texts) - most
    rest = [Paragraph(text=f"and {left:,} more", size=_HEAD, colour="soft", before=5.0)] if left > 0 else []
    return [head, *points, *rest]
