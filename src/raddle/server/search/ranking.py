"""The order of hits on the server: as on a machine of one's own, and the page that is shown.

Only the newest hits are scored, which bounds the cost of a common word; every other thread comes after them, by its
last activity. The order is stable: the next page starts after the last hit of this one, whatever was added meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from raddle.model.threads.query import Term
from raddle.model.threads.search_answer import Hit
from raddle.model.threads.search_fields import (
    ASSISTANT,
    OUTPUT,
    THINKING,
    USER,
    MessageText,
    is_mixed,
)
from raddle.model.threads.search_order import Key, Place, heaviest_of, key_of, lightest_of, score_of
from raddle.model.threads.search_snippet import shown_of
from raddle.model.threads.summary import ThreadSummary
from raddle.server.search.asking import SIGNS, says
from raddle.server.search.lookup import Lookup
from raddle.server.search.reading import Bounds, Row
from raddle.server.search.walking import Rows

SCORED = 1_000
"""So many hits, of the newest threads, are ranked,"""
MOST_ASKED = 64
"""and no more threads than these whose hits have to be asked for."""
_THREADS_AT_ONCE = 32
_KNOWN_AT_ONCE = 256


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
                key = unscored_key(self._lookup.activity[thread], thread)
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
        covered = self._lookup.found[thread].covered
        terms = len(self._lookup.terms)
        score = score_of(terms=terms, covered=covered, level=level, age=self._now - activity)
        return Place(key_of(activity, _inverted(thread), score=score), thread)

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
                return heaviest_of(row.fields & bits)
        return lightest_of(row.fields)

    def _level(self, row: Row) -> int:
        known = self._known.get(row.number)
        return lightest_of(row.fields) if known is None else known

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
        is_in_header = self._lookup.found[place.thread].covered > 0
        field, snippet = shown_of(self._lookup.query, summary, text.texts, is_in_header=is_in_header)
        return Hit(
            thread=summary,
            message_id=text.id,
            role=text.role,
            field=field,
            snippet=snippet,
            score=place.score,
            matches=matches,
        )

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


def unscored_key(activity: int, thread: int) -> Key:
    """The key of a thread that was not scored: they come by their last activity."""
    return key_of(activity, _inverted(thread))


def place_of(key: Key) -> tuple[int, int] | None:
    """(activity, number) of the thread with that key, if it is one that was not scored."""
    return (-key[2], (1 << 62) - int(key[3])) if key[0] == 1 else None


def _inverted(thread: int) -> str:
    """A thread's number for a key in which the greater number comes first."""
    return f"{(1 << 62) - thread:020d}"
