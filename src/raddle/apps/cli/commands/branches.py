"""`raddle branches`: the lines of a conversation, named, compared, switched, put away, promoted and grafted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import (
    KeptText,
    Words,
    as_json,
    thread_argument,
    warn_of_settings,
    with_stores,
)
from raddle.model.errors import InvalidInput
from raddle.model.threads.branching import BranchRow, list_branches
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores

_LABEL, _LOOK = 400, 2000
_text = Words()


@click.command(
    help="""List the branches of thread ID, or do one thing to them.

    A branch is named by a message on it: the one that starts it, as the list shows, or any other.""",
)
@thread_argument
@click.option(
    "--name",
    nargs=2,
    type=KeptText(),
    metavar="MESSAGE NAME",
    help="Name a branch; an empty NAME takes the name away.",
)
@click.option(
    "--compare",
    nargs=2,
    type=_text,
    metavar="MESSAGE MESSAGE",
    help="Show two branches from where they part.",
)
@click.option(
    "--switch",
    type=_text,
    metavar="MESSAGE",
    help="Read and go on with this branch on this device (`tip`: with whatever is newest).",
)
@click.option("--archive", type=_text, metavar="MESSAGE", help="Put a branch away.")
@click.option("--unarchive", type=_text, metavar="MESSAGE", help="Bring it back.")
@click.option(
    "--promote", type=_text, metavar="MESSAGE", help="Make a branch a thread of its own; print its id."
)
@click.option(
    "--graft",
    nargs=2,
    type=_text,
    metavar="MESSAGE UNDER",
    help="Copy the path to a message under another one, or under root.",
)
@as_json
@with_stores
def branches(stores: Stores, thread: str, json: bool, **asked: Any) -> None:
    """Without an option: the list."""
    chosen = [(name, value) for name, value in asked.items() if value is not None]
    if len(chosen) > 1:
        given = " and ".join(f"--{name}" for name, _ in chosen)
        raise InvalidInput(f"{given} are different things", "do one after the other")
    thread_id = stores.resolve(thread)
    if not chosen:
        _list(stores, stores.threads.load(thread_id), json=json)
        return
    name, value = chosen[0]
    _VERBS[name](stores, thread_id, value, json=json)


def _name(stores: Stores, thread_id: str, asked: tuple[str, str], *, json: bool) -> None:
    from raddle.actions.threads import name_branch  # noqa: PLC0415

    message, name = asked[0], " ".join(asked[1].split())
    start = name_branch(stores.threads, thread_id, message, name)
    text = f"named {words.one_line(name)}" if name else "the name is gone"
    output.answer(json, {"id": thread_id, "message_id": start, "name": name}, text)


def _compare(stores: Stores, thread_id: str, asked: tuple[str, str], *, json: bool) -> None:
    from raddle.actions.threads import find_message  # noqa: PLC0415
    from raddle.model.threads.branching import compare  # noqa: PLC0415

    thread = stores.threads.load(thread_id)
    one, other = (find_message(thread, message).id for message in asked)
    found = compare(thread, one, other)
    if json:
        from raddle.model.threads.message_codec import encode_message  # noqa: PLC0415

        output.json(
            {
                "fork": None if found.fork is None else found.fork.id,
                "one": [encode_message(message) for message in found.one],
                "other": [encode_message(message) for message in found.other],
            }
        )
        return
    output.page(_compared(thread, found.fork, ((one, found.one), (other, found.other))))


def _compared(
    thread: Thread, fork: Message | None, sides: tuple[tuple[str, list[Message]], ...]
) -> Iterator[str]:
    from raddle.apps.cli import reader  # noqa: PLC0415

    if fork is None:
        yield words.style("they share no message", "bold")
    else:
        said = words.cut(words.one_line(fork.content[:_LOOK]), 50)
        yield words.style(f"they part after {words.tail(fork.id)}  {said}".rstrip(), "bold")
    for leaf, path in sides:
        yield ""
        if path:
            yield words.style(f"── {words.count(len(path), 'message')} to {words.tail(leaf)}", "bold")
        else:
            yield words.style(f"── {words.tail(leaf)} stands above the other", "bold")
        yield from reader.messages(thread, path, room=output.columns())


def _switch(stores: Stores, thread_id: str, message: str, *, json: bool) -> None:
    from raddle.actions.threads import find_message, leaf_of  # noqa: PLC0415

    leaf = ""
    if message != "tip":
        thread = stores.threads.load(thread_id)
        leaf = leaf_of(thread, find_message(thread, message).id)
    stores.active.set(thread_id, leaf)
    text = f"now on the branch that ends with {words.tail(leaf)}" if leaf else "now on whatever is newest"
    output.answer(json, {"id": thread_id, "leaf": leaf or None}, text)


def _archive(stores: Stores, thread_id: str, message: str, *, json: bool) -> None:
    _put_away(stores, thread_id, message, is_archived=True, json=json)


def _unarchive(stores: Stores, thread_id: str, message: str, *, json: bool) -> None:
    _put_away(stores, thread_id, message, is_archived=False, json=json)


def _put_away(stores: Stores, thread_id: str, message: str, *, is_archived: bool, json: bool) -> None:
    from raddle.actions.threads import archive_branch  # noqa: PLC0415

    start = archive_branch(stores.threads, thread_id, message, is_archived=is_archived)
    output.answer(
        json,
        {"id": thread_id, "message_id": start, "is_archived": is_archived},
        "put away" if is_archived else "back",
    )


def _promote(stores: Stores, thread_id: str, message: str, *, json: bool) -> None:
    from raddle.actions.threads import promote_branch  # noqa: PLC0415

    warn_of_settings(stores)
    new_id = promote_branch(stores.threads, thread_id, message, makes_private=stores.makes_private)
    output.answer(json, {"id": new_id, "forked_from": thread_id}, new_id)


def _graft(stores: Stores, thread_id: str, asked: tuple[str, str], *, json: bool) -> None:
    from raddle.actions.threads import graft  # noqa: PLC0415

    copies = graft(stores.threads, thread_id, *asked)
    output.answer(
        json, {"id": thread_id, "messages": copies}, f"copied {words.count(len(copies), 'message')}"
    )


_VERBS: dict[str, Callable[..., None]] = {
    "name": _name,
    "compare": _compare,
    "switch": _switch,
    "archive": _archive,
    "unarchive": _unarchive,
    "promote": _promote,
    "graft": _graft,
}


def _list(stores: Stores, thread: Thread, *, json: bool) -> None:
    rows = list_branches(thread)
    if json:
        output.json(rows)
        return
    if not rows:
        diagnostics.say("no messages, so no branches")
        return
    active = stores.active_leaf(thread)
    here = thread.tree.branch_of(active) if active else next((row.id for row in rows if row.is_current), "")
    output.page(_table(thread, rows, here))
    if len(rows) > 1:
        short = stores.short_id(thread.id)
        diagnostics.suggest(
            f"`raddle branches {short} --switch MESSAGE` goes on with one; * is where you are"
        )


def _table(thread: Thread, rows: list[BranchRow], here: str) -> Iterator[str]:
    room = output.columns()
    cells = [] if room is None else [("", "STARTS AT", "MSGS", "", "")]
    cells += [
        (
            "*" if row.id == here else "",
            words.tail(row.start),
            f"{row.length:,}",
            _marks(row),
            f"{'│ ' * min(row.fork_depth, 6)}{_label(thread, row)}",
        )
        for row in rows
    ]
    lines = words.table(
        cells,
        (1, 40, 9, 20, _LABEL),
        styles=("green", "dim", None, "yellow", None),
        width=room,
        shrink=(4, 1),
    )
    if room is not None:
        yield words.style(click.unstyle(lines.pop(0)), "dim")
    yield from lines


def _marks(row: BranchRow) -> str:
    marks = (("archived", row.is_archived), ("sub-agent", row.is_sidechain))
    return " ".join(word for word, is_so in marks if is_so)


def _label(thread: Thread, row: BranchRow) -> str:
    """Its name, else what was first said on it."""
    start = thread.tree.get(row.start)
    said = words.one_line(start.content[:_LOOK]) if start is not None else ""
    return words.one_line(row.name) or said or "(no words)"
