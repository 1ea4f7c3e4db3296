"""A presentation as one Markdown report, with its pictures beside it."""

from __future__ import annotations

from collections.abc import Iterator

from raddle.actions.presenting.document import Document, Figure, Part
from raddle.actions.presenting.marks import bullets, rows, table, words
from raddle.actions.presenting.pictures import NoPicture, Picture
from raddle.actions.presenting.texts import NOTHING

REPORT = "report.md"
FIGURES = "figures"


def report_of(document: Document) -> dict[str, bytes]:
    """Path -> bytes: the report, and the pictures that it shows."""
    blocks = [f"# {words(document.title)}", facts(document)]
    if len(document.parts) > 1 or document.silent:
        blocks.append(overview(document))
    for part in document.parts:
        blocks.append(f"## {words(part.phase)}")
        blocks += part_blocks(part, level=3)
    return {REPORT: page(blocks), **pictures_of(document)}


def page(blocks: list[str]) -> bytes:
    """Blocks of Markdown as a file."""
    return ("\n\n".join(block for block in blocks if block) + "\n").encode()


def pictures_of(document: Document) -> dict[str, bytes]:
    """Path -> bytes of every picture, as `part_blocks` names them."""
    return {
        picture_path(figure, figure.shows): figure.shows.data
        for part in document.parts
        for figure in part.figures
        if isinstance(figure.shows, Picture)
    }


def picture_path(figure: Figure, picture: Picture) -> str:
    """Where a picture is, from the page that shows it."""
    return f"{FIGURES}/{figure.name}.{picture.ending}"


def facts(document: Document) -> str:
    """What the document is about, in a line."""
    phases = " → ".join(words(part.phase) for part in document.parts)
    when = f", {words(day(document.published))}" if document.published else ""
    return f"{phases}, run `{document.run_id}`{when}"


def day(published: str) -> str:
    """The day of RFC 3339 text, as it stands there."""
    return published[:10]


def overview(document: Document, links: tuple[str, ...] = ()) -> str:
    """A table of the phases with their headlines; `links`: where each has a page of its own."""
    lines = [
        (part.phase, part.headline, day(part.published) or NOTHING, part.author or NOTHING)
        for part in document.parts
    ]
    lines += [(phase, "nothing handed on yet", NOTHING, NOTHING) for phase in document.silent]
    made = rows(("Phase", "Headline", "Published", "By"), lines)
    if not links:
        return made
    head, rule, *body = made.split("\n")
    linked = [
        line.replace(f"| {words(part.phase)} |", f"| [{words(part.phase)}]({link}) |", 1)
        for line, part, link in zip(body, document.parts, links, strict=False)
    ]
    return "\n".join([head, rule, *linked, *body[len(linked) :]])


def part_blocks(part: Part, *, level: int) -> Iterator[str]:
    """What a phase has handed on, as blocks of Markdown; headings from `level` on."""
    mark = "#" * level
    yield f"**{words(part.headline)}**"
    if part.published or part.author:
        who = f"by {words(part.author)}" if part.author else ""
        when = f"Published {words(day(part.published))}" if part.published else ""
        said = " ".join(filter(None, (when, who)))
        yield said[0].upper() + said[1:]
    sections = (
        ("Results", list(_results(part, mark))),
        ("Decisions", [bullets(part.decisions)]),
        ("Open questions", [bullets(part.questions)]),
        ("Figures", list(map(_figure, part.figures))),
        ("Artifacts to go on with", [bullets(part.artifacts)]),
        ("Rests on", [bullets(part.evidence)]),
    )
    for title, blocks in sections:
        if any(blocks):
            yield f"{mark} {title}"
            yield from blocks


def _results(part: Part, mark: str) -> Iterator[str]:
    for one in part.results:
        if one.title:
            yield f"{mark}# {words(one.title)}"
        yield table(one)


def _figure(figure: Figure) -> str:
    name = words(figure.artifact_id)
    if isinstance(figure.shows, NoPicture):
        return f"*{name}* is not shown here: {words(figure.shows.why)}. `raddle artifact get` fetches it."
    return f"![{name}]({picture_path(figure, figure.shows)})"
