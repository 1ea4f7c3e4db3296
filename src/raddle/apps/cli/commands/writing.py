"""Commands that add to a conversation or take its last turns back: new, reply, draft, fork, undo, redo."""

from __future__ import annotations

from typing import Any

import click

from raddle.apps.cli import diagnostics, output, words
from raddle.apps.cli.options import (
    KeptText,
    TextOrStdin,
    as_json,
    asking_options,
    attach_option,
    message_option,
    role_option,
    text_argument,
    thread_argument,
    warn_of_settings,
    with_stores,
)
from raddle.model.errors import InvalidInput
from raddle.wiring import Stores

TIP = "tip"
_MOST_TURNS = 1_000_000


@click.command(
    help="""Start a thread with its first turn TEXT (a lone - reads it from stdin), and print its id.

    It belongs to the folder you stand in, with what git says of it there.

    \b
    raddle new "Why does the parser hang on 1/ cup?"
    git diff | raddle new - --title "Review this"
    """,
)
@text_argument
@click.option("--title", default="", type=KeptText(), help="What lists call it; else its first words.")
@click.option("--private", "is_private", is_flag=True, help="It never leaves this machine.")
@role_option
@attach_option
@as_json
@with_stores
def new(
    stores: Stores, text: str, title: str, is_private: bool, role: str, attached: tuple[str, ...], json: bool
) -> None:
    """Print the new thread's id."""
    begin(stores, text, title=title, is_private=is_private, role=role, attached=attached, json=json)


def begin(
    stores: Stores,
    text: str,
    *,
    title: str = "",
    is_private: bool = False,
    role: str = "user",
    attached: tuple[str, ...] = (),
    json: bool,
) -> None:
    """Start a thread where the person stands; print its id."""
    from raddle.actions.importing.titles import title_from  # noqa: PLC0415
    from raddle.actions.threads import start_thread  # noqa: PLC0415
    from raddle.wiring.attaching import attachments_of  # noqa: PLC0415

    warn_of_settings(stores)
    place = stores.place()
    attachments = attachments_of(stores, attached)
    thread_id, message = start_thread(
        stores.threads,
        text,
        title=title or title_from(text),
        role=role,
        workspace_root=place.workspace_root,
        cwd=place.cwd,
        client_version=place.client_version,
        git=place.git,
        is_private=is_private or place.is_private,
        attachments=attachments,
    )
    value = {"id": thread_id, "message_id": message.id, "is_private": is_private or place.is_private}
    output.answer(json, value, thread_id)
    if place.is_private and not is_private:
        diagnostics.say("private, by a rule of config.toml")


@click.command(
    help="""Add the turn TEXT to thread ID (a lone - reads it from stdin), and print the new message's id.

    It goes under the newest turn, or on the branch you switched to. Under a message that has replies, it
    starts a branch; both answers stay. With --ask it is sent to who answers there, and the answer is printed; without
    TEXT, the turn that stands there already is.""",
)
@thread_argument
@click.argument("text", required=False, type=TextOrStdin())
@message_option("--parent", "Reply to this message, or to root: a new line of conversation.", default=TIP)
@role_option
@attach_option
@click.option("--ask", "is_asked", is_flag=True, help="Send it, and print the answer.")
@asking_options
@as_json
@with_stores
def reply(
    stores: Stores,
    thread: str,
    text: str | None,
    parent: str,
    role: str,
    attached: tuple[str, ...],
    is_asked: bool,
    json: bool,
    **asking: Any,
) -> None:
    """Print the new message's id, or the answer."""
    from raddle.actions.threads import reply as say  # noqa: PLC0415
    from raddle.wiring.attaching import attachments_of  # noqa: PLC0415

    thread_id = stores.resolve(thread)
    chosen = _switched_to(stores, thread_id) if parent == TIP else ""
    if is_asked:
        _ask(stores, thread_id, text, chosen or parent, role, attached, json=json, **asking)
        return
    if any(asking.values()):
        raise InvalidInput("--with, --model, --policy and --budget are for asking", "add --ask")
    attachments = attachments_of(stores, attached)
    message = say(
        stores.threads, thread_id, text or "", parent=chosen or parent, role=role, attachments=attachments
    )
    if chosen:
        stores.active.set(thread_id, message.id)
    output.answer(
        json, {"id": thread_id, "message_id": message.id, "parent_id": message.parent_id}, message.id
    )


def _ask(
    stores: Stores,
    thread_id: str,
    text: str | None,
    parent: str,
    role: str,
    attached: tuple[str, ...],
    *,
    json: bool,
    who: str,
    model: str,
    policy: str,
    budget: int | None,
) -> None:
    from raddle.apps.cli.chatting import Talk  # noqa: PLC0415

    if role != "user":
        raise InvalidInput(f"a turn of {role} is not asked about", "leave --role out, or --ask")
    talk = Talk(stores, who=who, model=model, policy=policy, budget=budget, json=json)
    talk.stand_at(thread_id, None if parent == TIP else parent)
    talk.attach(attached)
    if text is None and not attached:
        talk.ask_about_last()
    else:
        talk.say(text or "")


def _switched_to(stores: Stores, thread_id: str) -> str:
    """The newest message of the branch that this device goes on with; empty: the tip will do, unseen."""
    if not stores.active.get(thread_id):
        return ""
    return stores.active_leaf(stores.threads.load(thread_id))


@click.command(
    help="""Keep TEXT in thread ID without sending it (a lone - reads it from stdin); without TEXT, print what is kept.

    A draft belongs to this device and to the message it would answer; sending its words there clears it.""",
)
@thread_argument
@click.argument("text", required=False, type=TextOrStdin())
@message_option("--parent", "Under this message, or under root: a new line of conversation.", default=TIP)
@click.option("--clear", is_flag=True, help="Throw the draft there away.")
@as_json
@with_stores
def draft(stores: Stores, thread: str, text: str | None, parent: str, clear: bool, json: bool) -> None:
    """Print under which message it is kept, or the drafts there are."""
    from raddle.actions.threads import keep_draft  # noqa: PLC0415

    if clear and text:
        raise InvalidInput("a draft is kept or cleared, not both", "give TEXT, or --clear")
    thread_id = stores.resolve(thread)
    if text is None and not clear:
        _show_drafts(stores.threads.load(thread_id).drafts, json=json)
        return
    chosen = _switched_to(stores, thread_id) if parent == TIP else ""
    target = keep_draft(stores.threads, thread_id, text or "", parent=chosen or parent)
    done = "kept" if text else "cleared"
    output.answer(
        json, {"id": thread_id, "parent_id": target, "text": text or ""}, f"{done} under {words.tail(target)}"
    )


def _show_drafts(drafts: dict[str, dict[str, str]], *, json: bool) -> None:
    if json:
        output.json(drafts)
        return
    for device, targets in drafts.items():
        for target, kept in targets.items():
            output.styled(words.style(f"under {words.tail(target)}, on device {device}", "dim"))
            output.line(words.safe_lines(kept))
    if not drafts:
        diagnostics.say("no drafts")


@click.command(
    help="""Copy thread ID as a new thread of yours, all of it or the path to one message, and print its id.

    Copied turns keep their ids: a turn that stands in two threads is one turn. What was private stays private.""",
)
@thread_argument
@message_option("--at", "Copy only the path from the root to this message.")
@click.option("--title", default="", type=KeptText(), help="The new thread's title; else the old one's.")
@as_json
@with_stores
def fork(stores: Stores, thread: str, at: str | None, title: str, json: bool) -> None:
    """Print the new thread's id."""
    from raddle.actions.threads import fork_thread  # noqa: PLC0415

    warn_of_settings(stores)
    thread_id = stores.resolve(thread)
    new_id = fork_thread(stores.threads, thread_id, at=at, title=title, makes_private=stores.makes_private)
    output.answer(json, {"id": new_id, "forked_from": thread_id}, new_id)


_turns = click.argument("turns", type=click.IntRange(1, _MOST_TURNS), default=1, metavar="[N]")


@click.command(
    help="""Take back the last N turns of thread ID: what you said and everything under it.

    Nothing leaves the disk: `raddle redo ID` brings them back, until `raddle purge ID --removed`.""",
)
@thread_argument
@_turns
@as_json
@with_stores
def undo(stores: Stores, thread: str, turns: int, json: bool) -> None:
    """Print how much went."""
    from raddle.actions.threads import undo as take_back  # noqa: PLC0415

    thread_id = stores.resolve(thread)
    gone = take_back(stores.threads, thread_id, turns)
    output.answer(
        json,
        {"id": thread_id, "removed": gone},
        f"took back {words.count(len(gone), 'message')}" if gone else "nothing to take back",
    )
    if gone:
        diagnostics.suggest(f"`raddle redo {thread}` brings them back")


@click.command(
    help="""Bring back the last N turns that were taken back from thread ID, the last one first.

    A turn whose words were erased (`raddle purge ID --removed`) does not come back.""",
)
@thread_argument
@_turns
@as_json
@with_stores
def redo(stores: Stores, thread: str, turns: int, json: bool) -> None:
    """Print how much came back."""
    from raddle.actions.threads import redo as bring_back  # noqa: PLC0415

    thread_id = stores.resolve(thread)
    back = bring_back(stores.threads, thread_id, turns)
    output.answer(
        json,
        {"id": thread_id, "restored": back},
        f"brought back {words.count(len(back), 'message')}" if back else "nothing to bring back",
    )
