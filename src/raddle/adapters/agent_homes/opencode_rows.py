"""Lines of JSON from the records of OpenCode, in whichever of its stores they lie.

Owns the form of such lines: equal records give equal bytes, on every machine. A session comes with the sessions of
its sub-agents, all messages in the order of their times. What follows a reading is what changed since, and what has
to be known to place it: the message before, and the one that is answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from raddle.actions.importing.run_plan import SourceEntry
from raddle.actions.importing.source_reading import KeepBytes, Lines, Tail, TooLong, Unread
from raddle.adapters.agent_homes.line_batches import batches
from raddle.model.errors import BrokenFormat
from raddle.model.tolerant_json import decode_tolerantly

FORM = "opencode-lines-1"
"""Of the lines: another one is another generation."""

_encode = msgspec.json.Encoder().encode


class Header(NamedTuple):
    """A session, as its record says. Times in milliseconds. `reverted`: the message from which on it is taken back."""

    session: str
    parent: str
    created: int
    updated: int
    fields: dict[str, Any]
    reverted: str = ""


class Row(NamedTuple):
    """A message, but for what it says. `created` (of two that tell none, the order), `updated`: milliseconds."""

    message: str
    session: str
    created: int
    updated: int


class Body(NamedTuple):
    """What a message says: its record and its parts as JSON objects, and when any of them was last changed."""

    info: bytes
    parts: list[bytes]
    updated: int


class Rows(Protocol):
    """The records of one store, at one moment."""

    def tree(self, session: str) -> list[Header]:
        """The session and those of its sub-agents, it first."""

    def messages(self, session: str) -> list[Row]:
        """Its messages, in any order."""

    def changed(self, session: str, since: int) -> set[str]:
        """Ids of those that changed, or of which a part did, at `since` or later."""

    def body(self, row: Row) -> Body | None:
        """What a message says; None where its record is damaged."""

    def losses(self) -> str:
        """What of that which was asked for cannot be read; empty where all could be."""

    def check(self) -> None:
        """After reading: SourceError where it was not of one moment."""

    def close(self) -> None:
        """Let go of the store."""


class _Answers(Struct, frozen=True, rename={"parent_id": "parentID"}):
    """The message that another one answers."""

    parent_id: str | None = None


class OpenRows:
    """The lines of one session, made as they are read (an `OpenSource`).

    From the start it gives all; from any other offset what changed since, by the times that the records tell (the
    greatest is kept in `tail`).
    """

    is_repeatable = False

    def __init__(self, rows: Rows, session: str) -> None:
        self._rows = rows
        self._session = session
        self._since = 0
        self._greatest = 0

    def grew_from(self, entry: SourceEntry) -> bool:
        """Can what changed since be told?"""
        if not entry.read_to:
            return True
        if entry.head != FORM or not entry.tail.isdecimal():
            return False
        self._since = int(entry.tail)
        return True

    def head(self, read_to: int) -> str:
        """The form of the lines."""
        return FORM

    def tail(self, read_to: int) -> str:
        """The time up to which changes were read, in milliseconds; empty where that is not all there is."""
        return "" if self._rows.losses() else str(self._greatest)

    def read(
        self, start: int, first: int, keep: KeepBytes, *, end: int | None = None
    ) -> Iterator[Lines | TooLong | Tail | Unread]:
        """Lines, the first of which is number `first` at the offset `start`. `end` says nothing: a reading from the
        start is another than the one that ended there."""
        yield from batches(self._kept(self._since if start else 0, keep), start, first)
        self._rows.check()
        if lost := self._rows.losses():
            yield Unread(first, lost)

    def close(self) -> None:
        """Let go of the store."""
        self._rows.close()

    def _kept(self, since: int, keep: KeepBytes) -> Iterator[bytes]:
        for line in self._lines(since):
            keep(line + b"\n")
            yield line

    def _lines(self, since: int) -> Iterator[bytes]:
        headers = self._rows.tree(self._session)
        self._greatest = since
        rows: list[Row] = []
        for header in headers:
            self._greatest = max(self._greatest, header.updated)
            rows += self._rows.messages(header.session)
        rows.sort(key=lambda row: (row.created, row.message))
        before: dict[str, str] = {}
        """Of a part of a session alone: of a whole one each message follows the last, and there may be many."""
        if since:
            before = _predecessors(rows)
            rows = self._since_then(headers, rows, before, since)
        told = {row.session for row in rows}
        for header in headers:
            if header.session == self._session or header.session in told or header.updated >= since:
                yield _encode({"opencode": "session", "id": header.session, **header.fields})
        passed: set[str] = set()
        last: dict[str, str] = {}
        for row in rows:
            body = self._rows.body(row)
            if body is None:
                passed.add(row.message)
                continue
            self._greatest = max(self._greatest, row.updated, body.updated)
            after = before.get(row.message) if since else last.get(row.session)
            while since and after in passed:
                after = before.get(after)
            last[row.session] = row.message
            yield _line(row, after, body)

    def _since_then(
        self, headers: list[Header], rows: list[Row], before: dict[str, str], since: int
    ) -> list[Row]:
        """Those that changed, those that were taken back, and those that place them."""
        by_id = {row.message: row for row in rows}
        wanted: set[str] = set()
        for header in headers:
            wanted |= self._rows.changed(header.session, since)
            if (back := by_id.get(header.reverted)) is not None:
                wanted |= {row.message for row in rows if row.created >= back.created}
        above = {before[one] for one in wanted if one in before}
        for one in [*wanted, *above]:
            if (row := by_id.get(one)) is not None and (answered := self._answered(row)) in by_id:
                above.add(answered)
        return [row for row in rows if row.message in wanted or row.message in above]

    def _answered(self, row: Row) -> str:
        body = self._rows.body(row)
        try:
            found = msgspec.json.decode(body.info if body is not None else b"", type=_Answers)
        except (msgspec.DecodeError, RecursionError):
            return ""
        return found.parent_id or ""


def _predecessors(rows: list[Row]) -> dict[str, str]:
    """Message -> the one before it in its session. `rows`: in the order of their times."""
    before: dict[str, str] = {}
    last: dict[str, str] = {}
    for row in rows:
        if row.session in last:
            before[row.message] = last[row.session]
        last[row.session] = row.message
    return before


def _line(row: Row, after: str | None, body: Body) -> bytes:
    """A message as a line; its records stand in it as they are."""
    start = _encode({"opencode": "message", "id": row.message, "session": row.session, "after": after})
    return b"".join((start[:-1], b',"info":', body.info, b',"parts":[', b",".join(body.parts), b"]}"))


def as_object(data: bytes, **fields: Any) -> bytes:
    """A record on one line, with `fields` before its own; where it is no JSON object, its text under `unreadable`."""
    try:
        compact = msgspec.json.format(data, indent=-1)
    except (msgspec.DecodeError, RecursionError):
        compact = _mended(data)
        fields = {**fields, "mended": True} if compact[:1] == b"{" else fields
    if compact[:1] != b"{":
        return _encode({**fields, "unreadable": data.decode(errors="replace")})
    if not fields:
        return compact
    start = _encode(fields)
    return start if compact == b"{}" else start[:-1] + b"," + compact[1:]


def _mended(data: bytes) -> bytes:
    """JSON that is not quite that, as it should be; nothing where it cannot be told."""
    try:
        return _encode(decode_tolerantly(data)[0])
    except (BrokenFormat, RecursionError):
        return b""


def roots_of(parents: dict[str, str]) -> dict[str, str]:
    """Session -> the one that it lies below, however far: itself where its parent is not there, or in a circle the
    least of it."""
    roots: dict[str, str] = {}
    for session in parents:
        way: list[str] = []
        at = session
        while at not in roots and at not in way and parents.get(at, "") in parents:
            way.append(at)
            at = parents[at]
        root = roots.get(at) or (min(way[way.index(at) :]) if at in way else at)
        for one in (*way, at):
            roots[one] = root
    return roots
