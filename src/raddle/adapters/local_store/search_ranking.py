"""The order of hits: the best message of each thread by where its words stand, a little by how recent it is.

Only the newest thousand hits are scored, which bounds the cost of a common word; every other thread comes
after them, by its last activity. The order is stable: the next page starts after the last hit of this one,
whatever was added meanwhile.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from raddle.adapters.local_store import search_tokens as tokens
from raddle.adapters.local_store.search_blocks import SLOT_BITS, SLOT_ROWS
from raddle.adapters.local_store.search_clauses import Clause
from raddle.adapters.local_store.search_lookup import Lookup
from raddle.adapters.local_store.search_rows import FEW_SLOTS
from raddle.model.errors import InvalidInput
from raddle.model.threads.query import Query
from raddle.model.threads.search_fields import FIELDS, OUTPUT

SCORED = 1_000
WEIGHTS = (8.0, 6.0, 4.0, 3.0, 2.0)
"""Of the fields, in the order of `FIELDS`."""
HEADER_WEIGHT = 12.0
_DAY = 86_400_000_000
_FRESHNESS = 0.5
"""What being of today adds to a score, as a part of it; halved every `_HALF_LIFE_DAYS`."""
_HALF_LIFE_DAYS = 30.0
_THREADS_AT_ONCE = 32
_FIELD_BITS = (1 << len(FIELDS)) - 1

Key = tuple[int, float, int, str]
"""Sorts hits: scored ones first, by score, then by activity, then by id."""


class Place(NamedTuple):
    """A found thread in the order of hits. `level`: the field of its best message, None where it was not scored."""

    key: Key
    thread: int
    level: int | None

    @property
    def score(self) -> float:
        """0.0 where it was not scored."""
        return -self.key[1]


class Ranking:
    """The threads of a lookup in order, as of `now` (microseconds)."""

    def __init__(self, lookup: Lookup, now: int) -> None:
        self._lookup = lookup
        self._now = now
        self._terms = sum(1 for term in lookup.query.terms if not term.is_negative)
        self.places = self._ranked()

    def page(self, after: Key | None, limit: int) -> list[Place]:
        """The next `limit` places after that key."""
        places = self.places if after is None else [place for place in self.places if place.key > after]
        return places[:limit]

    def _ranked(self) -> list[Place]:
        lookup = self._lookup
        newest = lookup.map.newest_first(lookup.found)
        levels: dict[int, int] = {}
        scored = at = 0
        while at < len(newest) and scored < SCORED:
            some = newest[at : at + _THREADS_AT_ONCE]
            rows = lookup.rows_of(some)
            levels.update(self._levels(rows))
            scored += sum(map(len, rows.values()))
            at += len(some)
        places = [self._place(thread, levels.get(thread)) for thread in newest[:at]]
        places.sort()
        places += [self._place(thread, None) for thread in newest[at:]]
        return places

    def _place(self, thread: int, level: int | None) -> Place:
        entry = self._lookup.map.threads[thread]
        if level is None:
            return Place((1, 0.0, -entry.activity, entry.id), thread, None)
        score = self._weight(thread, level) * (1 + _FRESHNESS * self._freshness(entry.activity))
        return Place((0, -score, -entry.activity, entry.id), thread, level)

    def _weight(self, thread: int, level: int) -> float:
        if not self._terms:
            return 1.0
        covered = self._lookup.found[thread].clause.covered
        return (covered * HEADER_WEIGHT + (self._terms - covered) * WEIGHTS[level]) / self._terms

    def _freshness(self, activity: int) -> float:
        days = max(self._now - activity, 0) / _DAY
        return float(2 ** (-days / _HALF_LIFE_DAYS))

    def _levels(self, rows: dict[int, Sequence[int]]) -> dict[int, int]:
        """For each thread, the heaviest field that has all its words in one of these rows."""
        best = {thread: min(map(self._sure_level, each), default=OUTPUT) for thread, each in rows.items()}
        unsure: dict[Clause, set[int]] = {}
        for thread, each in rows.items():
            clause = self._lookup.found[thread].clause
            if clause.terms:
                better = {row for row in each if self._best_level(row) < best[thread]}
                if better:
                    unsure.setdefault(clause, set()).update(better)
        for clause, some in unsure.items():
            for row, level in self.levels_of(clause, some).items():
                thread = self._lookup.map.slots[row >> SLOT_BITS].thread
                best[thread] = min(best[thread], level)
        return best

    def levels_of(self, clause: Clause, rows: Iterable[int]) -> dict[int, int]:
        """For each row, the level at which all its words are found: in that field and heavier ones together."""
        levels: dict[int, int] = {}
        unsure = set()
        for row in rows:
            sure = self._sure_level(row)
            if sure == self._best_level(row) or not clause.terms:
                levels[row] = sure
            else:
                unsure.add(row)
        for level in range(len(FIELDS) - 1):
            asked = {row for row in unsure if self._fields(row) >> level & 1}
            if not asked:
                continue
            found = asked.intersection(self._rows_within(level, clause, asked))
            levels.update(dict.fromkeys(found, level))
            unsure -= found
        levels.update({row: self._sure_level(row) for row in unsure})
        return levels

    def _rows_within(self, level: int, clause: Clause, rows: set[int]) -> Iterable[int]:
        expression = tokens.within_fields(level + 1, clause.terms)
        slots = {row >> SLOT_BITS for row in rows}
        if len(slots) > FEW_SLOTS:
            everywhere = self._lookup.rows.everywhere(expression)
            if everywhere is not None:
                return everywhere
        return self._lookup.rows.in_slots(expression, slots)

    def _fields(self, row: int) -> int:
        return self._lookup.rows.marks_of(row >> SLOT_BITS)[1][row & (SLOT_ROWS - 1)] & _FIELD_BITS

    def _best_level(self, row: int) -> int:
        """The heaviest field that the row has."""
        fields = self._fields(row)
        return (fields & -fields).bit_length() - 1 if fields else OUTPUT

    def _sure_level(self, row: int) -> int:
        """The lightest field that the row has: no lighter than that are its words."""
        fields = self._fields(row)
        return fields.bit_length() - 1 if fields else OUTPUT

    def best_row(self, thread: int, rows: Sequence[int]) -> int:
        """The row to show for a thread: of the heaviest field, then the newest."""
        clause = self._lookup.found[thread].clause
        if not clause.terms:
            return self._opening_row(thread, rows)
        levels = self.levels_of(clause, rows)
        heaviest = min(levels.values())
        return self._newest([row for row in rows if levels[row] == heaviest])

    def _opening_row(self, thread: int, rows: Sequence[int]) -> int:
        """The header has all that was asked for: a message that says it too, else the first thing the user said."""
        wanted = self._lookup.any_term
        if wanted:
            slots = {row >> SLOT_BITS for row in rows}
            saying = set(rows).intersection(self._lookup.rows.in_slots(wanted, slots))
            if saying:
                levels = self.levels_of(self._lookup.found[thread].clause._replace(terms=wanted), saying)
                heaviest = min(levels.values())
                return self._newest([row for row in sorted(saying) if levels[row] == heaviest])
        users = [row for row in rows if self._fields(row) & 1]
        return min(users or rows, key=lambda row: (self._order(row), row))

    def _order(self, row: int) -> int:
        return self._lookup.rows.marks_of(row >> SLOT_BITS)[0][row & (SLOT_ROWS - 1)]

    def _newest(self, rows: Sequence[int]) -> int:
        """The row of the greatest (order, message id); ids are read only where orders are equal."""
        newest = max(map(self._order, rows))
        last = [row for row in rows if self._order(row) == newest]
        if len(last) == 1:
            return last[0]
        return max(self._lookup.rows.texts(last), key=lambda pair: pair[1].id)[0]


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Where a page ended: `now` of its first page (scores are of that moment), the key of its last hit, and a
    check that it is used with the query it was made for."""

    now: int
    key: Key
    check: int


def check_of(query: Query) -> int:
    """A short mark of what a query asks for."""
    return zlib.crc32(msgspec.msgpack.encode((query.terms, query.filters)))


def format_cursor(cursor: Cursor) -> str:
    """Opaque text, safe in a URL."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(cursor)).decode().rstrip("=")


def parse_cursor(text: str, query: Query) -> Cursor:
    """The cursor; InvalidInput where `text` is none, or is of another query."""
    try:
        padded = text + "=" * (-len(text) % 4)
        cursor = msgspec.msgpack.decode(
            base64.b64decode(padded.encode(), altchars=b"-_", validate=True), type=Cursor
        )
    except (ValueError, binascii.Error, msgspec.DecodeError) as error:
        raise InvalidInput(
            f"{text[:40]!r} is not a cursor", "leave it out to begin at the first page"
        ) from error
    if cursor.check != check_of(query):
        raise InvalidInput("this cursor belongs to another query", "leave it out to begin at the first page")
    return cursor
