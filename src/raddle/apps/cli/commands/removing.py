"""Commands that take threads away: delete and restore for all devices, purge for good."""

from __future__ import annotations

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import as_json, thread_argument
from raddle.wiring import Stores, with_stores


@click.command(
    help="Delete threads; `restore` brings one back, and so does a turn somebody adds without knowing."
)
@click.argument("threads", nargs=-1, required=True, metavar="ID…")
@as_json
@with_stores
def delete(stores: Stores, threads: tuple[str, ...], json: bool) -> None:
    """The files stay until `purge`."""
    deleted = [stores.resolve(thread) for thread in threads]
    for thread_id in deleted:
        with stores.threads.edit(thread_id) as editor:
            editor.delete()
    output.answer(json, {"deleted": deleted}, f"deleted {words.count(len(deleted), 'thread')}")


@click.command(help="Bring deleted thread ID back.")
@thread_argument
@as_json
@with_stores
def restore(stores: Stores, thread: str, json: bool) -> None:
    """`raddle list --deleted` shows what can come back."""
    thread_id = stores.resolve(thread)
    with stores.threads.edit(thread_id) as editor:
        editor.restore()
    output.answer(json, {"restored": [thread_id]}, "restored")


@click.command(help="Erase thread ID for good: its file, journal, blobs and source bytes. It asks first.")
@thread_argument
@click.option(
    "--removed", is_flag=True, help="Only the words of turns that were taken back, and the source bytes."
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@as_json
@with_stores
def purge(stores: Stores, thread: str, removed: bool, yes: bool, json: bool) -> None:
    """A purged thread is not brought back by the next import (`raddle import --revive` does)."""
    from raddle.wiring.purging import purge_removed, purge_thread  # noqa: PLC0415

    thread_id = stores.resolve(thread)
    summary = stores.threads.load(thread_id).summary()
    what = "the removed turns of" if removed else "all of"
    name = words.cut(words.one_line(summary.title), 60) or thread_id
    if not yes and not click.confirm(
        f"Erase {what} {name!r} ({words.count(summary.message_count, 'message')}) for good?", err=True
    ):
        diagnostics.say("nothing was erased")
        return
    if removed:
        count = purge_removed(stores, thread_id)
        output.answer(
            json, {"id": thread_id, "purged_messages": count}, f"erased {words.count(count, 'message')}"
        )
    else:
        blobs = purge_thread(stores, thread_id)
        output.answer(
            json,
            {"id": thread_id, "purged": True, "blobs": blobs},
            f"erased the thread and {words.count(blobs, 'blob')}",
        )
