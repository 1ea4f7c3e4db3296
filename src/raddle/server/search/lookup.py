"""Which threads and which messages a query finds: all of them, whatever is shown in the end.

The plain meaning of it is `query_match.hits` on what the reader may see; the property tests hold the two equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice

from raddle.model.threads.query import (
    Filter,
    FlagFilter,
    NameFilter,
    Query,
    ShaFilter,
    Term,
    TimeFilter,
    is_of_thread,
)
from raddle.model.threads.search_fields import header_of
from raddle.server.search import walking
from raddle.server.search.asking import (
    Vocabulary,
    bounds_of,
    either,
    fragments_in,
    of_fact,
    of_names,
    of_term,
)
from raddle.server.search.clauses import (
    MANY_GROUPS,
    Clause,
    asks_of,
    clause_of,
    contradicts_itself,
    facts_in,
    grouped,
    is_removal,
    pruned,
)
from raddle.server.search.reading import Bounds, First, Tables, Threads
from raddle.server.search.walking import Place, Rows, Walked, Walker

_BESIDE = 24


class Lookup:
    """One query of one reader. `found`: threads with a hit, and the clause that each fits; `activity` of each.

    Those down to `horizon` are all there are (`after`: but for those before that place); of those behind it only
    `total` tells, exact if `is_complete`, else a lower bound. Without `asks_messages`, only the filters on threads are
    looked at: `allowed`. `among`: the threads to look at.
    """

    def __init__(
        self,
        tables: Tables,
        query: Query,
        *,
        asks_messages: bool = True,
        after: Place | None = None,
        among: Threads | None = None,
    ) -> None:
        self.tables = tables
        self.query = query
        self.terms = [term for term in query.terms if not term.is_negative]
        self.found: dict[int, Clause] = {}
        self.activity: Threads = {}
        self.is_complete = True
        self.horizon: Place | None = None
        self.vocabulary = Vocabulary({})
        self._after = after
        self._walker = Walker(tables)
        self._in_blocks: dict[tuple[str, Bounds], Threads] = {}
        self._untold = 0
        """Threads that were found and are counted only."""
        self._with_a_row: Threads = {}
        self._named_activity: Threads = {}
        """Of the threads that headers or filters told."""
        self._listed: Rows = {}
        """All hits of those threads of which they are known."""
        self._saying: Rows = {}
        self._split: Rows = {}
        """Hits in several parts."""
        self._bounds = _bounds_of(query)
        self._has_messages = bool(tables.spaces) and not contradicts_itself(query)
        self.allowed: Threads | None = self._allowed(among) if tables.spaces else {}
        """Threads that the filters on threads leave; None: all."""
        self._named_activity.update(self.allowed or {})
        if asks_messages and self._has_messages and self.allowed != {}:
            self._find()

    @property
    def messages_read(self) -> int:
        """How many messages were read, since words did not say it."""
        return self._walker.messages_read

    @property
    def total(self) -> int:
        """How many threads were found: all there are, or a lower bound."""
        return len(self.found) + self._untold if self.is_complete else len(self.newest_first())

    @property
    def is_of_removed(self) -> bool:
        """Is it asked of turns that were taken back?"""
        return self._bounds.is_removed

    @property
    def is_of_beginnings(self) -> bool:
        """Is it asked for what words begin with? The index then reads the lists of all of them, each time."""
        return any(":*" in ask.words for ask in asks_of(self.terms, self.vocabulary).values())

    @property
    def threads_looked_at(self) -> int:
        """How many threads the filters left to look at."""
        return self.tables.count if self.allowed is None else len(self.allowed)

    def newest_first(self) -> list[int]:
        """The found threads down to the horizon by their last activity, newest first."""
        ordered = sorted(zip(self.activity.values(), self.activity, strict=True), reverse=True)
        horizon = self.horizon
        return [place[1] for place in ordered if horizon is None or place >= horizon]

    def is_listed(self, thread: int) -> bool:
        """Are its hits known without asking?"""
        return thread in self._listed

    def rows_of(self, threads: Collection[int], beside: Collection[int] = ()) -> Rows:
        """The rows of hits in these found threads. `beside`: threads of which, where it costs no question, is noted
        what `saying` tells."""
        by_clause: dict[Clause, list[int]] = {}
        for thread in threads:
            if thread not in self._listed:
                by_clause.setdefault(self.found[thread], []).append(thread)
        for clause, some in by_clause.items():
            self._listed.update((thread, []) for thread in some)
            if clause.is_plain:  # else those in parts are all that was found
                also = set(self._said_by_header(beside)) if self._is_any_term(clause) else set()
                self._saying.update((thread, []) for thread in also)
                for row in self.tables.rows_in(clause.query, self._bounds, [*some, *also]):
                    (self._saying if row.thread in also else self._listed)[row.thread].append(row)
        return {thread: [*self._split.get(thread, ()), *self._listed[thread]] for thread in threads}

    def whole(self, threads: Collection[int]) -> dict[int, First]:
        """Those of the threads whose every message is a hit, as is known without asking for their rows."""
        if self._bounds.matter or self.tables.has_parts:
            return {}
        some = [thread for thread in threads if self.found[thread].is_everything]
        return self.tables.first_rows(some, is_removed=self.is_of_removed)

    def saying(self, threads: Collection[int]) -> Rows:
        """The rows of these threads, whose headers have all that was asked for, that say any of it too."""
        unknown = [thread for thread in threads if thread not in self._saying]
        words = [ask.words for ask in asks_of(self.terms, self.vocabulary).values() if ask.words]
        if unknown and words:
            self._saying.update((thread, []) for thread in unknown)
            for row in self.tables.rows_in(either(words), Bounds(is_removed=self.is_of_removed), unknown):
                self._saying[row.thread].append(row)
        return {thread: self._saying.get(thread, []) for thread in threads}

    def _said_by_header(self, threads: Iterable[int]) -> list[int]:
        """The first of these threads whose headers have all that was asked for: those that a page shows."""
        unknown = (each for each in threads if not self.found[each].said and each not in self._saying)
        return list(islice(unknown, _BESIDE))

    def _is_any_term(self, clause: Clause) -> bool:
        """Does it find just what says any of the words asked for?"""
        return clause.is_of_any and len(self.terms) == 1 and not self._bounds.matter

    def _find(self) -> None:
        asked = fragments_in(self.query.terms)
        self.vocabulary = Vocabulary({fragment: self.tables.containing(fragment) for fragment in asked})
        asks = asks_of(self.terms, self.vocabulary)
        unwanted = [term for term in self.query.terms if term.is_negative]
        never = list(asks_of(unwanted, self.vocabulary).values())
        facts = [of_fact(one) for one in facts_in(self.query.filters) if not one.is_negative]
        covering = [self._headers_with(term) for term in self.terms]
        forbidden = frozenset[int]().union(*(self._headers_with(term) for term in unwanted))
        dropped = self._dropped() | forbidden
        groups = grouped(covering)
        in_groups = frozenset[int]().union(*groups.values())
        if len(groups) > MANY_GROUPS:
            groups = pruned(groups, list(asks.values()), covering, self._threads_with)
        base = clause_of(asks, never, facts)
        self._take(base, dropped | in_groups)
        for covered, threads in groups.items():
            left = {term: asks[term] for at, term in enumerate(self.terms) if at not in covered}
            clause = clause_of(left, never, facts)
            self._take(clause._replace(covered=len(covered), threads=frozenset(threads)), dropped)

    def _threads_with(self, words: str) -> frozenset[int]:
        return frozenset(self.tables.found(words, self._bounds, None))

    def _take(self, clause: Clause, never: frozenset[int]) -> None:
        """Find the threads with a hit by that clause, those in `never` left out."""
        wanted: frozenset[int] | None = clause.threads
        if self.allowed is not None:
            wanted = frozenset(self.allowed) if wanted is None else wanted.intersection(self.allowed)
        if wanted is not None:
            wanted -= never
            if (horizon := self.horizon) is not None and not self.is_complete:
                known = self._named_activity
                wanted = frozenset(thread for thread in wanted if (known[thread], thread) >= horizon)
            if not wanted:
                return
        found = self._matching(clause, self._bounds, wanted, never)
        if not never.isdisjoint(found):
            found = {thread: activity for thread, activity in found.items() if thread not in never}
        self.found.update(dict.fromkeys(found, clause))
        self.activity.update(found)

    def _matching(
        self, clause: Clause, bounds: Bounds, wanted: frozenset[int] | None, never: frozenset[int]
    ) -> Threads:
        """The threads (in `wanted`, None: wherever) with a row in bounds that fits the clause."""
        if clause.is_everything:
            found = self._with_rows(bounds, wanted)
        elif clause.is_plain and (bounds.is_removed or not clause.words_of_texts):
            found = self.tables.found(clause.query, bounds, wanted)
        else:
            found = self._in_texts(clause, bounds, wanted, never)
        if self.tables.has_parts:
            found = dict(found)
            for row, activity in self._walker.in_parts(clause, bounds):
                if (wanted is None or row.thread in wanted) and row.thread not in never:
                    found[row.thread] = activity
                    if bounds is self._bounds:
                        self._split.setdefault(row.thread, []).append(row)
        return found

    def _with_rows(self, bounds: Bounds, wanted: frozenset[int] | None) -> Threads:
        found: Threads = {}
        if wanted is not None and bounds == Bounds():
            for known in (
                self._with_a_row,
                *self._in_blocks.values(),
            ):  # each has a row, as costs little to know
                found |= {thread: known[thread] for thread in wanted.intersection(known)}
            wanted = wanted.difference(found)
        return found | self.tables.within(bounds, wanted) if wanted is None or wanted else found

    def _in_texts(
        self, clause: Clause, bounds: Bounds, wanted: frozenset[int] | None, never: frozenset[int]
    ) -> Threads:
        """The same where the words of texts are asked for, or what words do not say."""
        if wanted is not None and len(wanted) <= walking.SOON_DONE:
            return self._walk(clause, bounds, self._named_activity, wanted, never)
        is_of_any = clause.is_of_any and bounds == Bounds()
        if wanted is None and clause.words_of_texts and not (is_of_any or bounds.is_removed):
            newest = self.tables.newest(self._after, walking.NEWEST)
            is_part = len(newest) == walking.NEWEST
            places = [place for place in newest if place[1] not in never]
            if walked := self._walker.densely(clause, bounds, places, is_part=is_part):
                return self._noted(walked, bounds, is_all=self._after is None)
        is_counted = len(never) <= walking.FEW_LEFT_OUT and not self.tables.has_parts
        if is_of_any and wanted is None and is_counted:
            return self._counted(clause, never)
        threads = self._with_words(clause, bounds)
        if is_of_any:
            found = (
                threads if wanted is None else {each: threads[each] for each in wanted.intersection(threads)}
            )
            if not never.isdisjoint(found):
                found = {thread: activity for thread, activity in found.items() if thread not in never}
            return found
        return self._walk(clause, bounds, threads, wanted, never)

    def _counted(self, clause: Clause, never: frozenset[int]) -> Threads:
        """The newest threads with any of some words; how many others there are is known all the same."""
        most = walking.NEWEST_COUNTED
        few = walking.FEW_THREADS - len(never)
        count, found, left_out = self.tables.newest_in_blocks(
            clause.query, self._after, never, few=few, most=most
        )
        self._untold += count - len(found)
        self._with_a_row = found | left_out
        if count <= few:
            self._list(self._walker.rows_of_few(clause, Bounds()), found)
        elif len(found) == most:
            last = next(reversed(found))
            self.horizon = (found[last], last)
        return found

    def _walk(
        self,
        clause: Clause,
        bounds: Bounds,
        threads: Threads,
        wanted: frozenset[int] | None,
        never: frozenset[int],
    ) -> Threads:
        """Those that fit of the threads in `threads`, of which it gives the activity, and in `wanted`."""
        chosen = threads if wanted is None else wanted.intersection(threads)
        all_places = sorted(((threads[each], each) for each in chosen if each not in never), reverse=True)
        after = self._after
        places = [place for place in all_places if after is None or place < after]
        is_few = (
            bool(clause.words_of_texts)
            and len(threads) <= walking.FEW_THREADS
            and (wanted is None or len(places) > walking.SOON_DONE)
        )
        walk = self._walker.plainly if clause.is_plain else self._walker.looking
        walked = walk(clause, bounds, places, is_few=is_few)
        return self._noted(walked, bounds, is_all=len(places) == len(all_places))

    def _noted(self, walked: Walked, bounds: Bounds, *, is_all: bool) -> Threads:
        """What was found. `is_all`: no thread was left out from the beginning."""
        if bounds is self._bounds:
            self._list(walked.rows, walked.found)
        if walked.horizon is not None:
            self.horizon = max(walked.horizon, self.horizon or walked.horizon)
        self.is_complete = self.is_complete and is_all and walked.horizon is None
        return walked.found

    def _list(self, rows: Rows, found: Threads) -> None:
        """Keep the hits of what was found; other threads fit other clauses, and have others."""
        self._listed.update((thread, each) for thread, each in rows.items() if thread in found)

    def _with_words(self, clause: Clause, bounds: Bounds) -> Threads:
        """Threads that have the words of the texts that are asked for, if only in different messages."""
        words = clause.words_of_texts
        if not words:
            return self.tables.all()
        if bounds.is_removed:
            return self.tables.found(words, bounds, None)
        if (words, bounds) not in self._in_blocks:
            self._in_blocks[words, bounds] = self.tables.found_in_blocks(words, bounds)
        return self._in_blocks[words, bounds]

    def _headers_with(self, term: Term) -> frozenset[int]:
        """The threads whose header has the term."""
        ask = of_term(term, self.vocabulary, is_header=True)
        if not ask.words:
            ask = ask._replace(words=Clause().query)
        found = self.tables.headers(ask)
        self._named_activity.update(found)
        if ask.check is None or not found:
            return frozenset(found)
        fitting = set()
        for number, summary in self.tables.summaries(found).items():
            header = header_of(summary)
            names = (header.title, *header.tags, *header.branches, header.remote, *header.shas)
            if ask.check.holds(names):
                fitting.add(number)
        return frozenset(fitting)

    def _allowed(self, allowed: Threads | None) -> Threads | None:
        """The threads that the filters on threads leave; None: all."""
        for one in self.query.filters:
            if not is_of_thread(one):
                continue
            fitting = self._named(one)
            if one.is_negative:
                left = self.tables.all() if allowed is None else allowed
                allowed = {thread: at for thread, at in left.items() if thread not in fitting}
            elif allowed is None:
                allowed = fitting
            else:
                allowed = {thread: at for thread, at in allowed.items() if thread in fitting}
        return allowed

    def _named(self, one: Filter) -> Threads:
        """The threads that a filter on threads fits, whether or not it is negative."""
        if isinstance(one, FlagFilter):
            # What is private has no word here.
            return self.tables.flagged(one.flag)
        assert isinstance(one, NameFilter | ShaFilter)
        found = self.tables.headers(of_names(one, is_owner=False), is_fact=True)
        if isinstance(one, NameFilter) and one.key == "repo":
            found = found | self.tables.headers(of_names(one, is_owner=True), is_fact=True, is_owner=True)
        return found

    def _dropped(self) -> frozenset[int]:
        """The threads with a message that a negative filter on messages fits."""
        dropped: set[int] = set()
        bounds = Bounds(is_removed=self._bounds.is_removed)
        for one in self.query.filters:
            if isinstance(one, TimeFilter) and one.is_negative:
                start, end = bounds_of([one])
                dropped |= set(self.tables.within(bounds._replace(start=start, end=end), None))
        for fact in facts_in(self.query.filters):
            if fact.is_negative:
                clause = Clause((of_fact(fact),))
                dropped |= set(self._matching(clause, bounds, None, frozenset(dropped)))
        return frozenset(dropped)


def _bounds_of(query: Query) -> Bounds:
    start, end = bounds_of(
        one for one in query.filters if isinstance(one, TimeFilter) and not one.is_negative
    )
    return Bounds(start, end, any(is_removal(one) and not one.is_negative for one in query.filters))
