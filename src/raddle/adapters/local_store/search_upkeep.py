"""How the index keeps up with the thread files: what writers of ours noted, and what other programs did.

The one place that reads a thread for the index and notes what its files looked like then. A reader that did only one
of the two would read the thread at every look, or never again.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from raddle.adapters.local_store.search_book import Book
from raddle.adapters.local_store.search_database import Database, IndexBusy
from raddle.adapters.local_store.search_dirty import count_dirty, drop_taken, is_dirty, mark_dirty, take_dirty
from raddle.adapters.local_store.search_sweep import Sweep, is_settled, is_unsure
from raddle.model.errors import FormatError, NotFound, StorageError

if TYPE_CHECKING:
    from raddle.actions.ports import Finding
    from raddle.model.threads.thread import Thread

LoadThread = Callable[[str], "Thread"]
"""The thread of that id as it is now; NotFound where there is none any more."""

DRAIN_SECONDS = 1.0
"""How long a search waits for another writer before it answers without what was saved meanwhile."""
_TURN_SECONDS = 0.5
"""How long it keeps other writers waiting, where much has changed."""
_MANY = 200
"""So many threads are read before anybody has waited for long."""


class Upkeep:
    """Brings one index up to date. `writes` counts how often it changed it. For one thread of control at a time."""

    def __init__(
        self,
        database: Database,
        book: Book,
        load: LoadThread,
        *,
        dirty_list: Path | None,
        sweep: Sweep | None,
        report: Callable[[Finding], None],
    ) -> None:
        self._database = database
        self._book = book
        self._load = load
        self._dirty_list = dirty_list
        self._sweep = sweep
        self._report = report
        self.writes = 0

    def refresh(self, *, sweeps: bool, is_hurried: bool = False) -> int:
        """Put in what is not in yet; how many threads still wait, for another process is writing the index or
        their files cannot be read at present."""
        if self._database.sql.in_transaction:  # inside an import of this process
            return 0 if self._dirty_list is None else count_dirty(self._dirty_list)
        with self._database.errors():
            swept = self._sweep.changed(is_hurried=is_hurried) if sweeps and self._sweep is not None else []
        waiting = self._drain()
        return waiting + (self._take_in_swept(self._sweep, swept) if self._sweep is not None and swept else 0)

    def _drain(self) -> int:
        """Put in what writers noted; how many of these threads still wait."""
        if self._dirty_list is None or not is_dirty(self._dirty_list):
            return 0
        waiting: list[str] = []
        try:
            with self._database.writing(wait_seconds=DRAIN_SECONDS):
                taken = take_dirty(self._dirty_list)
                waiting += (each for each in taken.ids if not self._take_in(each))
        except IndexBusy:
            return count_dirty(self._dirty_list)
        drop_taken(taken)
        for thread_id in waiting:
            mark_dirty(self._dirty_list, thread_id)
        self.writes += 1
        return len(waiting)

    def _take_in_swept(self, sweep: Sweep, swept: Sequence[str]) -> int:
        """Put in what other programs changed, by turns with other writers; how many of them still wait."""
        if len(swept) >= _MANY:
            what = f"other programs changed the files of {len(swept):,} threads"
            self._tell(str(sweep.folder), what, done="reading them")
        left, waiting = list(reversed(swept)), 0
        while left:
            ends = time.monotonic() + _TURN_SECONDS
            try:
                with self._database.writing(wait_seconds=DRAIN_SECONDS):
                    while left and time.monotonic() < ends:
                        waiting += not self._take_in_foreign(sweep, left.pop())
            except IndexBusy:
                return len(left) + waiting
            self.writes += 1
        if not waiting:
            sweep.took_all()
        return waiting

    def _take_in(self, thread_id: str) -> bool:
        """Put a thread of ours in as it is now; False where its file cannot be read at present."""
        stamp = () if self._sweep is None else self._sweep.stamp(thread_id)
        try:
            self._put(thread_id)
        except FormatError:
            # Damaged, or of a newer raddle: it stays as it was last read, and opening it says what is wrong.
            stamp = () if self._sweep is None else self._sweep.stamp(thread_id)
        except StorageError:
            return False
        if self._sweep is not None:
            self._sweep.note(thread_id, stamp)
        return True

    def _take_in_foreign(self, sweep: Sweep, thread_id: str) -> bool:
        """The same of a thread that another program touched, which may be touching it still."""
        stamp, noted = sweep.stamp(thread_id), sweep.noted(thread_id)
        if stamp == noted:
            return True  # another process was first
        try:
            self._put(thread_id)
        except FormatError as error:
            if not is_unsure(noted):  # else it was told just now
                self._tell(f"{sweep.folder}/{thread_id}.json", error.message)
            stamp = sweep.stamp(thread_id)  # what is left of it
        except StorageError:
            return False
        sweep.note(thread_id, stamp, is_sure=is_settled(stamp))
        return True

    def _put(self, thread_id: str) -> None:
        from raddle.adapters.local_store.search_update import put_thread  # noqa: PLC0415

        try:
            thread = self._load(thread_id)
        except NotFound:
            remove_by_id(self._database.sql, thread_id)
            return
        put_thread(self._database.sql, self._book, thread)

    def _tell(self, path: str, what: str, done: str = "") -> None:
        from raddle.actions.ports import Finding  # noqa: PLC0415  4 ms that every search would pay

        self._report(Finding(path=path, what=what, done=done))


def remove_by_id(sql: sqlite3.Connection, thread_id: str) -> None:
    """Take a thread out; nothing happens where it is not in. Inside a transaction of the caller."""
    from raddle.adapters.local_store.search_writer import find_thread, remove_thread  # noqa: PLC0415

    number = find_thread(sql, thread_id)
    if number is not None:
        remove_thread(sql, number)
