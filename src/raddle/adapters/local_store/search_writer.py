"""What puts messages into the index, and takes them out again.

An FTS5 table without content forgets a row only when it is told the row's words once more, so a row is cut
again from the text that lies beside it: the one place that writes both keeps them the same. Everything here
runs inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import cast

import msgspec

from raddle.adapters.local_store.search_blocks import (
    GONE,
    REMOVED,
    SLOT_BITS,
    SLOT_ROWS,
    Block,
    Slot,
    compressed,
    decompressed,
    is_full,
    key_of,
    load_block,
    load_slots,
    mark_of,
    save_block,
)
from raddle.adapters.local_store.search_ready import ReadyRows
from raddle.adapters.local_store.search_tokens import header_columns, said_words, word_columns
from raddle.model.clock import parse_time
from raddle.model.threads.search_fields import IndexRow, MessageText, cut_row, fingerprint, header_of, time_of
from raddle.model.threads.search_text import Cutter
from raddle.model.threads.summary import ThreadSummary

PINNED, PRIVATE, ARCHIVED = 1, 2, 4

_INSERT = f"INSERT INTO words (rowid, {word_columns.names}) VALUES ({word_columns.marks})"
_DELETE = f"INSERT INTO words (words, rowid, {word_columns.names}) VALUES ('delete', {word_columns.marks})"
_INSERT_SAID = "INSERT INTO said (rowid, words) VALUES (?, ?)"
_DELETE_SAID = "INSERT INTO said (said, rowid, words) VALUES ('delete', ?, ?)"
_INSERT_HEADER = f"INSERT INTO headers (rowid, {header_columns.names}) VALUES ({header_columns.marks})"
_DELETE_HEADER = (
    f"INSERT INTO headers (headers, rowid, {header_columns.names}) VALUES ('delete', {header_columns.marks})"
)
_ROWS_AT_ONCE = 512

encode_summary = msgspec.msgpack.Encoder().encode
decode_summary = msgspec.msgpack.Decoder(ThreadSummary).decode


class SlotNumbers:
    """Gives out slot numbers, each once in a transaction."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self.last: int = sql.execute("SELECT coalesce(max(slot), 0) FROM slots").fetchone()[0]

    def take(self) -> int:
        """A fresh one."""
        self.last += 1
        return self.last


class RowWriter:
    """Appends messages to one thread, in memory that does not grow with it. `flush` before anybody reads.

    `slot`: the last one of the thread, to go on in.
    """

    def __init__(
        self,
        sql: sqlite3.Connection,
        thread: int,
        numbers: SlotNumbers,
        slot: Slot | None = None,
    ) -> None:
        self._sql = sql
        self._thread = thread
        self._numbers = numbers
        self._slot = slot
        self._is_changed = False
        self._block_first = 0
        self._block: Block = []
        self._block_size = 0
        self._pending: list[tuple[object, ...]] = []
        self._pending_said: list[tuple[int, str]] = []
        if slot is not None and 0 < len(slot) < SLOT_ROWS:
            self._reopen_block(slot)

    def add(self, row: IndexRow, *, is_removed: bool = False) -> None:
        """Append one message."""
        slot = self._slot
        if slot is None or len(slot) >= SLOT_ROWS:
            self.flush()
            slot = self._slot = Slot(self._numbers.take())
        self._is_changed = True
        text = row.text
        mark = mark_of(text) | (REMOVED if is_removed else 0)
        number = slot.add(text.order, mark, key_of(text.id), fingerprint(text))
        self._pending.append((number, *word_columns.of(row)))
        said = said_words(row)
        if said is not None:
            self._pending_said.append((number, said))
        if len(self._pending) >= _ROWS_AT_ONCE:
            self._insert()
        if not self._block:
            self._block_first = number
        self._block.append(text)
        self._block_size += sum(map(len, text.texts))
        if is_full(len(self._block), self._block_size):
            self._write_block()

    def flush(self) -> None:
        """Write everything out; more may be added."""
        self._insert()
        self._write_block()
        if self._slot is not None and self._is_changed:
            save_slot(self._sql, self._thread, self._slot)
        self._is_changed = False

    def _insert(self) -> None:
        if self._pending:
            self._sql.executemany(_INSERT, self._pending)
            self._sql.executemany(_INSERT_SAID, self._pending_said)
            self._pending.clear()
            self._pending_said.clear()

    def _write_block(self) -> None:
        if self._block:
            save_block(self._sql, self._block_first, self._block)
            self._block, self._block_size = [], 0

    def _reopen_block(self, slot: Slot) -> None:
        last = slot.next_row - 1
        first, size, data = self._sql.execute(
            "SELECT first, size, data FROM blocks WHERE first <= ? ORDER BY first DESC LIMIT 1", (last,)
        ).fetchone()
        if not is_full(last + 1 - first, size):
            self._block_first, self._block, self._block_size = first, decompressed(data), size


def write_ready(sql: sqlite3.Connection, thread: int, ready: ReadyRows, number: int) -> None:
    """Put messages that were made ready into the slot `number`, which nobody had yet, of a thread."""
    first = number << SLOT_BITS
    for row in ready.words:
        row[0] = first + cast("int", row[0])
    sql.executemany(_INSERT, ready.words)
    sql.executemany(_INSERT_SAID, [(first + place, words) for place, words in ready.said])
    sql.executemany(
        "INSERT INTO blocks VALUES (?, ?, ?)",
        [(first + place, size, data) for place, size, data in ready.blocks],
    )
    save_slot(sql, thread, ready.slot(number))


def _insert_words(sql: sqlite3.Connection, number: int, row: IndexRow) -> None:
    sql.execute(_INSERT, (number, *word_columns.of(row)))
    said = said_words(row)
    if said is not None:
        sql.execute(_INSERT_SAID, (number, said))


def _delete_words(sql: sqlite3.Connection, number: int, row: IndexRow) -> None:
    sql.execute(_DELETE, (number, *word_columns.of(row)))
    said = said_words(row)
    if said is not None:
        sql.execute(_DELETE_SAID, (number, said))


def save_slot(sql: sqlite3.Connection, thread: int, slot: Slot) -> None:
    """Write a slot and what a search asks of it at once."""
    live = [mark for mark in slot.marks if not mark & GONE]
    times = [time_of(order) for mark, order in zip(slot.marks, slot.orders, strict=True) if not mark & GONE]
    known = [time for time in times if time is not None] if None not in times else []
    removed = sum(1 for mark in live if mark & REMOVED)
    spans = (min(known, default=None), max(known, default=None))
    put_row(
        sql,
        "slots",
        slot.slot,
        thread=thread,
        used=len(slot),
        live=len(live),
        removed=removed,
        first_time=spans[0],
        last_time=spans[1],
    )
    put_row(
        sql, "marks", slot.slot, bits=bytes(slot.marks), orders=slot.orders.tobytes(), keys=bytes(slot.keys)
    )


def put_row(sql: sqlite3.Connection, table: str, slot: int, **values: object) -> None:
    """Write a row of `slots` or `marks`, whether it is there or not.

    Not by REPLACE: such a statement may be undone half way, so SQLite has FTS5 write out all that it holds in memory
    before it; an import would make a segment of every session.
    """
    set_to = ", ".join(f"{name} = ?" for name in values)
    changed = sql.execute(f"UPDATE {table} SET {set_to} WHERE slot = ?", (*values.values(), slot))
    if not changed.rowcount:
        names = ", ".join(("slot", *values))
        marks = ", ".join("?" * (len(values) + 1))
        sql.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", (slot, *values.values()))


def find_thread(sql: sqlite3.Connection, thread_id: str) -> int | None:
    """The number of a thread; None where it is not in the index."""
    row = sql.execute("SELECT no FROM threads WHERE id = ?", (thread_id,)).fetchone()
    return None if row is None else int(row[0])


def add_thread(sql: sqlite3.Connection) -> int:
    """A thread that nobody sees until it has its summary; its number."""
    number = sql.execute("INSERT INTO threads VALUES (NULL, NULL, 0, 0, x'')").lastrowid
    assert number is not None
    return number


def save_summary(sql: sqlite3.Connection, thread: int, summary: ThreadSummary, cutter: Cutter) -> None:
    """Give a thread its summary, and its header the words of it."""
    encoded = encode_summary(summary)
    old: bytes = sql.execute("SELECT summary FROM threads WHERE no = ?", (thread,)).fetchone()[0]
    if old != encoded:
        columns = header_columns.of(header_of(summary), cutter)
        before = header_columns.of(header_of(decode_summary(old)), Cutter(collect=False)) if old else None
        if before != columns:
            if before is not None:
                sql.execute(_DELETE_HEADER, (thread, *before))
            sql.execute(_INSERT_HEADER, (thread, *columns))
    flags = PINNED * summary.is_pinned | PRIVATE * summary.is_private | ARCHIVED * summary.is_archived
    sql.execute(
        "UPDATE threads SET id = ?, activity = ?, flags = ?, summary = ? WHERE no = ?",
        (summary.id, parse_time(summary.last_activity_at) or 0, flags, encoded, thread),
    )


def load_summary(sql: sqlite3.Connection, thread: int) -> ThreadSummary:
    """The summary of a thread that can be seen."""
    return decode_summary(sql.execute("SELECT summary FROM threads WHERE no = ?", (thread,)).fetchone()[0])


def remove_thread(sql: sqlite3.Connection, thread: int) -> None:
    """Take a thread out: its rows, texts, marks, header."""
    summary = sql.execute("SELECT summary FROM threads WHERE no = ?", (thread,)).fetchone()[0]
    if summary:
        columns = header_columns.of(header_of(decode_summary(summary)), Cutter(collect=False))
        sql.execute(_DELETE_HEADER, (thread, *columns))
    cutter = Cutter(collect=False)
    for (slot,) in sql.execute("SELECT slot FROM slots WHERE thread = ?", (thread,)).fetchall():
        first, last = slot << SLOT_BITS, (slot + 1) << SLOT_BITS
        for start, data in sql.execute(
            "SELECT first, data FROM blocks WHERE first >= ? AND first < ?", (first, last)
        ):
            texts = [(start + at, text) for at, text in enumerate(decompressed(data)) if text is not None]
            for row, text in texts:
                _delete_words(sql, row, cut_row(text, cutter))
        sql.execute("DELETE FROM blocks WHERE first >= ? AND first < ?", (first, last))
        sql.execute("DELETE FROM marks WHERE slot = ?", (slot,))
    sql.execute("DELETE FROM slots WHERE thread = ?", (thread,))
    sql.execute("DELETE FROM threads WHERE no = ?", (thread,))


class ThreadChange:
    """Brings the messages of one thread that is in the index up to date, at the price of those that change."""

    def __init__(self, sql: sqlite3.Connection, thread: int) -> None:
        self._sql = sql
        self._thread = thread
        self.slots = load_slots(sql, thread)
        """In order, as they will be saved."""
        self._changed: set[int] = set()
        self._blocks: dict[int, Block] = {}
        self._places: dict[bytes, tuple[Slot, int]] | None = None

    def find(self, message_id: str) -> tuple[Slot, int] | None:
        """(slot, place) of a message that is there."""
        key = key_of(message_id)
        if self._places is not None:
            return self._places.get(key)
        for slot in self.slots:
            place = slot.find(key)
            if place is not None:
                return slot, place
        return None

    def expect_many(self) -> None:
        """Many messages will be looked for: a table of all of them is worth its making."""
        self._places = {
            slot.key(at): (slot, at)
            for slot in self.slots
            for at in range(len(slot))
            if not slot.marks[at] & GONE
        }

    def replace(self, slot: Slot, place: int, row: IndexRow) -> None:
        """Another form of a message in the place of the one that is there."""
        number = (slot.slot << SLOT_BITS) + place
        self._forget_words(number, row.text)
        _insert_words(self._sql, number, row)
        mark = mark_of(row.text) | (slot.marks[place] & REMOVED)
        slot.replace(place, row.text.order, mark, fingerprint(row.text))
        self._changed.add(slot.slot)

    def drop(self, slot: Slot, place: int) -> None:
        """A message is no longer in the thread."""
        self._forget_words((slot.slot << SLOT_BITS) + place, None)
        slot.drop(place)
        self._changed.add(slot.slot)

    def drop_all_but(self, kept: Iterable[str]) -> None:
        """Whatever is not among these ids is no longer in the thread."""
        keys = {key_of(message_id) for message_id in kept}
        for slot in self.slots:
            for place in range(len(slot)):
                if not slot.marks[place] & GONE and slot.key(place) not in keys:
                    self.drop(slot, place)

    def set_removed(self, removed: Collection[str]) -> None:
        """These messages, and no others, are taken back."""
        keys = {key_of(message_id) for message_id in removed}
        for slot in self.slots:
            wanted = {place for key in keys if (place := slot.find(key)) is not None}
            was = {place for place, mark in enumerate(slot.marks) if mark & REMOVED}
            for place in wanted ^ was:
                slot.marks[place] ^= REMOVED
                self._changed.add(slot.slot)

    def append(self, rows: Sequence[IndexRow], numbers: SlotNumbers) -> None:
        """Messages that are not there yet."""
        self.save()
        writer = RowWriter(self._sql, self._thread, numbers, self.slots[-1] if self.slots else None)
        for row in rows:
            writer.add(row)
        writer.flush()
        self.slots = load_slots(self._sql, self._thread)

    def save(self) -> None:
        """Write out what changed."""
        for first, block in self._blocks.items():
            size, data = compressed(block)
            self._sql.execute("UPDATE blocks SET size = ?, data = ? WHERE first = ?", (size, data, first))
        self._blocks.clear()
        for slot in self.slots:
            if slot.slot in self._changed:
                save_slot(self._sql, self._thread, slot)
        self._changed.clear()

    def _forget_words(self, row: int, text: MessageText | None) -> None:
        """Delete the words of a row, and put `text` in the place of the text they came from."""
        first = self._sql.execute(
            "SELECT first FROM blocks WHERE first <= ? ORDER BY first DESC LIMIT 1", (row,)
        ).fetchone()[0]
        block = self._blocks.get(first)
        if block is None:
            _, block = load_block(self._sql, row)
            self._blocks[first] = block
        old = block[row - first]
        if old is not None:
            _delete_words(self._sql, row, cut_row(old, Cutter(collect=False)))
        block[row - first] = text
