"""The order of hits on the server: as on a machine of one's own, and the page that is shown.

Only the newest hits are scored, which bounds the cost of a common word; every other thread comes after them, by its
last activity. The order is stable: the next page starts after the last hit of this one, whatever was added meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from raddle.adapters.local_store.search_cursor import Key
from raddle.adapters.local_store.search_ranking import HEADER_WEIGHT, WEIGHTS
from raddle.model.threads.query import Term
from raddle.model.threads.search_answer import Hit
from raddle.model.threads.search_fields import (
    ASSISTANT,
    FIELDS,
    OUTPUT,
    THINKING,
    USER,
    MessageText,
    header_of,
)
from raddle.model.threads.search_snippet import Snippet, snippet_of
from raddle.model.threads.summary import ThreadSummary
from raddle.server.search.asking import SIGNS, says
from raddle.server.search.lookup import Lookup
from raddle.server.search.reading import Bounds, Row
from raddle.server.search.streams import is_mixed
from raddle.server.search.walking import Rows

SCORED = 1_000
"""So many hits, of the newest threads, are ranked,"""
MOST_ASKED = 64
"""and no more threads than these whose hits have to be asked for."""
_DAY = 86_400_000_000
_FRESHNESS = 0.5
_HALF_LIFE_DAYS = 30.0
_THREADS_AT_ONCE = 32
_KNOWN_AT_ONCE = 256


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

    def __init__(self, lookup: Lookup, now: int, after: Key | None = None) -> None:
        self._lookup = lookup
        self._now = now
        self._known: dict[int, int] = {}
        """Row -> level of the field that has the words, where that had to be asked for."""
        self._newest = lookup.newest_first()
        self._after = after
        # Behind the first one that was not scored, none is.
        self._scored = sorted(self._ranked()) if after is None or after[0] == 0 else []

    def page(self, limit: int) -> tuple[list[Place], bool]:
        """The next `limit` places, and whether more of those that were found come after them."""
        after = self._after
        page = [place for place in self._scored if after is None or place.key > after][: limit + 1]
        if len(page) <= limit:
            scored = {place.thread for place in self._scored}
            for thread in self._newest:
                key = key_of(self._lookup.activity[thread], thread)
                if thread not in scored and (after is None or key > after):
                    page.append(Place(key, thread))
                    if len(page) > limit:
                        break
        return page[:limit], len(page) > limit

    def _ranked(self) -> Iterable[Place]:
        scored, at, asked_for, size = 0, 0, 0, max(_THREADS_AT_ONCE // 2, 1)
        while at < len(self._newest) and scored < SCORED and asked_for < MOST_ASKED:
            is_known = self._lookup.is_listed(self._newest[at])
            some = self._newest[at : at + (_KNOWN_AT_ONCE if is_known else size)]
            asked = [thread for thread in some if self._lookup.found[thread].said]
            for thread in asked:
                if not self._lookup.is_listed(thread):
                    asked_for += 2 if self._lookup.found[thread].is_of_beginnings else 1
            rows = self._lookup.rows_of(asked)
            self._settle(rows)
            for thread in some:
                yield self._place(thread, rows.get(thread, []))
            at += len(some)
            scored += sum(map(len, rows.values())) + len(some) - len(asked)
            wanted = (SCORED - scored) * at // max(scored, 1)
            size = min(max(wanted, _THREADS_AT_ONCE // 2, 1), _THREADS_AT_ONCE)

    def _place(self, thread: int, rows: Sequence[Row]) -> Place:
        level = min(map(self._level, rows), default=OUTPUT)
        activity = self._lookup.activity[thread]
        score = self._weight(thread, level) * (1 + _FRESHNESS * self._freshness(activity))
        return Place((0, -score, -activity, _inverted(thread)), thread)

    def _weight(self, thread: int, level: int) -> float:
        terms = len(self._lookup.terms)
        if not terms:
            return 1.0
        covered = self._lookup.found[thread].covered
        return (covered * HEADER_WEIGHT + (terms - covered) * WEIGHTS[level]) / terms

    def _freshness(self, activity: int) -> float:
        days = max(self._now - activity, 0) / _DAY
        return float(2 ** (-days / _HALF_LIFE_DAYS))

    def _settle(self, rows: Rows) -> None:
        """Find which field has the words, of rows that have several."""
        unsure = [
            row
            for each in rows.values()
            for row in each
            if is_mixed(row.fields) and row.number not in self._known
        ]
        if not unsure:
            return
        extras = self._lookup.tables.extras([row.number for row in unsure])
        for row in unsure:
            said = self._lookup.found[row.thread].said
            extra = extras.get(row.number, "")
            self._known[row.number] = self._level_said(row, said, extra, frozenset(extra.split(" ")))

    def _level_said(self, row: Row, said: Iterable[Term], extra: str, words: frozenset[str]) -> int:
        vocabulary = self._lookup.vocabulary
        for sign, bits in zip(SIGNS, (1 << USER | 1 << ASSISTANT, 1 << THINKING), strict=True):
            if row.fields & bits and all(says(term, vocabulary, sign, words, extra) for term in said):
                return _heaviest(row.fields & bits)
        return _lightest(row.fields)

    def _level(self, row: Row) -> int:
        known = self._known.get(row.number)
        return _lightest(row.fields) if known is None else known

    def hits(self, places: Sequence[Place]) -> tuple[Hit, ...]:
        """The hits at these places."""
        rows = self._lookup.rows_of([place.thread for place in places])
        self._settle({thread: each for thread, each in rows.items() if self._lookup.found[thread].said})
        best = self._best_rows(rows)
        summaries = self._lookup.tables.summaries(rows)
        texts = self._lookup.tables.texts(list(best.values()))
        return tuple(
            self._hit(place, summaries[place.thread], texts[best[place.thread]], len(rows[place.thread]))
            for place in places
            if place.thread in summaries and best.get(place.thread) in texts
        )

    def _hit(self, place: Place, summary: ThreadSummary, text: MessageText, matches: int) -> Hit:
        field, snippet = self._shown(place.thread, summary, text)
        return Hit(
            thread=summary,
            message_id=text.id,
            role=text.role,
            field=field,
            snippet=snippet,
            score=place.score,
            matches=matches,
        )

    def _shown(self, thread: int, summary: ThreadSummary, text: MessageText) -> tuple[str, Snippet]:
        """Where the words stand, and the lines around them: in the message, else in the header."""
        field, snippet = snippet_of(self._lookup.query, text.texts)
        if not snippet.marks and self._lookup.found[thread].covered:
            header = header_of(summary)
            names = (header.title, *header.tags, *header.branches, header.remote, *header.shas)
            _, of_header = snippet_of(self._lookup.query, names)
            if of_header.marks:
                return "header", of_header
        return FIELDS[field], snippet

    def _best_rows(self, rows: Rows) -> dict[int, int]:
        """The row to show for each thread: of the heaviest field, then the newest."""
        best: dict[int, int] = {}
        covered = [thread for thread in rows if not self._lookup.found[thread].said]
        query = self._lookup.any_term() if covered else ""
        bounds = Bounds(is_removed=self._lookup.is_of_removed)
        found = self._lookup.tables.rows_in(query, bounds, covered) if query else []
        saying = {row.number for row in found}
        for thread, each in rows.items():
            if not each:
                continue
            if self._lookup.found[thread].said:
                row = min(each, key=lambda row: (self._level(row), -row.at, -row.number))
            else:
                row = _first_said(each, saying)
            best[thread] = row.number
        return best


def _first_said(rows: Sequence[Row], saying: set[int]) -> Row:
    """Where the header has all that was asked for: a message that says it too, else the first thing the user said."""
    if said := [row for row in rows if row.number in saying]:
        return max(said, key=lambda row: (row.at, row.number))
    users = [row for row in rows if row.fields & 1 << USER]
    return min(users or rows, key=lambda row: (row.at, row.number))


def key_of(activity: int, thread: int) -> Key:
    """The key of a thread that was not scored: they come by their last activity."""
    return (1, 0.0, -activity, _inverted(thread))


def place_of(key: Key) -> tuple[int, int] | None:
    """(activity, number) of the thread with that key, if it is one that was not scored."""
    return (-key[2], (1 << 62) - int(key[3])) if key[0] == 1 else None


def _inverted(thread: int) -> str:
    """A thread's number for a key in which the greater number comes first."""
    return f"{(1 << 62) - thread:020d}"


def _heaviest(fields: int) -> int:
    return (fields & -fields).bit_length() - 1 if fields else OUTPUT


def _lightest(fields: int) -> int:
    return fields.bit_length() - 1 if fields else OUTPUT
