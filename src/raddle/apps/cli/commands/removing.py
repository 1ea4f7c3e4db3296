"""Commands that take threads away: delete and restore for all devices, purge for good."""

from __future__ import annotations

import sys

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import as_json, thread_argument, threads_argument, with_stores
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
            if editor.thread.is_deleted:
                editor.restore()
                restored.append(thread_id)
    output.answer(json, {"restored": restored}, f"restored {words.count(len(restored), 'thread')}")


@click.command(
    help="""Erase thread ID for good: its file, its journal, its attachments and the source bytes it came from.

    It asks first; -y answers. A purged thread is not brought back by the next import (`raddle import --revive`
    does that). With --removed only the words of turns that were taken back are erased, and the source bytes,
    which hold them too. Threads that were made of it (`raddle fork`) keep their copies; they are named.""",
)
@thread_argument
@click.option(
    "--removed", is_flag=True, help="Only the words of turns that were taken back, and the source bytes."
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@as_json
@with_stores
def purge(stores: Stores, thread: str, removed: bool, yes: bool, json: bool) -> None:
    """Print what was erased."""
    from raddle.wiring.copies import threads_with_copies  # noqa: PLC0415
    from raddle.wiring.purging import purge_removed, purge_thread, purgeable  # noqa: PLC0415

    thread_id = stores.resolve(thread) if removed else purgeable(stores, thread)
    if not yes and not _is_meant(stores, thread_id, removed=removed):
        output.answer(json, {"id": thread_id, "purged": False}, "nothing was erased")
        return
    copies = threads_with_copies(stores, thread_id, removed=removed)
    if removed:
        count = purge_removed(stores, thread_id)
        stores.forget_words()
        output.answer(
            json, {"id": thread_id, "purged_messages": count}, f"erased {words.count(count, 'message')}"
        )
    else:
        blobs = purge_thread(stores, thread_id)
        stores.forget_words()
        told = f"erased the thread and {words.count(blobs, 'blob')}" if blobs else "erased the thread"
        output.answer(json, {"id": thread_id, "purged": True, "blobs": blobs}, told)
    if copies:
        named = " ".join(stores.short_ids(copies).values())
        diagnostics.note(f"copies of these turns stay in {words.count(len(copies), 'other thread')}: {named}")


def _is_meant(stores: Stores, thread_id: str, *, removed: bool) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput("purge asks first, and nobody is here to answer", "say -y to erase it for good")
    return click.confirm(f"Erase {_what_goes(stores, thread_id, removed=removed)} for good?", err=True)


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
