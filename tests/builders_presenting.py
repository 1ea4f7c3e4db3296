"""Pictures and handoffs for the tests of what is made of them, and how a deck is looked at."""

from __future__ import annotations

import functools
import html
import io
import re
import struct
import subprocess
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from raddle.actions.presenting.document import Document, Figure, Part
from raddle.actions.presenting.pictures import NoPicture, Picture, look_at
from raddle.actions.presenting.slides import CELL_TOP, Box, Deck, Grid, Slide, Words
from raddle.actions.presenting.tables import tables_of

RUN = "01M8PZKM3KMAB0SYRHJ485PAMY"
CJK = "この実験では、学習率を下げることにより損失が安定し、最終的な精度が大幅に向上した。"
KOREAN = "한국어 문장은 단어 사이에서만 줄이 바뀔 수도 있습니다. "
_WORD = re.compile(r'<word xMin="([-\d.]+)" yMin="([-\d.]+)" xMax="([-\d.]+)" yMax="([-\d.]+)">(.*?)</word>')


def png(width: int = 64, height: int = 40) -> bytes:
    """A picture of one colour."""
    rows = (b"\0" + b"\x0b\x7a\x75" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def chunk(kind: bytes, data: bytes) -> bytes:
    """A piece of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


@functools.cache
def jpeg() -> bytes:
    """A picture of 2 by 1 pixels, as JPEG."""
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (2, 1), (11, 122, 117)).save(out, "JPEG")
    return out.getvalue()


def a_part(
    phase: str = "build", headline: str = "Built", *, results: Mapping[str, Any] | None = None, **fields: Any
) -> Part:
    """What a phase has handed on."""
    return Part(phase=phase, headline=headline, results=tables_of(results or {}), **fields)


def a_document(*parts: Part, title: str = "loom", **fields: Any) -> Document:
    """A presentation of these phases."""
    return Document(title=title, run_id=RUN, parts=parts or (a_part(),), **fields)


def a_figure(artifact_id: str, data: bytes, name: str = "01-figure") -> Figure:
    """A figure, whatever its bytes are."""
    return Figure(artifact_id=artifact_id, name=name, shows=look_at(data))


def shows_of(figure: Figure) -> Picture | NoPicture:
    """What a figure shows."""
    return figure.shows


def hostile() -> Document:
    """Long, wide, deep and foreign in every field."""
    results: dict[str, Any] = {
        "x" * 300: "y" * 2500,
        "short": 1,
        CJK * 2: CJK * 6,
        "iiiillllttttffff " * 10: "W" * 400,
        "nested": {
            f"row {row}": {f"column number {at}": row * at * 1.5 for at in range(24)} for row in range(40)
        },
        "list": [{"name": f"n{at}", "note": CJK if at % 2 else "word " * 40} for at in range(30)],
        **{f"metric_{at}": at / 7 for at in range(60)},
    }
    questions = (
        CJK * 60,
        KOREAN * 30,
        "https://example.org/" + "a/b-c_d" * 200,
        "😀🎉🚀" * 80,
        "Ж" * 300 + " ЩШЮ" * 100,
        "مرحبا بالعالم " * 60,
        "a\u0301\u0302\u0303\u0304" * 50,
        "one\ntwo\nthree " + "four " * 60,
    )
    build = a_part(
        "build",
        "A headline that goes on and on, " * 20,
        results=results,
        decisions=tuple(
            f"Decision {at}: " + "we chose this for reasons that are told at length here. " * (at % 5 + 1)
            for at in range(30)
        ),
        questions=questions,
        artifacts=tuple(f"artifact-with-a-long-name-{at}" for at in range(50)),
        evidence=("T-1", "T-2"),
        figures=(
            a_figure("wide " * 60, png(900, 30)),
            a_figure("tall", png(15, 900)),
            a_figure("tiny", png(4, 4)),
            a_figure("broken", png()[:-9]),
            a_figure("plot.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
        ),
        published="2026-11-30T09:52:50Z",
        author="Somebody With A Very Long Name Indeed " * 8,
    )
    other = a_part(
        CJK[:20], CJK * 6, results={CJK: "値", "値": 12.5, "b": True, "c": None}, decisions=("短い",)
    )
    return a_document(
        build,
        other,
        a_part("x", "No results at all"),
        title="A very long name of a project " * 9,
        silent=tuple(f"phase number {at}" for at in range(60)),
        published="2026-11-30T09:52:50Z",
    )


def texts_in(deck: Deck) -> str:
    """All that is said on its slides, a line each."""
    said: list[str] = []
    for slide in deck.slides:
        for shape in slide.shapes:
            if isinstance(shape, Words):
                said += [paragraph.text for paragraph in shape.paragraphs]
            elif isinstance(shape, Grid):
                said += [cell for row in shape.rows for cell in row]
    return "\n".join(said)


class Drawn(NamedTuple):
    """A word on a page of a PDF, in points."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


def as_pdf(pptx: Path) -> Path:
    """The deck as LibreOffice draws it."""
    home = pptx.parent / "office"
    subprocess.run(
        [
            "soffice",
            f"-env:UserInstallation=file://{home}",
            "--headless",
            "--convert-to",
            "pdf",
            "--outdir",
            str(pptx.parent),
            str(pptx),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return pptx.with_suffix(".pdf")


def words_on(pdf: Path) -> list[list[Drawn]]:
    """The words of each page, where they are."""
    said = subprocess.run(["pdftotext", "-bbox", str(pdf), "-"], check=True, capture_output=True, timeout=60)
    pages = said.stdout.decode(errors="replace").split("<page ")[1:]
    return [
        [Drawn(html.unescape(found[5]), *map(float, found.groups()[:4])) for found in _WORD.finditer(page)]
        for page in pages
    ]


def places_of(slide: Slide) -> list[Box]:
    """Where a slide may have words: its boxes of text, and each cell of its tables."""
    places: list[Box] = []
    for shape in slide.shapes:
        if isinstance(shape, Words):
            places.append(shape.box)
        elif isinstance(shape, Grid):
            top = shape.box.top
            for height in shape.heights:
                left = shape.box.left
                for width in shape.widths:
                    places.append(Box(left, top + CELL_TOP / 2, width, height - CELL_TOP / 2))
                    left += width
                top += height
    return places


def is_inside(word: Drawn, box: Box) -> bool:
    """Does a word stand in a box? What a font says of its own height is more than its letters take."""
    middle = (word.top + word.bottom) / 2
    third = (word.bottom - word.top) / 6
    return (
        word.left >= box.left - 1.5
        and word.right <= box.left + box.width + 1.5
        and middle - third >= box.top
        and middle + third <= box.top + box.height + 1.0
    )
