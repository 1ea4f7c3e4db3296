"""A deck that LibreOffice draws: every word stands inside the box that was made for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from raddle.actions.presenting.deck import deck_of
from raddle.adapters.slides import draw
from tests.builders_presenting import as_pdf, hostile, is_inside, places_of, words_on

PROGRAMS = ("soffice", "pdftotext")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]


@pytest.mark.skipif(
    bool(MISSING),
    reason=f"{' and '.join(MISSING)} not installed (Debian: libreoffice-impress, poppler-utils, fonts-noto-cjk)",
)
def test_no_word_of_a_hostile_deck_runs_out_of_its_box(tmp_path: Path) -> None:
    deck = deck_of(hostile())
    file = tmp_path / "deck.pptx"
    file.write_bytes(draw(deck))
    pages = words_on(as_pdf(file))
    assert len(pages) == len(deck.slides)
    outside = [
        (number, word)
        for number, (slide, words) in enumerate(zip(deck.slides, pages, strict=True), start=1)
        for places in [places_of(slide)]
        for word in words
        if not any(is_inside(word, place) for place in places)
    ]
    assert sum(map(len, pages)) > 2_000
    assert outside == []
