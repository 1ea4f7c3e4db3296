"""Which threads and which messages a query finds: all of them, whatever is shown in the end.

The plain meaning of it is `query_match.hits`; the property tests hold the two equal.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from raddle.adapters.local_store import search_tokens as tokens
from raddle.adapters.local_store.search_book import Book
from raddle.adapters.local_store.search_clauses import Clause, Clauses, Compiler, fact_of, is_fact
from raddle.adapters.local_store.search_map import ThreadMap
from raddle.adapters.local_store.search_rows import FEW_SLOTS, Bounds, Rows, slot_of
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
from raddle.model.threads.reach import Reach

SCORED = 1_000
"""So many hits, of the newest threads, are ranked."""
_PARTIAL = tokens.any_in_texts([tokens.PARTIAL])
_FLAG_BITS = {"pinned": PINNED, "private": PRIVATE, "archived": ARCHIVED}


class _Asked(NamedTuple):
    """Where a clause looks: in these slots (None: all), in the threads wanted (None: all) and not unwanted."""

    slots: set[int] | None
    wanted: frozenset[int] | None
    unwanted: frozenset[int]

    def of(self, threads: set[int]) -> set[int]:
        """Those of the threads that it looks at."""
        kept = threads if self.wanted is None else threads & self.wanted
        return kept - self.unwanted if self.unwanted else kept


class Lookup:
    """One query against one state of the index. `found` holds every thread with a hit, and the clause it fits.

    Without `asks_messages`, only the filters on threads are looked at: `allowed`.
    """

    def __init__(
        self,
        sql: sqlite3.Connection,
        threads: ThreadMap,
        book: Book,
        query: Query,
        *,
        include_private: bool = True,
        within: Reach | None = None,
        asks_messages: bool = True,
    ) -> None:
        self.query = query
        self.map = threads
        self._compiler = Compiler(sql, book, threads.thread_of)
        self._bounds = _bounds_of(query)
        self.rows = Rows(sql, threads, self._bounds)
        self.is_complete = True
        self.allowed = self._allowed(include_private=include_private, within=within)
        """Threads that the filters on threads leave; None: all."""
        self.found: dict[int, Clause] = {}
        self._listed: dict[int, Sequence[int]] = {}
        self._checked = 0
        if asks_messages and self.allowed != frozenset() and not _contradicts_itself(query):
            self._find()

    @property
    def threads_looked_at(self) -> int:
        """How many threads the filters left to look at."""
        return len(self.map) if self.allowed is None else len(self.allowed)

    @property
    def partly_known(self) -> int:
        """How many messages it looked at are longer than what is searched of them."""
        slots = set(self.rows.slots_everywhere(_PARTIAL))
        threads = self._threads_of(slots).intersection(self.map)
        if self.allowed is not None:
            threads &= self.allowed
        slots = {slot for slot in slots if self.map.thread_of.get(slot) in threads}
        return len(self.rows.matching(Clause(_PARTIAL), slots)) if slots else 0

    @property
    def any_term(self) -> Clause | None:
        """The clause for messages that have any of the words asked for; None where FTS5 cannot say."""
        return self._compiler.any_of(self.query)

    def rows_of(self, threads: Collection[int]) -> dict[int, Sequence[int]]:
        """The rows of hits in these found threads, ascending."""
        waiting: dict[Clause, list[int]] = {}
        for thread in threads:
            if thread not in self._listed:
                waiting.setdefault(self.found[thread], []).extend(self.map.slots_of[thread])
        for clause, slots in waiting.items():
            self._listed.update(self._by_thread(self.rows.matching(clause, slots)))
        return {thread: self._listed[thread] for thread in threads}

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
        asked = _Asked(slots, threads, dropped if clause.threads is not None else dropped | clauses.grouped)
        rows = None
        if slots is not None and len(slots) <= FEW_SLOTS:
            rows = self.rows.in_slots(clause, slots)
        elif clause.expression is not None and not (clause.is_costly and clause.parts):
            rows = self.rows.everywhere(clause)
            if rows is None and slots is not None and len(slots) <= 2 * FEW_SLOTS and not clause.is_costly:
                rows = self.rows.in_slots(clause, slots)
        if rows is not None:
            self._take_rows(clause, asked, rows)
        else:
            self._take_slots(clause, asked)

    def _threads_for(self, clause: Clause) -> frozenset[int] | None:
        """The threads that the clause may find hits in; None: all."""
        if clause.threads is None:
            return self.allowed
        return clause.threads if self.allowed is None else clause.threads & self.allowed

    def _slots_to_ask(self, threads: frozenset[int] | None) -> set[int] | None:
        """The slots of `threads` that can have a row in bounds; None where that is no restriction."""
        bounds = self._bounds
        if threads is None:
            return (
                {slot for slot, entry in self.map.slots.items() if bounds.may_hold(entry)}
                if bounds.matter
                else None
            )
        slots = (slot for each in threads for slot in self.map.slots_of.get(each, ()))
        return (
            {slot for slot in slots if bounds.may_hold(self.map.slots[slot])} if bounds.matter else set(slots)
        )

    def _take_rows(self, clause: Clause, asked: _Asked, rows: list[int]) -> None:
        """All rows that match: hits where they are in bounds and their texts fit."""
        if not clause.checks:
            rows = self.rows.checked(clause, rows)
        by_thread = self._by_thread(rows)
        threads = asked.of(set(by_thread))
        if clause.checks:
            for thread in self.map.newest_first(threads):
                self._take_checked(clause, thread, by_thread[thread])
        else:
            self.found.update(dict.fromkeys(threads, clause))
            self._listed.update((thread, by_thread[thread]) for thread in threads)

    def _take_checked(self, clause: Clause, thread: int, rows: list[int]) -> None:
        """Rows of one thread, whose texts have to be read; newest threads come first, and their cost has a bound."""
        if clause.is_bounded and self.rows.is_exhausted:
            self.is_complete = False
            return
        if self._checked >= SCORED:
            # Past those that are scored, one hit makes the thread found; the others are looked for when it is shown.
            if self.rows.has_any(clause, rows):
                self.found[thread] = clause
        else:
            rows = self.rows.checked(clause, rows)
            self._checked += len(rows)
            self._put(clause, thread, rows)
        if clause.is_bounded and self.rows.is_exhausted:
            self.is_complete = False

    def _put(self, clause: Clause, thread: int, rows: Sequence[int]) -> None:
        if rows:
            self.found[thread] = clause
            self._listed[thread] = rows

    def _take_slots(self, clause: Clause, asked: _Asked) -> None:
        """Too many rows to list: their slots, which are hits where the whole slot is in bounds, else looked into."""
        slots: Collection[int] = self.map.thread_of
        if asked.slots is not None and clause.is_costly and clause.parts:
            slots = self.rows.slots_of_parts(clause, asked.slots)
        elif clause.expression is not None:
            slots = self.rows.slots_of(clause)
        if asked.slots is not None:
            slots = asked.slots.intersection(slots)
        unsure = self.rows.unsure(slots)
        threads = asked.of(self._threads_of(slots))
        if clause.checks:
            for thread in self.map.newest_first(threads):
                self._take_checked(clause, thread, self.rows.in_slots(clause, self.map.slots_of[thread]))
            return
        if unsure:
            certain = self._threads_of(slot for slot in slots if slot not in unsure)
            left = [
                slot for slot in unsure if (of := self.map.thread_of[slot]) in threads and of not in certain
            ]
            held = self._by_thread(self.rows.matching(clause, left)) if left else ()
            threads = {thread for thread in threads if thread in certain or thread in held}
        self.found.update(dict.fromkeys(threads, clause))

    def _threads_of(self, slots: Iterable[int]) -> set[int]:
        threads = set(map(self.map.thread_of.get, slots))
        threads.discard(None)  # of an import that has not yet said what it is
        return threads  # type: ignore[return-value]

    def _by_thread(self, rows: Iterable[int]) -> dict[int, list[int]]:
        by_thread: dict[int, list[int]] = {}
        thread_of = self.map.thread_of
        for slot, some in groupby(rows, key=slot_of):
            thread = thread_of.get(slot)
            if thread is not None:
                by_thread.setdefault(thread, []).extend(some)
        return by_thread

    def _allowed(self, *, include_private: bool, within: Reach | None) -> frozenset[int] | None:
        """The threads that the filters on threads, and the asker's rights, leave; None: all."""
        allowed = None if within is None else self._compiler.threads_within(within)
        filters = [one for one in self.query.filters if is_of_thread(one)]
        if not include_private:
            filters.append(FlagFilter(text="", flag="private", is_negative=True))
        everything = frozenset(self.map) if filters else frozenset()
        for one in filters:
            fitting = self._fitting(one)
            left = everything - fitting if one.is_negative else fitting & everything
            allowed = left if allowed is None else allowed & left
        return allowed

    def _fitting(self, one: Filter) -> frozenset[int]:
        if isinstance(one, FlagFilter):
            return self.map.with_flag(_FLAG_BITS[one.flag])
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
        entries, thread_of = self.map.slots, self.map.thread_of
        slots = set(entries)
        if clause.expression is not None:
            slots.intersection_update(rows.slots_everywhere(clause.expression))
        slots = {slot for slot in slots if bounds.may_hold(entries[slot])}
        sure = {slot for slot in slots if bounds.surely_hold(entries[slot])}
        found = {thread_of[slot] for slot in sure}
        unsure = slots - sure
        found.update(thread_of[slot_of(row)] for row in rows.matching(clause, unsure) if unsure)
        return found


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
