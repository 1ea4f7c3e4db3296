"""Lists on slides: headings with their points, as large as fits on one slide, else on as many as it takes."""

from __future__ import annotations

from collections.abc import Sequence

from raddle.actions.presenting.measure import broken, line_height
from raddle.actions.presenting.slides import Box, Paragraph, height_of, room_of

_SIZES = (20.0, 18.0, 16.0)
_PARTED = 16.0
_BEFORE, _BEFORE_HEADING = 7.0, 14.0

GOES_ON = "… "
"""Before the rest of a point that began on the slide before."""

Heading = tuple[str, Sequence[str]]
"""What stands above points (empty: nothing), and the points."""


def pages_of(groups: Sequence[Heading], body: Box, *, are_points: bool = True) -> list[tuple[Paragraph, ...]]:
    """The paragraphs of each slide. A heading stands above its points on every slide that they are on."""
    pages: list[tuple[Paragraph, ...]] = []
    for size in _SIZES:
        pages = _Pages(body, size, are_points=are_points).filled(groups)
        if len(pages) == 1:
            return pages
    return _Pages(body, _PARTED, are_points=are_points).filled(groups)


class _Pages:
    """Slides as they are filled."""

    def __init__(self, body: Box, size: float, *, are_points: bool) -> None:
        self._body = body
        self._size = size
        self._are_points = are_points
        self._pages: list[list[Paragraph]] = []
        self._page: list[Paragraph] = []

    def filled(self, groups: Sequence[Heading]) -> list[tuple[Paragraph, ...]]:
        """All of it, laid out."""
        for heading, texts in groups:
            above = [self._heading(heading)] if heading else []
            if self._page and not self._fits([*above, self._point(texts[0])]):
                self._turn()
            self._page += above
            for text in texts:
                self._add(text, above)
        self._turn()
        return [tuple(page) for page in self._pages]

    def _add(self, text: str, above: list[Paragraph]) -> None:
        point = self._point(text)
        if not self._fits([point]) and len(self._page) > len(above):
            self._turn()
            self._page += above
        while not self._fits([point]):
            lines = broken(point.text, self._size, room_of(point, self._body.width))
            left = self._body.height - height_of((*self._page, self._point("")), self._body.width)
            # `left` is what is there beside the one line that an empty point takes
            most = max(int(left // line_height(self._size)) + 1, 1)
            if most >= len(lines):
                break
            self._page.append(self._point(point.text[: lines[most - 1][1]]))
            point = self._point(f"{GOES_ON}{point.text[lines[most][0] :]}")
            self._turn()
            self._page += above
        self._page.append(point)

    def _fits(self, more: list[Paragraph]) -> bool:
        return height_of((*self._page, *more), self._body.width) <= self._body.height

    def _turn(self) -> None:
        if self._page:
            self._pages.append(self._page)
        self._page = []

    def _heading(self, text: str) -> Paragraph:
        return Paragraph(text=text, size=self._size - 2, colour="accent", bold=True, before=_BEFORE_HEADING)

    def _point(self, text: str) -> Paragraph:
        return Paragraph(text=text, size=self._size, is_point=self._are_points, before=_BEFORE)
