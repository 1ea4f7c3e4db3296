"""A phase that a program works on: begun in a run, and ended with what is still to be told.

Owns what the ending of a program means for its phase. What is told comes first, then the status: a phase never says
that it is done while something of it is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from raddle.actions.memory.entries import EntryLog, NewEntry
from raddle.actions.memory.handoffs import show_handoff
from raddle.actions.memory.ports import StoreFiles, Writer
from raddle.actions.memory.runs import (
    known_phase,
    list_runs,
    phases_in_order,
    read_run,
    resolve_run,
    set_phase,
    start_run,
)
from raddle.model.errors import InvalidInput
from raddle.model.memory.handoff import Handoff
from raddle.model.memory.names import shown
from raddle.model.memory.run import Run

LONGEST_ERROR = 4_000
"""Characters that are kept of an error."""


def begin_phase(files: StoreFiles, writer: Writer, phase: str, *, run: str | None = None) -> Run:
    """The phase is active from now on, whatever it was before: one that failed, or was cut off, is taken up again.

    `run`: the id of a run or the start of one. None: the newest run that is active, and where none is, one begins.
    NotFound, Ambiguous; InvalidInput for a phase that neither the run nor the project has, and then no run has begun.
    """
    chosen = resolve_run(files, run) if run is not None else _newest_active(files)
    if chosen is None:
        project = Run(run_id="that begins now")
        known_phase(files, project, phase)
        chosen = start_run(files, writer)
    return set_phase(files, writer, chosen.run_id, phase, "active")


def finish_phase(
    files: StoreFiles, log: EntryLog, writer: Writer, run_id: str, phase: str, *, last: Sequence[NewEntry]
) -> None:
    """The phase is done; `last`: what was not told yet."""
    log.add_all(run_id, phase, last)
    set_phase(files, writer, run_id, phase, "done")


def fail_phase(
    files: StoreFiles,
    log: EntryLog,
    writer: Writer,
    run_id: str,
    phase: str,
    *,
    last: Sequence[NewEntry],
    why: NewEntry,
) -> None:
    """The phase has failed; `last`: what was not told yet, `why`: an entry about the error."""
    log.add_all(run_id, phase, [*last, why])
    set_phase(files, writer, run_id, phase, "failed")


def error_entry(error: BaseException) -> NewEntry:
    """An exception as an entry: its words, and its kind."""
    kind = type(error).__name__
    try:
        said = " ".join(str(error).split())
    except Exception:  # noqa: BLE001  the code is the program's, and its words are asked for while it fails already
        said = ""
    return error_told(f"{kind}: {said}" if said else kind, error=kind)


def error_told(text: str, **facts: str) -> NewEntry:
    """Words about an error as an entry; the ones too many are left out."""
    whole = text.encode(errors="replace").decode()
    cut = whole if len(whole) <= LONGEST_ERROR else f"{whole[: LONGEST_ERROR - 1]}…"
    return NewEntry(type="error", payload={"text": cut, **facts})


def upstream_handoff(files: StoreFiles, run_id: str, phase: str, earlier: str) -> Handoff:
    """What `earlier`, a phase before `phase`, has published; all that `phase` reads of it.

    InvalidInput where it is not before it; NotFound where it has published nothing; a FormatError.
    """
    run = read_run(files, run_id)
    own, other = known_phase(files, run, phase), known_phase(files, run, earlier)
    order = phases_in_order(files, run)
    before = order[: order.index(own)]
    if other not in before:
        raise InvalidInput(
            f"phase {shown(other)} does not come before {shown(own)}",
            f"before it come {', '.join(before)}" if before else f"{own} is the first one",
        )
    return show_handoff(files, run.run_id, other)


def _newest_active(files: StoreFiles) -> Run | None:
    return next((run for run in list_runs(files).runs if run.status == "active"), None)
