"""Finds the newest threads that fit a clause where finding all would take too long: thread by thread, to a horizon.

The one place where a search gives up before the end. It does so between threads only, and says where: all that is newer
than the horizon is known, and the next page goes on behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from raddle.server.search.asking import Ask
from raddle.server.search.clauses import Clause
from raddle.server.search.reading import Bounds, Row, Tables, Threads
from raddle.server.search.streams import Stream

FEW_THREADS = 1_000
"""Of so many threads all rows are asked for at once."""
FEW_LEFT_OUT = 5_000
"""Threads that a count leaves out by name; where more of them have the word in their header, all are told."""
NEWEST_COUNTED = 256
"""Threads with a common word that are told by name: more than are ranked, and than a page shows."""
ROWS_AT_ONCE = 1_200
"""So many rows, of the newest threads: all that is ranked, and one thread more."""
THREADS_A_STEP = 64
ENOUGH_HITS = 1_000
ENOUGH_THREADS = 60
MOST_STEPS = 4
"""Steps towards enough; who asks for words that stand together that rarely can have all of them."""
NEWEST = MOST_STEPS * THREADS_A_STEP
SOON_DONE = 2 * THREADS_A_STEP
"""Threads that are looked at to the last, as they are named."""
ENOUGH_FITTING = 30
"""Threads found, where rows have to be looked into."""
MOST_LOOKED_INTO = 1_200
"""Rows whose streams are looked into for words side by side, newest threads first."""
MOST_READ = 500
"""Messages that are read for the same, where streams cannot say it."""
MOST_STEPS_LOOKING = 8
ROWS_A_STEP = 512
LOOKED_INTO_A_STEP = 32
"""Threads whose rows are looked into together."""

Place = tuple[int, int]
"""(activity, number) of a thread: its place among the newest."""
Rows = dict[int, list[Row]]
"""By thread."""


class Walked(NamedTuple):
    """What was found: threads, and of those in `rows` every row that fits. `horizon`: the last place that was looked
    at; None where all was."""

    found: Threads
    rows: Rows
    horizon: Place | None = None


class Walker:
    """Walks for one search, whose clauses share the bounds of what it may cost; each may do a step at least.

    `threads`: those to look at, newest first. `is_few`: few threads have the words, these or others.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._looked_into = 0
        self.messages_read = 0

    def plainly(self, clause: Clause, bounds: Bounds, threads: Sequence[Place], *, is_few: bool) -> Walked:
        """Those of the threads with a row that fits a clause which words alone decide."""
        rows: Rows = {}
        if is_few:
            rows, is_all = self._all_rows(clause, bounds)
            if is_all:
                return Walked({thread: at for at, thread in threads if thread in rows}, rows)
        elif walked := self._newest(clause, bounds, threads):
            return walked
        found = self._tables.found(clause.query, bounds, None)
        return Walked({thread: at for at, thread in threads if thread in found}, rows)

    def _newest(self, clause: Clause, bounds: Bounds, threads: Sequence[Place]) -> Walked | None:
        """The newest that fit, if they are soon enough; or all, where there are few to look at."""
        found: Threads = {}
        rows: Rows = {}
        at = hits = 0
        size = THREADS_A_STEP
        while at < min(len(threads), NEWEST):
            some = threads[at : at + size]
            fitting = self._rows_of(clause, bounds, some)
            rows.update(fitting)
            found.update((thread, activity) for activity, thread in some if thread in fitting)
            hits += sum(map(len, fitting.values()))
            at += len(some)
            share = max(len(found) / ENOUGH_THREADS, hits / ENOUGH_HITS)
            if share >= 1 and len(threads) > max(SOON_DONE, at):
                return Walked(found, rows, some[-1])
            if len(threads) >= NEWEST and share * NEWEST < at:
                return None
            missing = int(at / share) - at if share else THREADS_A_STEP
            size = min(max(missing + missing // 4, THREADS_A_STEP // 8, 1), THREADS_A_STEP)
        return Walked(found, rows) if len(threads) <= NEWEST else None

    def densely(
        self, clause: Clause, bounds: Bounds, threads: Sequence[Place], *, is_part: bool
    ) -> Walked | None:
        """The same, or as `looking`, without asking which threads have the words: where many of the newest do.

        `threads`: the newest; `is_part`: there are more. None where not enough fit.
        """
        probed = threads[: max(THREADS_A_STEP // 4, 1)]
        # Rows that have to be looked into are few enough only where nearly each thread has some.
        times = 4 if clause.is_plain else 2
        if times * len(self._rows_of(clause, bounds, probed)) <= len(probed):
            return None
        if not clause.is_plain:
            walked = self.looking(clause, bounds, threads, is_few=False)
        elif found := self._newest(clause, bounds, threads):
            walked = found
        else:
            return None
        if walked.horizon is not None or not is_part:
            return walked
        return walked._replace(horizon=threads[-1]) if not clause.is_plain else None

    def looking(self, clause: Clause, bounds: Bounds, threads: Sequence[Place], *, is_few: bool) -> Walked:
        """The same where rows have to be looked into: their number has a bound."""
        found: Threads = {}
        rows: Rows = {}
        last: Place | None = None
        steps = self._steps_of_few if is_few else self._steps
        for count, (some, those) in enumerate(steps(clause, bounds, threads)):
            is_enough = len(found) >= ENOUGH_FITTING or count >= MOST_STEPS_LOOKING
            if last is not None and (self._is_exhausted or (is_enough and not is_few)):
                return Walked(found, rows, last)
            fitting = self._look_into(clause, [row.number for each in those.values() for row in each])
            for activity, thread in some:
                if kept := [row for row in those.get(thread, ()) if row.number in fitting]:
                    found[thread] = activity
                    rows[thread] = kept
            last = some[-1]
        return Walked(found, rows)

    @property
    def _is_exhausted(self) -> bool:
        return self._looked_into >= MOST_LOOKED_INTO or self.messages_read >= MOST_READ

    def _steps(
        self, clause: Clause, bounds: Bounds, threads: Sequence[Place]
    ) -> Iterator[tuple[Sequence[Place], Rows]]:
        """The threads some at a time, with those rows of them that may fit."""
        at, rows = 0, 0
        size = max(LOOKED_INTO_A_STEP // 4, 1)
        while at < len(threads):
            some = threads[at : at + size]
            those = self._rows_of(clause, bounds, some)
            yield some, those
            at += len(some)
            rows += sum(map(len, those.values()))
            size = min(max(ROWS_A_STEP * at // max(rows, 1), 1), LOOKED_INTO_A_STEP)

    def _steps_of_few(
        self, clause: Clause, bounds: Bounds, threads: Sequence[Place]
    ) -> Iterator[tuple[Sequence[Place], Rows]]:
        """The same where all rows can be asked for at once."""
        those, is_all = self._all_rows(clause, bounds)
        known = [place for place in threads if place[1] in those]
        at = size = 0
        for end, (_, thread) in enumerate(known, 1):
            size += len(those[thread])
            if size >= ROWS_A_STEP or end == len(known):
                some = known[at:end]
                yield some, {thread: those[thread] for _, thread in some}
                at, size = end, 0
        if not is_all:
            oldest = known[-1] if known else None
            yield from self._steps(
                clause, bounds, [place for place in threads if not oldest or place < oldest]
            )

    def rows_of_few(self, clause: Clause, bounds: Bounds) -> Rows:
        """The rows that fit a clause which words alone decide, of the newest threads."""
        return self._all_rows(clause, bounds)[0]

    def _all_rows(self, clause: Clause, bounds: Bounds) -> tuple[Rows, bool]:
        """All rows that may fit, by thread; where they are too many, those of the newest threads, and False."""
        found = self._tables.newest_rows(clause.query, bounds, ROWS_AT_ONCE)
        rows: Rows = {}
        for row in found:
            rows.setdefault(row.thread, []).append(row)
        is_all = len(found) < ROWS_AT_ONCE
        if not is_all:
            del rows[found[-1].thread]
        return rows, is_all

    def _rows_of(self, clause: Clause, bounds: Bounds, threads: Iterable[Place]) -> Rows:
        rows: Rows = {}
        for row in self._tables.rows_in(clause.query, bounds, [thread for _, thread in threads]):
            rows.setdefault(row.thread, []).append(row)
        return rows

    def _look_into(self, clause: Clause, numbers: Sequence[int]) -> set[int]:
        """Those of the rows that fit the clause."""
        if not numbers:
            return set()
        self._looked_into += len(numbers)
        unwanted = [p for ask in clause.unwanted if ask.check is None for p in ask.text]
        suspect = [p for ask in clause.unwanted_checks() for p in ask.text]
        suspects = self._tables.fitting(numbers, clause.asks, unwanted, suspect)
        is_vague = any(not ask.text for ask in clause.unwanted_checks())
        return self._those_read(clause, suspects, is_vague=is_vague)

    def _those_read(self, clause: Clause, suspects: dict[int, bool], *, is_vague: bool) -> set[int]:
        """Those of the rows whose texts hold what streams cannot say, and not what is unwanted."""
        wanted, unwanted = clause.wanted_checks(), clause.unwanted_checks()
        if wanted or (unwanted and is_vague):
            to_read = list(suspects)
        else:
            to_read = [number for number, is_suspect in suspects.items() if is_suspect and unwanted]
        fitting = set(suspects).difference(to_read)
        self.messages_read += len(to_read)
        for number, text in self._tables.texts(to_read).items():
            if all(_holds(ask, text.texts) for ask in wanted) and not any(
                _holds(ask, text.texts) for ask in unwanted
            ):
                fitting.add(number)
        return fitting

    def in_parts(self, clause: Clause, bounds: Bounds) -> list[tuple[Row, int]]:
        """The messages that are stored in several parts, and fit: each word may be in another of them."""
        numbers = self._tables.split_rows("")
        for ask in clause.asks:
            if ask.words and numbers:
                numbers &= self._tables.split_rows(ask.words)
        for ask in clause.unwanted:
            if ask.is_decided_by_words and numbers:
                numbers -= self._tables.split_rows(ask.words)
        if not numbers:
            return []
        streams = self._tables.part_streams(numbers)
        numbers = {number for number in numbers if _stream_fits(clause, streams[number])}
        if clause.wanted_checks() or clause.unwanted_checks():
            numbers = self._those_read(clause, dict.fromkeys(numbers, True), is_vague=True)
        return self._tables.wholes(numbers, bounds)


def _holds(ask: Ask, texts: Iterable[str]) -> bool:
    return ask.check is not None and ask.check.holds(texts)


def _stream_fits(clause: Clause, whole: Stream) -> bool:
    tools = whole.stream[whole.tools_at - 1 :]
    unwanted = [p for ask in clause.unwanted if ask.check is None for p in ask.text]
    return (
        all(not ask.text or any(p in whole.stream for p in ask.text) for ask in clause.asks)
        and all(not ask.tools or any(p in tools for p in ask.tools) for ask in clause.asks)
        and all(not ask.facts or any(p in whole.extra for p in ask.facts) for ask in clause.asks)
        and not any(p in whole.stream for p in unwanted)
    )
