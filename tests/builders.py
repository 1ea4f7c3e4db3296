"""Readable values for tests: a thread, a message, an author, each with only what a test cares about."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from raddle.model.clock import Clock, format_time, parse_time
from raddle.model.ids import NewId
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Author, Editor
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread

THREAD_ID = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c"
NOON = parse_time("2026-11-30T12:00:00Z") or 0
"""The moment at which every test's clock stands until it is wound, in microseconds."""
SECOND = 1_000_000
DAY = 86_400 * SECOND
YEAR = 365 * DAY


class WoundClock:
    """A clock that stands until somebody winds it (back, too); a `raddle.model.clock.Clock`."""

    def __init__(self, now: int = NOON) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def wind(self, microseconds: int = SECOND) -> None:
        """Let that much time pass."""
        self.now += microseconds


def counted_ids(prefix: str = "m") -> NewId:
    """Ids that count up: m1, m2, …"""
    numbers = itertools.count(1)
    return lambda: f"{prefix}{next(numbers)}"


def an_author(
    device: str = "aaaaaaaa", clock: Clock | None = None, *, new_id: NewId | None = None, name: str = ""
) -> Author:
    """Somebody who edits on `device`; ids count up and carry the device's first letter."""
    return Author(
        device=device, now=clock or WoundClock(), new_id=new_id or counted_ids(device[:1]), name=name
    )


def a_message(message_id: str = "m1", content: str = "hello", **fields: Any) -> Message:
    """A user's turn at noon; a root unless `parent_id` says otherwise."""
    given: dict[str, Any] = {"role": "user", "ts": format_time(NOON), "branch_id": message_id, **fields}
    return Message(id=message_id, content=content, **given)


def a_line(*contents: str, start: int = NOON) -> list[Message]:
    """Turns m1, m2, … one under the other on one branch, a second apart, user and assistant in turn."""
    return [
        a_message(
            f"m{number}",
            content,
            parent_id=f"m{number - 1}" if number > 1 else None,
            branch_id="m1",
            role="user" if number % 2 else "assistant",
            ts=format_time(start + number * SECOND),
        )
        for number, content in enumerate(contents, 1)
    ]


def a_thread(
    *messages: Message, thread_id: str = THREAD_ID, author: Author | None = None, **edits: Any
) -> Thread:
    """A thread of these messages. `edits` are registers that `author` writes: `title="x"`, `is_pinned=True`."""
    thread = Thread(thread_id)
    thread.join(Delta(version=1 if messages else 0, messages=messages))
    if edits:
        editor = Editor(thread, author or an_author())
        for path, value in edits.items():
            editor.write(path, value)
        editor.delta()
    return thread


def texts(messages: Iterable[Message]) -> list[str]:
    """What the messages say, in their order."""
    return [message.content for message in messages]
