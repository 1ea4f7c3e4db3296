"""Which threads and which messages a query finds: all of them, whatever is shown in the end.

The plain meaning of it is `query_match.hits`; the property tests hold the two equal.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from raddle.adapters.local_store.search_blocks import SLOT_BITS
from raddle.adapters.local_store.search_book import Book
from raddle.adapters.local_store.search_clauses import Clause, Clauses, Compiler, fact_of, is_fact
from raddle.adapters.local_store.search_map import ThreadMap
from raddle.adapters.local_store.search_rows import FEW_SLOTS, Bounds, Rows
from raddle.adapters.local_store.search_writer import ARCHIVED, PINNED, PRIVATE
from raddle.model.threads.query import (
    Filter,
    FlagFilter,
    NameFilter,
    Query,
    ShaFilter,
    TimeFilter,
    is_of_thread,
)

_FLAG_BITS = {"pinned": PINNED, "private": PRIVATE, "archived": ARCHIVED}


class ThreadHits(NamedTuple):
    """The hits of one thread: the clause they fit, the slots they are in, the rows where those were listed."""

    clause: Clause
    slots: Sequence[int]
    rows: Sequence[int] | None


class Lookup:
    """One query against one state of the index. `found` holds every thread with a hit, by its number."""

    def __init__(
        self,
        sql: sqlite3.Connection,
        threads: ThreadMap,
        book: Book,
        query: Query,
        *,
        include_private: bool = True,
    ) -> None:
        self.query = query
        self.map = threads
        self._compiler = Compiler(sql, book)
        self.rows = Rows(sql, threads, _bounds_of(query))
        self._bounds = _bounds_of(query)
        self.is_complete = True
        self.allowed = self._allowed(include_private=include_private)
        """Threads that the filters on threads leave; None: all."""
        self.found: dict[int, ThreadHits] = {}
        if self.allowed != frozenset() and not _contradicts_itself(query):
            self._find()

    @property
    def threads_looked_at(self) -> int:
        """How many threads the filters left to look at."""
        return len(self.map.threads) if self.allowed is None else len(self.allowed)

    @property
    def any_term(self) -> str:
        """The expression for messages that have any of the words asked for; empty where FTS5 cannot say."""
        return self._compiler.any_of(self.query)

    def rows_of(self, threads: Collection[int]) -> dict[int, Sequence[int]]:
        """The rows of hits in these found threads, ascending."""
        listed: dict[int, Sequence[int]] = {}
        waiting: dict[Clause, list[int]] = {}
        for thread in threads:
            hits = self.found[thread]
            if hits.rows is not None:
                listed[thread] = hits.rows
            else:
                waiting.setdefault(hits.clause, []).extend(hits.slots)
        for clause, slots in waiting.items():
            listed.update(self._by_thread(self.rows.matching(clause, slots)))
        return listed

    def _find(self) -> None:
        clauses = self._compiler.clauses(self.query)
        dropped = self._dropped() | clauses.forbidden
        for clause in clauses.clauses:
            self._find_clause(clause, clauses, dropped)

    def _find_clause(self, clause: Clause, clauses: Clauses, dropped: frozenset[int]) -> None:
        threads = self._threads_for(clause)
        slots = self._slots_to_ask(threads)
        if slots is not None and not slots:
            return
        rows = None
        if slots is not None and len(slots) <= FEW_SLOTS:
            rows = self.rows.in_slots(clause.expression, slots)
        elif clause.expression is not None:
            rows = self.rows.everywhere(clause.expression)
        wanted = self.map.threads.keys() if threads is None else threads
        unwanted = dropped if clause.threads is not None else dropped | clauses.grouped
        if rows is not None:
            rows = [row for row in rows if (of := self.map.thread_of(row)) in wanted and of not in unwanted]
            self._take_rows(clause, rows)
            return
        entries = self.map.slots
        hit = entries if clause.expression is None else self.rows.slots_everywhere(clause.expression)
        self._take_slots(
            clause,
            [
                slot
                for slot in hit
                if slot in entries
                and (slots is None or slot in slots)
                and (of := entries[slot].thread) in wanted
                and of not in unwanted
            ],
        )

    def _threads_for(self, clause: Clause) -> frozenset[int] | None:
        """The threads that the clause may find hits in; None: all."""
        if clause.threads is None or self.allowed is None:
            return self.allowed if clause.threads is None else clause.threads
        return clause.threads & self.allowed

    def _slots_to_ask(self, threads: frozenset[int] | None) -> set[int] | None:
        """The slots of `threads` that can have a row in bounds; None where that is no restriction."""
        bounds = self._bounds
        if threads is None and not bounds.is_timed and not bounds.is_removed:
            return None
        entries = self.map.slots
        slots = (
            entries
            if threads is None
            else [slot for each in threads for slot in self.map.slots_of.get(each, ())]
        )
        return {slot for slot in slots if bounds.may_hold(entries[slot])}

    def _take_rows(self, clause: Clause, rows: list[int]) -> None:
        if clause.checks:
            by_thread = self._by_thread(rows)
            for thread in self.map.newest_first(by_thread.keys()):
                self._take_checked(clause, by_thread[thread])
        else:
            self._put(clause, self.rows.checked(clause, rows))

    def _take_checked(self, clause: Clause, rows: Iterable[int]) -> None:
        """Rows of one thread, whose texts have to be read; newest threads come first, and their cost has a bound."""
        if clause.is_bounded and self.rows.is_exhausted:
            self.is_complete = False
            return
        self._put(clause, self.rows.checked(clause, rows))
        if clause.is_bounded and self.rows.is_exhausted:
            self.is_complete = False

    def _put(self, clause: Clause, rows: list[int]) -> None:
        for thread, each in self._by_thread(rows).items():
            slots = list(dict.fromkeys(row >> SLOT_BITS for row in each))
            self.found[thread] = ThreadHits(clause, slots, each)

    def _take_slots(self, clause: Clause, slots: list[int]) -> None:
        """Slots with rows that match: known to be hits where the whole slot is in bounds, else looked into."""
        entries, bounds = self.map.slots, self._bounds
        if clause.checks:
            threads: dict[int, list[int]] = {}
            for slot in slots:
                threads.setdefault(entries[slot].thread, []).append(slot)
            for thread in self.map.newest_first(threads.keys()):
                if clause.is_bounded and self.rows.is_exhausted:
                    self.is_complete = False
                    break
                self._take_checked(clause, self.rows.in_slots(clause.expression, threads[thread]))
            return
        unsure = [slot for slot in slots if not bounds.surely_hold(entries[slot])]
        held = {row >> SLOT_BITS for row in self.rows.matching(clause, unsure)} if unsure else set()
        held.update(slot for slot in slots if entries[slot].live and bounds.surely_hold(entries[slot]))
        by_thread: dict[int, list[int]] = {}
        for slot in sorted(held):
            by_thread.setdefault(entries[slot].thread, []).append(slot)
        self.found.update((thread, ThreadHits(clause, each, None)) for thread, each in by_thread.items())

    def _by_thread(self, rows: Iterable[int]) -> dict[int, list[int]]:
        by_thread: dict[int, list[int]] = {}
        for row in rows:
            by_thread.setdefault(self.map.slots[row >> SLOT_BITS].thread, []).append(row)
        return by_thread

    def _allowed(self, *, include_private: bool) -> frozenset[int] | None:
        """The threads that the filters on threads, and the asker's rights, leave; None: all."""
        allowed: frozenset[int] | None = None
        everything = frozenset(self.map.threads)
        filters = [one for one in self.query.filters if is_of_thread(one)]
        if not include_private:
            filters.append(FlagFilter(text="", flag="private", is_negative=True))
        for one in filters:
            fitting = self._fitting(one)
            left = everything - fitting if one.is_negative else fitting & everything
            allowed = left if allowed is None else allowed & left
        return allowed

    def _fitting(self, one: Filter) -> frozenset[int]:
        if isinstance(one, FlagFilter):
            bit = _FLAG_BITS[one.flag]
            return frozenset(number for number, entry in self.map.threads.items() if entry.flags & bit)
        assert isinstance(one, NameFilter | ShaFilter)
        return self._compiler.threads_named(one)

    def _dropped(self) -> frozenset[int]:
        """The threads with a message that a negative filter on messages fits."""
        dropped: set[int] = set()
        for one in self.query.filters:
            if not one.is_negative or is_of_thread(one):
                continue
            if isinstance(one, TimeFilter):
                bounds = self._bounds._replace(
                    start=one.at if one.is_after else None, end=None if one.is_after else one.at
                )
                dropped |= self._threads_with(Clause(None), bounds)
            elif is_fact(one):
                dropped |= self._threads_with(
                    Clause(fact_of(one)), self._bounds._replace(start=None, end=None)
                )
        return frozenset(dropped)

    def _threads_with(self, clause: Clause, bounds: Bounds) -> set[int]:
        """The threads with a row in `bounds` that the clause matches."""
        rows = self.rows.within(bounds)
        entries = self.map.slots
        slots = entries if clause.expression is None else rows.slots_everywhere(clause.expression)
        slots = [slot for slot in slots if slot in entries and bounds.may_hold(entries[slot])]
        unsure = [slot for slot in slots if not bounds.surely_hold(entries[slot])]
        threads = {entries[slot].thread for slot in slots if bounds.surely_hold(entries[slot])}
        threads.update(entries[row >> SLOT_BITS].thread for row in rows.matching(clause, unsure))
        return threads


def _bounds_of(query: Query) -> Bounds:
    moments = [one for one in query.filters if isinstance(one, TimeFilter) and not one.is_negative]
    return Bounds(
        start=max((one.at for one in moments if one.is_after), default=None),
        end=min((one.at for one in moments if not one.is_after), default=None),
        is_removed=any(_is_removal(one) and not one.is_negative for one in query.filters),
    )


def _contradicts_itself(query: Query) -> bool:
    return len({one.is_negative for one in query.filters if _is_removal(one)}) == 2


def _is_removal(one: Filter) -> bool:
    return isinstance(one, FlagFilter) and one.flag == "removed"
