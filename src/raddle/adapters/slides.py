"""Slides drawn by python-pptx: the one place that knows it, imported by whoever makes a deck and by nobody else.

Shapes come with their places and sizes; nothing here measures or decides. Sizes of lines are written in points and
frames are told not to grow, so that every program draws the same. The same slides are the same bytes.
"""

from __future__ import annotations

import datetime as dt
import io
import zipfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from raddle.actions.presenting.measure import line_height
from raddle.actions.presenting.slides import (
    CELL_SIDE,
    CELL_TOP,
    HEIGHT,
    INDENT,
    WIDTH,
    Bar,
    Box,
    Deck,
    Grid,
    Image,
    Paragraph,
    Shape,
    Slide,
    Words,
)
from raddle.model.clock import parse_time
from raddle.model.errors import UserError

if TYPE_CHECKING:
    from pptx.slide import Slide as DrawnSlide

_EMU = 12_700
"""In a point."""
_FONT = "Arial"
_COLOURS = {
    "ink": "1B2733",
    "soft": "5B6B7B",
    "accent": "0B7A75",
    "paper": "FFFFFF",
    "panel": "F1F5F6",
    "night": "12303A",
    "mist": "D5DEE1",
}
_TITLE_ONLY = 5
_NO_STYLE = "{2D5ABB26-0587-4C30-8999-92F81FD0307C}"
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
_NOWHERE = dt.datetime(2000, 1, 1)  # noqa: DTZ001  python-pptx takes naive times for UTC


def draw(deck: Deck) -> bytes:
    """The deck as a .pptx. UserError where python-pptx is not installed."""
    try:
        from pptx import Presentation  # noqa: PLC0415  heavy, and an extra
    except ImportError:
        raise UserError(
            "what makes slides is not installed", "install it: pip install 'raddle[present]'"
        ) from None
    made = Presentation()
    made.slide_width, made.slide_height = _emu(WIDTH), _emu(HEIGHT)
    for slide in deck.slides:
        _draw(made.slides.add_slide(made.slide_layouts[_TITLE_ONLY]), slide)
    facts = made.core_properties
    facts.title, facts.author, facts.last_modified_by = deck.title[:255], deck.author[:255], ""
    facts.created = facts.modified = _time(deck.published)
    facts.revision = 1
    out = io.BytesIO()
    made.save(out)
    return _packed(out.getvalue())


def _draw(onto: DrawnSlide, slide: Slide) -> None:
    fill = onto.background.fill
    fill.solid()
    fill.fore_color.rgb = _colour(slide.background)
    title = onto.shapes.title
    for shape in slide.shapes:
        _shape(onto, shape)
    if title is not None and not any(isinstance(one, Words) and one.is_title for one in slide.shapes):
        title._element.getparent().remove(title._element)  # noqa: SLF001  there is no other way to


def _shape(onto: DrawnSlide, shape: Shape) -> None:
    match shape:
        case Words():
            _words(onto, shape)
        case Grid():
            _grid(onto, shape)
        case Image():
            _image(onto, shape)
        case Bar():
            _bar(onto, shape.box, shape.fill)


def _image(onto: DrawnSlide, image: Image) -> None:
    try:
        drawn: Any = onto.shapes.add_picture(io.BytesIO(image.data), *_place(image.box))
    except Exception:  # noqa: BLE001  what its library raises for a picture that it does not take
        why = Paragraph(text="This picture cannot be drawn.", size=14.0, colour="soft")
        _words(onto, Words(box=image.box, paragraphs=(why,)))
        return
    drawn._element.nvPicPr.cNvPr.set("descr", image.description)  # noqa: SLF001  there is no other way to


def _bar(onto: DrawnSlide, box: Box, colour: str) -> None:
    from pptx.enum.shapes import MSO_SHAPE  # noqa: PLC0415

    drawn = onto.shapes.add_shape(MSO_SHAPE.RECTANGLE, *_place(box))
    drawn.fill.solid()
    drawn.fill.fore_color.rgb = _colour(colour)
    drawn.line.fill.background()
    style = drawn._element.find("{*}style")  # noqa: SLF001  it brings a shadow, and has no other way
    if style is not None:
        drawn._element.remove(style)  # noqa: SLF001  as above


def _words(onto: DrawnSlide, words: Words) -> None:
    left, top, width, height = _place(words.box)
    title = onto.shapes.title
    drawn: Any
    if words.is_title and title is not None:
        drawn = title
        drawn.left, drawn.top, drawn.width, drawn.height = left, top, width, height
        # Above what was drawn before it, as it is written here.
        onto.shapes._spTree.append(drawn._element)  # noqa: SLF001  there is no other way to
    else:
        drawn = onto.shapes.add_textbox(left, top, width, height)
    _fill_frame(drawn.text_frame, words.paragraphs, words.anchor)


def _fill_frame(frame: Any, paragraphs: Sequence[Paragraph], anchor: str) -> None:
    from pptx.enum.text import MSO_ANCHOR, MSO_AUTO_SIZE  # noqa: PLC0415

    frame.word_wrap = True
    frame.auto_size = MSO_AUTO_SIZE.NONE
    frame.margin_left = frame.margin_right = frame.margin_top = frame.margin_bottom = _emu(0)
    frame.vertical_anchor = {
        "top": MSO_ANCHOR.TOP,
        "middle": MSO_ANCHOR.MIDDLE,
        "bottom": MSO_ANCHOR.BOTTOM,
    }[anchor]
    for at, one in enumerate(paragraphs):
        _fill(frame.paragraphs[0] if at == 0 else frame.add_paragraph(), one, is_first=at == 0)


def _fill(paragraph: Any, one: Paragraph, *, is_first: bool) -> None:
    from pptx.enum.text import PP_ALIGN  # noqa: PLC0415
    from pptx.util import Pt  # noqa: PLC0415

    paragraph.alignment = {"left": PP_ALIGN.LEFT, "right": PP_ALIGN.RIGHT, "center": PP_ALIGN.CENTER}[
        one.align
    ]
    paragraph.line_spacing = Pt(line_height(one.size))
    paragraph.space_before = Pt(0 if is_first else one.before)
    paragraph.space_after = Pt(0)
    for at, line in enumerate(one.text.split("\n")):
        if at:
            paragraph.add_line_break()
        run = paragraph.add_run()
        run.text = line
        run.font.size = Pt(one.size)
        run.font.bold = one.bold
        run.font.name = _FONT
        run.font.color.rgb = _colour(one.colour)
    properties = paragraph._p.get_or_add_pPr()  # noqa: SLF001  bullets have no other way
    indent = _emu(INDENT * one.size) if one.is_point else 0
    properties.set("hangingPunct", "0")  # or a mark at the end of a line stands outside the box
    properties.set("marL", str(indent))
    properties.set("indent", str(-indent))
    _bullet(properties, has_one=one.is_point)


def _bullet(properties: Any, *, has_one: bool) -> None:
    from pptx.oxml import parse_xml  # noqa: PLC0415
    from pptx.oxml.ns import nsdecls  # noqa: PLC0415

    if not has_one:
        properties.append(parse_xml(f"<a:buNone {nsdecls('a')}/>"))
        return
    colour = f'<a:buClr {nsdecls("a")}><a:srgbClr val="{_COLOURS["accent"]}"/></a:buClr>'
    properties.append(parse_xml(colour))
    properties.append(parse_xml(f'<a:buFont {nsdecls("a")} typeface="{_FONT}"/>'))
    properties.append(parse_xml(f'<a:buChar {nsdecls("a")} char="•"/>'))


def _grid(onto: DrawnSlide, grid: Grid) -> None:
    left, top, width, height = _place(grid.box)
    drawn = onto.shapes.add_table(len(grid.rows), len(grid.widths), left, top, width, height)
    table: Any = drawn.table
    style = table._tbl.tblPr.find("{*}tableStyleId")  # noqa: SLF001  styles have no other way
    if style is not None:
        style.text = _NO_STYLE
    table.horz_banding = False
    for at, wide in enumerate(grid.widths):
        table.columns[at].width = _emu(wide)
    for at, (row, high) in enumerate(zip(grid.rows, grid.heights, strict=True)):
        table.rows[at].height = _emu(high)
        for column, text in enumerate(row):
            _cell(table.cell(at, column), text, grid, column=column, row=at)


def _cell(cell: Any, text: str, grid: Grid, *, column: int, row: int) -> None:
    from pptx.enum.text import MSO_ANCHOR  # noqa: PLC0415

    is_header = row == 0
    cell.margin_left = cell.margin_right = _emu(CELL_SIDE)
    cell.margin_top = cell.margin_bottom = _emu(CELL_TOP)
    cell.vertical_anchor = MSO_ANCHOR.TOP
    cell.fill.solid()
    cell.fill.fore_color.rgb = _colour("night" if is_header else "panel" if row % 2 == 0 else "paper")
    _fill(
        cell.text_frame.paragraphs[0],
        Paragraph(
            text=text,
            size=grid.size,
            bold=is_header,
            colour="paper" if is_header else "ink",
            align="right" if grid.numeric[column] else "left",
        ),
        is_first=True,
    )


def _place(box: Box) -> tuple[Any, Any, Any, Any]:
    return _emu(box.left), _emu(box.top), _emu(box.width), _emu(box.height)


def _emu(points: float) -> Any:
    from pptx.util import Emu  # noqa: PLC0415

    return Emu(round(points * _EMU))


def _colour(name: str) -> Any:
    from pptx.dml import color  # noqa: PLC0415

    make: Any = color.RGBColor
    return make.from_string(_COLOURS[name])


def _time(published: str) -> dt.datetime:
    micros = parse_time(published) if published else None
    if micros is None:
        return _NOWHERE
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=micros)  # noqa: DTZ001  as above
    return moment.replace(microsecond=0)


def _packed(data: bytes) -> bytes:
    """The same package without the time at which it was made."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            entry = zipfile.ZipInfo(name, _ZIP_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(entry, old.read(name))
    return out.getvalue()
