"""A presentation as slides: a title, a slide for each phase, then the results, figures, decisions and open questions.

What the handoffs say is on some slide, whole: long texts and tables go on over several. Ids of conversations, which
nobody reads from a wall, are only counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from raddle.actions.presenting.document import Document, Figure, Part
from raddle.actions.presenting.frame import INNER, fitted, frame, shortened, with_feet
from raddle.actions.presenting.grids import grids_of
from raddle.actions.presenting.lists import Heading, pages_of
from raddle.actions.presenting.measure import broken, line_height
from raddle.actions.presenting.phase_slide import is_whole, names_artifacts, phase_slide
from raddle.actions.presenting.pictures import NoPicture, Picture
from raddle.actions.presenting.slides import (
    EDGE,
    HEIGHT,
    Bar,
    Box,
    Deck,
    Image,
    Paragraph,
    Shape,
    Slide,
    Words,
    height_of,
)
from raddle.actions.presenting.tables import Table

DECK = "deck.pptx"
_LONGEST_HEADLINE = 2_000
"""Of which a slide shows what fits; the report has all of it."""
MOST_PAGES = 40
"""Slides of one table or list: who wants to see more of it reads the report."""
_TITLES = ((48.0, 2), (40.0, 2), (32.0, 3), (24.0, 4))
_CHAINS = ((20.0, 2), (16.0, 3), (14.0, 4))
_LARGEST_POINT = 1.5
"""Points for a pixel: a small picture is not blown up beyond that."""
_SMALL = 14.0


def deck_of(document: Document) -> Deck:
    """The slides of a presentation."""
    parts = tuple(replace(part, headline=part.headline[:_LONGEST_HEADLINE]) for part in document.parts)
    slides = [
        *(slide for number, part in enumerate(parts, start=1) for slide in _phase(part, number, len(parts))),
        *_results(parts),
        *_figures(parts),
        *_lists("Decisions", [(part.phase, part.decisions) for part in parts]),
        *_lists("Open questions", [(part.phase, part.questions) for part in parts]),
        *_lists(
            "Artifacts to go on with",
            [(part.phase, () if names_artifacts(part, INNER) else part.artifacts) for part in parts],
        ),
    ]
    about = f"{document.title} · run {document.run_id}"
    authors = dict.fromkeys(part.author for part in parts if part.author)
    return Deck(
        title=document.title,
        slides=(_title(document), *with_feet(slides, about, first=2)),
        published=document.published,
        author=", ".join(authors),
    )


def _title(document: Document) -> Slide:
    title, size, _ = fitted(document.title, _TITLES, INNER, bold=True)
    height = len(broken(title, size, INNER, bold=True)) * line_height(size)
    chain, chain_size, _ = fitted(" → ".join(part.phase for part in document.parts), _CHAINS, INNER)
    lines = [Paragraph(text=chain, size=chain_size, colour="paper")]
    facts = f"Run {document.run_id}" + (f" · {document.published[:10]}" if document.published else "")
    lines.append(Paragraph(text=facts, size=_SMALL, colour="mist", before=10.0))
    if document.silent:
        silent = shortened(f"Nothing handed on yet: {', '.join(document.silent)}", _SMALL, INNER, 2)
        lines.append(Paragraph(text=silent, size=_SMALL, colour="mist", before=4.0))
    below = height_of(tuple(lines), INNER)
    top = max((HEIGHT - height - below - 40.0) / 2, EDGE)
    return Slide(
        background="night",
        shapes=(
            Bar(box=Box(EDGE, top - 18.0, 56.0, 5.0), fill="accent"),
            Words(
                box=Box(EDGE, top, INNER, height),
                paragraphs=(Paragraph(text=title, size=size, bold=True, colour="paper"),),
                is_title=True,
            ),
            Words(box=Box(EDGE, top + height + 20.0, INNER, below), paragraphs=tuple(lines)),
        ),
    )


def _phase(part: Part, number: int, of: int) -> Iterator[Slide]:
    over = part.phase if of == 1 else f"{part.phase} · {number} of {of}"
    yield phase_slide(part, over)
    if not is_whole(part, over):
        yield from _pages(
            [(("", [part.headline]))], f"{part.phase} · the headline", part.phase, are_points=False
        )


def _results(parts: Sequence[Part]) -> Iterator[Slide]:
    """What stands at the top of each phase's results in one table, then the nested ones."""
    tops = [(part, table) for part in parts for table in part.results if not table.title]
    if tops:
        is_one = len(parts) == 1
        rows = [row if is_one else (part.phase, *row) for part, table in tops for row in table.rows]
        header = ("Result", "Value") if is_one else ("Phase", "Result", "Value")
        over = parts[0].phase if is_one else "All phases"
        yield from _tables(Table(title="", header=header, rows=tuple(rows)), over, "Results")
    for part in parts:
        for table in part.results:
            if table.title:
                yield from _tables(table, f"{part.phase} · results", table.title)


def _tables(table: Table, over: str, title: str) -> Iterator[Slide]:
    grids = grids_of(table, frame(over, title).body)
    for number, grid in enumerate(grids[:MOST_PAGES], start=1):
        yield Slide(shapes=(*frame(_counted(over, number, len(grids)), title).shapes, grid))


def _figures(parts: Sequence[Part]) -> Iterator[Slide]:
    unseen: list[Heading] = []
    for part in parts:
        for figure in part.figures:
            if isinstance(figure.shows, Picture):
                yield _figure(part, figure, figure.shows)
        named = [
            f"{figure.artifact_id}: {figure.shows.why}"
            for figure in part.figures
            if isinstance(figure.shows, NoPicture)
        ]
        unseen.append((part.phase, named))
    yield from _lists("Figures that are not shown", unseen)


def _figure(part: Part, figure: Figure, picture: Picture) -> Slide:
    head = frame(f"{part.phase} · figure", figure.artifact_id)
    room = head.body
    scale = min(room.width / picture.width, room.height / picture.height, _LARGEST_POINT)
    width, height = picture.width * scale, picture.height * scale
    box = Box(room.left + (room.width - width) / 2, room.top + (room.height - height) / 2, width, height)
    shapes: tuple[Shape, ...] = (
        *head.shapes,
        Image(box=box, data=picture.data, description=figure.artifact_id),
    )
    return Slide(shapes=shapes)


def _lists(title: str, groups: Iterable[Heading]) -> Iterator[Slide]:
    said = [(heading, texts) for heading, texts in groups if texts]
    if len(said) == 1:
        yield from _pages([("", said[0][1])], said[0][0], title)
    elif said:
        yield from _pages(said, "All phases", title)


def _pages(groups: Sequence[Heading], over: str, title: str, *, are_points: bool = True) -> Iterator[Slide]:
    body = frame(over, title).body
    pages = pages_of(groups, body, are_points=are_points)
    for number, page in enumerate(pages[:MOST_PAGES], start=1):
        head = frame(_counted(over, number, len(pages)), title)
        yield Slide(shapes=(*head.shapes, Words(box=body, paragraphs=page)))


def _counted(over: str, number: int, of: int) -> str:
    if of == 1:
        return over
    rest = ": the report has the rest" if number == MOST_PAGES < of else ""
    return f"{over} · {number} of {of}{rest}"
