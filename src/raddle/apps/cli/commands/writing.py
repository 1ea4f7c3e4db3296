"""Commands that add to a conversation or take its last turns back: new, reply, draft, fork, undo, redo."""

from __future__ import annotations

import click

from raddle.apps.cli import output, words
from raddle.apps.cli.options import as_json, message_option, text_argument, thread_argument
from raddle.wiring import Stores, with_stores


@click.command(help="Start a thread with its first turn TEXT (`-`: from stdin).")
@text_argument
@click.option("--title", default="", help="What lists call it; without one the first turn does.")
@click.option("--private", "is_private", is_flag=True, help="It never leaves this machine.")
@click.option("--role", default="user", show_default=True, help="Who says TEXT.")
@as_json
@with_stores
def new(stores: Stores, text: str, title: str, is_private: bool, role: str, json: bool) -> None:
    """Print the new thread's id."""
    from raddle.actions.threads import start_thread  # noqa: PLC0415

    place = stores.place()
    thread_id, message = start_thread(
        stores.threads,
        text,
        title=title,
        role=role,
        workspace_root=place.workspace_root,
        cwd=place.cwd,
        client_version=place.client_version,
        git=place.git,
        is_private=is_private or place.is_private,
    )
    output.answer(json, {"id": thread_id, "message_id": message.id}, thread_id)


@click.command(
    help="Add a turn TEXT to thread ID (`-`: from stdin). Under the tip, or under another message."
)
@thread_argument
@text_argument
@message_option(
    "--parent", "Reply to this message (`root`: start a new line); to one with replies, it forks."
)
@click.option("--role", default="user", show_default=True, help="Who says TEXT.")
@as_json
@with_stores
def reply(stores: Stores, thread: str, text: str, parent: str, role: str, json: bool) -> None:
    """Print the new message's id."""
    from raddle.actions.threads import reply as say  # noqa: PLC0415

    thread_id = stores.resolve(thread)
    chosen = stores.active.get(thread_id) if parent == "tip" else ""
    if chosen:
        parent = stores.active_leaf(stores.threads.load(thread_id)) or parent
    message = say(stores.threads, thread_id, text, parent=parent, role=role)
    if chosen:
        stores.active.set(thread_id, message.id)
    output.answer(
        json, {"id": thread_id, "message_id": message.id, "parent_id": message.parent_id}, message.id
    )


@click.command(help="Keep TEXT unsent in thread ID; without TEXT show what is kept.")
@thread_argument
@click.argument("text", required=False)
@message_option("--parent", "Under this message (`root`: as a new line); else under the tip.")
@click.option("--clear", is_flag=True, help="Throw the draft away.")
@as_json
@with_stores
def draft(stores: Stores, thread: str, text: str | None, parent: str, clear: bool, json: bool) -> None:
    """A draft belongs to this device and one reply target; sending a turn there clears it."""
    from raddle.actions.threads import keep_draft  # noqa: PLC0415

    thread_id = stores.resolve(thread)
    if clear or text is not None:
        target = keep_draft(
            stores.threads, thread_id, "" if clear else output.text_or_stdin(text or ""), parent=parent
        )
        output.answer(
            json, {"id": thread_id, "parent_id": target}, f"{'cleared' if clear else 'kept'} under {target}"
        )
        return
    drafts = stores.threads.load(thread_id).drafts
    if json:
        output.json(drafts)
        return
    for device, targets in drafts.items():
        for target, kept in targets.items():
            output.styled(words.style(f"under {target} on {device}", "dim"))
            output.line(words.safe_lines(kept))


@click.command(help="Copy thread ID as a new thread of yours: all of it, or the path to one message.")
@thread_argument
@message_option("--at", "Copy only the path from the root to this message.", default="")
@click.option("--title", default="", help="The new thread's title; else the old one's.")
@as_json
@with_stores
def fork(stores: Stores, thread: str, at: str, title: str, json: bool) -> None:
    """Print the new thread's id; its messages keep theirs."""
    from raddle.actions.threads import fork_thread  # noqa: PLC0415

    new_id = fork_thread(stores.threads, stores.resolve(thread), at=at, title=title)
    output.answer(json, {"id": new_id}, new_id)


@click.command(
    help="Take back the last N turns (a turn of yours and what stands under it). `redo` brings them back."
)
@thread_argument
@click.argument("turns", type=int, default=1, metavar="[N]")
@as_json
@with_stores
def undo(stores: Stores, thread: str, turns: int, json: bool) -> None:
    """Nothing leaves the disk until `purge`."""
    from raddle.actions.threads import undo as take_back  # noqa: PLC0415

    gone = take_back(stores.threads, stores.resolve(thread), turns)
    output.answer(json, {"removed": gone}, f"took back {words.count(len(gone), 'message')}")


@click.command(help="Bring back the last N turns that were taken back, the last one first.")
@thread_argument
@click.argument("turns", type=int, default=1, metavar="[N]")
@as_json
@with_stores
def redo(stores: Stores, thread: str, turns: int, json: bool) -> None:
    """The other direction of `undo`."""
    from raddle.actions.threads import redo as bring_back  # noqa: PLC0415

    back = bring_back(stores.threads, stores.resolve(thread), turns)
    output.answer(json, {"restored": back}, f"brought back {words.count(len(back), 'message')}")
