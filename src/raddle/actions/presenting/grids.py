"""Tables on slides: as large as can be read, and on as many slides as it takes.

Owns how a table that is too wide or too long is parted: by columns, each part with the first one; by rows, each part
under the header; a cell that is higher than a slide, over several rows. No text of a table is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from raddle.actions.presenting.measure import broken, line_height, may_break_inside, widest_word, width_of
from raddle.actions.presenting.slides import CELL_SIDE, CELL_TOP, Box, Grid, cell_height
from raddle.actions.presenting.tables import Table, is_numeric

_SIZES = (15.0, 13.0, 12.0)
_PARTED = 12.0
_LEAST, _MOST_WORD = 56.0, 200.0
"""Points of a column: below the first nothing can be read, and a word wider than the second may be broken."""
_AIR = 1.25
_SQUARES = 8
_LEAST_OF_SLIDE = 0.5

_Row = tuple[str, ...]


class _Columns(Struct, frozen=True, kw_only=True):
    """How wide columns would be that need no breaks, and how narrow they may become."""

    natural: tuple[float, ...]
    least: tuple[float, ...]


def grids_of(table: Table, body: Box) -> list[Grid]:
    """The parts of a table, a slide each, that fit into `body`."""
    for size in _SIZES:
        columns = _columns(table, size)
        if sum(columns.least) <= body.width:
            parts = _parted_by_rows(table, columns, size, body)
            if len(parts) == 1:
                return parts
    for size in (_PARTED, _SIZES[-1]):
        columns = _columns(table, size)
        if sum(columns.least) <= body.width:
            return _parted_by_rows(table, columns, size, body)
    columns = _columns(table, _PARTED)
    parts = []
    for chosen in _groups(columns.least, body.width):
        part = Table(
            title=table.title,
            header=_picked(table.header, chosen),
            rows=tuple(_picked(row, chosen) for row in table.rows),
        )
        of_part = _Columns(
            natural=tuple(columns.natural[at] for at in chosen),
            least=tuple(columns.least[at] for at in chosen),
        )
        parts += _parted_by_rows(part, of_part, _PARTED, body)
    return parts


def _columns(table: Table, size: float) -> _Columns:
    natural, least = [], []
    for at in range(len(table.header)):
        cells = [(table.header[at], True), *((row[at], False) for row in table.rows)]
        wide = max(width_of(line, size, bold=bold) for text, bold in cells for line in text.split("\n"))
        word = max(_hardly_broken(text, size, bold=bold) for text, bold in cells)
        sides = 2 * CELL_SIDE + size  # a line of East Asian text keeps a square free
        natural.append(max(wide + sides, _LEAST))
        least.append(min(natural[-1], max(min(word, _MOST_WORD) + sides, _LEAST)))
    return _Columns(natural=tuple(natural), least=tuple(least))


def _hardly_broken(text: str, size: float, *, bold: bool) -> float:
    """The width of the parts of a text that reads badly when they are broken: a word, or a few squares of a line that
    can be broken after each."""
    if may_break_inside(text):
        return max(_SQUARES * size, widest_word(text, size, bold=bold))
    return widest_word(text, size, bold=bold)


def _groups(least: Sequence[float], width: float) -> Iterator[list[int]]:
    """Columns that stand side by side, the first one in each group."""
    group, used = [0], least[0]
    for at in range(1, len(least)):
        if used + least[at] > width and len(group) > 1:
            yield group
            group, used = [0], least[0]
        group.append(at)
        used += least[at]
    yield group


def _picked(row: _Row, chosen: Sequence[int]) -> _Row:
    return tuple(row[at] for at in chosen)


def _widths(columns: _Columns, width: float) -> tuple[float, ...]:
    natural = sum(columns.natural)
    if natural <= width:
        factor = min(width, max(natural * _AIR, width * _LEAST_OF_SLIDE)) / natural
        return tuple(one * factor for one in columns.natural)
    spare = width - sum(columns.least)
    wishes = [wide - narrow for wide, narrow in zip(columns.natural, columns.least, strict=True)]
    return tuple(
        narrow + spare * wish / sum(wishes) for narrow, wish in zip(columns.least, wishes, strict=True)
    )


def _parted_by_rows(table: Table, columns: _Columns, size: float, body: Box) -> list[Grid]:
    widths = _widths(columns, body.width)
    numeric = tuple(is_numeric([row[at] for row in table.rows]) for at in range(len(widths)))
    headers = list(_of_height([table.header], widths, size, body.height / 2, bold=True))
    header, header_height = headers[0]
    room = body.height - header_height
    parts: list[list[tuple[_Row, float]]] = [[]]
    # What a header has too much stands as the first rows: a name of that length is a text.
    rest = [row for row, _ in headers[1:]]
    used = 0.0
    for row, height in _of_height([*rest, *table.rows], widths, size, room):
        if parts[-1] and used + height > room:
            parts.append([])
            used = 0.0
        parts[-1].append((row, height))
        used += height
    return [
        Grid(
            box=Box(body.left, body.top, sum(widths), header_height + sum(height for _, height in part)),
            widths=widths,
            heights=(header_height, *(height for _, height in part)),
            rows=(header, *(row for row, _ in part)),
            numeric=numeric,
            size=size,
        )
        for part in parts
    ]


def _of_height(
    rows: Sequence[_Row], widths: Sequence[float], size: float, room: float, *, bold: bool = False
) -> Iterator[tuple[_Row, float]]:
    """Rows with their heights; one that is higher than the room as several."""
    most = max(int((room - 2 * CELL_TOP) // line_height(size)), 1)
    for row in rows:
        left = row
        while True:
            now, later = _cut(left, widths, size, most, bold=bold)
            height = max(
                cell_height(text, size, width, bold=bold) for text, width in zip(now, widths, strict=True)
            )
            yield now, height
            if not any(later):
                break
            left = later


def _cut(row: _Row, widths: Sequence[float], size: float, most: int, *, bold: bool) -> tuple[_Row, _Row]:
    now, later = [], []
    for text, width in zip(row, widths, strict=True):
        lines = broken(text, size, width - 2 * CELL_SIDE, bold=bold)
        if len(lines) <= most:
            now.append(text)
            later.append("")
        else:
            now.append(text[: lines[most - 1][1]])
            later.append(text[lines[most][0] :])
    return tuple(now), tuple(later)
