"""Which slots belong to which thread, and what is asked of threads at every search: kept in memory.

Read whole when the index has changed, so that a search over ten thousand threads asks the disk about none of
them one by one.
"""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Collection, Iterator
from typing import NamedTuple


class SlotEntry(NamedTuple):
    """A slot: the number of its thread; rows in use, still there, taken back; times of the first and the last."""

    thread: int
    used: int
    live: int
    removed: int
    first_time: int | None
    last_time: int | None


class ThreadEntry(NamedTuple):
    """A thread: id, time of its last activity in microseconds, flags."""

    id: str
    activity: int
    flags: int


class ThreadMap:
    """All threads that can be seen, and the slots of each. Iterates over thread numbers, the newest first."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql
        rows = sql.execute(
            "SELECT no, id, activity, flags FROM threads WHERE id IS NOT NULL ORDER BY activity DESC, id"
        )
        self._threads: dict[int, tuple[int, str, int, int]] = {row[0]: row for row in rows}
        self.thread_of: dict[int, int] = dict(
            sql.execute(
                "SELECT slot, thread FROM slots WHERE thread NOT IN (SELECT no FROM threads WHERE id IS NULL)"
            )
        )
        """Slot -> thread."""
        torn = sql.execute("SELECT slot FROM slots WHERE removed > 0 OR live < used").fetchall()
        self.torn_slots = {slot for (slot,) in torn}.intersection(self.thread_of)
        """Slots with a message that is removed or gone."""

    def __len__(self) -> int:
        return len(self._threads)

    def __iter__(self) -> Iterator[int]:
        return iter(self._threads)

    def __getitem__(self, number: int) -> ThreadEntry:
        return ThreadEntry._make(self._threads[number][1:])

    def with_flag(self, flag: int) -> frozenset[int]:
        """The threads that have this flag."""
        return frozenset(row[0] for row in self._threads.values() if row[3] & flag)

    @functools.cached_property
    def slots(self) -> dict[int, SlotEntry]:
        """What is known of each slot; read when a search is about times or removed messages."""
        rows = self._sql.execute("SELECT slot, thread, used, live, removed, first_time, last_time FROM slots")
        return {row[0]: SlotEntry._make(row[1:]) for row in rows if row[0] in self.thread_of}

    @functools.cached_property
    def slots_of(self) -> dict[int, list[int]]:
        """Thread -> its slots, in order."""
        slots_of: dict[int, list[int]] = {number: [] for number in self._threads}
        for slot, thread in self.thread_of.items():
            slots_of[thread].append(slot)
        return slots_of

    def newest_first(self, threads: Collection[int]) -> Iterator[int]:
        """These threads in their order, no further than is asked for."""
        if len(threads) * 16 < len(self._threads):
            return iter(sorted(threads, key=self._place))
        chosen = threads if isinstance(threads, set | frozenset | dict) else set(threads)
        return (number for number in self._threads if number in chosen)

    def _place(self, number: int) -> tuple[int, str]:
        _, thread_id, activity, _ = self._threads[number]
        return -activity, thread_id
