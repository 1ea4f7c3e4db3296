"""What a session that an agent goes on with is, and what both ways of making one have to know.

Owns when an agent's own session leads to where a person goes on, and what is said of what the agent will not know.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from raddle.actions.resuming.session import Header
from raddle.actions.resuming.told import Told
from raddle.model.errors import NetworkError, TooManyRequests
from raddle.model.threads.message import NOTICE, Message
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores

BECOMES_ANOTHER = (
    "the agent has another session under this one's id, so this gets a new one; what is said there comes back as a"
    " thread of its own, which shares the turns so far"
)
"""Of an agent's own session that is written beside the one that it has."""


class Resumed(Struct, frozen=True, kw_only=True):
    """A session that an agent can go on with.

    `path`: the file, None where the agent keeps none. `argv`: what to run, in `cwd`. `is_own`: it is the agent's own
    session with what was added, not a telling of it. `messages`: how many of the thread's the agent knows then.
    """

    agent: str
    session_id: str
    path: Path | None
    argv: tuple[str, ...]
    cwd: Path
    is_own: bool
    messages: int
    warnings: tuple[str, ...] = ()


def warnings_on(thread: Thread, told: Told) -> list[str]:
    """What the agent will not know, one line each."""
    found = []
    on_path = {message.id for message in thread.tree.path_to_root(told.last.id)}
    others = sum(1 for head in thread.tree.heads() if not head.is_sidechain and head.id not in on_path)
    if others:
        found.append(f"{others} other {'branch is' if others == 1 else 'branches are'} left out")
    if told.unseen:
        files = "1 attached file is" if told.unseen == 1 else f"{told.unseen} attached files are"
        found.append(f"{files} only named: not here, or no picture that the agent takes")
    return found


def leads_to(told: Told, found: dict[str, Message], added: frozenset[str]) -> bool:
    """Does a session of these messages, with what is added behind them, end where the told path does?

    It has to hold all of the path, and its own newest turn has to lie on it.
    """
    path = {turn.message.id for turn in told.turns} | {
        call.result.message.id
        for turn in told.turns
        for call in turn.calls
        if call.result.message is not None
    }
    if path - found.keys() - added:
        return False
    main = [message for message in found.values() if not message.is_sidechain and message.kind != NOTICE]
    newest = max(main, key=lambda message: (message.order, message.id), default=None)
    return newest is None or newest.id in path


def fetch(stores: Stores, thread: Thread, agent: str, warnings: list[str]) -> None:
    """Ask the server for source bytes that are not here."""
    from raddle.wiring.fetching import fetch_sources  # noqa: PLC0415  most sessions are here

    try:
        fetched = fetch_sources(stores, thread, agent)
    except (NetworkError, TooManyRequests) as error:
        warnings.append(f"the server was asked for the source bytes: {error.message}")
        return
    if fetched is not None:
        warnings.append(f"fetched the session's own bytes from {fetched.server}; they are kept here")


def header_of(stores: Stores, thread: Thread, told: Told, session_id: str, workspace: str) -> Header:
    """What a session that tells this path says of itself."""
    return Header(
        session_id=session_id,
        workspace=workspace,
        title=thread.title,
        git_branch=str(thread.plain("git_branch") or ""),
        began=told.turns[0].message.order,
        ends=told.last.order,
        now=stores.clock(),
    )
