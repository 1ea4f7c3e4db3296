"""`raddle memory history`, `import` and `resolve`: where memories come from, and what became of them."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.memory_options import file_argument, with_memory
from raddle.apps.cli.memory_words import warn_of_secrets
from raddle.apps.cli.options import KeptText, TextOrStdin, as_json, limit_option
from raddle.model.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from raddle.actions.memory.memory_import import ImportReport
    from raddle.wiring.memory import ProjectMemory

_MOST_TOLD = 10

name_argument = click.argument("name", metavar="NAMESPACE/KEY", type=KeptText())


@click.command(
    help="""List the versions of the memory NAMESPACE/KEY, the newest first. `raddle memory get NAME --at COMMIT` shows
    one.""",
)
@name_argument
@limit_option(50, "versions")
@as_json
@with_memory
def history(memory: ProjectMemory, name: str, limit: int, json: bool) -> None:
    """Print a line for each."""
    from raddle.actions.memory.memories import existing_place  # noqa: PLC0415
    from raddle.model.clock import format_time  # noqa: PLC0415
    from raddle.wiring.memory_shelf import committed, versions  # noqa: PLC0415

    place, here = existing_place(memory.files, name)
    found = versions(memory, place.path, limit=limit)
    rows: list[dict[str, Any]] = []
    if here != (committed(memory, place.path) if found else None):
        rows.append({"commit": None, "at": "", "node_id": "", "author": "", "size": _size(here)})
    rows += [
        {
            "commit": one.commit,
            "at": format_time(one.at),
            "node_id": one.node_id,
            "author": one.author,
            "size": one.size,
        }
        for one in found
    ]
    if not rows:
        raise NotFound("memory", name, f"`raddle memory list {place.namespace}` shows what there is")
    if json:
        output.json(rows)
        return
    cells = [
        (
            row["commit"][:12] if row["commit"] else "not committed",
            words.local_minute(row["at"]) or "now",
            words.one_line(row["author"]),
            words.one_line(row["node_id"]),
            "taken out" if row["size"] is None else words.size(row["size"]),
        )
        for row in rows
    ]
    for line in words.table(cells, (14, 16, 24, 18, 12), styles=("yellow", None, "dim", "dim", None)):
        output.styled(line)


def _size(data: bytes | None) -> int | None:
    return None if data is None else len(data)


@click.command(
    name="import",
    help="""Bring in the memory folder of another agent: each text becomes NAMESPACE/its path. FOLDER may be one file.

    The folder is only read. Doing it again brings in what is new; a memory that says something else by now stays,
    unless --overwrite.

    \b
    raddle memory import ~/.claude/projects/-home-me-lantern/memory --namespace claude
    raddle memory import AGENTS.md --namespace team""",
)
@click.argument("folder", metavar="FOLDER", type=file_argument)
@click.option(
    "--namespace",
    metavar="NAMESPACE",
    default="imported",
    show_default=True,
    type=KeptText(),
    help="Where they go.",
)
@click.option("--overwrite", is_flag=True, help="Replace memories that say something else.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@as_json
@with_memory
def import_(
    memory: ProjectMemory, folder: Path, namespace: str, overwrite: bool, dry_run: bool, json: bool
) -> None:
    """Print the names of what is new."""
    from raddle.wiring.memory_shelf import import_folder  # noqa: PLC0415
    from raddle.wiring.memory_syncing import versions_kept  # noqa: PLC0415

    with nullcontext() if dry_run else versions_kept(memory):
        report = import_folder(memory, folder, namespace, overwrite=overwrite, is_dry_run=dry_run)
    if json:
        output.json({"is_dry_run": dry_run, **_import_shape(report)})
    else:
        for key in sorted((*report.added, *report.replaced)):
            output.line(words.one_line(f"{report.namespace}/{key}"))
        _tell_import(report, dry_run=dry_run)
    for key, kinds in report.secrets.items():
        warn_of_secrets(words.one_line(f"{report.namespace}/{key}"), kinds)


def _import_shape(report: ImportReport) -> dict[str, Any]:
    return {
        "namespace": report.namespace,
        "added": report.added,
        "replaced": report.replaced,
        "same": report.same,
        "kept": report.kept,
        "renamed": report.renamed,
        "skipped": report.skipped,
        "secrets": report.secrets,
    }


def _tell_import(report: ImportReport, *, dry_run: bool) -> None:
    counts = (
        (len(report.added), "new"),
        (len(report.replaced), "replaced"),
        (len(report.same), "there already"),
        (len(report.kept), "kept as they are, which say something else by now (--overwrite)"),
        (len(report.skipped), "left out"),
    )
    told = ", ".join(f"{number:,} {what}" for number, what in counts if number) or "nothing there"
    diagnostics.say(f"{'would be: ' if dry_run else ''}{told}")
    _tell_some(report.renamed, "{} is {} here, a name that every system can hold")
    _tell_some(report.skipped, "{} was left out: {}")


def _tell_some(told: dict[str, str], sentence: str) -> None:
    for path, what in list(told.items())[:_MOST_TOLD]:
        diagnostics.note(words.one_line(sentence.format(path, what)))
    if len(told) > _MOST_TOLD:
        diagnostics.note(f"and {len(told) - _MOST_TOLD:,} more: --json names all")


@click.command(
    help="""Settle what two machines changed at once. Without NAME, list what waits.

    NAME is NAMESPACE/KEY, or the path of a summary, a handoff or another file of the store. It holds what is taken from
    then on: `mine` (this machine's version), `theirs`, `current` (what stands there now), or another version by its
    name. What is dropped stays in the history.

    \b
    raddle memory resolve team/release.md --take theirs
    raddle memory resolve team/release.md --text - < merged.md""",
)
@click.argument("name", metavar="[NAME]", default="", type=KeptText())
@click.option("--take", metavar="VERSION", default="", type=KeptText(), help="The version that counts.")
@click.option("--text", metavar="TEXT", type=TextOrStdin(), help="Another text instead; - for stdin.")
@as_json
@with_memory
def resolve(memory: ProjectMemory, name: str, take: str, text: str | None, json: bool) -> None:
    """Print what waits, or what was settled."""
    from raddle.actions.memory.memory_conflicts import called, resolve  # noqa: PLC0415

    if not name:
        if take or text is not None:
            raise InvalidInput("nothing is named", "`raddle memory resolve` lists what waits")
        _list_conflicts(memory, json=json)
        return
    if take and text is not None:
        raise InvalidInput("--take and --text say two things", "give one of them")
    done = resolve(memory.files, memory.repository, memory.writer(), name, take=take, text=text)
    value = {"path": done.path, "taken": done.taken, "dropped": done.dropped}
    output.answer(json, value, words.one_line(f"{called(done.path)}: kept {done.taken}"))


def _list_conflicts(memory: ProjectMemory, *, json: bool) -> None:
    from raddle.actions.memory.memory_conflicts import called, other_versions  # noqa: PLC0415

    waiting = other_versions(memory.files)
    if json:
        output.json(
            [
                {"of": one.of, "name": one.name, "path": one.path, "node_id": one.node_id, "at": one.at}
                for one in waiting
            ]
        )
        return
    for at, one in enumerate(waiting):
        if not at or waiting[at - 1].of != one.of:
            output.styled(words.style(words.one_line(called(one.of)), "bold"))
        told = f"{words.local_minute(one.at)}  {words.one_line(one.node_id)}  {words.one_line(one.name)}"
        output.styled(f"    {told}")
    if not waiting:
        diagnostics.say("nothing waits to be settled")
    else:
        diagnostics.suggest(
            "`raddle memory resolve NAME --take mine`, `theirs`, `current`, or a version's name"
        )
