"""A hub on real PostgreSQL for tests: a database with the tables, a person or two in it, and their pushes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

import psycopg
from psycopg import Connection

from raddle.model.ids import MonotonicIds
from raddle.model.protocol.hub import Answer, Pushed
from raddle.model.secret import Secret
from raddle.model.threads.delta import Delta
from raddle.model.threads.message import Message
from raddle.model.threads.summary import ThreadSummary
from raddle.server.tables.database import connect
from raddle.server.tables.migrating import migrate
from raddle.server.threads import answering, feed, pushing
from raddle.server.threads.holding import Key
from tests.builders import THREAD_ID

new_id = MonotonicIds()


def prepare(conninfo: str) -> None:
    """The tables, in a database that others are copied from."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        migrate(connection)


def connected(conninfo: str) -> Connection:
    """A connection as the server has them."""
    return connect(Secret(conninfo))


class Person(NamedTuple):
    """Somebody with an account."""

    user: UUID
    space: UUID


def a_person(connection: Connection, name: str = "ada") -> Person:
    """Somebody new, who can sign in by no password."""
    user, space = UUID(new_id()), UUID(new_id())
    with connection.transaction():
        connection.execute("INSERT INTO spaces (id, kind, name) VALUES (%s, 'personal', %s)", (space, name))
        connection.execute(
            "INSERT INTO users (id, name, personal_space) VALUES (%s, %s, %s)", (user, name, space)
        )
        connection.execute(
            "INSERT INTO memberships (space_id, user_id, role) VALUES (%s, %s, 'owner')", (space, user)
        )
    return Person(user, space)


class NotedIndex:
    """An index that only notes what it was told: thread number -> ids of messages."""

    def __init__(self) -> None:
        self.held: dict[int, set[str]] = {}

    def put(
        self, connection: Connection, number: int, summary: ThreadSummary, messages: Sequence[Message]
    ) -> None:
        self.held.setdefault(number, set()).update(message.id for message in messages)

    def erase(self, connection: Connection, number: int) -> None:
        self.held.pop(number, None)


class ServerHub:
    """The server's threads, asked without HTTP, as one person: what `tests.fakes.hub.Hub` is in memory."""

    def __init__(
        self, connection: Connection, person: Person, *, page_bytes: int = answering.PAGE_BYTES
    ) -> None:
        self.name = "server"
        self.connection = connection
        self.person = person
        self.page_bytes = page_bytes
        self.index = NotedIndex()
        self.epoch = feed.hub_epoch(connection, new_id)

    def push(self, thread_id: str, delta: Delta, hub_epoch: str) -> Pushed:
        return pushing.push(
            self.connection,
            Key(self.person.space, thread_id),
            self.person.user,
            delta,
            hub_epoch,
            index=self.index,
            epoch=self.epoch,
        )

    def since(self, thread_id: str = THREAD_ID, version: int = 0, hub_epoch: str | None = None) -> Answer:
        return answering.since(
            self.connection,
            Key(self.person.space, thread_id),
            version,
            self.epoch if hub_epoch is None else hub_epoch,
            epoch=self.epoch,
            page_bytes=self.page_bytes,
        )
