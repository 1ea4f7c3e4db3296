"""Runs: begun, found again, worked on by nodes, taken through their phases, ended. Owns every change of a `run.yaml`.

A second place that wrote one would lose what another node, or the peer, has written into it that we do not know.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from raddle.actions.memory.ports import StoreFiles, Writer
from raddle.actions.ports import Finding
from raddle.model.clock import format_time
from raddle.model.errors import Ambiguous, BrokenFormat, FormatError, InvalidInput, NotFound
from raddle.model.memory.names import shown
from raddle.model.memory.project import Project, decode_project
from raddle.model.memory.repo_layout import (
    PROJECT_FILE,
    RUNS_FOLDER,
    check_phase,
    check_phases,
    place_of,
    run_file,
    run_folder,
)
from raddle.model.memory.run import PHASE_STATUSES, Run, Stint, decode_run, encode_run
from raddle.model.memory.ulids import is_ulid, new_ulid, parse_ulid

_PREFIX = re.compile(r"[0-9A-HJKMNP-TV-Z]{1,25}\Z", re.ASCII)
_LISTED = "`raddle run list` lists them"


class Contents(NamedTuple):
    """What a run holds: how many entries by phase, and the phases that have a summary and a handoff."""

    entries: dict[str, int]
    summaries: frozenset[str]
    handoffs: frozenset[str]


class Runs(NamedTuple):
    """Runs, the newest first, and what is wrong with those that are not among them."""

    runs: list[Run]
    findings: list[Finding]


def start_run(
    files: StoreFiles, writer: Writer, *, phases: Sequence[str] | None = None, parent: str | None = None
) -> Run:
    """Begin a run, this node on it. `phases`: None for those of the project; all are pending.

    `parent`: the whole id of the run that this one goes on from; NotFound where there is none.
    """
    chosen = check_phases(read_project(files).phases if phases is None else phases)
    if parent is not None:
        parent = read_run(files, parent).run_id
    now = format_time(writer.now())
    run = Run(
        run_id=new_ulid(writer.new_id),
        status="active",
        parent_run_id=parent,
        phases=dict.fromkeys(chosen, "pending"),
        nodes=(_stint(writer, now),),
        created_ts=now,
    )
    files.add({run_file(run.run_id): encode_run(run)})
    return run


def read_project(files: StoreFiles) -> Project:
    """What the store is about; NotFound where it does not say, a FormatError where that cannot be read."""
    data = files.read(PROJECT_FILE)
    if data is None:
        raise NotFound("file", PROJECT_FILE, "the folder is no store: `raddle store init` makes one")
    return decode_project(data)


def run_ids(files: StoreFiles) -> list[str]:
    """The ids of all runs, oldest first, those included of which nothing but the folder can be read."""
    return [name for name in files.folders(RUNS_FOLDER) if is_ulid(name)]


def list_runs(files: StoreFiles) -> Runs:
    """Every run that can be read, the newest first."""
    found = Runs([], [])
    for run_id in reversed(run_ids(files)):
        try:
            found.runs.append(read_run(files, run_id))
        except (FormatError, NotFound) as error:
            what = error.message if isinstance(error, FormatError) else "there is no such file"
            found.findings.append(Finding(path=run_file(run_id), what=what))
    return found


def read_run(files: StoreFiles, run_id: str) -> Run:
    """The run of that whole id; InvalidInput, NotFound, or a FormatError where it is damaged."""
    path = run_file(run_id)
    return _decoded(files.read(path), parse_ulid(run_id, "run id"))


def contents_of(files: StoreFiles, run_id: str) -> Contents:
    """What the folder of a run holds, by the names in it: no file is opened."""
    places = [place_of(path) for path in files.paths(run_folder(run_id))]
    return Contents(
        entries=dict(Counter(place.phase for place in places if place.kind == "entry")),
        summaries=frozenset(place.phase for place in places if place.kind == "summary"),
        handoffs=frozenset(place.phase for place in places if place.kind == "handoff"),
    )


def resolve_run(files: StoreFiles, prefix: str = "") -> Run:
    """The run whose id begins with `prefix`, in any case; empty: the newest active one, else the newest.

    NotFound, Ambiguous with the candidates, InvalidInput where it begins no id.
    """
    text = prefix.strip().upper()
    if not text:
        return _newest(files)
    if is_ulid(text):
        return read_run(files, text)
    if _PREFIX.match(text) is None:
        raise InvalidInput(f"{shown(prefix)} is not a run id or the start of one", _LISTED)
    found = [run_id for run_id in run_ids(files) if run_id.startswith(text)]
    if not found:
        raise NotFound("run", prefix.strip(), _LISTED)
    if len(found) > 1:
        raise Ambiguous("run", text, found)
    return read_run(files, found[0])


def _newest(files: StoreFiles) -> Run:
    newest: Run | None = None
    damaged: FormatError | None = None
    for run_id in reversed(run_ids(files)):
        try:
            run = read_run(files, run_id)
        except NotFound:
            continue
        except FormatError as error:
            damaged = damaged or error
            continue
        if run.status == "active":
            return run
        newest = newest or run
    if newest is not None:
        return newest
    if damaged is not None:
        raise damaged
    raise NotFound("run in", read_project(files).project_id, "`raddle run start` begins one")


def finish_run(files: StoreFiles, writer: Writer, run_id: str) -> Run:
    """The run is done, and this node leaves it; its phases stay as they are."""
    return _changed(files, run_id, lambda run: _left(replace(run, status="done"), writer))


def fail_run(files: StoreFiles, writer: Writer, run_id: str) -> Run:
    """The run has failed, and this node leaves it; its phases stay as they are."""
    return _changed(files, run_id, lambda run: _left(replace(run, status="failed"), writer))


def join_run(files: StoreFiles, writer: Writer, run_id: str) -> Run:
    """This node works on the run from now on, beside the others; nothing is new where it does already."""
    return _changed(files, run_id, lambda run: _joined(run, writer))


def leave_run(files: StoreFiles, writer: Writer, run_id: str) -> Run:
    """This node works on the run no more; nothing is new where it did not."""
    return _changed(files, run_id, lambda run: _left(run, writer))


def set_phase(files: StoreFiles, writer: Writer, run_id: str, phase: str, status: str) -> Run:
    """One of PHASE_STATUSES for a phase of the run, or of the project. InvalidInput for any other.

    Who makes a phase active works on the run: it becomes active too, and this node joins it.
    """
    if status not in PHASE_STATUSES:
        raise InvalidInput(
            f"{shown(status)} is no status of a phase", f"it is one of {', '.join(PHASE_STATUSES)}"
        )

    def edit(run: Run) -> Run:
        name = known_phase(files, run, phase)
        edited = replace(run, phases={**run.phases, name: status})
        return _joined(replace(edited, status="active"), writer) if status == "active" else edited

    return _changed(files, run_id, edit)


def known_phase(files: StoreFiles, run: Run, phase: str) -> str:
    """`phase` in its canonical form, where the run or the project has it; else InvalidInput names those there are."""
    name = check_phase(phase)
    if name in run.phases:
        return name
    phases = phases_in_order(files, run)
    if name not in phases:
        raise InvalidInput(
            f"run {run.run_id} has no phase {shown(phase)}",
            f"it has {', '.join(phases)}" if phases else "name its phases in project.yaml",
        )
    return name


def phases_in_order(files: StoreFiles, run: Run) -> tuple[str, ...]:
    """The phases of the project in their order, then those that only the run has."""
    return tuple(dict.fromkeys((*read_project(files).phases, *run.phases)))


def current_phase(run: Run) -> str:
    """The phase that is active, the last one where several are; else the first that is not done.

    InvalidInput where all are done.
    """
    active = [phase for phase, status in run.phases.items() if status == "active"]
    if active:
        return active[-1]
    for phase, status in run.phases.items():
        if status != "done":
            return phase
    raise InvalidInput(f"every phase of run {run.run_id} is done", "name the one that is meant with --phase")


def _changed(files: StoreFiles, run_id: str, edit: Callable[[Run], Run]) -> Run:
    """Read the run, edit and write it, under the lock; the edited one."""
    edited: list[Run] = []
    canonical = parse_ulid(run_id, "run id")

    def rewritten(old: bytes | None) -> bytes | None:
        run = _decoded(old, canonical)
        edited.append(edit(run))
        return old if edited[-1] == run else encode_run(edited[-1], old)

    files.change(run_file(canonical), rewritten)
    return edited[-1]


def _decoded(data: bytes | None, run_id: str) -> Run:
    if data is None:
        raise NotFound("run", run_id, _LISTED)
    run = decode_run(data)
    if run.run_id != run_id:
        raise BrokenFormat(
            f"the run.yaml of run {run_id} is that of another, {shown(run.run_id)}", "give it its own back"
        )
    return run


def _stint(writer: Writer, now: str) -> Stint:
    return Stint(node_id=writer.node_id, host=writer.host, joined=now)


def _joined(run: Run, writer: Writer) -> Run:
    if any(_is_open(run.nodes, writer)):
        return run
    return replace(run, nodes=(*run.nodes, _stint(writer, format_time(writer.now()))))


def _left(run: Run, writer: Writer) -> Run:
    now = format_time(writer.now())
    ours = _is_open(run.nodes, writer)
    nodes = tuple(
        replace(stint, left=now) if is_ours else stint for stint, is_ours in zip(run.nodes, ours, strict=True)
    )
    return replace(run, nodes=nodes)


def _is_open(nodes: Iterable[Stint], writer: Writer) -> list[bool]:
    return [stint.node_id == writer.node_id and stint.left is None for stint in nodes]
