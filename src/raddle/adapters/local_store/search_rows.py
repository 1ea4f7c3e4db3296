"""Rows of the index: asked of FTS5 everywhere or in some slots, and held against what FTS5 does not know.

Owns the two ways to ask. All hits of a common word are counted by slot in a few milliseconds, but fetched one
by one only where it matters which they are.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from raddle.adapters.local_store.search_blocks import (
    FIELD_BITS,
    GONE,
    REMOVED,
    SLOT_BITS,
    SLOT_ROWS,
    texts_of,
)
from raddle.adapters.local_store.search_clauses import Clause, is_costly
from raddle.adapters.local_store.search_map import SlotEntry, ThreadMap
from raddle.model.threads.search_fields import MessageText, time_of

MOST_LISTED = 2_500
"""Rows that are fetched one by one when all hits are asked for; where there are more, only their slots are."""
FEW_SLOTS = 96
"""So many slots are asked one after the other, which then costs less than asking for all hits."""
NEAR_SLOTS = 128
"""The slots of the newest threads, whose rows are fetched at once with the slots of a costly expression."""
_MOST_SAID = 5_000
SCANNED_BYTES = 8 << 20
"""Text that a fragment across words is looked for in, newest first, before the search gives up and says so."""


class Bounds(NamedTuple):
    """What every row has to be, whatever its words: of a time from `start` until before `end` (microseconds;
    None: any), and removed or not."""

    start: int | None = None
    end: int | None = None
    is_removed: bool = False

    @property
    def is_timed(self) -> bool:
        """Does the time of a message matter?"""
        return self.start is not None or self.end is not None

    @property
    def matter(self) -> bool:
        """Do they leave out more than what was removed?"""
        return self.is_timed or self.is_removed

    def may_hold(self, slot: SlotEntry) -> bool:
        """Can any row of the slot be in bounds?"""
        if slot.live == 0 or (self.is_removed and slot.removed == 0):
            return False
        if slot.first_time is None or slot.last_time is None:
            return True
        return self._is_after_start(slot.last_time) and self._is_before_end(slot.first_time)

    def surely_hold(self, slot: SlotEntry) -> bool:
        """Is every row of the slot in bounds?"""
        if self.is_removed or slot.removed or slot.live < slot.used:
            return False
        if not self.is_timed:
            return True
        if slot.first_time is None or slot.last_time is None:
            return False
        return self._is_after_start(slot.first_time) and self._is_before_end(slot.last_time)

    def hold(self, order: int, mark: int) -> bool:
        """Is a row in bounds?"""
        if mark & GONE or bool(mark & REMOVED) != self.is_removed:
            return False
        if not self.is_timed:
            return True
        time = time_of(order)
        return time is not None and self._is_after_start(time) and self._is_before_end(time)

    def _is_after_start(self, time: int) -> bool:
        return self.start is None or time >= self.start

    def _is_before_end(self, time: int) -> bool:
        return self.end is None or time < self.end


class Rows:
    """Asks for rows, for the length of one search."""

    def __init__(self, sql: sqlite3.Connection, threads: ThreadMap, bounds: Bounds) -> None:
        self._sql = sql
        self._map = threads
        self._bounds = bounds
        self._bits: dict[int, bytes] = {}
        self._orders: dict[int, array[int]] = {}
        self._said: dict[str, list[int] | None] = {}
        self._parts: dict[tuple[str, str], array[int]] = {}
        self.messages_read = 0
        self._bytes_left = SCANNED_BYTES
        sql.execute(
            "CREATE TEMP TABLE IF NOT EXISTS picked (first INTEGER PRIMARY KEY, last INTEGER NOT NULL)"
        )
        sql.execute("CREATE TEMP TABLE IF NOT EXISTS asked (expression TEXT NOT NULL)")

    def within(self, bounds: Bounds) -> Rows:
        """The same rows, held against other bounds."""
        return Rows(self._sql, self._map, bounds)

    @property
    def is_exhausted(self) -> bool:
        """Was as much text read as a fragment across words may cost?"""
        return self._bytes_left <= 0

    def everywhere(self, expression: str) -> list[int] | None:
        """All rows that match, ascending; None where they are too many to list."""
        return self._listed("words", expression, MOST_LISTED)

    def _listed(self, table: str, expression: str, most: int) -> list[int] | None:
        found = self._sql.execute(
            f"SELECT rowid FROM {table} WHERE {table} MATCH ? LIMIT ?", (expression, most + 1)
        ).fetchall()
        return None if len(found) > most else [row for (row,) in found]

    def slots_everywhere(self, expression: str) -> list[int]:
        """The slots that have a row that matches."""
        found = self._sql.execute(
            f"SELECT DISTINCT rowid >> {SLOT_BITS} FROM words WHERE words MATCH ?", (expression,)
        )
        return [slot for (slot,) in found]

    def slots_and_near_rows(self, clause: Clause, near: Collection[int]) -> tuple[list[int], list[int]]:
        """(slots that have a row that matches, rows that match in the slots `near`), asked for at once."""
        self._pick((slot, slot) for slot in near)
        found = self._at_once(
            clause,
            f"SELECT DISTINCT CASE WHEN words.rowid >> {SLOT_BITS} IN (SELECT first FROM temp.picked)"
            f" THEN -words.rowid ELSE words.rowid >> {SLOT_BITS} END",
        )
        slots: list[int] = []
        rows: list[int] = []
        for number in found:
            if number < 0:
                rows.append(-number)
            else:
                slots.append(number)
        slots += dict.fromkeys(row >> SLOT_BITS for row in rows)
        return slots, rows

    def _at_once(self, clause: Clause, select: str, where: str = "") -> list[int]:
        """What `select` gives of all rows that the clause's expression matches."""
        if not clause.alternatives:
            rows = self._sql.execute(f"{select} FROM words WHERE words MATCH ?{where}", (clause.expression,))
            return [number for (number,) in rows]
        self._sql.execute("DELETE FROM temp.asked")
        self._sql.executemany(
            "INSERT INTO temp.asked VALUES (?)", ((f'"{word}"',) for word in clause.alternatives)
        )
        rows = self._sql.execute(
            f"{select} FROM temp.asked CROSS JOIN words WHERE words MATCH asked.expression{where}"
        )
        return [number for (number,) in rows]

    def in_slots(self, clause: Clause, slots: Collection[int]) -> list[int]:
        """The rows of these slots that match, ascending; whether they are in bounds is not looked at."""
        ordered = sorted(slots)
        if clause.expression is None:
            self.read_bits(ordered)
            starts = ((slot << SLOT_BITS, len(self._bits[slot])) for slot in ordered)
            return [row for start, used in starts for row in range(start, start + used)]
        if clause.alternatives:
            self._pick((slot, slot) for slot in ordered)
            where = f" AND words.rowid >> {SLOT_BITS} IN (SELECT first FROM temp.picked)"
            return sorted(self._at_once(clause, "SELECT DISTINCT words.rowid", where))
        if clause.is_costly and clause.parts:
            return [
                row for slot in ordered for row in self._in_all("words", clause.parts, clause.unwanted, slot)
            ]
        at_once = clause.is_costly or len(ordered) > 2 * FEW_SLOTS
        return self._asked("words", clause.expression, ordered, at_once=at_once)

    def slots_of_parts(self, clause: Clause, slots: Collection[int]) -> list[int]:
        """Those of these slots that have a row that matches the parts of a clause."""
        return [slot for slot in slots if self._in_all("words", clause.parts, clause.unwanted, slot)]

    def _in_all(self, table: str, parts: Sequence[str], unwanted: Sequence[str], slot: int) -> list[int]:
        """The rows of a slot that match every part and nothing unwanted, ascending."""
        found = set(self._of_part(table, parts[0], slot))
        for part in parts[1:]:
            if not found:
                break
            found.intersection_update(self._of_part(table, part, slot))
        for part in unwanted if found else ():
            found.difference_update(self._of_part(table, part, slot))
        return sorted(found)

    def _of_part(self, table: str, part: str, slot: int) -> array[int]:
        """The rows of a slot that match, all rows that do being asked for once."""
        rows = self._parts.get((table, part))
        if rows is None:
            found = self._sql.execute(
                f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rowid", (part,)
            )
            rows = self._parts[table, part] = array("q", (row for (row,) in found))
        start = bisect_left(rows, slot << SLOT_BITS)
        return rows[start : bisect_left(rows, (slot + 1) << SLOT_BITS, start)]

    def in_said(self, expression: str, slots: Collection[int], parts: Sequence[str] = ()) -> Collection[int]:
        """The rows of these slots that match in the table `said`; maybe rows of other slots too.

        `parts`: what the expression asks for, where that is asked for part by part.
        """
        if parts and is_costly(expression):
            return [row for slot in slots for row in self._in_all("said", parts, (), slot)]
        if expression not in self._said:
            self._said[expression] = None
            if " AND " in expression and not is_costly(expression):
                self._said[expression] = self._listed("said", expression, _MOST_SAID)
        known = self._said[expression]
        if known is not None:
            return known
        return self._asked("said", expression, sorted(slots), at_once=is_costly(expression))

    def _asked(self, table: str, expression: str, slots: list[int], *, at_once: bool) -> list[int]:
        """Ask slot by slot, or all of the table at once. A slot without a match costs as much as the way to the
        next match, wherever that is: what matches seldom is asked for at once.
        """
        if at_once:
            self._pick((slot, slot) for slot in slots)
            where = f"rowid >> {SLOT_BITS} IN (SELECT first FROM temp.picked)"
            found = self._sql.execute(
                f"SELECT rowid FROM {table} WHERE {table} MATCH ? AND {where}", (expression,)
            )
        else:
            self._pick(_ranges(slots))
            found = self._sql.execute(
                f"SELECT {table}.rowid FROM temp.picked CROSS JOIN {table}"
                f" WHERE {table} MATCH ? AND {table}.rowid BETWEEN picked.first AND picked.last",
                (expression,),
            )
        return [row for (row,) in found]

    def _pick(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._sql.execute("DELETE FROM temp.picked")
        self._sql.executemany("INSERT INTO temp.picked VALUES (?, ?)", ranges)

    def matching(self, clause: Clause, slots: Collection[int]) -> list[int]:
        """The rows of these slots that are hits of `clause`; few slots, whose texts are read whatever was read."""
        unchecked = self.checked(clause._replace(checks=()), self.in_slots(clause, slots))
        if not clause.checks:
            return unchecked
        return [row for row, text in self.texts(unchecked) if clause.holds(text.texts)]

    def has_any(self, clause: Clause, rows: Iterable[int]) -> bool:
        """Is any of `rows` (of one thread) a hit? Reads no more texts than it takes to say so."""
        unchecked = self.checked(clause._replace(checks=()), rows)
        return next(self._with_texts(clause, unchecked), None) is not None

    def checked(self, clause: Clause, rows: Iterable[int]) -> list[int]:
        """Those of `rows` (ascending) that are in bounds, and whose texts hold what the clause wants of them."""
        rows = list(rows)
        unsure = self.unsure({row >> SLOT_BITS for row in rows})
        if unsure:
            self.read_bits(unsure)
            rows = [row for row in rows if row >> SLOT_BITS not in unsure or self._is_in_bounds(row)]
        return list(self._with_texts(clause, rows)) if clause.checks else rows

    def unsure(self, slots: Iterable[int]) -> set[int]:
        """Those of the slots that may have rows out of bounds."""
        bounds = self._bounds
        if not bounds.matter:
            return self._map.torn_slots.intersection(slots)
        entries = self._map.slots
        return {slot for slot in slots if slot in entries and not bounds.surely_hold(entries[slot])}

    def _is_in_bounds(self, row: int) -> bool:
        slot, at = row >> SLOT_BITS, row & (SLOT_ROWS - 1)
        order = self.orders_of(slot)[at] if self._bounds.is_timed else 0
        return self._bounds.hold(order, self._bits[slot][at])

    def read_bits(self, slots: Iterable[int]) -> None:
        """Read the bits of these slots at once, for `bits_of`."""
        missing = [slot for slot in slots if slot not in self._bits]
        if missing:
            self._pick((slot, slot) for slot in set(missing))
            self._bits.update(
                self._sql.execute("SELECT slot, bits FROM temp.picked JOIN marks ON slot = first")
            )

    def bits_of(self, row: int) -> int:
        """The mark of a row: which fields it has, and whether it is removed or gone."""
        slot = row >> SLOT_BITS
        if slot not in self._bits:
            self.read_bits([slot])
        return self._bits[slot][row & (SLOT_ROWS - 1)]

    def fields_of(self, rows: Sequence[int]) -> dict[int, int]:
        """The fields (bits) of each of these rows."""
        self.read_bits({row >> SLOT_BITS for row in rows})
        bits, places = self._bits, SLOT_ROWS - 1
        return {row: bits[row >> SLOT_BITS][row & places] & FIELD_BITS for row in rows}

    def orders_of(self, slot: int) -> array[int]:
        """The orders of the rows of a slot."""
        orders = self._orders.get(slot)
        if orders is None:
            found = self._sql.execute("SELECT orders FROM marks WHERE slot = ?", (slot,)).fetchone()
            orders = self._orders[slot] = array("q", found[0])
        return orders

    def _with_texts(self, clause: Clause, rows: Iterable[int]) -> Iterator[int]:
        for row, text in self.texts(rows):
            if clause.is_bounded:
                if self.is_exhausted:
                    return
                self._bytes_left -= sum(map(len, text.texts))
            self.messages_read += 1
            if clause.holds(text.texts):
                yield row

    def texts(self, rows: Iterable[int]) -> Iterator[tuple[int, MessageText]]:
        """(row, text) for rows in ascending order."""
        return texts_of(self._sql, rows)


def slot_of(row: int) -> int:
    """The slot that a row is in."""
    return row >> SLOT_BITS


def _ranges(slots: list[int]) -> Iterator[tuple[int, int]]:
    """(first row, last row) of slots in ascending order, neighbours together."""
    first = last = -1
    for slot in slots:
        if slot == last + 1 and first >= 0:
            last = slot
            continue
        if first >= 0:
            yield first << SLOT_BITS, ((last + 1) << SLOT_BITS) - 1
        first = last = slot
    if first >= 0:
        yield first << SLOT_BITS, ((last + 1) << SLOT_BITS) - 1
