"""A run as it is told to whoever takes it up, on a terminal or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from raddle.apps.cli import output, words
from raddle.apps.cli.memory_words import (
    entry_lines,
    handoff_lines,
    status,
    tell_conflicts,
    tell_findings,
)

if TYPE_CHECKING:
    from raddle.actions.memory.run_overview import RunOverview
    from raddle.wiring.memory import ProjectMemory


def show_overview(overview: RunOverview, memory: ProjectMemory, *, json: bool) -> None:
    """Print it; what could not be read, and what waits to be settled, is said on the side."""
    from raddle.model.memory.repo_layout import handoff_file, summary_file  # noqa: PLC0415

    if json:
        from raddle.model.memory.documents import plain_of  # noqa: PLC0415

        output.json(
            {
                "store": str(memory.root),
                "project": memory.project.project_id,
                "run": plain_of(overview.run),
                "handoffs": [plain_of(handoff) for handoff in overview.handoffs],
                "summary": {"phase": overview.summary_phase, "text": overview.summary}
                if overview.summary
                else None,
                "entries": [plain_of(entry) for entry in overview.entries],
            }
        )
    else:
        _print(overview, memory.stores.clock())
    tell_findings(overview.findings)
    run_id = overview.run.run_id
    for one in overview.handoffs:
        tell_conflicts(memory.files, handoff_file(run_id, one.from_phase), f"the handoff of {one.from_phase}")
    if overview.summary:
        path = summary_file(run_id, overview.summary_phase)
        tell_conflicts(memory.files, path, f"the summary of {overview.summary_phase}")


def _print(overview: RunOverview, now: int) -> None:
    run = overview.run
    output.styled(
        f"{words.style(run.run_id, 'yellow')}  {status(run.status)}  {words.ago(run.created_ts, now)}"
    )
    rows = [[words.one_line(phase), words.one_line(state)] for phase, state in run.phases.items()]
    _section("Phases", words.table(rows, (24, 8), styles=(None, None)))
    for handoff in overview.handoffs:
        _section(words.one_line(f"Handoff of {handoff.from_phase}"), list(handoff_lines(handoff, now)))
    if overview.summary:
        title = words.one_line(f"Summary of {overview.summary_phase}")
        _section(title, words.safe_lines(overview.summary).strip("\n").split("\n"))
    _section("Newest entries", entry_lines(overview.entries, room=None))


def _section(title: str, lines: list[str]) -> None:
    if not lines:
        return
    output.styled("\n" + words.style(title, "bold"))
    for line in lines:
        output.styled(f"  {line}" if line else "")
