"""What somebody has to know who takes up a run: how it stands, what was handed over, the last digest and entries.

The one choice of what is told first. It reads few files of a long run, so that taking one up costs the same late as
early.
"""

from __future__ import annotations

from msgspec import Struct

from raddle.actions.memory.entries import EntryReader, list_entries
from raddle.actions.memory.handoffs import list_handoffs
from raddle.actions.memory.ports import StoreFiles
from raddle.actions.memory.runs import phases_in_order, read_run
from raddle.actions.memory.summaries import get_summary
from raddle.actions.ports import Finding
from raddle.model.errors import FormatError, InvalidInput
from raddle.model.memory.entry import ContextEntry
from raddle.model.memory.handoff import Handoff
from raddle.model.memory.repo_layout import run_folder
from raddle.model.memory.run import Run

NEWEST = 8


class RunOverview(Struct, frozen=True, kw_only=True):
    """A run as it stands. `handoffs`: in the order of the phases. `summary`: of the last phase that has one,
    `summary_phase`; empty where none has. `entries`: the newest ones, the newest last. `findings`: what could not be
    read of all this."""

    run: Run
    handoffs: tuple[Handoff, ...] = ()
    summary_phase: str = ""
    summary: str = ""
    entries: tuple[ContextEntry, ...] = ()
    findings: tuple[Finding, ...] = ()


def overview(files: StoreFiles, reader: EntryReader, run_id: str, *, newest: int = NEWEST) -> RunOverview:
    """What to know of the run of that whole id, with its `newest` entries. NotFound; a FormatError where it is
    damaged."""
    run = read_run(files, run_id)
    handoffs = list_handoffs(files, run.run_id)
    entries = list_entries(reader, run.run_id, limit=newest)
    findings = [*handoffs.findings, *entries.findings]
    phase, summary = _last_summary(files, run, findings)
    return RunOverview(
        run=run,
        handoffs=tuple(handoffs.handoffs),
        summary_phase=phase,
        summary=summary,
        entries=tuple(entries.entries),
        findings=tuple(findings),
    )


def _last_summary(files: StoreFiles, run: Run, findings: list[Finding]) -> tuple[str, str]:
    for phase in reversed(phases_in_order(files, run)):
        try:
            text = get_summary(files, run.run_id, phase)
        except InvalidInput:  # another program's phase, of a name that no system but its own can hold
            continue
        except FormatError as error:
            findings.append(Finding(path=f"{run_folder(run.run_id)}: {phase}", what=error.message))
            continue
        if text and text.strip():
            return phase, text
    return "", ""
