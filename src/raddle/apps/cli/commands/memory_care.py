"""`raddle store sync` and `raddle store verify`: a memory into step with its remote, and looked over."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.memory_options import with_memory
from raddle.apps.cli.options import as_json
from raddle.wiring.memory import ProjectMemory

if TYPE_CHECKING:
    from raddle.actions.memory.committing import Removals
    from raddle.actions.memory.syncing import SyncReport
    from raddle.model.memory.merge import Note

_UNSETTLED, _DAMAGED, _AWAY = 4, 5, 7
"""Exit codes, as `diagnostics` has them: a person has to say something first; bytes cannot be read; no network."""
_SHOWN = 20


@click.command(
    help="""Bring this memory and its git remote into step: commit, fetch, merge, push.

    Two versions of one thing are merged record by record; where both cannot stand, both are kept, and `raddle memory
    resolve` lists them. Without a network all of it is kept here, and the next sync goes on (exit code 7). The first
    push asks, for whoever can read the remote can read the memory.""",
)
@click.option("--publish", is_flag=True, help="Yes: this memory may go to where its remote is.")
@click.option("--refill", is_flag=True, help="Fill a remote again that was emptied.")
@click.option(
    "--remove",
    "removals",
    flag_value="all",
    default="few",
    help="Yes: all that is gone from the folder goes everywhere.",
)
@click.option("--restore", "removals", flag_value="none", help="Bring back all that is gone from the folder.")
@as_json
@with_memory
def sync(memory: ProjectMemory, *, publish: bool, refill: bool, removals: Removals, json: bool) -> None:
    """Print what was done."""
    from raddle.wiring.memory_syncing import sync_memory, tidy_after  # noqa: PLC0415

    with diagnostics.waiting("the memory's remote"):
        report = sync_memory(memory, may_publish=publish, may_refill=refill, removals=removals)
    if report.state == "not_agreed" and diagnostics.is_terminal() and not json:
        diagnostics.say(f"This memory would go to {report.url}, and whoever can read that can read it.")
        if click.confirm("Push it there?", default=False, err=True):
            report = sync_memory(memory, may_publish=True)
    if report.state == "emptied" and diagnostics.is_terminal() and not json:
        diagnostics.say(f"{report.url} had this memory, and has it no more.")
        if click.confirm("Push all of it again?", default=False, err=True):
            report = sync_memory(memory, may_refill=True)
    output.answer(json, _plain(report), _told(report))
    _explain(report)
    tidy_after(memory, report)
    if report.state in ("not_agreed", "emptied", "pending"):
        click.get_current_context().exit(_UNSETTLED)
    if report.state == "offline":
        click.get_current_context().exit(_AWAY)


def _told(report: SyncReport) -> str:
    """One line."""
    here = words.count(len(report.committed), "change") + " here"
    if report.state == "in_step":
        if not (report.committed or report.pulled or report.is_pushed):
            return "in step, nothing new"
        if not (report.committed or report.pulled):
            return "in step: what was committed is pushed"
        return f"in step: {here}, {words.count(len(report.pulled), 'change')} from elsewhere"
    if report.state == "kept_here":
        return f"kept on this machine ({here}): the project says `publish: false`"
    if report.state == "no_remote":
        return f"committed ({here}); it has no remote yet: git remote add origin URL, in the store's folder"
    if report.state == "not_agreed":
        return f"committed ({here}), not pushed: nobody has said yet that it may go to {report.url}"
    if report.state == "emptied":
        return f"committed ({here}), not pushed: {report.url} had this memory, and has it no more"
    return f"not pushed, what is committed waits here ({here}): {report.why}"


def _explain(report: SyncReport) -> None:
    if report.state == "not_agreed":
        diagnostics.say("`raddle store sync --publish` says so, once")
    if report.state == "emptied":
        diagnostics.say("`raddle store sync --refill` pushes all of it again")
    if report.restored:
        named = ", ".join(report.restored[:3]) + (", …" if len(report.restored) > 3 else "")
        diagnostics.note(words.one_line(f"gone from the folder, and back from the last commit: {named}"))
    if report.rescue:
        diagnostics.note(
            f"somebody pushed by force: nothing is lost, and what was here before is in {report.rescue}"
        )
    for path, why in list(report.blocked.items())[:_SHOWN]:
        diagnostics.warn(words.one_line(f"{path} is left out: {why}"))
    for note in report.notes[:_SHOWN]:
        diagnostics.note(words.one_line(_words_of(note)))
    if report.waiting:
        versions = words.count(len(report.waiting), "version")
        diagnostics.note(
            f"{versions} of something that was changed in two places to settle: `raddle memory resolve`"
        )


def _words_of(note: Note) -> str:
    return {
        "conflict": f"{note.path} was changed in two places; the other version is {note.other}",
        "kept": f"{note.path} was removed in one place and changed in another: it is kept",
        "moved": f"{note.path} is {note.other} now: two could not stand side by side",
        "renamed_artifact": f"artifact {note.path} was made twice; the later one is {note.other}",
        "withheld": f"{note.path} is in the history and never written to a disk",
    }[note.kind]


def _plain(report: SyncReport) -> dict[str, object]:
    return {
        "state": report.state,
        "committed": list(report.committed),
        "pulled": list(report.pulled),
        "pushed": report.is_pushed,
        "notes": [
            {"kind": note.kind, "path": note.path, "other": note.other, "clashes": list(note.clashes)}
            for note in report.notes
        ],
        "waiting": list(report.waiting),
        "restored": list(report.restored),
        "blocked": report.blocked,
        "rescue": report.rescue or None,
        "remote": report.url or None,
        "why": report.why or None,
    }


@click.command(
    help="""Look at every file of this memory: is it readable, in its place, and is there what it refers to?

    With --fix what can be put right is: the version of an earlier commit comes back, and what was there is kept aside.
    With --blobs the bytes of large artifacts are read too, wherever they are.""",
)
@click.option("--fix", is_flag=True, help="Put right what can be.")
@click.option("--blobs", is_flag=True, help="Read the bytes of large artifacts too.")
@as_json
@functools.partial(with_memory, may_be_broken=True)
def verify(memory: ProjectMemory, *, fix: bool, blobs: bool, json: bool) -> None:
    """Print what is not as it should be."""
    from raddle.wiring.memory_syncing import verify_memory  # noqa: PLC0415

    checked = verify_memory(memory, mends=fix, with_blobs=blobs)
    if json:
        output.json(
            {
                "files": checked.files,
                "findings": [
                    {"path": one.path, "what": one.what, "done": one.done, "failed": one.failed}
                    for one in checked.findings
                ],
                "conflicts": list(checked.conflicts),
            }
        )
    else:
        for one in checked.findings:
            after = one.done or (one.failed and f"not mended: {one.failed}")
            output.line(words.one_line(f"{one.path}: {one.what}" + (f" ({after})" if after else "")))
        output.line(
            f"looked at {words.count(checked.files, 'file')}: "
            + (words.count(len(checked.findings), "finding") if checked.findings else "all is well")
        )
    if checked.conflicts:
        diagnostics.note(
            f"{words.count(len(checked.conflicts), 'version')} of a clash to settle: `raddle memory resolve`"
        )
    if not checked.is_whole:
        if not fix:
            diagnostics.suggest("`raddle store verify --fix` puts right what can be")
        click.get_current_context().exit(_DAMAGED)
