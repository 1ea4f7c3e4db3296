"""The order of hits on the server: as on a machine of one's own, and the page that is shown.

Only the newest hits are scored, which bounds the cost of a common word; every other thread comes after them, by its
last activity. The order is stable: the next page starts after the last hit of this one, whatever was added meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from raddle.model.threads.query import Term
from raddle.model.threads.search_answer import Hit
from raddle.model.threads.search_fields import (
    ASSISTANT,
    FIELDS,
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
from raddle.server.search.reading import First, Row
from raddle.server.search.walking import Rows

SCORED = 1_000
"""So many hits, of the newest threads, are ranked,"""
MOST_ASKED = 80
"""and no more threads than these whose hits have to be asked for."""
MOST_ASKED_OF_BEGINNINGS = 48
"""The same where it is asked for what words begin with."""
_THREADS_AT_ONCE = MOST_ASKED
_KNOWN_AT_ONCE = 256
_SAFE = tuple(map(lightest_of, range(1 << len(FIELDS))))
_AT_BEST = tuple(heaviest_of(f) if is_mixed(f) else lightest_of(f) for f in range(1 << len(FIELDS)))
"""The level of a message, by its fields: what is safe to say, and what it may be."""


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
        scored, at = 0, 0
        most = MOST_ASKED_OF_BEGINNINGS if self._lookup.is_of_beginnings else MOST_ASKED
        while at < len(self._newest) and scored < SCORED and most > 0:
            some, asking = self._step(at, min(most, _THREADS_AT_ONCE))
            most -= asking
            asked = [thread for thread in some if self._lookup.found[thread].said]
            rows = self._lookup.rows_of(asked, beside=some)
            levels = self._levels(rows)
            for thread in some:
                yield self._place(thread, levels.get(thread, OUTPUT))
            at += len(some)
            scored += sum(map(len, rows.values())) + len(some) - len(asked)

    def _step(self, at: int, most: int) -> tuple[list[int], int]:
        """The next threads to score, and for how many of them hits have to be asked for: up to `most`."""
        asking, end = 0, min(len(self._newest), at + _KNOWN_AT_ONCE)
        for place in range(at, end):
            thread = self._newest[place]
            if self._lookup.found[thread].said and not self._lookup.is_listed(thread):
                if asking == most:
                    end = place
                    break
                asking += 1
        return self._newest[at:end], asking

    def _place(self, thread: int, level: int) -> Place:
        activity = self._lookup.activity[thread]
        covered = self._lookup.found[thread].covered
        terms = len(self._lookup.terms)
        score = score_of(terms=terms, covered=covered, level=level, age=self._now - activity)
        return Place(key_of(activity, _inverted(thread), score=score), thread)

    def _levels(self, rows: Rows) -> dict[int, int]:
        """The level of the heaviest field that has the words, for each of these threads."""
        levels: dict[int, int] = {}
        unsure: list[Row] = []
        for thread, each in rows.items():
            least = min([_SAFE[row.fields] for row in each], default=OUTPUT)
            levels[thread] = least
            if min([_AT_BEST[row.fields] for row in each], default=OUTPUT) < least:
                unsure += [row for row in each if _AT_BEST[row.fields] < least]
        self._settle(unsure)
        for row in unsure:
            levels[row.thread] = min(levels[row.thread], self._known[row.number])
        return levels

    def _settle(self, rows: Iterable[Row]) -> None:
        """Find which field has the words, of rows that have several."""
        unsure = [row for row in rows if row.number not in self._known]
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

    def _order(self, row: Row) -> tuple[int, int, int]:
        """Which row of a thread is shown: of the heaviest field, then the newest."""
        return self._known.get(row.number, _SAFE[row.fields]), -row.at, -row.number

    def _rivals(self, rows: Sequence[Row]) -> list[Row]:
        """Those that might be shown instead of the one that is so far as is known."""
        first = min(map(self._order, rows))
        return [
            row
            for row in rows
            if is_mixed(row.fields) and (_AT_BEST[row.fields], -row.at, -row.number) < first
        ]

    def hits(self, places: Sequence[Place]) -> tuple[Hit, ...]:
        """The hits at these places."""
        threads = [place.thread for place in places]
        whole = self._lookup.whole(threads)
        rows = self._lookup.rows_of([thread for thread in threads if thread not in whole])
        matches = {thread: len(each) for thread, each in rows.items()}
        matches |= {thread: first.matches for thread, first in whole.items()}
        best = self._best_rows(rows, whole)
        summaries = self._lookup.tables.summaries(threads)
        texts = self._lookup.tables.texts(list(best.values()))
        return tuple(
            self._hit(place, summaries[place.thread], texts[best[place.thread]], matches[place.thread])
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

    def _best_rows(self, rows: Rows, whole: Mapping[int, First]) -> dict[int, int]:
        """The row to show for each thread: where its header has all that was asked for, a message that says it too,
        else the first thing the user said."""
        said = {thread for thread, each in rows.items() if each and self._lookup.found[thread].said}
        self._settle(row for thread in said for row in self._rivals(rows[thread]))
        best = {thread: min(rows[thread], key=self._order).number for thread in said}
        covered = {thread: each for thread, each in rows.items() if each and thread not in said}
        saying = self._lookup.saying([*covered, *whole])
        for thread, each in covered.items():
            known = {row.number for row in saying[thread]}
            best[thread] = (_newest([row for row in each if row.number in known]) or _first_said(each)).number
        for thread, first in whole.items():
            newest = _newest(saying[thread])
            best[thread] = first.number if newest is None else newest.number
        return best


def _newest(rows: Sequence[Row]) -> Row | None:
    return max(rows, key=lambda row: (row.at, row.number), default=None)


def _first_said(rows: Sequence[Row]) -> Row:
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
