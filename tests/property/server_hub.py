"""A hub of the state machine that is two: the one in memory, and the server's own functions on PostgreSQL.

Every push and every question goes to both; their answers have to be the same, word for word, and the devices get
the server's. What the laws of the machine say of the one so holds of the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from psycopg import Connection, sql

from raddle.model.protocol.hub import Answer, Pushed
from raddle.model.threads.delta import Delta, encode_register
from raddle.model.threads.message_codec import encode_message
from raddle.server.search.index import ServerIndex
from raddle.server.threads import answering, feed, pushing
from raddle.server.threads.holding import Key
from tests.builders_server import a_person, new_id
from tests.fakes.hub import Hub
from tests.property.merge_oracle import law
from tests.property.merge_replica import WatchedHub, World

SMALL_PAGE = 300
"""Bytes: a page of few rows, so that what is asked for comes in several."""
TABLES = ("threads", "messages", "registers", "thread_changes", "thread_blobs")


class HubOnPostgreSQL(WatchedHub):
    """One person's space on a server. Its index is the server's own, so that words are put in and taken out too."""

    def __init__(self, name: str, world: World, thread_id: str, connection: Connection) -> None:
        super().__init__(name, world, thread_id)
        self.connection = connection
        self.person = a_person(connection, f"{name} of {new_id()}")
        self.key = Key(self.person.space, thread_id)
        self.index = ServerIndex()
        self.epochs = [feed.hub_epoch(connection, new_id)]
        self.cursor = ""
        self._rows: _Rows | None = None

    @property
    def epoch(self) -> str:
        """As the server has it: the hub in memory goes by the same."""
        return self.epochs[-1]

    def push(self, thread_id: str, delta: Delta, hub_epoch: str) -> Pushed:
        """Offer it to both."""
        before = self.version
        told = pushing.push(
            self.connection, self.key, self.person.user, delta, hub_epoch, index=self.index, epoch=self.epoch
        )
        expected = super().push(thread_id, delta, hub_epoch)
        if told.is_accepted and not expected.is_accepted:
            law(expected.version == told.version == before, "a push that is sent again changes nothing")
            self._expect_held(delta)
        else:
            law(told.is_accepted == expected.is_accepted, "both take a push, or neither", told, expected)
        law(told.version == expected.version, "both give the same version", told.version, expected.version)
        law(told.hub_epoch == self.epoch, "the server answers with its epoch")
        if told.answer is not None and expected.answer is not None:
            self._expect_same(told.answer, expected.answer)
        return told

    def _expect_held(self, delta: Delta) -> None:
        held = self.thread.copy()
        changed = held.join(delta)
        law(not changed, "what is answered as taken is held")

    def since(self, thread_id: str, version: int, hub_epoch: str) -> Answer:
        """Ask both; the server once whole and once in small pages."""
        expected = super().since(thread_id, version, hub_epoch)
        told = self._ask(version, hub_epoch, answering.PAGE_BYTES)
        law(not told.has_more, "what is small comes at once")
        self._expect_same(told, expected)
        self._expect_same(self._ask_in_pages(version, hub_epoch), expected)
        return told

    def _ask(self, version: int, hub_epoch: str, page_bytes: int) -> Answer:
        return answering.since(
            self.connection, self.key, version, hub_epoch, epoch=self.epoch, page_bytes=page_bytes
        )

    def _ask_in_pages(self, version: int, hub_epoch: str) -> Answer:
        page = first = self._ask(version, hub_epoch, SMALL_PAGE)
        messages, registers = list(page.delta.messages), dict(page.delta.registers)
        while page.has_more:
            at = page.delta.version
            page = self._ask(at, self.epoch, SMALL_PAGE)
            law(page.delta.base_version == at, "a page goes on where the one before it ended")
            law(page.delta.version > at, "a page brings one further")
            law(not registers.keys() & page.delta.registers.keys(), "no register comes twice")
            messages += page.delta.messages
            registers |= page.delta.registers
        law(len({message.id for message in messages}) == len(messages), "no message comes twice")
        delta = Delta(
            base_version=first.delta.base_version,
            version=page.delta.version,
            messages=tuple(messages),
            registers=registers,
        )
        return Answer(delta=delta, hub_epoch=page.hub_epoch)

    def _expect_same(self, told: Answer, expected: Answer) -> None:
        law(told.hub_epoch == expected.hub_epoch, "both answer with the same epoch")
        law(_plain(told.delta) == _plain(expected.delta), "both answer the same", told.delta, expected.delta)

    def check(self) -> None:
        """The laws of a hub; and the feed has told of its newest version."""
        super().check()
        page = feed.changes(self.connection, (self.key.space,), self.cursor, limit=9, epoch=self.epoch)
        told = [(line.thread_id, line.version) for line in page.changes]
        law(len(told) <= 1, "the feed tells each thread once", told)
        law(all(version == self.version for _, version in told), "the feed tells the newest version")
        whole = feed.changes(self.connection, (self.key.space,), "", limit=9, epoch=self.epoch).changes
        law([line.version for line in whole] == [self.version][: self.version], "the feed holds the thread")
        if whole:
            law(whole[0].is_deleted == self.thread.is_deleted, "the feed says whether it is deleted")
        self.cursor = page.cursor

    def lag(self) -> None:
        """Remember this state for an answer that comes late."""
        twin = _Twin(self.name, self.epoch)
        twin._holdings = dict(self.backup())
        self.past.append((twin, self.heard))

    def save(self) -> None:
        """Make a backup, of rows too."""
        super().save()
        self._rows = _rows_of(self.connection, self.key)

    def go_back(self) -> None:
        """Put the rows back, in another epoch."""
        if self._rows is None:
            return
        super().go_back()
        with self.connection.transaction():
            self.index_forgets()
            _put_back(self.connection, self.key, self._rows)
        self.epochs.append(feed.begin_epoch(self.connection, new_id))

    def index_forgets(self) -> None:
        """Search is derived: what is put back is found again once it is put in."""
        for (number,) in self.connection.execute(
            "SELECT number FROM threads WHERE space_id = %s", [self.key.space]
        ):
            self.index.erase(self.connection, number)


class _Twin(Hub):
    """A replica of the server that lags."""

    def __init__(self, name: str, epoch: str) -> None:
        super().__init__(name)
        self._epoch = epoch

    @property
    def epoch(self) -> str:
        return self._epoch


class _Rows(NamedTuple):
    tables: Mapping[str, list[str]]
    feed_number: int


def _rows_of(connection: Connection, key: Key) -> _Rows:
    tables = {
        table: [
            row
            for (row,) in connection.execute(
                sql.SQL("SELECT t::text FROM {} AS t WHERE space_id = %s").format(sql.Identifier(table)),
                [key.space],
            )
        ]
        for table in TABLES
    }
    found = connection.execute("SELECT feed_number FROM spaces WHERE id = %s", [key.space]).fetchone()
    assert found is not None
    return _Rows(tables, found[0])


def _put_back(connection: Connection, key: Key, rows: _Rows) -> None:
    for table in reversed(TABLES):
        name = sql.Identifier(table)
        connection.execute(sql.SQL("DELETE FROM {} WHERE space_id = %s").format(name), [key.space])
    for table, lines in rows.tables.items():
        name = sql.Identifier(table)
        words = sql.SQL(
            "INSERT INTO {} OVERRIDING SYSTEM VALUE SELECT (line::{}).* FROM unnest(%s::text[]) AS line"
        )
        connection.execute(words.format(name, name), [lines])
    connection.execute("UPDATE spaces SET feed_number = %s WHERE id = %s", [rows.feed_number, key.space])


def _plain(delta: Delta) -> object:
    """What it says, in one order."""
    messages = {message.id: msgspec.to_builtins(encode_message(message)) for message in delta.messages}
    registers = {path: encode_register(register) for path, register in delta.registers.items()}
    return delta.base_version, delta.version, messages, registers
