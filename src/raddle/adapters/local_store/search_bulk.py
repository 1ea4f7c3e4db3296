"""An import into the index: rows come in as they are cut, by session, before anybody knows which thread they are.

One transaction from commit to commit, tuned for much at once. What an import that died left half done is
seen by nobody, and taken out before the next one begins.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable

from raddle.adapters.local_store.search_blocks import GONE, SLOT_BITS, load_slots, texts_of
from raddle.adapters.local_store.search_book import Book
from raddle.adapters.local_store.search_database import Database
from raddle.adapters.local_store.search_ready import ReadyRows, ready_rows_of
from raddle.adapters.local_store.search_sweep import FileFacts, Sweep
from raddle.adapters.local_store.search_writer import (
    SlotNumbers,
    ThreadChange,
    add_thread,
    find_thread,
    remove_thread,
    save_summary,
    write_ready,
)
from raddle.model.threads.search_fields import IndexRow, cut_row
from raddle.model.threads.search_text import Cutter
from raddle.model.threads.summary import ThreadSummary

_HASH_BYTES = 16 << 20
_CACHE_KILOBYTES = 8 << 10
"""Pages that were written are seldom read again: with four times as many an import is no faster."""
_USUAL = {"hashsize": 1 << 20, "automerge": 4}
_SAMPLED = 8
_SAMPLED_TERMS = 12

_MOST_TERMS = 1 << 17
"""So many new terms are held before they go into the book: some 15 MB."""

_FEW_SEGMENTS = 6
"""So many cost a query next to nothing; merging them costs a thirtieth of the import."""


class Bulk:
    """Rows of many threads. `add` any number of times for each session, then `finish` or `forget` it."""

    def __init__(self, database: Database, book: Book, sweep: Sweep | None = None) -> None:
        self._database = database
        self._sql = database.sql
        self._book = book
        self._sweep = sweep
        self._threads: dict[str, int] = {}
        """The session -> the number of its thread, which nobody sees yet."""
        self._terms: set[bytes] = set()
        self._sample: list[int] = []
        self._rows = 0

    def begin(self) -> None:
        """Take the index for writing."""
        with self._database.errors():
            self._sql.execute("PRAGMA synchronous = OFF")
            self._database.map_pages(is_mapped=False)
            self._database.cache_pages(_CACHE_KILOBYTES)
            with self._database.writing():
                for (thread,) in self._sql.execute("SELECT no FROM threads WHERE id IS NULL").fetchall():
                    remove_thread(self._sql, thread)
                self._book.mark_unsure(is_unsure=True)
            self._start()

    def _start(self) -> None:
        self._database.begin()
        self._numbers = SlotNumbers(self._sql)
        _tune(self._sql, hashsize=_HASH_BYTES, automerge=0)

    def add(self, session: str, rows: Iterable[IndexRow], removed: Collection[str] = ()) -> None:
        """Take in messages of a session, in order or not; a message that comes again replaces its earlier form.

        `removed`: ids of those that do not show.
        """
        for ready in ready_rows_of(rows, removed):
            self.write(session, ready)

    def write(self, session: str, ready: ReadyRows) -> None:
        """The same for messages that somebody else made ready.

        Each has a slot of its own, and is written at once: FTS5 writes out all it holds in memory when row
        numbers go back, so that of sessions by turns it would make one segment after the other.
        """
        thread = self._threads.get(session)
        if thread is None:
            thread = self._threads[session] = add_thread(self._sql)
        write_ready(self._sql, thread, ready, self._numbers.take())
        self._rows += len(ready.words)
        self._terms.update(ready.terms.encode().split(b"\n"))
        if len(self._terms) > _MOST_TERMS:  # one session may have any number
            self._tell_book()

    def finish(self, session: str, summary: ThreadSummary) -> None:
        """All rows of the session are in, and this is its thread: it takes the place of what the index had of it."""
        thread = self._threads.pop(session, None)
        if thread is None:
            thread = add_thread(self._sql)
        else:
            _drop_earlier_forms(self._sql, thread)
        before = find_thread(self._sql, summary.id)
        if before is not None:
            remove_thread(self._sql, before)
        cutter = Cutter()
        save_summary(self._sql, thread, summary, cutter)
        self._terms.update(cutter.take_terms().encode().split(b"\n"))
        if len(self._sample) < _SAMPLED:
            self._sample.append(thread)

    def forget(self, session: str) -> None:
        """This session becomes no thread after all."""
        thread = self._threads.pop(session, None)
        if thread is not None:
            remove_thread(self._sql, thread)

    def note_files(self, thread_id: str, stamp: FileFacts) -> None:
        """What was put in is what the thread's files said when they looked so (`SearchIndex.file_stamp`)."""
        if self._sweep is not None:
            self._sweep.note(thread_id, stamp)

    def commit(self) -> None:
        """Make what is finished visible, and safe from a crash of this process; go on after it."""
        self._commit()
        self._start()

    def end(self) -> None:
        """Let go of the index; sessions that were neither finished nor forgotten are forgotten."""
        for session in list(self._threads):
            self.forget(session)
        self._settle_book()
        if self._is_mostly_new() and _segments(self._sql) > _FEW_SEGMENTS:
            # As many segments as it was written in: a query would ask each of them.
            merge_all(self._sql)
        self._commit()
        self._settle()
        self._sql.executescript("PRAGMA incremental_vacuum")  # `execute` would free a single page
        self._database.write_back()

    def _is_mostly_new(self) -> bool:
        live: int = self._sql.execute("SELECT coalesce(sum(live), 0) FROM slots").fetchone()[0]
        return self._rows * 2 > live

    def abandon(self) -> None:
        """Undo what was not committed."""
        if self._sql.in_transaction:
            self._sql.execute("ROLLBACK")
        self._settle()

    def _settle(self) -> None:
        """As it was before `begin`."""
        self._sql.execute("PRAGMA synchronous = NORMAL")
        self._database.cache_pages()
        if not self._database.notes:  # a log on a network is not mapped at all
            self._database.map_pages(is_mapped=True)

    def _commit(self) -> None:
        self._tell_book()
        _tune(self._sql, **_USUAL)
        self._sql.execute("COMMIT")

    def _tell_book(self) -> None:
        self._book.add(self._terms)
        self._terms = set()

    def _settle_book(self) -> None:
        """The book is whole if it has some words taken as a sample: a cutter that has told its terms to another
        index leaves out even the common ones.
        """
        self._tell_book()
        if self._book.has_all(self._sampled_terms()):
            self._book.mark_unsure(is_unsure=False)
        else:
            self._book.make_anew()

    def _sampled_terms(self) -> set[bytes]:
        """A few terms of the first message of some of the threads."""
        sampled: set[bytes] = set()
        for thread in self._sample:
            for slot in load_slots(self._sql, thread)[:1]:
                rows = [
                    (slot.slot << SLOT_BITS) + at for at, mark in enumerate(slot.marks[:1]) if not mark & GONE
                ]
                for _, text in texts_of(self._sql, rows):
                    sampled.update(cut_row(text, Cutter()).terms.encode().split(b"\n")[:_SAMPLED_TERMS])
        return sampled - {b""}


def _drop_earlier_forms(sql: sqlite3.Connection, thread: int) -> None:
    """Of messages that came more than once, keep the last."""
    slots = load_slots(sql, thread)
    keys = [slot.key(at) for slot in slots for at in range(len(slot))]
    if len(set(keys)) == len(keys):
        return
    change = ThreadChange(sql, thread)
    seen: set[bytes] = set()
    for slot in reversed(change.slots):
        for place in reversed(range(len(slot))):
            if slot.key(place) in seen:
                change.drop(slot, place)
            else:
                seen.add(slot.key(place))
    change.save()


def _segments(sql: sqlite3.Connection) -> int:
    count: int = sql.execute("SELECT count(DISTINCT segid) FROM words_idx").fetchone()[0]
    return count


def merge_all(sql: sqlite3.Connection) -> None:
    """Merge each table of words into one segment: of what was deleted, nothing is left in it."""
    for table in ("words", "said", "headers"):
        sql.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")


def _tune(sql: sqlite3.Connection, *, hashsize: int, automerge: int) -> None:
    for table, share in (("words", 1), ("said", 8)):
        sql.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('hashsize', ?)", (hashsize // share,))
        sql.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('automerge', ?)", (automerge,))
