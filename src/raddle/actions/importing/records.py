"""Bytes of a session file to records, one a line, whatever a crash or another program did to the lines.

Owns the repair of damaged lines for every importer: a second place would repair them otherwise, and the same
file would give two threads. A good line costs one decode. A bad one costs itself: NUL bytes, half a UTF-8
character, a torn record with the next one glued to it, one object over several lines; what can be saved is,
and the reader is told line and reason.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from raddle.actions.importing.importer import MAX_LINE_BYTES, Problem
from raddle.actions.importing.json_values import TOKEN
from raddle.model.errors import BrokenFormat
from raddle.model.tolerant_json import NOT_UTF8, decode_tolerantly

T = TypeVar("T")

UNREADABLE = (msgspec.DecodeError, RecursionError)
"""What the strict decoder raises: broken JSON, bytes that are not UTF-8, unexpected types, deep nesting."""

MAX_PROBLEMS = 200
"""Problems of one file that are told one by one; more of them say nothing more."""

MISFIT = "fields of a type that is not known"
_PLACE = re.compile(r"`\$\.([\w.\[\]]+)`\Z")
_BOM = b"\xef\xbb\xbf"
_SCANS = 8


class Shape(Struct, frozen=True):
    """How one agent's record is known in the middle of damaged bytes.

    `starts`: what a record begins with. `is_record`: is this object a record, and not a part of one?
    """

    starts: re.Pattern[bytes]
    is_record: Callable[[dict[str, Any]], bool]


class Records(Generic[T]):
    """The records of one file, line by line; `line` is the number of the last line read, from 1.

    `decode` is strict and fast. `fit` makes records of a plain JSON value that `decode` refused, leaving out
    what does not fit; none where it is no record, several where it is a document that lists them. An object
    over several lines that is longer than `longest` bytes is given up.
    """

    def __init__(
        self,
        decode: Callable[[bytes], T],
        fit: Callable[[Any], list[T]],
        shape: Shape,
        *,
        longest: int = MAX_LINE_BYTES,
    ) -> None:
        self.line = 0
        self.problems: list[Problem] = []
        self._decode = decode
        self._fit = fit
        self._shape = shape
        self._longest = longest
        self._open: _OpenObject | None = None
        self._seen = b""
        """The line being read, as it stands in the file; empty where it is of several."""

    @property
    def is_between_records(self) -> bool:
        """Is no object open that began on an earlier line?"""
        return self._open is None

    def feed(self, lines: Iterable[bytes]) -> Iterator[tuple[T, bytes]]:
        """(record, its bytes) of every record in `lines`."""
        decode = self._decode
        for line in lines:
            self.line += 1
            self._seen = line
            if self._open is not None:
                yield from self._read_on(line)
                continue
            try:
                record = decode(line)
            except UNREADABLE:
                yield from self._damaged(line)
            else:
                yield record, line

    def finish(self, tail: bytes) -> Iterator[tuple[T, bytes]]:
        """The record that `tail` holds, where it is whole; `line` stays where the last newline is."""
        if self._open is not None and not self._shape.starts.match(tail):
            yield from self._read_on(tail)
            tail = b""
        self._give_up()
        if not tail.strip():
            return
        self._seen = tail
        try:
            yield self._decode(tail), tail
        except UNREADABLE:
            yield from self._damaged_tail(tail)

    def _damaged_tail(self, tail: bytes) -> Iterator[tuple[T, bytes]]:
        number = self.line + 1
        records = self._fitted(tail, [], number)
        yield from ((record, tail) for record in records)
        if records:
            return
        pieces = list(self._between_returns(tail))
        if pieces:
            self.report("lines that end in a carriage return alone", line=number)
        elif _is_json(tail):
            self.report("not a record", line=number)
        else:
            self.report("the last line is not finished", line=number)
        yield from pieces

    def _between_returns(self, tail: bytes) -> Iterator[tuple[T, bytes]]:
        """The records of lines that end as those of the first Macintosh did. In JSON itself no such end stands."""
        for piece in tail.split(b"\r") if b"\r" in tail.strip() else ():
            with contextlib.suppress(*UNREADABLE):
                yield self._decode(piece), piece

    def report(self, reason: str, *, line: int = 0) -> None:
        """Tell that something is wrong with `line` (0: the one being read)."""
        if not line or line == self.line:
            reason = self._located(reason)
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(line=line or self.line, reason=reason))
        elif len(self.problems) == MAX_PROBLEMS:
            self.problems.append(
                Problem(line=line or self.line, reason="… and more that are not told one by one")
            )

    def _located(self, reason: str) -> str:
        """The same with the place in the line that is read: whoever repaired a part of it does not know that."""
        if NOT_UTF8 not in reason:
            return reason
        try:
            self._seen.decode()
        except UnicodeDecodeError as error:
            return reason.replace(NOT_UTF8, f"{NOT_UTF8} at offset {error.start}")
        return reason

    def _damaged(self, line: bytes) -> Iterator[tuple[T, bytes]]:
        """What a line holds that is not exactly one JSON record."""
        if not line.strip():
            return
        reasons = []
        if b"\0" in line:
            line = line.replace(b"\0", b"")
            reasons.append("NUL bytes")
        if not line.strip():
            self.report("nothing but NUL bytes")
            return
        records = self._fitted(line, reasons, self.line)
        if records:
            yield from ((record, line) for record in records)
            return
        pieces = list(self._pieces(line))
        if pieces:
            told = "records glued together on one line" if len(pieces) > 1 else "a torn record"
            self.report(", ".join([*reasons, told]))
            for piece in pieces:
                yield from ((record, piece) for record in self._fit(decode_tolerantly(piece)[0]))
            return
        opened = _OpenObject(self.line, line)
        if opened.is_open:
            self._open = opened
        else:
            self.report(", ".join([*reasons, "not a record"]))

    def _fitted(self, piece: bytes, reasons: list[str], number: int) -> list[T]:
        """The records of `piece`, if it is one whole JSON value that can be one; repairs are reported."""
        try:
            value, repairs = decode_tolerantly(piece)
        except (BrokenFormat, RecursionError):
            return []
        records = self._fit(value)
        if records:
            told = [*reasons, *dict.fromkeys(repairs)] or [misfit(self._decode, piece)]
            self.report(", ".join(told), line=number)
        return records

    def _pieces(self, line: bytes) -> Iterator[bytes]:
        """The whole records inside `line`: one after the other, or after the torn start of another one."""
        at, is_torn = 0, False
        budget = _SCANS * len(line)  # or many torn starts on a long line would cost its length each
        while at < len(line) and budget > 0:
            end = _end_of_value(line, at)
            budget -= (end or len(line)) - at
            if end and self._is_record(line[at:end], is_torn=is_torn):
                yield line[at:end]
                at = end
                continue
            is_torn = True
            start = self._shape.starts.search(line, at + 1)
            if start is None:
                return
            at = start.start()

    def _is_record(self, piece: bytes, *, is_torn: bool) -> bool:
        """Is this a record? After a torn start it may be a part of that one, and must look like a whole."""
        try:
            value, _ = decode_tolerantly(piece)
        except (BrokenFormat, RecursionError):
            return False
        if not isinstance(value, dict):
            return False
        return self._shape.is_record(value) if is_torn else bool(self._fit(value))

    def _read_on(self, line: bytes) -> Iterator[tuple[T, bytes]]:
        """One more line while an object is open: part of it, or a record, and the open one was torn."""
        opened = self._open
        if opened is None:
            return
        if self._shape.starts.match(line):
            self._give_up()
            self.line -= 1
            yield from self.feed((line,))
            return
        opened.add(line)
        if opened.is_open:
            if opened.size > self._longest:
                self._give_up()
            return
        self._open, self._seen = None, b""
        whole = opened.whole()
        records = self._fitted(whole, ["a JSON object over several lines"], opened.line)
        if not records:
            self.report("several lines that are no record", line=opened.line)
        yield from ((record, whole) for record in records)

    def _give_up(self) -> None:
        if self._open is not None:
            self.report("a torn record", line=self._open.line)
            self._open = None


def misfit(decode: Callable[[bytes], object], data: bytes) -> str:
    """Why the strict `decode` refuses what is JSON, and a record: the field, by its names alone."""
    if data.startswith(_BOM):
        return "a byte order mark before it"
    try:
        decode(data)
    except msgspec.ValidationError as error:
        place = _PLACE.search(str(error))
        return f"{MISFIT}: {place.group(1)}" if place is not None else MISFIT
    except UNREADABLE:
        return "JSON that is not quite that, and was mended"
    return MISFIT


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except UNREADABLE:
        return False
    return True


class _OpenObject:
    """A JSON object or list that began on `line` and has not ended yet."""

    def __init__(self, line: int, first: bytes) -> None:
        self.line = line
        self.size = 0
        self._parts: list[bytes] = []
        self._depth = 0
        self._in_text = False
        self.add(first)

    @property
    def is_open(self) -> bool:
        return self._depth > 0 and self._parts[0].lstrip()[:1] in (b"{", b"[")

    def add(self, line: bytes) -> None:
        """One more line. A text that is open at its end goes on in the next one."""
        scanned = b'"' + line if self._in_text else line
        self._parts.append(line)
        self.size += len(line) + 1
        self._in_text = False
        for token in TOKEN.finditer(scanned):
            mark = token.group()
            if mark in (b"{", b"["):
                self._depth += 1
            elif mark in (b"}", b"]"):
                self._depth -= 1
            else:
                self._in_text = len(mark) == 1 or not mark.endswith(b'"') or _ends_escaped(mark)

    def whole(self) -> bytes:
        return b"\n".join(self._parts)


def _ends_escaped(text: bytes) -> bool:
    """Is the quote at the end of `text` an escaped one, so that the text goes on?"""
    backslashes = len(text) - 1 - len(text[:-1].rstrip(b"\\"))
    return backslashes % 2 == 1


def _end_of_value(line: bytes, start: int) -> int:
    """Where the object that begins at `start` ends; 0 where none begins there, or it does not end.

    Brackets are counted and not paired, as `end_of_brackets` does: among torn texts odd pairs are the rule, and each
    scan that gave up at one would take the rest of the line from what may be scanned.
    """
    if line[start : start + 1] != b"{":
        return 0
    depth = 0
    for token in TOKEN.finditer(line, start):
        mark = token.group()
        if mark in (b"{", b"["):
            depth += 1
        elif mark in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return token.end()
    return 0
