"""A thread's own session file given back: which turns were added here, and where their lines stand in it.

Owns what "added since" means, the same for every agent's format: turns that a device wrote and that no record of the
file stands behind. How a line looks is each format's own (`native_*.py`); bytes of sources are read elsewhere. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from msgspec import Struct

from raddle.model.clock import format_time, parse_time
from raddle.model.errors import NotFound
from raddle.model.threads.message import NOTICE, Message, changed
from raddle.model.threads.thread import Thread

Where = Callable[[str], str]
"""A record's own id -> the message after which a line under that record stands; empty where that is not known."""

WRITTEN = ("user", "assistant", "tool")
"""Roles that every agent's format has."""


class Candidates(Struct, frozen=True, kw_only=True):
    """Turns that may have been added here, in (order, id) order.

    `around`: ids of all messages above them, and their own: what to look for in the file. `elsewhere`: how many are
    on other branches than the one asked for; `unwritten`: how many have no place in another agent's file.
    """

    messages: tuple[Message, ...] = ()
    around: AbstractSet[str] = frozenset()
    elsewhere: int = 0
    unwritten: int = 0


class Added(Struct, frozen=True, kw_only=True):
    """A turn to write. `under`: the nearest message above it that the file holds; empty where there is none."""

    message: Message
    under: str


class Insertion(Struct, frozen=True, kw_only=True):
    """Bytes to put into the file at an offset."""

    at: int
    data: bytes


class SourceEnd(Struct, frozen=True, kw_only=True):
    """How the file ends: its size in bytes, and whether its last line has its end."""

    size: int
    is_ended: bool


class NativeWriter(Protocol):
    """Looks at a session file once, from its start, and writes the lines of added turns for it."""

    def scan(self, chunk: bytes) -> None:
        """The file's bytes as they come."""

    def see(self, line: bytes, where: Where) -> None:
        """A line of it, which was just read."""

    def insertion(self, added: Sequence[Added], session_id: str, end: SourceEnd) -> Insertion:
        """The lines of these turns, and where they go. BrokenFormat where the file has no place for them."""


def candidates_of(thread: Thread, leaf: str | None, *, is_tree: bool) -> Candidates:
    """What may have been added. `leaf`: only on the path to it; NotFound for an unknown one.

    A format that knows no branches (not `is_tree`) takes one path: without a `leaf` the one to the tip.
    """
    tree = thread.tree
    if leaf is not None and leaf not in tree:
        raise NotFound("message", leaf, f"`raddle show {thread.id} --tree` lists them")
    if leaf is None and not is_tree:
        tip = tree.tip()
        leaf = tip.id if tip is not None else None
    path = None if leaf is None else {message.id for message in tree.path_to_root(leaf)}
    found: list[Message] = []
    elsewhere = unwritten = 0
    for message in tree.shown():
        if not message.device or message.is_purged or message.kind == NOTICE:
            continue
        if message.is_sidechain or message.role not in WRITTEN:
            unwritten += path is None or message.id in path
        elif path is not None and message.id not in path:
            elsewhere += 1
        else:
            found.append(message)
    return Candidates(
        messages=tuple(found),
        around=_around(thread, found),
        elsewhere=elsewhere,
        unwritten=unwritten,
    )


def _around(thread: Thread, messages: Iterable[Message]) -> set[str]:
    around: set[str] = set()
    for message in messages:
        at: Message | None = message
        while at is not None and at.id not in around:
            around.add(at.id)
            at = thread.tree.get(at.parent_id) if at.parent_id is not None else None
    return around


def added_turns(thread: Thread, candidates: Candidates, present: AbstractSet[str]) -> list[Added]:
    """Those of the candidates that the file does not hold yet; `present`: ids of the messages that it holds.

    A turn whose parent will not be in the file (a notice, a turn of an earlier generation) hangs on the nearest
    message above that is. That form stands a microsecond later, so it yields to the true one wherever both meet.
    """
    held = set(present)
    added: list[Added] = []
    for message in candidates.messages:
        if message.id in held:
            continue
        under = _nearest(thread, message, held)
        form = message
        if message.parent_id != under:
            form = changed(message, parent_id=under, seq=message.order + 1)
        added.append(Added(message=form, under=under or ""))
        held.add(message.id)
    return added


def _nearest(thread: Thread, message: Message, held: AbstractSet[str]) -> str | None:
    at = message.parent_id
    passed: set[str] = set()
    while at is not None and at not in held and at not in passed:
        passed.add(at)
        parent = thread.tree.get(at)
        at = parent.parent_id if parent is not None else None
    return at if at in held else None


def stamp_of(message: Message) -> str:
    """When it was said, to the millisecond, as every agent writes it: `2026-11-30T09:52:50.000Z`."""
    at = parse_time(message.ts)
    return format_time(message.order if at is None else at)[:23] + "Z"


def lines_at_end(lines: Iterable[bytes], end: SourceEnd) -> Insertion:
    """Lines after all others; an unfinished last one is ended first."""
    data = b"".join(line + b"\n" for line in lines)
    return Insertion(at=end.size, data=data if end.is_ended else b"\n" + data)
