"""Laws of slides: every box holds what is in it, no two boxes share a place, and nothing that was handed on is lost."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from raddle.actions.presenting.deck import MOST_PAGES, deck_of
from raddle.actions.presenting.document import Document
from raddle.actions.presenting.frame import shortened
from raddle.actions.presenting.lists import GOES_ON
from raddle.actions.presenting.measure import broken, width_of
from raddle.actions.presenting.slides import (
    HEIGHT,
    WIDTH,
    Box,
    Deck,
    Grid,
    Image,
    Shape,
    Slide,
    Words,
    cell_height,
    height_of,
)
from raddle.actions.presenting.texts import shown_line, shown_text
from tests.builders_presenting import CJK, KOREAN, a_document, a_figure, a_part, hostile, png, texts_in

ALMOST = 0.01
LETTERS = st.sampled_from(
    ["a", "W", "i", " ", " ", "\n", "漢", "、", "가", "Ж", "😀", "\u0301", "word ", "https://x/"]
)
TEXTS = st.one_of(
    st.text(max_size=60),
    st.lists(LETTERS, max_size=400).map("".join),
    st.sampled_from([CJK * 8, KOREAN * 9, "word " * 300, "x" * 900]),
)
LINES = TEXTS.map(shown_line)
SHOWN = st.lists(TEXTS.map(shown_text).filter(bool), max_size=6).map(tuple)
RESULTS = st.dictionaries(
    TEXTS,
    st.one_of(TEXTS, st.floats(), st.lists(st.dictionaries(TEXTS, TEXTS, max_size=6), max_size=4)),
    max_size=6,
)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Whatever phases may have handed on."""
    parts = [
        a_part(
            draw(LINES.filter(bool))[:60],
            draw(LINES),
            results=draw(RESULTS),
            decisions=draw(SHOWN),
            questions=draw(SHOWN),
            artifacts=tuple(draw(st.lists(LINES.filter(bool), max_size=5))),
            author=draw(LINES),
            published=draw(st.sampled_from(["", "2026-11-30T09:52:50Z"])),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    return a_document(*parts, title=draw(LINES) or "x", silent=draw(st.lists(LINES, max_size=4).map(tuple)))


def check(deck: Deck) -> None:
    for slide in deck.slides:
        for shape in slide.shapes:
            check_inside(shape.box, Box(0.0, 0.0, WIDTH, HEIGHT))
            check_holds(shape)
        check_apart(slide)
        assert sum(isinstance(shape, Words) and shape.is_title for shape in slide.shapes) == 1


def check_inside(box: Box, room: Box) -> None:
    assert box.left >= room.left - ALMOST
    assert box.top >= room.top - ALMOST
    assert box.width >= 0
    assert box.height >= 0
    assert box.left + box.width <= room.left + room.width + ALMOST
    assert box.top + box.height <= room.top + room.height + ALMOST


def check_holds(shape: Shape) -> None:
    """As the measure says; that it measures right, the test that draws a deck shows."""
    if isinstance(shape, Words):
        assert height_of(shape.paragraphs, shape.box.width) <= shape.box.height + ALMOST, shape
        assert all(paragraph.size >= 10.0 for paragraph in shape.paragraphs)
    if isinstance(shape, Grid):
        assert sum(shape.widths) <= shape.box.width + ALMOST
        assert sum(shape.heights) <= shape.box.height + ALMOST
        for number, (row, height) in enumerate(zip(shape.rows, shape.heights, strict=True)):
            for text, width in zip(row, shape.widths, strict=True):
                assert cell_height(text, shape.size, width, bold=number == 0) <= height + ALMOST


def check_apart(slide: Slide) -> None:
    solid = [shape.box for shape in slide.shapes if isinstance(shape, Words | Grid | Image)]
    for one, other in itertools.combinations(solid, 2):
        is_apart = (
            one.left + one.width <= other.left + ALMOST
            or other.left + other.width <= one.left + ALMOST
            or one.top + one.height <= other.top + ALMOST
            or other.top + other.height <= one.top + ALMOST
        )
        assert is_apart, (one, other)


def said_in(document: Document) -> Iterator[str]:
    for part in document.parts:
        yield from (part.headline, *part.decisions, *part.questions, *part.artifacts)
        for table in part.results:
            yield from (cell for row in table.rows for cell in row)
            if table.title:
                yield from table.header[1:]


def letters(text: str) -> str:
    """Without what a split may add or take: spaces, and the sign that a text goes on."""
    return "".join(text.replace(GOES_ON, "").split())


@settings(max_examples=40, deadline=None)
@given(documents())
def test_every_box_holds_what_is_in_it_and_nothing_is_lost(document: Document) -> None:
    deck = deck_of(document)
    check(deck)
    whole = letters(texts_in(deck))
    if len(deck.slides) < MOST_PAGES:
        lost = [text for text in said_in(document) if not _is_told(letters(text), whole)]
        assert lost == []


def _is_told(text: str, whole: str) -> bool:
    """On some slides, in pieces: between these a slide has its title and its number, so each piece is looked for."""
    if text in whole:
        return True
    at = 0
    while at < len(text):
        length = min(len(text) - at, 12)
        while length and text[at : at + length] not in whole:
            length -= 1
        if not length:
            return False
        at += length
    return True


def test_the_hostile_deck_keeps_to_its_boxes() -> None:
    deck = deck_of(hostile())
    check(deck)
    whole = letters(texts_in(deck))
    assert all(f"Decision{number}:" in whole for number in range(30))
    assert all(f"columnnumber{number}" in whole for number in range(24))
    assert all(f"artifact-with-a-long-name-{number}" in whole for number in range(50))


def test_a_small_deck_has_a_slide_for_each_thing() -> None:
    figure = a_figure("plot", png())
    build = a_part(
        "build", "Twice as fast", results={"files": 2}, decisions=("C",), questions=("?",), figures=(figure,)
    )
    deck = deck_of(a_document(build, a_part("test", "Passes", results={"passed": 3})))
    titles = [
        shape.paragraphs[0].text
        for slide in deck.slides
        for shape in slide.shapes
        if isinstance(shape, Words) and shape.is_title
    ]
    assert titles == ["loom", "Twice as fast", "Passes", "Results", "plot", "Decisions", "Open questions"]
    assert [type(shape) for shape in deck.slides[4].shapes].count(Image) == 1


def test_a_table_without_end_is_cut_and_says_where_the_rest_is() -> None:
    deck = deck_of(a_document(a_part(results={f"n{number}": number for number in range(3_000)})))
    assert len(deck.slides) < MOST_PAGES + 5
    assert "the report has the rest" in texts_in(deck)


@given(TEXTS, st.floats(8, 40), st.floats(60, 900))
def test_lines_are_no_wider_than_the_box_and_hold_every_letter(text: str, size: float, width: float) -> None:
    text = shown_text(text)
    lines = broken(text, size, width)
    said = [text[start:end] for start, end in lines]
    assert letters("".join(said)) == letters(text)
    assert all(width_of(line, size) <= width + ALMOST or len(line.rstrip("\u0301")) <= 1 for line in said)


@given(TEXTS, st.integers(1, 4))
def test_what_is_shortened_takes_no_more_lines_than_it_may(text: str, most: int) -> None:
    line = shown_line(text)
    short = shortened(line, 14.0, 200.0, most)
    assert len(broken(short, 14.0, 200.0)) <= most
    assert short == line or short.endswith("…")
