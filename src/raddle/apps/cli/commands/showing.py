"""`raddle show`: a thread to read, as a conversation or as a tree, or its JSON."""

from __future__ import annotations

from collections.abc import Iterator

import click

from raddle.apps.cli import diagnostics, output, reader, words
from raddle.apps.cli.options import as_json, message_option, thread_argument, with_stores
from raddle.model.errors import RaddleError
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores

_MOST_ENTRIES = 10
"""Of those that rest on a thread; `raddle entry list` has all."""


@click.command(
    help="""Read thread ID: the conversation up to its newest turn, or another branch of it, or the whole tree.

    Long tool results and thoughts are shortened (--full shows them whole). On a terminal a long thread goes
    through your pager. With --json: the thread file's own JSON; with --branch too, that path as an array of
    messages.""",
)
@thread_argument
@click.option("--tree", is_flag=True, help="Every message as one line, under the one it answers.")
@message_option("--branch", "Up to this message instead of the newest turn.")
@click.option("--full", is_flag=True, help="Nothing shortened.")
@click.option("--removed", is_flag=True, help="The tree with the turns that were taken back.")
@as_json
@with_stores
def show(
    stores: Stores, thread: str, tree: bool, branch: str | None, full: bool, removed: bool, json: bool
) -> None:
    """Print the thread."""
    from raddle.actions.threads import find_message  # noqa: PLC0415

    loaded = stores.threads.load(stores.resolve(thread))
    leaf = None if branch is None else find_message(loaded, branch).id
    if json:
        _print_json(loaded, leaf)
    elif tree or removed:
        output.page(_tree(stores, loaded, with_removed=removed))
    else:
        output.page(_conversation(stores, loaded, leaf, is_full=full))


def _print_json(thread: Thread, leaf: str | None) -> None:
    from raddle.model.threads.codec import encode_thread  # noqa: PLC0415
    from raddle.model.threads.message_codec import encode_message  # noqa: PLC0415

    if leaf is None:
        output.write_bytes(encode_thread(thread))
    else:
        output.json([encode_message(message) for message in thread.tree.path_to_root(leaf)])


def _head(stores: Stores, thread: Thread) -> Iterator[str]:
    return reader.header(thread, stores.clock(), stores.notes_on(thread), room=output.columns())


def _tree(stores: Stores, thread: Thread, *, with_removed: bool) -> Iterator[str]:
    yield from _head(stores, thread)
    yield ""
    yield from reader.outline(thread, with_removed=with_removed, room=output.columns())
    yield from reader.lost_and_found(thread, room=output.columns())


def _conversation(stores: Stores, thread: Thread, leaf: str | None, *, is_full: bool) -> Iterator[str]:
    room = output.columns()
    yield from _head(stores, thread)
    tip = thread.tree.tip()
    at = leaf or stores.active_leaf(thread) or (tip.id if tip is not None else None)
    yield from reader.conversation(thread, at, is_full=is_full, room=room)
    yield from reader.lost_and_found(thread, room=room)
    notes = [
        *_other_branches(stores, thread),
        *reader.launches(thread, stores.clock()),
        *reader.drafts(thread, stores.author.device),
    ]
    if notes:
        yield ""
        yield from (words.style(note, "dim") for note in notes)
    yield from _entries_on(stores, thread, room)


def _entries_on(stores: Stores, thread: Thread, room: int | None) -> Iterator[str]:
    """What the memory of the project that the reader stands in notes of the thread; nothing where there is none."""
    from raddle.wiring.memory_links import entries_on  # noqa: PLC0415

    try:
        found = entries_on(stores, thread.id)
    except RaddleError as error:
        diagnostics.warn(f"the project's memory was not looked at: {error.message}")
        return
    if not found:
        return
    from raddle.apps.cli.memory_words import count_entries, entry_lines  # noqa: PLC0415

    yield ""
    more = len(found) - _MOST_ENTRIES
    told = f", the newest {_MOST_ENTRIES}" if more > 0 else ""
    yield words.style(f"{count_entries(len(found))} of the project's memory on this{told}", "bold")
    yield from entry_lines(found[-_MOST_ENTRIES:], room=room)
    if more > 0:
        yield words.style(f"all: raddle entry list --thread {stores.short_id(thread.id)}", "dim")


def _other_branches(stores: Stores, thread: Thread) -> Iterator[str]:
    others = len(thread.tree.heads()) - 1
    if others > 0:
        yield f"{words.count(others, 'other branch')}: raddle branches {stores.short_id(thread.id)}"
