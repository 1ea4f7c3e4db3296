"""Reads the tables of search for one reader: every row that leaves here is one that they may see.

The one place that runs the queries of `search.sql`, all of which ask for access themselves: a second one could
forget to.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from msgspec.structs import replace
from psycopg import Connection

from raddle.model.threads.search_fields import USER, MessageText, fields_of
from raddle.model.threads.summary import Source, ThreadSummary
from raddle.model.threads.view import as_others_see
from raddle.server import rows
from raddle.server.search import streams
from raddle.server.search.asking import MOST_FRAGMENT_TERMS, Ask, both, either, for_spaces, lexeme
from raddle.server.tables.queries import queries

SQL = queries("raddle.server.search", "search.sql")
_PREPARED = frozenset(
    ("summaries", "extras", "bodies", "first_rows", "newest_threads", "readable", "has_rows")
)
"""Those for which any plan is as good. A plan that knows the words is many times as fast as one that does not."""
Threads = dict[int, int]
"""Number of a thread -> its last activity, microseconds since 1970."""


class Reader(NamedTuple):
    """Who asks. `spaces`: their own and those they are members of: what is looked at."""

    user: UUID
    spaces: tuple[UUID, ...]


class Row(NamedTuple):
    """A message that was found. `at`: microseconds since 1970, 0 where nobody knows; `fields`: a bit each."""

    number: int
    thread: int
    at: int
    fields: int


class Bounds(NamedTuple):
    """Which messages are looked at: in [start, end) (microseconds; None: whenever), shown ones or removed ones."""

    start: int | None = None
    end: int | None = None
    is_removed: bool = False

    @property
    def matter(self) -> bool:
        """Is any time given?"""
        return self.start is not None or self.end is not None


class Counted(NamedTuple):
    """How many threads were found, and the newest of them, newest first. `left_out`: those that have the words too,
    and are not counted."""

    total: int
    newest: Threads
    left_out: Threads


class First(NamedTuple):
    """How many messages a thread has, and the row of the first thing that the user said in it (else of the first)."""

    matches: int
    number: int


class Tables:
    """The tables as one reader may see them, for the length of one answer."""

    def __init__(self, connection: Connection, reader: Reader) -> None:
        self._connection = connection
        self.reader = reader
        found = self._run("spaces", spaces=list(reader.spaces), format=streams.FORMAT).fetchone()
        self.spaces: list[int]
        self.has_parts: bool
        self.is_stale: bool
        self.spaces, self.has_parts, self.is_stale, _ = found

    def _run(self, name: str, **values: Any) -> Any:
        values["reader"] = self.reader.user
        return self._connection.execute(SQL[name], values, prepare=name in _PREPARED, binary=True)

    def _threads(self, name: str, **values: Any) -> Threads:
        return _activities(self._run(name, **values).fetchone()[0])

    @cached_property
    def _signed(self) -> tuple[bool, bool]:
        """Is there a row in these spaces that not everybody finds; one that is longer than what is searched of it?"""
        has_alone, has_partial = self._run(
            "has_rows",
            alone=self._query(lexeme(streams.ALONE)),
            partial=self._query(lexeme(streams.PARTIAL)),
        ).fetchone()
        return has_alone, has_partial

    def _query(self, query: str) -> str:
        return for_spaces(query, self.spaces)

    def containing(self, fragment: str) -> list[str]:
        """Words of the vocabulary that hold the fragment: one more than `MOST_FRAGMENT_TERMS` at most."""
        pattern = "%" + fragment.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_") + "%"
        found = self._run(
            "containing", spaces=_numbers(self.spaces), pattern=pattern, most=MOST_FRAGMENT_TERMS + 1
        )
        return [term for (term,) in found]

    @cached_property
    def count(self) -> int:
        """How many threads there are to look at."""
        return int(self._run("readable", spaces=_numbers(self.spaces)).fetchone()[0])

    def all(self) -> Threads:
        """All threads there are to look at."""
        return self._threads("all_readable", spaces=_numbers(self.spaces))

    def flagged(self, flag: str) -> Threads:
        """The reader's own threads that are `pinned` or `archived`; what others marked is not told."""
        return self._threads("flagged", spaces=_numbers(self.spaces), flag=flag)

    def headers(self, ask: Ask, *, is_fact: bool = False, is_owner: bool = False) -> Threads:
        """Threads whose header fits, `is_owner`: of the reader's own; `is_fact`: what filters ask for."""
        return self._threads(
            "headers", query=self._query(ask.words), text=list(ask.text), is_fact=is_fact, is_owner=is_owner
        )

    def summaries(self, numbers: Collection[int]) -> dict[int, ThreadSummary]:
        """What lists show of these threads, as the reader sees it."""
        found = self._run("summaries", numbers=_numbers(numbers))
        return {
            number: as_reader_sees(msgspec.json.decode(summary, type=ThreadSummary), is_owner=is_owner)
            for number, is_owner, summary in found
        }

    def found(self, query: str, bounds: Bounds, threads: Collection[int] | None) -> Threads:
        """Threads with a row that the query finds; `threads`: in these alone."""
        query, kept = _narrowed(query, threads)
        named = None if kept is None else _numbers(kept)
        return self._threads("found", query=self._query(query), threads=named, **bounds._asdict())

    def found_in_blocks(self, query: str, bounds: Bounds) -> Threads:
        """Threads with words of the texts that the query finds, all of which may stand in different messages of 64."""
        found = self._threads("found_in_blocks", query=self._query(query), spaces=_numbers(self.spaces))
        alone = self._alone(query, bounds)
        return found | alone if alone else found

    def _alone(self, query: str, bounds: Bounds) -> Threads:
        """Threads with a row that the query finds and that is in no block."""
        # Nearly always there is none; the query would read long lists to find that out.
        return self.found(both(query, lexeme(streams.ALONE)), bounds, None) if self._signed[0] else {}

    def newest_in_blocks(
        self, query: str, after: tuple[int, int] | None, never: Collection[int], *, few: int, most: int
    ) -> Counted:
        """Of a query that asks for any of some words, without bounds: how many threads it finds, and the newest
        `most` of those behind `after`, or all where they are no more than `few`; those in `never` are told apart."""
        alone = self._alone(query, Bounds())
        # Threads have more than one block each: so many of the newest ones have `most` hits, and some to spare.
        looked_at = 3 * most * self.count
        found = self._newest_in_blocks(query, alone, after, never, kept=2 * few, looked_at=looked_at)
        total, left_out, newest, is_cut = found
        if is_cut and len(newest) < (total if total <= few else most):
            kept = 1 << 31
            total, left_out, newest, _ = self._newest_in_blocks(
                query, alone, after, never, kept=kept, looked_at=0
            )
        return Counted(total, dict(newest if total <= few else newest[:most]), left_out)

    def _newest_in_blocks(
        self,
        query: str,
        alone: Threads,
        after: tuple[int, int] | None,
        never: Collection[int],
        **bounds: int,
    ) -> tuple[int, Threads, list[tuple[int, int]], bool]:
        activity, number = after or (None, None)
        count, left_out, newest, is_cut = self._run(
            "newest_in_blocks",
            query=self._query(query),
            spaces=_numbers(self.spaces),
            alone=_numbers(alone),
            never=_numbers(never),
            after_activity=activity,
            after_number=number,
            **bounds,
        ).fetchone()
        others = _activities(left_out)
        ordered = sorted(zip(*_pairs(newest), strict=True), reverse=True)
        return count - len(others), others, [(thread, at) for at, thread in ordered], is_cut

    def called(self, thread_id: str) -> Threads:
        """The threads of that id."""
        return self._threads("thread_numbers", thread_id=thread_id, spaces=_numbers(self.spaces))

    def within(self, bounds: Bounds, threads: Collection[int] | None) -> Threads:
        """Threads with a row in these bounds."""
        known: Threads = {}
        if bounds == Bounds() and threads is not None and len(threads) > MANY_THREADS:
            # What is in a block is shown, to everybody.
            some = self._threads("with_blocks", spaces=_numbers(self.spaces))
            known = {thread: some[thread] for thread in threads if thread in some}
        kept = None if threads is None else [thread for thread in threads if thread not in known]
        if known and not kept:
            return known
        named = None if kept is None else _numbers(kept)
        return known | self._threads(
            "within", spaces=_numbers(self.spaces), threads=named, **bounds._asdict()
        )

    def newest_rows(self, query: str, bounds: Bounds, most: int) -> list[Row]:
        """What the query finds, newest threads first, up to `most`."""
        packed = self._run("newest_rows", query=self._query(query), most=most, **bounds._asdict()).fetchone()[
            0
        ]
        return _rows(packed)

    def rows_in(self, query: str, bounds: Bounds, threads: Collection[int]) -> list[Row]:
        """The rows that the query finds in these threads."""
        found: list[Row] = []
        each = list(threads)
        for at in range(0, len(each), NAMED_AT_ONCE):
            some = each[at : at + NAMED_AT_ONCE]
            packed = self._run(
                "of_threads",
                query=self._query(query),
                names=self._query(in_threads(some)),
                threads=_numbers(some),
                **bounds._asdict(),
            ).fetchone()[0]
            found += _rows(packed)
        return found

    def first_rows(self, threads: Collection[int], *, is_removed: bool) -> dict[int, First]:
        """Of these threads, all messages of which are hits: how many those are, and the one that opens it."""
        values = {"threads": _numbers(threads), "is_removed": is_removed, "user": 1 << USER}
        found = self._run("first_rows", **values) if threads else ()
        return {thread: First(matches, number) for thread, matches, number in found}

    def extras(self, numbers: Collection[int]) -> dict[int, str]:
        """The words without order of these rows."""
        return dict(self._run("extras", numbers=_numbers(numbers)).fetchall()) if numbers else {}

    def fitting(
        self,
        numbers: Collection[int],
        asks: Iterable[Ask],
        unwanted: Sequence[str],
        suspect: Sequence[str],
    ) -> dict[int, bool]:
        """Those of the rows whose streams hold a pattern of each ask and none of `unwanted`; whether one of
        `suspect` is there too."""
        asks = list(asks)
        found = self._run(
            "fitting",
            numbers=_numbers(numbers),
            unwanted=list(unwanted),
            suspect=list(suspect),
            text=["\n".join(ask.text) for ask in asks if ask.text],
            tools=["\n".join(ask.tools) for ask in asks if ask.tools],
            facts=["\n".join(ask.facts) for ask in asks if ask.facts],
        )
        return {number: is_suspect for number, is_unwanted, is_suspect in found if not is_unwanted}

    def split_rows(self, query: str) -> set[int]:
        """The first rows of messages in several parts, one of which the query finds."""
        asked = self._query(both(query, lexeme(streams.PART)))
        return {number for (number,) in self._run("parts", query=asked)}

    def wholes(self, numbers: Collection[int], bounds: Bounds) -> list[tuple[Row, int]]:
        """The rows of messages in several parts, with their threads' activity."""
        found = self._run("wholes", numbers=_numbers(numbers), **bounds._asdict())
        return [(Row(number, thread, at, fields), activity) for number, thread, activity, at, fields in found]

    def part_streams(self, numbers: Collection[int]) -> dict[int, streams.Stream]:
        """The whole streams of messages in several parts."""
        found: dict[int, streams.Stream] = {}
        for number, stream, extra, tools_at in self._run("part_streams", numbers=_numbers(numbers)):
            before = found.get(number)
            whole = stream if before is None else f"{before.stream} {stream}"
            found[number] = streams.Stream(whole, tools_at, extra)
        return found

    def texts(self, numbers: Collection[int]) -> dict[int, MessageText]:
        """What is searched of these messages, as the reader sees them."""
        if not numbers:
            return {}
        found = self._run("bodies", numbers=_numbers(numbers))
        texts = {}
        for number, is_for_others, body in found:
            message = rows.message_of(body)
            texts[number] = fields_of(as_others_see(message) if is_for_others else message)
        return texts

    def partly_known(self) -> int:
        """How many messages it looks at are longer than what is searched of them."""
        if not self._signed[1]:
            return 0  # nearly always, and a tenth of the time
        return int(self._run("partly_known", query=self._query(lexeme(streams.PARTIAL))).fetchone()[0])

    def newest(self, after: tuple[int, int] | None, limit: int) -> list[tuple[int, int]]:
        """(activity, number) of threads, newest first, after that one."""
        activity, number = after or (None, None)
        found = self._run(
            "newest_threads",
            spaces=_numbers(self.spaces),
            after_activity=activity,
            after_number=number,
            limit=limit,
        )
        return [(activity, number) for activity, number in found]


NAMED_AT_ONCE = 128
"""So many threads are named in one question for their rows."""
MANY_THREADS = 2_000
"""Of more than these, those that have a message are looked up together."""
FEW_THREADS = 64
"""So many threads are told to the index of words by name."""


def in_threads(threads: Iterable[int]) -> str:
    """The tsquery for rows of these threads."""
    return either(lexeme(f"{streams.THREAD}{thread}") for thread in threads)


def _numbers(numbers: Iterable[int]) -> str:
    """An array as PostgreSQL reads it: for thousands of numbers a fifth of the time of one that is sent as a list."""
    return "{" + ",".join(map(str, numbers)) + "}"


def _narrowed(query: str, threads: Collection[int] | None) -> tuple[str, list[int] | None]:
    if threads is None:
        return query, None
    if len(threads) <= FEW_THREADS:
        return both(query, in_threads(threads)), None
    return query, list(threads)


def _unpacked(data: bytes | None) -> array[int]:
    """Numbers as PostgreSQL sends them: eight bytes each, the greatest first."""
    numbers = array("q", data or b"")
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def _pairs(data: bytes | None) -> tuple[array[int], array[int]]:
    """Activities and numbers of threads."""
    numbers = _unpacked(data)
    return numbers[::2], numbers[1::2]


def _activities(data: bytes | None) -> Threads:
    activities, numbers = _pairs(data)
    return dict(zip(numbers, activities, strict=True))


def _rows(data: bytes | None) -> list[Row]:
    return list(map(Row._make, zip(*[iter(_unpacked(data))] * 4, strict=True)))


def as_reader_sees(summary: ThreadSummary, *, is_owner: bool) -> ThreadSummary:
    """A row of a list for its owner, or for another reader (what `view.view_for` leaves open)."""
    if is_owner:
        return summary
    source = None if summary.source is None else Source(agent=summary.source.agent, session_id="")
    return replace(
        summary, workspace_root=None, is_pinned=False, is_archived=False, is_private=False, source=source
    )
