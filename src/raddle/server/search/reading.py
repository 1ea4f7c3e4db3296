"""Reads the tables of search for one reader: every row that leaves here is one that they may see.

The one place that runs the queries of `search.sql`, all of which ask for access themselves: a second one could
forget to.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from msgspec.structs import replace
from psycopg import Connection

from raddle.model.threads.search_fields import MessageText, fields_of
from raddle.model.threads.summary import Source, ThreadSummary
from raddle.model.threads.view import as_others_see
from raddle.server import rows
from raddle.server.search import streams
from raddle.server.search.asking import MOST_FRAGMENT_TERMS, Ask, both, either, for_spaces, lexeme
from raddle.server.tables.queries import queries

SQL = queries("raddle.server.search", "search.sql")
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
        # Unprepared, since a plan that knows the words is many times as fast as one that does not.
        values["reader"] = self.reader.user
        return self._connection.execute(SQL[name], values, prepare=False, binary=True)

    def _threads(self, name: str, **values: Any) -> Threads:
        return _activities(self._run(name, **values).fetchone()[0])

    def _query(self, query: str) -> str:
        return for_spaces(query, self.spaces)

    def containing(self, fragment: str) -> list[str]:
        """Words of the vocabulary that hold the fragment: one more than `MOST_FRAGMENT_TERMS` at most."""
        pattern = "%" + fragment.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_") + "%"
        found = self._run("containing", spaces=self.spaces, pattern=pattern, most=MOST_FRAGMENT_TERMS + 1)
        return [term for (term,) in found]

    def count(self) -> int:
        """How many threads there are to look at."""
        return int(self._run("readable", spaces=self.spaces).fetchone()[0])

    def all(self) -> Threads:
        """All threads there are to look at."""
        return self._threads("all_readable", spaces=self.spaces)

    def flagged(self, flag: str) -> Threads:
        """The reader's own threads that are `pinned` or `archived`; what others marked is not told."""
        return self._threads("flagged", spaces=self.spaces, flag=flag)

    def headers(self, ask: Ask, *, is_fact: bool = False, is_owner: bool = False) -> Threads:
        """Threads whose header fits, `is_owner`: of the reader's own; `is_fact`: what filters ask for."""
        return self._threads(
            "headers", query=self._query(ask.words), text=list(ask.text), is_fact=is_fact, is_owner=is_owner
        )

    def summaries(self, numbers: Collection[int]) -> dict[int, ThreadSummary]:
        """What lists show of these threads, as the reader sees it."""
        found = self._run("summaries", numbers=list(numbers))
        return {
            number: as_reader_sees(msgspec.json.decode(summary, type=ThreadSummary), is_owner=is_owner)
            for number, is_owner, summary in found
        }

    def found(self, query: str, bounds: Bounds, threads: Collection[int] | None) -> Threads:
        """Threads with a row that the query finds; `threads`: in these alone."""
        query, kept = _narrowed(query, threads)
        return self._threads("found", query=self._query(query), threads=kept, **bounds._asdict())

    def found_in_blocks(self, query: str, bounds: Bounds) -> Threads:
        """Threads with words of the texts that the query finds, all of which may stand in different messages of 64."""
        found = self._threads("found_in_blocks", query=self._query(query), spaces=self.spaces)
        alone = self.found(both(query, lexeme(streams.ALONE)), bounds, None)
        return found | alone if alone else found

    def newest_in_blocks(
        self, query: str, after: tuple[int, int] | None, never: Collection[int], most: int
    ) -> tuple[int, Threads]:
        """How many threads a query finds that asks for any of some words, without bounds, and the newest of those
        behind `after`, newest first; those in `never` left out."""
        activity, number = after or (None, None)
        alone = self.found(both(query, lexeme(streams.ALONE)), Bounds(), None)
        count, packed = self._run(
            "newest_in_blocks",
            query=self._query(query),
            spaces=self.spaces,
            alone=list(alone),
            never=list(never),
            after_activity=activity,
            after_number=number,
            most=most,
        ).fetchone()
        return count, _activities(packed)

    def called(self, thread_id: str) -> Threads:
        """The threads of that id."""
        return self._threads("thread_numbers", thread_id=thread_id, spaces=self.spaces)

    def within(self, bounds: Bounds, threads: Collection[int] | None) -> Threads:
        """Threads with a row in these bounds."""
        known: Threads = {}
        if bounds == Bounds() and threads is not None and len(threads) > MANY_THREADS:
            # What is in a block is shown, to everybody.
            some = self._threads("with_blocks", spaces=self.spaces)
            known = {thread: some[thread] for thread in threads if thread in some}
        kept = None if threads is None else [thread for thread in threads if thread not in known]
        if known and not kept:
            return known
        return known | self._threads("within", spaces=self.spaces, threads=kept, **bounds._asdict())

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
            asked = self._query(both(query, in_threads(some)))
            packed = self._run("of_threads", query=asked, threads=some, **bounds._asdict()).fetchone()[0]
            found += _rows(packed)
        return found

    def extras(self, numbers: Collection[int]) -> dict[int, str]:
        """The words without order of these rows."""
        return dict(self._run("extras", numbers=list(numbers)).fetchall()) if numbers else {}

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
            numbers=list(numbers),
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
        found = self._run("wholes", numbers=list(numbers), **bounds._asdict())
        return [(Row(number, thread, at, fields), activity) for number, thread, activity, at, fields in found]

    def part_streams(self, numbers: Collection[int]) -> dict[int, streams.Stream]:
        """The whole streams of messages in several parts."""
        found: dict[int, streams.Stream] = {}
        for number, stream, extra, tools_at in self._run("part_streams", numbers=list(numbers)):
            before = found.get(number)
            whole = stream if before is None else f"{before.stream} {stream}"
            found[number] = streams.Stream(whole, tools_at, extra)
        return found

    def texts(self, numbers: Collection[int]) -> dict[int, MessageText]:
        """What is searched of these messages, as the reader sees them."""
        if not numbers:
            return {}
        found = self._run("bodies", numbers=list(numbers))
        texts = {}
        for number, is_for_others, body in found:
            message = rows.message_of(body)
            texts[number] = fields_of(as_others_see(message) if is_for_others else message)
        return texts

    def partly_known(self) -> int:
        """How many messages it looks at are longer than what is searched of them."""
        asked = self._query(lexeme(streams.PARTIAL))
        if not self._run("has_rows", query=asked).fetchone()[0]:
            return 0  # nearly always, and a tenth of the time
        return int(self._run("partly_known", query=asked).fetchone()[0])

    def newest(self, after: tuple[int, int] | None, limit: int) -> list[tuple[int, int]]:
        """(activity, number) of threads, newest first, after that one."""
        activity, number = after or (None, None)
        found = self._run(
            "newest_threads", spaces=self.spaces, after_activity=activity, after_number=number, limit=limit
        )
        return [(activity, number) for activity, number in found]


NAMED_AT_ONCE = 32
"""So many threads are named in one question for their rows; what twice as many cost is more than twice as much."""
MANY_THREADS = 2_000
"""Of more than these, those that have a message are looked up together."""
FEW_THREADS = 64
"""So many threads are told to the index of words by name."""


def in_threads(threads: Iterable[int]) -> str:
    """The tsquery for rows of these threads."""
    return either(lexeme(f"{streams.THREAD}{thread}") for thread in threads)


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


def _activities(data: bytes | None) -> Threads:
    numbers = _unpacked(data)
    return dict(zip(numbers[1::2], numbers[::2], strict=True))


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
