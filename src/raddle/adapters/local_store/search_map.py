"""Which slots belong to which thread, and what is asked of threads at every search: kept in memory.

Read whole when the index has changed, so that a search over ten thousand threads asks the disk about none of
them one by one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from itertools import islice
from typing import NamedTuple


class SlotEntry(NamedTuple):
    """A slot: its thread's number, rows in use, of those still there, of those taken back, times of the first and last."""

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
    """All threads that can be seen, and the slots of each."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self.threads: dict[int, ThreadEntry] = {
            row[0]: ThreadEntry._make(row[1:])
            for row in sql.execute(
                "SELECT no, id, activity, flags FROM threads WHERE id IS NOT NULL ORDER BY activity DESC, id"
            )
        }
        """By number, the newest activity first, then by id: the order of hits that are not ranked."""
        self.slots: dict[int, SlotEntry] = {}
        self.thread_of: dict[int, int] = {}
        """Slot -> thread."""
        self.slots_of: dict[int, list[int]] = {number: [] for number in self.threads}
        self.torn_slots: set[int] = set()
        """Slots with a message that is removed or gone."""
        for row in sql.execute(
            "SELECT slot, thread, used, live, removed, first_time, last_time FROM slots ORDER BY slot"
        ):
            entry = SlotEntry._make(row[1:])
            if entry.thread in self.threads:
                self.slots[row[0]] = entry
                self.thread_of[row[0]] = entry.thread
                self.slots_of[entry.thread].append(row[0])
                if entry.removed or entry.live < entry.used:
                    self.torn_slots.add(row[0])

    def newest_first(self, threads: Collection[int]) -> Iterator[int]:
        """These threads in their order, no further than is asked for."""
        if len(threads) * 16 < len(self.threads):
            return iter(sorted(threads, key=self._place))
        chosen = threads if isinstance(threads, set | frozenset | dict) else set(threads)
        return (number for number in self.threads if number in chosen)

    def _place(self, number: int) -> tuple[int, str]:
        entry = self.threads[number]
        return -entry.activity, entry.id

    def newest_slots(self, most: int) -> list[int]:
        """The slots of the newest threads, `most` of them."""
        return list(islice((slot for number in self.threads for slot in self.slots_of[number]), most))
