"""The order of hits: the best message of each thread by where its words stand, a little by how recent it is.

Only the newest thousand hits are scored, which bounds the cost of a common word; every other thread comes
after them, by its last activity. The order is stable: the next page starts after the last hit of this one,
whatever was added meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from raddle.adapters.local_store.search_blocks import FIELD_BITS, SLOT_BITS, SLOT_ROWS
from raddle.adapters.local_store.search_clauses import Clause
from raddle.adapters.local_store.search_lookup import SCORED, Lookup
from raddle.model.threads.search_fields import ASSISTANT, OUTPUT, THINKING, USER, is_mixed
from raddle.model.threads.search_order import Key, Place, heaviest_of, key_of, lightest_of, score_of

_THREADS_AT_ONCE = 32
_LIGHTEST = [lightest_of(fields) for fields in range(FIELD_BITS + 1)]
_MIXED = {fields for fields in range(FIELD_BITS + 1) if is_mixed(fields)}
"""By the fields of a message, as bits: its lightest one; whether it has to be asked which of them has a word."""


class Ranking:
    """The threads of a lookup in order, as of `now` (microseconds)."""

    def __init__(self, lookup: Lookup, now: int) -> None:
        self._lookup = lookup
        self._now = now
        self._terms = sum(1 for term in lookup.query.terms if not term.is_negative)
        self._known: dict[int, int] = {}
        """Row -> level, where it had to be asked for."""
        self._batch = _THREADS_AT_ONCE
        self._scored = self._ranked()

    def page(self, after: Key | None, limit: int) -> tuple[list[Place], bool]:
        """The next `limit` places after that key, and whether more come after them."""
        scored = self._scored if after is None else [place for place in self._scored if place.key > after]
        page = scored[:limit]
        if len(self._scored) == len(self._lookup.found):
            return page, len(scored) > len(page)
        wanted = limit + 1 - len(page)
        others = islice(self._others(None if after is None or after[0] == 0 else after), wanted)
        page += others
        return page[:limit], len(page) > limit

    def _others(self, after: Key | None) -> Iterator[Place]:
        """The places past the newest thousand hits, in order, after that key."""
        scored = {place.thread for place in self._scored}
        for thread in self._lookup.map.newest_first(self._lookup.found):
            if thread not in scored:
                entry = self._lookup.map[thread]
                key = key_of(entry.activity, entry.id)
                if after is None or key > after:
                    yield Place(key, thread)

    def _ranked(self) -> list[Place]:
        """The threads with the newest thousand hits, scored, best first."""
        rows: dict[int, Sequence[int]] = {}
        scored = 0
        for some in self._batches():
            listed = self._lookup.rows_of(some)
            rows.update(listed)
            scored += sum(map(len, listed.values()))
            if scored >= SCORED:
                break
            self._batch = max(_THREADS_AT_ONCE, (SCORED - scored) * len(rows) // scored)
        return sorted(self._place(thread, level) for thread, level in self._levels(rows).items())

    def _batches(self) -> Iterator[list[int]]:
        """The found threads, the newest first, as many at once as are likely to be needed."""
        lookup = self._lookup
        batch: list[int] = []
        for thread in lookup.map.newest_first(lookup.found):
            if len(batch) >= self._batch:
                yield batch
                batch = []
            batch.append(thread)
        if batch:
            yield batch

    def _place(self, thread: int, level: int) -> Place:
        entry = self._lookup.map[thread]
        covered = self._lookup.found[thread].covered
        score = score_of(terms=self._terms, covered=covered, level=level, age=self._now - entry.activity)
        return Place(key_of(entry.activity, entry.id, score=score), thread)

    def _levels(self, rows: dict[int, Sequence[int]]) -> dict[int, int]:
        """For each thread, the heaviest field that has all its words in one of these rows."""
        best: dict[int, int] = {}
        asked: dict[Clause, list[int]] = {}
        fields_of = self._lookup.rows.fields_of([row for each in rows.values() for row in each])
        for thread, each in rows.items():
            clause = self._lookup.found[thread]
            fields = {fields_of[row] for row in each}
            lightest = best[thread] = min((_LIGHTEST[one] for one in fields), default=OUTPUT)
            # What cannot be better than another is not asked about.
            better = {one for one in fields & _MIXED if heaviest_of(one) < lightest}
            if better and clause.said:
                asked.setdefault(clause, []).extend(row for row in each if fields_of[row] in better)
        for clause, some in asked.items():
            self._settle(clause, some)
            for row in some:
                thread = self._lookup.map.thread_of[row >> SLOT_BITS]
                best[thread] = min(best[thread], self._known[row])
        return best

    def _settle(self, clause: Clause, rows: Iterable[int]) -> None:
        """Find the level of each of these rows: what was said has all its words, or what was thought, or neither."""
        unsure = {row for row in rows if row not in self._known}
        for expression, parts, bits in (
            (clause.said, clause.said_parts, 1 << USER | 1 << ASSISTANT),
            (clause.thought, clause.thought_parts, 1 << THINKING),
        ):
            # Only what has a field of these, and a lighter one.
            fields = ((row, self._fields(row)) for row in unsure)
            asked = {row for row, one in fields if one & bits and one > bits}
            if asked:
                found = asked.intersection(
                    self._lookup.rows.in_said(expression, {row >> SLOT_BITS for row in asked}, parts)
                )
                self._known.update((row, heaviest_of(self._fields(row) & bits)) for row in found)
                unsure -= found
        self._known.update((row, _LIGHTEST[self._fields(row)]) for row in unsure)

    def _fields(self, row: int) -> int:
        return self._lookup.rows.bits_of(row) & FIELD_BITS

    def best_rows(self, rows: dict[int, Sequence[int]]) -> dict[int, int]:
        """The row to show for each thread: of the heaviest field, then the newest."""
        fields = self._lookup.rows.fields_of([row for each in rows.values() for row in each])
        asked: dict[Clause, list[int]] = {}
        for thread, each in rows.items():
            clause = self._lookup.found[thread]
            if clause.said:
                asked.setdefault(clause, []).extend(row for row in each if fields[row] in _MIXED)
        for clause, some in asked.items():
            self._settle(clause, some)
        saying = self._saying(
            [row for thread, each in rows.items() if not self._lookup.found[thread].said for row in each]
        )
        levels = {row: _LIGHTEST[one] for row, one in fields.items()} | self._known
        return {thread: self._best_row(thread, each, saying, levels) for thread, each in rows.items()}

    def _saying(self, rows: Sequence[int]) -> set[int]:
        """Those of the rows that have any of the words asked for, their levels settled."""
        clause = self._lookup.any_term if rows else None
        if clause is None:
            return set()
        slots = {row >> SLOT_BITS for row in rows}
        found = set(rows).intersection(self._lookup.rows.in_slots(clause, slots))
        self._settle(clause, (row for row in found if self._fields(row) in _MIXED))
        return found

    def _best_row(self, thread: int, rows: Sequence[int], saying: set[int], levels: Mapping[int, int]) -> int:
        if not self._lookup.found[thread].said:
            # The header has all that was asked for: a message that says it too, else the first thing the user said.
            rows = [row for row in rows if row in saying] or rows
            if rows[0] not in saying:
                users = [row for row in rows if self._fields(row) & 1]
                return self._at_end(users or rows, min)
        heaviest = min(map(levels.__getitem__, rows))
        return self._at_end([row for row in rows if levels[row] == heaviest], max)

    def _order(self, row: int) -> int:
        return self._lookup.rows.orders_of(row >> SLOT_BITS)[row & (SLOT_ROWS - 1)]

    def _at_end(self, rows: Sequence[int], end: Callable[..., Any]) -> int:
        """The row of the greatest (`max`) or least (`min`) order and message id; ids are read only on a tie."""
        order = end(map(self._order, rows))
        tied = [row for row in rows if self._order(row) == order]
        if len(tied) == 1:
            return tied[0]
        row, _ = end(self._lookup.rows.texts(tied), key=lambda pair: pair[1].id)
        return int(row)
