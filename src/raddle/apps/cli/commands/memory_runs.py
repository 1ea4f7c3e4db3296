"""`raddle run`: begin, list, read and end runs, and say how their phases stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.memory_options import run_option, with_memory
from raddle.apps.cli.memory_words import count_entries, status, tell_conflicts, tell_findings
from raddle.apps.cli.options import Words, as_json
from raddle.model.errors import FormatError, InvalidInput

if TYPE_CHECKING:
    from raddle.actions.memory.runs import Contents
    from raddle.model.memory.run import Run
    from raddle.wiring.memory import ProjectMemory

_named_run = click.argument("run_id", metavar="[RUN]", required=False, default="", type=Words())


@click.group(
    help="""Begin, list and end runs, and say how their phases stand.

    A run is one attempt from end to end, through the phases of the project. RUN may be cut to the start of its id that
    is unique; without it the newest active run is meant, else the newest.""",
)
def run() -> None:
    """Commands on runs."""


@run.command(help="Begin a run, and print its id.")
@click.option("--phases", metavar="A,B,C", help="Its phases in their order; else those of the project.")
@click.option("--parent", metavar="RUN", help="The run that this one goes on from.")
@as_json
@with_memory
def start(memory: ProjectMemory, phases: str | None, parent: str | None, json: bool) -> None:
    """Print the id."""
    from raddle.actions.memory.runs import resolve_run, start_run  # noqa: PLC0415

    begun = start_run(
        memory.files,
        memory.writer(),
        phases=None if phases is None else [name.strip() for name in phases.split(",")],
        parent=None if parent is None else resolve_run(memory.files, parent).run_id,
    )
    output.answer(json, _shape(begun), begun.run_id)


@run.command(name="list", help="List the runs, the newest first.")
@as_json
@with_memory
def list_(memory: ProjectMemory, json: bool) -> None:
    """Print a line for each."""
    from raddle.actions.memory.runs import list_runs  # noqa: PLC0415

    found = list_runs(memory.files)
    if json:
        output.json([_shape(one) for one in found.runs])
    else:
        now = memory.stores.clock()
        rows = [
            [one.run_id, words.one_line(one.status), _phases(one), words.ago(one.created_ts, now)]
            for one in found.runs
        ]
        for line in words.table(
            rows,
            (26, 7, 200, 14),
            styles=("yellow", None, None, "dim"),
            width=output.columns(),
            shrink=(2,),
        ):
            output.styled(line)
        if not rows:
            diagnostics.say("there is no run yet; `raddle run start` begins one")
    tell_findings(found.findings)


def _phases(one: Run) -> str:
    return "  ".join(words.one_line(f"{phase}:{state}") for phase, state in one.phases.items())


@run.command(help="Show a run: its phases and what they hold, who works on it, its artifacts.")
@_named_run
@as_json
@with_memory
def show(memory: ProjectMemory, run_id: str, json: bool) -> None:
    """Print it."""
    from raddle.actions.memory.artifacts import list_artifacts  # noqa: PLC0415
    from raddle.actions.memory.runs import contents_of, resolve_run  # noqa: PLC0415
    from raddle.model.memory.repo_layout import run_file  # noqa: PLC0415

    one = resolve_run(memory.files, run_id)
    tell_conflicts(memory.files, run_file(one.run_id), f"run {one.run_id}")
    contents = contents_of(memory.files, one.run_id)
    try:
        artifacts = [artifact.artifact_id for artifact in list_artifacts(memory.files, one.run_id).artifacts]
    except FormatError as error:  # it costs itself only
        diagnostics.warn(f"{words.one_line(error.message)}: the artifacts of the run are not shown")
        artifacts = []
    if json:
        output.json(
            {
                "run": _shape(one),
                "entries": contents.entries,
                "summaries": sorted(contents.summaries),
                "handoffs": sorted(contents.handoffs),
                "artifacts": artifacts,
            }
        )
        return
    output.styled(
        f"{words.style(one.run_id, 'yellow')}  {status(one.status)}  {words.ago(one.created_ts, memory.stores.clock())}"
    )
    if one.parent_run_id:
        output.styled(words.style(words.one_line(f"went on from {one.parent_run_id}"), "dim"))
    for title, lines in (
        ("Phases", words.table(_phase_rows(one, contents), (24, 8, 16, 8, 8), styles=(None,) * 5)),
        ("Nodes", words.table(_node_rows(one), (32, 32, 16, 24), styles=(None, "dim", None, "dim"))),
        ("Artifacts", [words.one_line(artifact_id) for artifact_id in artifacts]),
    ):
        if lines:
            output.styled("\n" + words.style(title, "bold"))
        for line in lines:
            output.styled(f"  {line}")


def _phase_rows(one: Run, contents: Contents) -> list[list[str]]:
    """The phases of the run, then those that only hold something."""
    phases = dict.fromkeys(
        [*one.phases, *sorted({*contents.entries, *contents.summaries, *contents.handoffs})]
    )
    return [
        [
            words.one_line(phase),
            words.one_line(one.phases.get(phase, "–")),
            count_entries(contents.entries[phase]) if phase in contents.entries else "",
            "summary" if phase in contents.summaries else "",
            "handoff" if phase in contents.handoffs else "",
        ]
        for phase in phases
    ]


def _node_rows(one: Run) -> list[list[str]]:
    return [
        [
            words.one_line(stint.node_id),
            words.one_line(stint.host or ""),
            words.local_minute(stint.joined),
            f"left {words.local_minute(stint.left)}" if stint.left else "",
        ]
        for stint in one.nodes
    ]


@run.command(help="The run is done: this machine leaves it, and it is no longer the one that is meant.")
@_named_run
@as_json
@with_memory
def finish(memory: ProjectMemory, run_id: str, json: bool) -> None:
    """Print its id."""
    from raddle.actions.memory.runs import finish_run  # noqa: PLC0415

    done = finish_run(memory.files, memory.writer(), _to_end(memory, run_id))
    output.answer(json, _shape(done), done.run_id)


@run.command(help="The run has failed: this machine leaves it, and it is no longer the one that is meant.")
@_named_run
@as_json
@with_memory
def fail(memory: ProjectMemory, run_id: str, json: bool) -> None:
    """Print its id."""
    from raddle.actions.memory.runs import fail_run  # noqa: PLC0415

    done = fail_run(memory.files, memory.writer(), _to_end(memory, run_id))
    output.answer(json, _shape(done), done.run_id)


@run.command(help="This machine works on the run no more; the others go on.")
@_named_run
@as_json
@with_memory
def leave(memory: ProjectMemory, run_id: str, json: bool) -> None:
    """Print its id."""
    from raddle.actions.memory.runs import leave_run, resolve_run  # noqa: PLC0415

    left = leave_run(memory.files, memory.writer(), resolve_run(memory.files, run_id).run_id)
    output.answer(json, _shape(left), left.run_id)


@run.command(
    help="""Say how a phase stands. STATUS is pending, active, done or failed.

    With active the run becomes active too, and this machine joins it; a phase that failed may be run again.""",
)
@click.argument("phase", metavar="PHASE", type=Words())
@click.argument("state", metavar="STATUS", type=Words())
@run_option
@as_json
@with_memory
def phase(memory: ProjectMemory, phase: str, state: str, run_id: str | None, json: bool) -> None:
    """Print where it stands now."""
    from raddle.actions.memory.runs import resolve_run, set_phase  # noqa: PLC0415

    run_id = resolve_run(memory.files, run_id or "").run_id
    changed = set_phase(memory.files, memory.writer(), run_id, phase, state)
    output.answer(json, _shape(changed), f"{changed.run_id}  {_phases(changed)}")


def _to_end(memory: ProjectMemory, run_id: str) -> str:
    """The run that is to end; one that nobody named has to be active, or an old one would be judged anew."""
    from raddle.actions.memory.runs import resolve_run  # noqa: PLC0415

    meant = resolve_run(memory.files, run_id)
    if not run_id.strip() and meant.status != "active":
        raise InvalidInput("no run is active", "name the one that is meant; `raddle run list` lists them")
    return meant.run_id


def _shape(one: Run) -> dict[str, Any]:
    """A run as its file has it (docs/formats/memory-repo.md)."""
    from raddle.model.memory.documents import plain_of  # noqa: PLC0415

    plain: dict[str, Any] = plain_of(one)
    return plain
