"""What a presentation says, before it has a form: the parts of it, one for each phase that has handed something on.

It is made of handoffs and of nothing else a run holds. A form that looked up more would show what no phase has chosen
to publish.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from raddle.actions.memory.handoffs import Handoffs, list_handoffs, upstream
from raddle.actions.memory.ports import StoreFiles
from raddle.actions.memory.runs import known_phase, phases_in_order, read_project, resolve_run
from raddle.actions.ports import Finding
from raddle.actions.presenting.pictures import NoPicture, Picture
from raddle.actions.presenting.tables import Table, tables_of
from raddle.actions.presenting.texts import shown_line, shown_text
from raddle.model.errors import NotFound
from raddle.model.memory.handoff import Evidence, Handoff
from raddle.model.memory.run import Run

PRESENTING = "present"
"""The phase that presents, where nobody names another."""


class Figure(Struct, frozen=True, kw_only=True):
    """A figure that a phase named. `name`: fit for the name of a file, unlike `artifact_id`."""

    artifact_id: str
    name: str
    shows: Picture | NoPicture


class Part(Struct, frozen=True, kw_only=True):
    """What one phase has handed on. `published`: RFC 3339, empty where nobody knows."""

    phase: str
    headline: str
    results: tuple[Table, ...] = ()
    decisions: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    evidence: tuple[str, ...] = ()
    published: str = ""
    author: str = ""


class Document(Struct, frozen=True, kw_only=True):
    """`silent`: the phases before the presenting one that have handed nothing on. `published`: when the newest part
    was; empty where nobody knows."""

    title: str
    run_id: str
    parts: tuple[Part, ...]
    silent: tuple[str, ...] = ()
    published: str = ""


class Presented(Struct, frozen=True, kw_only=True):
    """A document, and what is wrong with handoffs that are not in it. `phase`: the one that presents; empty where the
    project has none, and what all phases have handed on is shown."""

    document: Document
    phase: str
    findings: tuple[Finding, ...] = ()


LookAt = Callable[[str, str, bool], Picture | NoPicture | None]
"""(run id, artifact id, was it named as a figure?) -> what it shows; None where it was not, and is none."""


def document_of(files: StoreFiles, look_at: LookAt, *, run: str = "", phase: str | None = None) -> Presented:
    """What the phases before `phase` of a run have handed on. `run`: the start of its id, empty: the newest.

    `phase` None: the one called `present`, where there is one. NotFound where nothing was handed on, or for the run;
    Ambiguous; InvalidInput for a phase that the run does not have.
    """
    found = resolve_run(files, run)
    presenting = _presenting(files, found, phase)
    order = phases_in_order(files, found)
    before = order[: order.index(presenting)] if presenting else order
    handoffs = upstream(files, found.run_id, presenting) if presenting else list_handoffs(files, found.run_id)
    if not handoffs.handoffs:
        raise _nothing(found, before, handoffs)
    project = read_project(files)
    has_spoken = {handoff.from_phase for handoff in handoffs.handoffs}
    names = _Names()
    parts = tuple(_part(handoff, names, look_at) for handoff in handoffs.handoffs)
    document = Document(
        title=shown_line(project.name or "") or project.project_id,
        run_id=found.run_id,
        parts=parts,
        silent=tuple(shown_line(one) for one in before if one not in has_spoken),
        published=max((part.published for part in parts), default=""),
    )
    return Presented(document=document, phase=presenting, findings=tuple(handoffs.findings))


def _presenting(files: StoreFiles, run: Run, phase: str | None) -> str:
    if phase is not None:
        return known_phase(files, run, phase)
    return PRESENTING if PRESENTING in phases_in_order(files, run) else ""


def _nothing(run: Run, before: Sequence[str], handoffs: Handoffs) -> NotFound:
    if handoffs.findings:
        return NotFound(
            "handoff that can be read in run", run.run_id, "`raddle store verify` looks at each of its files"
        )
    return NotFound(
        "handoff to present in run",
        run.run_id,
        f"`raddle handoff publish` makes one, for {' or '.join(map(shown_line, before))}"
        if before
        else "no phase comes before the one that presents: name another with --phase",
    )


def _part(handoff: Handoff, names: _Names, look_at: LookAt) -> Part:
    figures = []
    for artifact_id in dict.fromkeys((*handoff.figures, *handoff.best_artifacts)):
        shows = look_at(handoff.run_id, artifact_id, artifact_id in handoff.figures)
        if shows is not None:
            name = names.new(artifact_id)
            figures.append(Figure(artifact_id=shown_line(artifact_id), name=name, shows=shows))
    return Part(
        phase=shown_line(handoff.from_phase),
        headline=shown_line(handoff.headline),
        results=tables_of(handoff.key_results),
        decisions=_texts(handoff.decisions),
        questions=_texts(handoff.open_questions),
        artifacts=tuple(map(shown_line, handoff.best_artifacts)),
        figures=tuple(figures),
        evidence=tuple(map(_named, handoff.evidence)),
        published=shown_line(handoff.published_ts),
        author=shown_line(handoff.author or ""),
    )


def _texts(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(text for one in texts if (text := shown_text(one)))


def _named(piece: Evidence) -> str:
    return shown_line(f"{piece.thread_id}:{piece.message_id}" if piece.message_id else piece.thread_id)


class _Names:
    """Names of files, each another one, from ids that somebody else has made up."""

    def __init__(self) -> None:
        self._number = 0

    def new(self, text: str) -> str:
        """`01-speed-by-size`."""
        self._number += 1
        return file_name(self._number, text)


def file_name(number: int, text: str) -> str:
    """A name that every file system and every address can hold: `03-build`; the number makes it another one."""
    letters = "".join(one if one.isascii() and one.isalnum() else "-" for one in text.lower())
    slug = "-".join(part for part in letters.split("-") if part)[:60].rstrip("-")
    return f"{number:02d}-{slug}" if slug else f"{number:02d}"
