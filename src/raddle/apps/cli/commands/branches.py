"""`raddle branches`: the lines of a conversation, named, compared, switched, put away, promoted and grafted."""

from __future__ import annotations

import click

from raddle.apps.cli import output, words
from raddle.apps.cli.options import as_json, thread_argument
from raddle.model.errors import InvalidInput
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores, with_stores


@click.command(
    help="List the branches of thread ID, or do one thing to them. A branch is named by a message: the one that "
    "starts it, or any other on it."
)
@thread_argument
@click.option(
    "--name", nargs=2, metavar="MESSAGE NAME", help="Name a branch; an empty NAME takes the name away."
)
@click.option("--compare", nargs=2, metavar="LEAF LEAF", help="Show two branches from where they part.")
@click.option(
    "--switch", metavar="MESSAGE", help="Read and go on with this branch on this device (`tip`: the newest)."
)
@click.option("--archive", metavar="MESSAGE", help="Put a branch away.")
@click.option("--unarchive", metavar="MESSAGE", help="Bring it back.")
@click.option("--promote", metavar="MESSAGE", help="Make the branch a thread of its own; print its id.")
@click.option(
    "--graft", nargs=2, metavar="LEAF UNDER", help="Copy the path to LEAF under another message (`root`)."
)
@as_json
@with_stores
def branches(
    stores: Stores,
    thread: str,
    name: tuple[str, str] | None,
    compare: tuple[str, str] | None,
    switch: str | None,
    archive: str | None,
    unarchive: str | None,
    promote: str | None,
    graft: tuple[str, str] | None,
    json: bool,
) -> None:
    """Without an option: the list."""
    from raddle.actions import threads as verbs  # noqa: PLC0415

    chosen = [option for option in (name, compare, switch, archive, unarchive, promote, graft) if option]
    if len(chosen) > 1:
        raise InvalidInput("several things at once", "give one of the options of `raddle branches`")
    thread_id = stores.resolve(thread)
    if name:
        start = verbs.name_branch(stores.threads, thread_id, *name)
        output.answer(
            json, {"id": thread_id, "message_id": start, "name": name[1]}, f"named {name[1] or '(nothing)'}"
        )
    elif compare:
        _compare(stores.threads.load(thread_id), *compare, json=json)
    elif switch:
        loaded = stores.threads.load(thread_id)
        leaf = "" if switch == "tip" else verbs.leaf_of(loaded, verbs.find_message(loaded, switch).id)
        stores.active.set(thread_id, leaf)
        output.answer(json, {"id": thread_id, "leaf": leaf or None}, f"now on {leaf or 'the newest turn'}")
    elif archive or unarchive:
        start = verbs.archive_branch(
            stores.threads, thread_id, archive or unarchive or "", is_archived=bool(archive)
        )
        output.answer(
            json,
            {"id": thread_id, "message_id": start, "is_archived": bool(archive)},
            "archived" if archive else "back",
        )
    elif promote:
        new_id = verbs.promote_branch(stores.threads, thread_id, promote)
        output.answer(json, {"id": new_id}, new_id)
    elif graft:
        copies = verbs.graft(stores.threads, thread_id, *graft)
        output.answer(
            json, {"id": thread_id, "messages": copies}, f"copied {words.count(len(copies), 'message')}"
        )
    else:
        _list(stores.threads.load(thread_id), stores.active.get(thread_id), json=json)


def _list(thread: Thread, active: str, *, json: bool) -> None:
    from raddle.model.threads.branching import list_branches  # noqa: PLC0415

    rows = list_branches(thread)
    if json:
        output.json(rows)
        return
    here = thread.tree.branch_of(active) if active else next((row.id for row in rows if row.is_current), "")
    lines = []
    for row in rows:
        tip = thread.tree.get(row.tip)
        marks = [
            word for word, is_so in (("archived", row.is_archived), ("sub-agent", row.is_sidechain)) if is_so
        ]
        label = row.name or (words.one_line(tip.content[:400]) if tip is not None else "")
        lines.append(
            (
                "*" if row.id == here else " ",
                row.start,
                words.count(row.length, "message"),
                " ".join(marks),
                label,
            )
        )
    for line in words.table(lines, (1, 40, 16, 18, 60), styles=("green", "dim", None, "yellow", None)):
        output.styled(line)


def _compare(thread: Thread, one: str, other: str, *, json: bool) -> None:
    from raddle.actions.threads import find_message  # noqa: PLC0415
    from raddle.apps.cli.reader import messages as lines_of  # noqa: PLC0415
    from raddle.model.threads.branching import compare as parted  # noqa: PLC0415

    found = parted(thread, find_message(thread, one).id, find_message(thread, other).id)
    if json:
        output.json({"fork": found.fork, "one": found.one, "other": found.other})
        return
    where = f"they part after {found.fork.id}" if found.fork is not None else "they share no message"
    lines = [words.style(where, "bold")]
    for title, path in ((one, found.one), (other, found.other)):
        lines += [
            "",
            words.style(f"── {title}: {words.count(len(path), 'message')}", "bold"),
            *lines_of(thread, path),
        ]
    output.page(lines)
