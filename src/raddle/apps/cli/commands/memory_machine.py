"""`raddle store list` and `raddle store gc`: all memories of this machine, and what none of them needs any more."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.memory_options import store_option
from raddle.apps.cli.options import as_json, with_stores
from raddle.model.errors import InvalidInput, NotFound, RaddleError

if TYPE_CHECKING:
    from raddle.wiring import Stores
    from raddle.wiring.memory_gc import LeftOver
    from raddle.wiring.memory_machine import MemoryHere


@click.command(
    name="list",
    help="""List the memories of this machine: those that were made, attached or adopted here, and those that put the
    bytes of artifacts here. No remote is asked.""",
)
@as_json
@with_stores
def list_(stores: Stores, json: bool) -> None:
    """Print a line for each."""
    from raddle.wiring.memory_machine import memories_here  # noqa: PLC0415

    found = memories_here(stores)
    if json:
        output.json([_shape(one) for one in found])
        return
    rows = [
        (
            words.one_line(one.project_id) or "–",
            words.one_line(words.short_path(str(one.root))),
            words.one_line(_kind(one)),
            words.one_line(_stands(one, stores.clock())),
        )
        for one in found
    ]
    for line in words.table(
        rows, (24, 400, 30, 60), styles=("bold", None, "dim", None), width=output.columns(), shrink=(2, 3)
    ):
        output.styled(line)
    for one in found:
        if one.state == "damaged":
            diagnostics.warn(words.one_line(one.why))
    if not found:
        diagnostics.say("no memory is on this machine yet: `raddle store init PROJECT` makes one")


def _kind(one: MemoryHere) -> str:
    return {"worktree": f"branch {one.branch}", "repo": "own repository", None: "–"}[one.mode]


def _stands(one: MemoryHere, now: int) -> str:
    from raddle.model.clock import format_time  # noqa: PLC0415

    if one.state != "whole":
        return {"away": "not there now", "damaged": "cannot be opened"}[one.state]
    if one.remote is None:
        return "no remote"
    return "never synced" if one.last_sync is None else f"synced {words.ago(format_time(one.last_sync), now)}"


def _shape(one: MemoryHere) -> dict[str, Any]:
    from raddle.model.clock import format_time  # noqa: PLC0415

    return {
        "store": str(one.root),
        "state": one.state,
        "project": one.project_id or None,
        "host": None if one.host is None else str(one.host),
        "mode": one.mode,
        "branch": one.branch or None,
        "remote": one.remote,
        "last_sync": "" if one.last_sync is None else format_time(one.last_sync),
        "why": one.why or None,
    }


@click.command(
    help="""Remove the blobs of this machine's own folder that no memory names any more.

    It looks at every commit, branch and working folder of every memory of this machine (`raddle store list`), asks
    (--yes answers), and touches nothing that is younger than an hour. What a memory put there that is not where it was
    (a disk that is not mounted) is kept, unless --gone says that it is gone for good. A memory that is damaged is
    named, and all that it may need is kept. Buckets, servers and shared folders are never looked at.""",
)
@click.option("--dry-run", is_flag=True, help="Say what would go, and do nothing.")
@click.option("--gone", is_flag=True, help="Keep nothing for memories that are not where they were.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@as_json
@store_option
@with_stores
def gc(stores: Stores, *, dry_run: bool, gone: bool, yes: bool, store_path: str | None, json: bool) -> None:
    """Print what went."""
    from raddle.wiring.memory_gc import find_left_over, remove_left_over  # noqa: PLC0415

    here = _place_here(stores, store_path)
    with diagnostics.waiting("git, which reads what the memories of this machine name"):
        left = find_left_over(stores.paths, here, forgets_gone=gone)
    told = f"{words.count(len(left.blobs), 'blob')} ({words.size(sum(blob.size for blob in left.blobs))})"
    _tell_kept(left)
    is_meant = not dry_run and (not left.blobs or yes or _is_meant(told))
    removed = remove_left_over(stores.paths, left, forgets_gone=gone) if is_meant else []
    shown = left.blobs if dry_run else removed
    value = {
        "blobs": [{"sha256": blob.sha256, "size_bytes": blob.size} for blob in shown],
        "bytes": sum(blob.size for blob in shown),
        "is_dry_run": dry_run,
        "kept_for_gone": [
            {"store": str(place), "blobs": count, "bytes": kept} for place, (count, kept) in left.gone.items()
        ],
        "kept_for_damaged": [
            {"store": str(place), "blobs": one.blobs, "bytes": one.size, "why": one.why}
            for place, one in left.unread.items()
        ],
    }
    if dry_run:
        text = f"{told} would go" if left.blobs else "nothing is left over"
    elif removed:
        text = (
            f"removed {words.count(len(removed), 'blob')} ({words.size(sum(blob.size for blob in removed))})"
        )
    else:
        text = "nothing was removed" if left.blobs else "nothing is left over"
    output.answer(json, value, text)


def _place_here(stores: Stores, given: str | None) -> Path | None:
    """The memory that is worked in, which need not be noted anywhere; None where none is, for gc is of the machine."""
    from raddle.wiring.memory_machine import is_away  # noqa: PLC0415
    from raddle.wiring.memory_places import find_store  # noqa: PLC0415

    try:
        root = find_store(stores.config, given).root
    except RaddleError:
        if given:
            raise
        return None
    if given and is_away(root):
        raise NotFound("store", str(root), "`raddle store list` names those of this machine")
    return root


def _tell_kept(left: LeftOver) -> None:
    for place, (count, size) in left.gone.items():
        where = words.one_line(words.short_path(str(place)))
        diagnostics.note(
            f"{words.count(count, 'blob')} ({words.size(size)}) kept for {where}, which is gone; "
            "--gone lets go of it"
        )
    for place, one in left.unread.items():
        where = words.one_line(words.short_path(str(place)))
        diagnostics.warn(
            words.one_line(f"a memory cannot be read, and nothing that it may need goes: {one.why}")
        )
        kept = f"{words.count(one.blobs, 'blob')} ({words.size(one.size)}) kept for it; " if one.blobs else ""
        diagnostics.note(
            f"{kept}`raddle store adopt {where}` may mend it; if nobody needs it any more, move its folder away and "
            "say --gone"
        )


def _is_meant(told: str) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput(
            f"{told} would be removed, and nobody is here to answer",
            "say --yes; --dry-run shows which they are",
        )
    return click.confirm(f"Remove {told} that nobody names any more?", err=True)
