"""`raddle sync`, `raddle conflicts`: the threads of this machine and those of the server, brought into step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import Words, as_json, complete_thread, with_stores
from raddle.model.clock import format_time
from raddle.model.errors import ConflictError, Purged
from raddle.wiring import Stores

if TYPE_CHECKING:
    from raddle.model.threads.register import Write
    from raddle.model.threads.thread import Conflict

_PURGED = (
    "it was erased for good on another device, and the server takes it no more; this copy stays: "
    "`raddle purge {0} --local` erases it here too, `raddle fork {0}` makes a thread of it that syncs"
)
_insecure = click.option(
    "--insecure", is_flag=True, help="Let the server be plain http, though it is not this machine."
)


@click.group(
    invoke_without_command=True,
    help="""Send what this machine has to the server, and take in what your other devices sent: now.

    Private threads stay here. `raddle sync status` says how each thread stands; the daemon (`raddle daemon`) syncs by
    itself.""",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option(
    "--force", is_flag=True, help="Go on though more than half of either side's threads would be deleted."
)
@click.option(
    "--revive",
    is_flag=True,
    help="Bring back what was purged on this machine alone (`raddle purge --local`) and the server still has.",
)
@_insecure
@as_json
@click.pass_context
def sync(ctx: click.Context, *, dry_run: bool, force: bool, revive: bool, insecure: bool, json: bool) -> None:
    """Sync, unless a subcommand was asked for."""
    if ctx.invoked_subcommand is None:
        _sync(dry_run=dry_run, force=force, revive=revive, insecure=insecure, json=json)


@with_stores
def _sync(stores: Stores, *, dry_run: bool, force: bool, revive: bool, insecure: bool, json: bool) -> None:
    from raddle.apps.cli.interrupts import stopped_in_order  # noqa: PLC0415  the help of other commands needs none of it
    from raddle.wiring.syncing import syncing  # noqa: PLC0415

    told = "stopped: what was synced stays synced, the rest is still to do (`raddle sync`)"
    with stopped_in_order(told), syncing(stores, insecure=insecure) as work:
        with diagnostics.waiting(work.server):
            plan = work.plan(anyway=True, revive=revive)
        value: dict[str, Any] = {
            "server": work.server,
            "pulls": len(plan.pulls),
            "pushes": len(plan.pushes),
            "deletes_here": plan.deletes_here,
            "deletes_there": plan.deletes_there,
        }
        if dry_run:
            value |= {"pushes": work.to_send(plan), "is_dry_run": True}
            text = f"{words.count(value['pushes'], 'thread')} to send, {len(plan.pulls):,} to take in"
            if plan.missing:
                text += f", {len(plan.missing):,} of which are missing here"
            output.answer(json, value, text)
            return
        if plan.is_alarming and not force:
            raise ConflictError(
                f"this sync would delete {words.count(plan.deletes_here, 'thread')} here and "
                f"{plan.deletes_there:,} on the server, more than half of what is there",
                "look with `raddle list --deleted`; `raddle sync --force` goes on",
            )
        with diagnostics.Counting("syncing") as bar:
            done = work.carry_out(plan, progress=lambda step: bar.show(step.done, step.total))
    short = stores.short_ids(done.trouble)
    for thread_id, note in done.trouble.items():
        told = _PURGED.format(short[thread_id]) if note.code == Purged.code else note.reason
        diagnostics.warn(words.one_line(f"{short[thread_id]}: {told}"))
    short = stores.short_ids(done.source_trouble)
    for thread_id, reason in done.source_trouble.items():
        diagnostics.warn(words.one_line(f"{short[thread_id]}: its source bytes stay here: {reason}"))
    value |= {
        "pulled": done.pulled,
        "pushed": done.pushed,
        "brought_back": done.brought_back,
        "not_in_step": sorted(done.trouble),
    }
    text = f"in step with {work.server}: {words.count(done.pushed, 'thread')} sent, {done.pulled:,} taken in"
    if done.brought_back:
        text += f", {done.brought_back:,} of which were missing here"
    output.answer(json, value, text)


@sync.command(
    short_help="Say how each thread stands to the server.",
    help="""Say how each thread stands to the server, without asking it: private, local (there is no server), refused
    (and why), conflict, pending, in step.""",
)
@as_json
@with_stores
def status(stores: Stores, json: bool) -> None:
    """Print counts and what is not in step, or all of it as JSON."""
    from raddle.wiring.remote import server_of  # noqa: PLC0415
    from raddle.wiring.syncing import last_success, states  # noqa: PLC0415

    rows = stores.listed(limit=None, with_archived=True)
    found = states(stores, rows)
    server, success = server_of(stores, is_needed=False), last_success(stores)
    if json:
        threads = [
            {
                "id": one.id,
                "state": one.state,
                "reason": one.reason,
                "attempts": one.attempts,
                "next_attempt_at": None if one.next_attempt_at is None else format_time(one.next_attempt_at),
            }
            for one in found
        ]
        last = None if success is None else format_time(success)
        output.json({"server": server or None, "last_success": last, "threads": threads})
        return
    output.line(f"server: {server or 'none (`raddle login --server URL`)'}")
    if server:
        when = "never" if success is None else words.ago(format_time(success), stores.clock())
        output.line(f"last sync: {when}")
    names = {"in_step": "in step"}
    for state in ("in_step", "pending", "conflict", "refused", "private", "local"):
        count = sum(1 for one in found if one.state == state)
        if count:
            output.line(f"{names.get(state, state)}: {words.count(count, 'thread')}")
    short = stores.short_ids(one.id for one in found if one.reason)
    for one in found:
        if one.reason:
            output.line(words.one_line(f"  {short[one.id]}  {one.state}: {one.reason}"))


@click.command(
    help="""List what was set to several values at once on several machines, until somebody sets it again.

    All values are kept. `raddle rename`, `pin`, `share --visibility`, `delete` or `restore` settle it."""
)
@click.argument("thread", metavar="[ID]", required=False, type=Words(), shell_complete=complete_thread)
@as_json
@with_stores
def conflicts(stores: Stores, thread: str | None, json: bool) -> None:
    """Print each with its values: which device said what, and when."""
    if thread is not None:
        ids = [stores.resolve(thread)]
    else:
        ids = [row.id for row in stores.listed(limit=None, with_archived=True) if row.has_conflicts]
    found = [
        (thread_id, conflict) for thread_id in ids for conflict in stores.threads.load(thread_id).conflicts
    ]
    if json:
        output.json([_as_plain(thread_id, conflict) for thread_id, conflict in found])
        return
    short = stores.short_ids(ids)
    for thread_id, conflict in found:
        output.line(_told(short[thread_id], conflict, stores))
    if not found:
        diagnostics.say("no conflicts")


def _as_plain(thread_id: str, conflict: Conflict) -> dict[str, Any]:
    writes = [
        {"value": write.value, "device": write.device, "at": format_time(write.n)}
        for write in conflict.writes
    ]
    return {"id": thread_id, "path": conflict.path, "values": list(conflict.values), "writes": writes}


def _told(short_id: str, conflict: Conflict, stores: Stores) -> str:
    if conflict.path == "deleted":
        said = [_by(write, stores) for write in conflict.writes if isinstance(write.value, dict)]
        return (
            f"{short_id}  deleted {', '.join(said)}, and edited elsewhere by somebody who did not know: it stays "
            f"until you say: `raddle restore {short_id}` or `raddle delete {short_id}`"
        )
    values = [f"{words.one_line(str(write.value))} ({_by(write, stores)})" for write in conflict.writes]
    return f"{short_id}  {conflict.path}: {' | '.join(values)}"


def _by(write: Write, stores: Stores) -> str:
    """Which device wrote it, and when."""
    device = (
        "here"
        if write.device == stores.author.device
        else f"on {words.one_line(write.device) or 'an import'}"
    )
    return f"{device} {words.ago(format_time(write.n), stores.clock())}"
