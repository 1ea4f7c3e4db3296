"""Commands that take threads away: delete and restore for all devices, purge for good."""

from __future__ import annotations

import sys

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import as_json, thread_argument, threads_argument, with_stores
from raddle.apps.cli.telling import tell
from raddle.model.errors import FormatError, InvalidInput, NotFound
from raddle.wiring import Stores


@click.command(
    help="""Delete threads, on all your devices.

    Their files stay until `raddle purge`; `raddle restore ID` brings one back, and so does a turn that somebody
    adds elsewhere without knowing.""",
)
@threads_argument
@as_json
@with_stores
def delete(stores: Stores, threads: tuple[str, ...], json: bool) -> None:
    """Print how many went."""
    deleted = list(dict.fromkeys(stores.resolve(thread) for thread in threads))
    short = stores.short_ids(deleted)
    for thread_id in deleted:
        with stores.threads.edit(thread_id) as editor:
            editor.delete()
    tell(stores, deleted)
    output.answer(json, {"deleted": deleted}, f"deleted {words.count(len(deleted), 'thread')}")
    diagnostics.suggest(f"`raddle restore {' '.join(short.values())}` brings {_them(deleted)} back")


def _them(ids: list[str]) -> str:
    return "it" if len(ids) == 1 else "them"


@click.command(help="Bring deleted threads back; `raddle list --deleted` shows which there are.")
@threads_argument
@as_json
@with_stores
def restore(stores: Stores, threads: tuple[str, ...], json: bool) -> None:
    """Print how many came back."""
    wanted = dict.fromkeys(stores.resolve(thread) for thread in threads)
    restored = []
    for thread_id in wanted:
        with stores.threads.edit(thread_id) as editor:
            if editor.thread.is_deleted or any(one.path == "deleted" for one in editor.thread.conflicts):
                editor.restore()
                restored.append(thread_id)
    tell(stores, restored)
    output.answer(json, {"restored": restored}, f"restored {words.count(len(restored), 'thread')}")


@click.command(
    help="""Erase thread ID for good: its file, its journal, its attachments and the source bytes it came from.

    It asks first; -y answers. Where the server has the thread, it goes there too and nobody can read it there any
    more; copies on your other devices stay until you purge them there. --local erases it on this machine alone, and
    no sync brings it back here (`raddle sync --revive` does). Nor does the next import (`raddle import --revive`).

    With --removed only the words of turns that were taken back are erased, everywhere, and the source bytes, which
    hold them too. Threads that were made of it (`raddle fork`) keep their copies; they are named.""",
)
@thread_argument
@click.option(
    "--removed", is_flag=True, help="Only the words of turns that were taken back, and the source bytes."
)
@click.option("--local", is_flag=True, help="On this machine alone; the server is not told.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@as_json
@with_stores
def purge(stores: Stores, *, thread: str, removed: bool, local: bool, yes: bool, json: bool) -> None:
    """Print what was erased."""
    from raddle.wiring.copies import threads_with_copies  # noqa: PLC0415
    from raddle.wiring.purging import purge_removed, purgeable  # noqa: PLC0415
    from raddle.wiring.syncing import is_on_server  # noqa: PLC0415

    thread_id = stores.resolve(thread) if removed else purgeable(stores, thread)
    is_there = is_on_server(stores, thread_id)
    where = "" if not is_there else _FROM_HERE if local else _EVERYWHERE
    if not yes and not _is_meant(stores, thread_id, where=where, removed=removed):
        output.answer(json, {"id": thread_id, "purged": False}, "nothing was erased")
        return
    copies = threads_with_copies(stores, thread_id, removed=removed)
    if removed:
        count = purge_removed(stores, thread_id)
        stores.forget_words()
        if not local:
            tell(stores, [thread_id], still="the server still has these words")
        output.answer(
            json, {"id": thread_id, "purged_messages": count}, f"erased {words.count(count, 'message')}"
        )
    else:
        _purge_all(stores, thread_id, from_server=is_there and not local, json=json)
    if copies:
        named = " ".join(stores.short_ids(copies).values())
        diagnostics.note(f"copies of these turns stay in {words.count(len(copies), 'other thread')}: {named}")


def _purge_all(stores: Stores, thread_id: str, *, from_server: bool, json: bool) -> None:
    from raddle.wiring.purging_everywhere import purge_everywhere  # noqa: PLC0415

    blobs = purge_everywhere(stores, thread_id, from_server=from_server)
    stores.forget_words()
    told = f"erased the thread and {words.count(blobs, 'blob')}" if blobs else "erased the thread"
    value = {"id": thread_id, "purged": True, "blobs": blobs, "from_server": from_server}
    output.answer(json, value, f"{told}, here and on the server" if from_server else told)


_EVERYWHERE = ", here and on the server (your other devices keep their copies until you purge them there)"
_FROM_HERE = " on this machine alone (the server keeps it)"


def _is_meant(stores: Stores, thread_id: str, *, where: str, removed: bool) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput("purge asks first, and nobody is here to answer", "say -y to erase it for good")
    return click.confirm(f"Erase {_what_goes(stores, thread_id, removed=removed)} for good{where}?", err=True)


def _what_goes(stores: Stores, thread_id: str, *, removed: bool) -> str:
    try:
        thread = stores.threads.load(thread_id)
    except (FormatError, NotFound):
        if removed:
            raise
        return f"{thread_id}, of which nothing can be read any more,"
    name = words.cut(words.one_line(thread.title), 60) or thread_id
    gone = [message for message in thread.tree if thread.tree.is_removed(message.id)]
    many = words.count(len(gone) if removed else len(thread.tree), "message")
    return f"{many} that were taken back from {name!r}" if removed else f"{name!r} ({many})"
