"""Which slots belong to which thread, and what is asked of threads at every search: kept in memory.

Read whole when the index has changed, so that a search over ten thousand threads asks the disk about none of
them one by one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from raddle.adapters.local_store.search_blocks import SLOT_BITS


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
            number: ThreadEntry(thread_id, activity, flags)
            for number, thread_id, activity, flags in sql.execute(
                "SELECT no, id, activity, flags FROM threads WHERE id IS NOT NULL"
            )
        }
        self.slots: dict[int, SlotEntry] = {}
        self.slots_of: dict[int, list[int]] = {number: [] for number in self.threads}
        for slot, *entry in sql.execute(
            "SELECT slot, thread, used, live, removed, first_time, last_time FROM slots ORDER BY slot"
        ):
            if entry[0] in self.threads:
                self.slots[slot] = SlotEntry(*entry)
                self.slots_of[entry[0]].append(slot)

    def thread_of(self, row: int) -> int | None:
        """The number of the thread that `row` belongs to; None where nobody may see it yet."""
        slot = self.slots.get(row >> SLOT_BITS)
        return None if slot is None else slot.thread

    def newest_first(self, threads: Iterable[int]) -> list[int]:
        """Thread numbers by activity, then id: the order of hits that are not ranked."""
        return sorted(threads, key=lambda number: (-self.threads[number].activity, self.threads[number].id))
