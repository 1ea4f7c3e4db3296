"""Rows of the index: asked of FTS5 everywhere or in some slots, and held against what FTS5 does not know.

Owns the ways to ask. Of a common word the slots are asked for, and the rows only of slots where it matters which they
are. What FTS5 takes long to find is asked for once, with all its rows; a prefix or fragment of many words word by word.
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
from raddle.adapters.local_store.search_clauses import SLOTS, Clause, is_compared, is_costly
from raddle.adapters.local_store.search_map import SlotEntry, ThreadMap
from raddle.adapters.local_store.search_numbers import number_lists, numbers
from raddle.model.threads.search_fields import MessageText, time_of

MOST_LISTED = 2_500
"""Rows that are told apart by thread when all hits are asked for; where there are more, only their slots are."""
FEW_SLOTS = 96
"""So many slots are asked one after the other, which then costs less than asking for all hits."""
_MOST_SAID = 5_000
_SLOTS_A_QUERY = 50
"""The slots of a term whose rows take as long to read as it takes to ask once more."""
_LAST_ROW = 2**63 - 1
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
        self._kept: dict[tuple[str, str], list[int]] = {}
        """(table, expression) -> all rows that match, ascending."""
        self._by_terms: dict[str, list[tuple[str, list[int]]]] = {}
        """Expression -> (one of its alternatives, the slots that have it)."""
        self.messages_read = 0
        self._bytes_left = SCANNED_BYTES
        sql.execute(
            "CREATE TEMP TABLE IF NOT EXISTS picked (first INTEGER PRIMARY KEY, last INTEGER NOT NULL)"
        )
        sql.execute("CREATE TEMP TABLE IF NOT EXISTS asked (term TEXT, first INTEGER, last INTEGER)")

    def within(self, bounds: Bounds) -> Rows:
        """The same rows, held against other bounds."""
        return Rows(self._sql, self._map, bounds)

    @property
    def is_exhausted(self) -> bool:
        """Was as much text read as a fragment across words may cost?"""
        return self._bytes_left <= 0

    def everywhere(self, clause: Clause) -> list[int] | None:
        """All rows that match, ascending; None where they are too many to list."""
        assert clause.expression is not None
        if clause.alternatives:
            return self._listed_terms(clause)
        if not _is_kept(clause):
            return self._listed("words", clause.expression, MOST_LISTED)
        rows = self._all("words", clause.expression)
        return None if len(rows) > MOST_LISTED else rows

    def _listed(self, table: str, expression: str, most: int) -> list[int] | None:
        select = f"SELECT rowid AS number FROM {table} WHERE {table} MATCH ? LIMIT ?"
        found = numbers(self._sql, select, (expression, most + 1))
        return None if len(found) > most else found

    def slots_of(self, clause: Clause) -> Collection[int]:
        """The slots that have a row that matches."""
        assert clause.expression is not None
        if clause.alternatives:
            return set().union(*(slots for _, slots in self._by_term(clause)))
        if _is_kept(clause):
            return {row >> SLOT_BITS for row in self._all("words", clause.expression)}
        return self.slots_everywhere(clause.expression)

    def slots_everywhere(self, expression: str) -> list[int]:
        """The slots that have a row that matches an expression."""
        return numbers(self._sql, SLOTS, (expression,))

    def _listed_terms(self, clause: Clause) -> list[int] | None:
        """`everywhere`, where one of some words will do."""
        found = self._of_terms(((term, 0, _LAST_ROW) for term in clause.alternatives), MOST_LISTED + 1)
        if len(found) > MOST_LISTED:
            return None
        rows = self._kept["words", clause.expression or ""] = sorted(set(found))
        return rows

    def _in_slots_by_term(self, clause: Clause, slots: frozenset[int]) -> list[int]:
        """`in_slots`, where one of some words will do: each is asked for in the slots that have it."""
        found = [
            (term, common, len(having))
            for term, having in self._by_term(clause)
            if (common := slots.intersection(having))
        ]
        if sum(len(common) for _, common, _ in found) > sum(
            1 + many // _SLOTS_A_QUERY for _, _, many in found
        ):
            rows = self._of_terms(((term, 0, _LAST_ROW) for term, _, _ in found), -1)
            return sorted({row for row in rows if row >> SLOT_BITS in slots})
        asked = ((term, *_rows_in(slot)) for term, common, _ in found for slot in common)
        return sorted(set(self._of_terms(asked, -1)))

    def _of_terms(self, ranges: Iterable[tuple[str, int, int]], most: int) -> list[int]:
        """For each (term, first row, last row) the rows that have the term, at most so many (-1: all)."""
        self._ask(ranges)
        select = (
            "SELECT words.rowid AS number FROM temp.asked CROSS JOIN words"
            " WHERE words MATCH asked.term AND words.rowid BETWEEN asked.first AND asked.last LIMIT ?"
        )
        return numbers(self._sql, select, (most,))

    def _by_term(self, clause: Clause) -> list[tuple[str, list[int]]]:
        """(one of the alternatives, the slots that have it)."""
        key = clause.expression or ""
        if key not in self._by_terms:
            self._ask((term, 0, _LAST_ROW) for term in clause.alternatives)
            slots = number_lists(self._sql, SLOTS.replace("?", "asked.term"), "temp.asked")
            self._by_terms[key] = list(zip(clause.alternatives, slots, strict=True))
        return self._by_terms[key]

    def _ask(self, ranges: Iterable[tuple[str, int, int]]) -> None:
        self._sql.execute("DELETE FROM temp.asked")
        self._sql.executemany("INSERT INTO temp.asked VALUES (?, ?, ?)", ranges)

    def _all(self, table: str, expression: str) -> list[int]:
        rows = self._kept.get((table, expression))
        if rows is None:
            select = f"SELECT rowid AS number FROM {table} WHERE {table} MATCH ?"
            rows = self._kept[table, expression] = numbers(self._sql, select, (expression,))
        return rows

    def in_slots(self, clause: Clause, slots: Collection[int]) -> list[int]:
        """The rows of these slots that match, ascending; whether they are in bounds is not looked at."""
        ordered = sorted(slots)
        if clause.expression is None:
            self.read_bits(ordered)
            starts = ((slot << SLOT_BITS, len(self._bits[slot])) for slot in ordered)
            return [row for start, used in starts for row in range(start, start + used)]
        if clause.is_costly and clause.parts:
            return [
                row for slot in ordered for row in self._in_all("words", clause.parts, clause.unwanted, slot)
            ]
        is_known = ("words", clause.expression) in self._kept
        if clause.alternatives and not is_known:
            return self._in_slots_by_term(clause, frozenset(slots))
        if clause.is_costly or is_known:
            rows = self._all("words", clause.expression)
            return [row for slot in ordered for row in _of_slot(rows, slot)]
        return self._asked("words", clause.expression, ordered, at_once=len(ordered) > 2 * FEW_SLOTS)

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

    def _of_part(self, table: str, part: str, slot: int) -> list[int]:
        """The rows of a slot that match."""
        return _of_slot(self._all(table, part), slot)

    def in_said(self, expression: str, slots: Collection[int], parts: Sequence[str] = ()) -> Collection[int]:
        """The rows of these slots that match in the table `said`; maybe rows of other slots too.

        `parts`: what the expression asks for, where that is asked for part by part.
        """
        if is_costly(expression):
            return [row for slot in slots for row in self._in_all("said", parts or (expression,), (), slot)]
        if expression not in self._said:
            self._said[expression] = None
            if " AND " in expression:
                self._said[expression] = self._listed("said", expression, _MOST_SAID)
        known = self._said[expression]
        if known is not None:
            return known
        return self._asked("said", expression, sorted(slots), at_once=False)

    def _asked(self, table: str, expression: str, slots: list[int], *, at_once: bool) -> list[int]:
        """Ask slot by slot, or all of the table at once. A slot without a match costs as much as the way to the
        next match, wherever that is: what matches seldom is asked for at once.
        """
        if at_once:
            self._pick((slot, slot) for slot in slots)
            where = f"rowid >> {SLOT_BITS} IN (SELECT first FROM temp.picked)"
            select = f"SELECT rowid AS number FROM {table} WHERE {table} MATCH ? AND {where}"
        else:
            self._pick(_ranges(slots))
            select = (
                f"SELECT {table}.rowid AS number FROM temp.picked CROSS JOIN {table}"
                f" WHERE {table} MATCH ? AND {table}.rowid BETWEEN picked.first AND picked.last"
            )
        return numbers(self._sql, select, (expression,))

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


def _is_kept(clause: Clause) -> bool:
    """Does FTS5 take so long to find rows of it that all are asked for once and kept?"""
    assert clause.expression is not None
    return clause.is_costly or is_compared(clause.expression)


def _of_slot(rows: list[int], slot: int) -> list[int]:
    start = bisect_left(rows, slot << SLOT_BITS)
    return rows[start : bisect_left(rows, (slot + 1) << SLOT_BITS, start)]


def slot_of(row: int) -> int:
    """The slot that a row is in."""
    return row >> SLOT_BITS


def _rows_in(slot: int) -> tuple[int, int]:
    """(first row, last row) of a slot."""
    return slot << SLOT_BITS, ((slot + 1) << SLOT_BITS) - 1


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
