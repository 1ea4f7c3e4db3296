"""What the hub answers about one thread: everything since a version, in pages; or the whole state.

A page ends where a version ends, so that the version which a page names holds all up to it, and the next page
is asked for with that number: the server remembers nothing of a reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from psycopg import Connection
from psycopg.pq import TransactionStatus

from raddle.model.errors import NotFound, Purged
from raddle.model.protocol.hub import Answer
from raddle.model.threads.delta import Delta
from raddle.model.threads.thread import Thread
from raddle.server import rows
from raddle.server.threads.holding import SQL, Key

PAGE_BYTES = 4 << 20
"""JSON in one answer; more only where a single push was larger."""


class State(NamedTuple):
    """What is known of a thread without its words."""

    version: int
    erased_at_version: int
    pushed_digest: bytes
    is_private: bool
    is_purged: bool


@contextmanager
def at_one_moment(connection: Connection) -> Iterator[None]:
    """What is read in the block is of one moment: a row that changes meanwhile would be missing from an answer.

    Within another block it is of that one's moment.
    """
    if connection.info.transaction_status != TransactionStatus.IDLE:
        yield
        return
    with connection.transaction():
        connection.execute(SQL["at_one_moment"])
        yield


def find_state(connection: Connection, key: Key) -> State | None:
    """The thread's state; None where there is none. Purged where it was erased for good."""
    values = {"space": key.space, "thread": key.thread}
    found = connection.execute(SQL["state"], values).fetchone()
    if found is None:
        return None
    state = State(*found)
    if state.is_purged:
        raise Purged(f"thread {key.thread} was erased for good", "a copy on a device of yours is still yours")
    return state


def since(
    connection: Connection,
    key: Key,
    version: int,
    hub_epoch: str,
    *,
    epoch: str,
    page_bytes: int = PAGE_BYTES,
) -> Answer:
    """What changed after `version`; the whole state (`base_version` 0) where that alone is sure to be right.

    A thread that is not here is an empty state of version 0. Purged where it was erased for good.
    """
    with at_one_moment(connection):
        state = find_state(connection, key)
        if state is None:
            return Answer(delta=Delta(), hub_epoch=epoch)
        is_whole = (
            version == 0 or version > state.version or hub_epoch != epoch or version < state.erased_at_version
        )
        base = 0 if is_whole else version
        end = _page_end(connection, key, base, state.version, page_bytes)
        delta = _between(connection, key, base, end)
    return Answer(delta=delta, hub_epoch=epoch, has_more=end < state.version)


def _between(connection: Connection, key: Key, base: int, version: int) -> Delta:
    """The rows of a thread whose last change came after `base`, up to `version`."""
    values = {"space": key.space, "thread": key.thread, "since": base, "version": version}
    messages = connection.execute(SQL["messages_between"], values, binary=True)
    registers = connection.execute(SQL["registers_between"], values, binary=True)
    return Delta(
        base_version=base,
        version=version,
        messages=tuple(rows.message_of(body) for (body,) in messages),
        registers={bytes(path).decode(): rows.register_of_row(body) for path, body in registers},
    )


def _page_end(connection: Connection, key: Key, base: int, version: int, page_bytes: int) -> int:
    """The version that the page which starts after `base` goes up to."""
    values = {
        "space": key.space,
        "thread": key.thread,
        "since": base,
        "version": version,
        "limit": page_bytes,
    }
    found = connection.execute(SQL["page_end"], values).fetchone()
    fitting, least, greatest = found if found is not None else (None, None, None)
    if greatest is None:
        return version
    end: int = least if fitting is None else fitting
    return version if end == greatest else end


def whole(connection: Connection, key: Key) -> Thread:
    """The thread with all its messages; NotFound where it is not here, Purged where it was erased for good."""
    with at_one_moment(connection):
        state = find_state(connection, key)
        if state is None:
            raise NotFound("thread", key.thread)
        delta = _between(connection, key, 0, state.version)
    thread = Thread(key.thread)
    thread.join(delta)
    return thread
