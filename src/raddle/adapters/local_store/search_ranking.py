"""The order of hits: the best message of each thread by where its words stand, a little by how recent it is.

Only the newest thousand hits are scored, which bounds the cost of a common word; every other thread comes
after them, by its last activity. The order is stable: the next page starts after the last hit of this one,
whatever was added meanwhile.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

import msgspec

from raddle.adapters.local_store import search_tokens as tokens
from raddle.adapters.local_store.search_blocks import SLOT_BITS, SLOT_ROWS
from raddle.adapters.local_store.search_clauses import Clause
from raddle.adapters.local_store.search_lookup import Lookup
from raddle.model.errors import InvalidInput
from raddle.model.threads.query import Query
from raddle.model.threads.search_fields import ASSISTANT, FIELDS, OUTPUT, THINKING, USER

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
    """A found thread in the order of hits."""

    key: Key
    thread: int

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
        self._known: dict[int, int] = {}
        """Row -> level, where it had to be asked for."""
        self._scored, self._others = self._ranked()

    def page(self, after: Key | None, limit: int) -> tuple[list[Place], bool]:
        """The next `limit` places after that key, and whether more come after them."""
        scored = self._scored if after is None else [place for place in self._scored if place.key > after]
        page = scored[:limit]
        others = self._others
        if after is not None and after[0] == 1:
            others = others[bisect_right(others, after, key=self._plain_key) :]
        rest = others[: limit - len(page)]
        page += [Place(self._plain_key(thread), thread) for thread in rest]
        return page, len(scored) + len(others) > len(page)

    def _ranked(self) -> tuple[list[Place], list[int]]:
        """The newest threads, scored, best first; the others by their activity."""
        lookup = self._lookup
        newest = lookup.map.newest_first(lookup.found)
        rows: dict[int, Sequence[int]] = {}
        scored = at = 0
        while at < len(newest) and scored < SCORED:
            some = lookup.rows_of(newest[at : at + self._step(newest, at)])
            rows.update(some)
            scored += sum(map(len, some.values()))
            at += len(some)
        places = [self._place(thread, level) for thread, level in self._levels(rows).items()]
        return sorted(places), newest[at:]

    def _step(self, newest: Sequence[int], at: int) -> int:
        """How many threads to ask about at once: a costly expression is not asked again for every few."""
        if not self._lookup.found[newest[at]].is_costly:
            return _THREADS_AT_ONCE
        known = takewhile(self._lookup.is_listed, islice(newest, at, None))
        return sum(1 for _ in known) or max(_THREADS_AT_ONCE * 16, len(newest) // 4)

    def _place(self, thread: int, level: int) -> Place:
        entry = self._lookup.map.threads[thread]
        score = self._weight(thread, level) * (1 + _FRESHNESS * self._freshness(entry.activity))
        return Place((0, -score, -entry.activity, entry.id), thread)

    def _plain_key(self, thread: int) -> Key:
        entry = self._lookup.map.threads[thread]
        return (1, 0.0, -entry.activity, entry.id)

    def _weight(self, thread: int, level: int) -> float:
        if not self._terms:
            return 1.0
        covered = self._lookup.found[thread].covered
        return (covered * HEADER_WEIGHT + (self._terms - covered) * WEIGHTS[level]) / self._terms

    def _freshness(self, activity: int) -> float:
        days = max(self._now - activity, 0) / _DAY
        return float(2 ** (-days / _HALF_LIFE_DAYS))

    def _levels(self, rows: dict[int, Sequence[int]]) -> dict[int, int]:
        """For each thread, the heaviest field that has all its words in one of these rows."""
        self._lookup.rows.read_bits(row >> SLOT_BITS for each in rows.values() for row in each)
        best: dict[int, int] = {}
        asked: dict[Clause, list[int]] = {}
        for thread, each in rows.items():
            clause = self._lookup.found[thread]
            fields = [self._fields(row) for row in each]
            best[thread] = min((_lightest(one) for one in fields), default=OUTPUT)
            if clause.said:
                # What cannot be better than another is not asked about.
                unsure = (
                    row
                    for row, one in zip(each, fields, strict=True)
                    if tokens.is_mixed(one) and _heaviest(one) < best[thread]
                )
                asked.setdefault(clause, []).extend(unsure)
        for clause, some in asked.items():
            self._settle(clause, some)
            for row in some:
                thread = self._lookup.map.thread_of[row >> SLOT_BITS]
                best[thread] = min(best[thread], self._known[row])
        return best

    def _settle(self, clause: Clause, rows: Iterable[int]) -> None:
        """Find the level of each of these rows: what was said has all its words, or what was said and thought."""
        unsure = {row for row in rows if row not in self._known}
        for expression, bits in ((clause.said, 1 << USER | 1 << ASSISTANT), (clause.thought, 1 << THINKING)):
            asked = {
                row for row in unsure if self._fields(row) & bits and _lightest(self._fields(row)) >= THINKING
            }
            if asked:
                found = asked.intersection(
                    self._lookup.rows.in_said(expression, {row >> SLOT_BITS for row in asked})
                )
                self._known.update((row, _heaviest(self._fields(row) & bits)) for row in found)
                unsure -= found
        self._known.update((row, _lightest(self._fields(row))) for row in unsure)

    def _fields(self, row: int) -> int:
        return self._lookup.rows.bits_of(row) & _FIELD_BITS

    def _level(self, row: int) -> int:
        known = self._known.get(row)
        return _lightest(self._fields(row)) if known is None else known

    def best_rows(self, rows: dict[int, Sequence[int]]) -> dict[int, int]:
        """The row to show for each thread: of the heaviest field, then the newest."""
        self._lookup.rows.read_bits(row >> SLOT_BITS for each in rows.values() for row in each)
        asked: dict[Clause, list[int]] = {}
        for thread, each in rows.items():
            clause = self._lookup.found[thread]
            if clause.said:
                asked.setdefault(clause, []).extend(row for row in each if tokens.is_mixed(self._fields(row)))
        for clause, some in asked.items():
            self._settle(clause, some)
        saying = self._saying(
            [row for thread, each in rows.items() if not self._lookup.found[thread].said for row in each]
        )
        return {thread: self._best_row(thread, each, saying) for thread, each in rows.items()}

    def _saying(self, rows: Sequence[int]) -> set[int]:
        """Those of the rows that have any of the words asked for, their levels settled."""
        clause = self._lookup.any_term if rows else None
        if clause is None:
            return set()
        if clause.is_costly:  # not worth asking once more: what has all of the words is known already
            return self._lookup.near.intersection(rows)
        slots = {row >> SLOT_BITS for row in rows}
        found = set(rows).intersection(self._lookup.rows.in_slots(clause.expression, slots, is_costly=False))
        self._settle(clause, (row for row in found if tokens.is_mixed(self._fields(row))))
        return found

    def _best_row(self, thread: int, rows: Sequence[int], saying: set[int]) -> int:
        if not self._lookup.found[thread].said:
            # The header has all that was asked for: a message that says it too, else the first thing the user said.
            rows = [row for row in rows if row in saying] or rows
            if rows[0] not in saying:
                users = [row for row in rows if self._fields(row) & 1]
                return min(users or rows, key=lambda row: (self._order(row), row))
        heaviest = min(map(self._level, rows))
        return self._newest([row for row in rows if self._level(row) == heaviest])

    def _order(self, row: int) -> int:
        return self._lookup.rows.orders_of(row >> SLOT_BITS)[row & (SLOT_ROWS - 1)]

    def _newest(self, rows: Sequence[int]) -> int:
        """The row of the greatest (order, message id); ids are read only where orders are equal."""
        newest = max(map(self._order, rows))
        last = [row for row in rows if self._order(row) == newest]
        if len(last) == 1:
            return last[0]
        return max(self._lookup.rows.texts(last), key=lambda pair: pair[1].id)[0]


def _heaviest(fields: int) -> int:
    return (fields & -fields).bit_length() - 1 if fields else OUTPUT


def _lightest(fields: int) -> int:
    return fields.bit_length() - 1 if fields else OUTPUT


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
