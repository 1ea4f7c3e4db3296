"""A printed JSON document that lists messages, cut into records where it is indented, in memory that does not grow.

Owns how such a document is cut and mended. Gemini CLI wrote a session as one document until 2026, printed anew at
each save; cut at its lines, a damaged one costs one message and not the session. A text holds no line end there, so
the indentation is the structure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import islice

from raddle.actions.importing.fitting import decoded, encode
from raddle.actions.importing.gemini_cli_lines import Record, decode_record, fit_record
from raddle.actions.importing.records import UNREADABLE, misfit
from raddle.model.errors import BrokenFormat
from raddle.model.tolerant_json import decode_tolerantly

Report = Callable[[str, int], None]
"""Tells what is wrong with a line, by its number."""

LONGEST = 64 << 20
"""Bytes of one message of a document; a longer one is given up."""

_BOM = b"\xef\xbb\xbf"
_LIST = re.compile(rb'"(?:messages|history)"\s*:\s*\[')
_INDENT = re.compile(rb'([ \t]+)["{}\]]')
_ROUNDS = 6
"""Lines that are left out of a message, one after the other, so that the rest of it can be read."""
_LARGE = 1 << 20
"""Bytes of a message that is tried once only."""


def begins_document(line: bytes) -> bool:
    """Is this a line of a printed document? A record that is a line of its own starts at its first column."""
    if line[:1] in (b" ", b"\t"):
        return bool(line.strip())
    line = line.removeprefix(_BOM)
    return line[:1] == b"{" and line[1:2] in (b"", b" ", b"\t", b"\r") and not line.rstrip().endswith(b"}")


class Document:
    """The records of one document, line by line: what it says of itself, then its messages."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._lines: list[bytes] = []
        self._first = 0
        self._size = 0
        self._is_message = False
        self._step = b"  "
        self._inner = self._step * 3
        self._is_measured = False

    def take(self, lines: list[bytes], start: int) -> int:
        """Take in lines from `start` on, as long as they are inside a message, as nearly all are; where that ends."""
        if not self._is_message:
            return start
        inner, at = self._inner, start
        for line in islice(lines, start, None):
            if not line.startswith(inner):
                break
            at += 1
        taken = lines[start:at]
        self._size += sum(map(len, taken)) + len(taken)
        if self._size <= LONGEST:
            self._lines += taken
        return at

    def feed(self, line: bytes, number: int) -> Iterator[Record]:
        """The records that end with this line."""
        line = line.removeprefix(_BOM).rstrip(b"\r")
        if not line.strip():
            return
        found = None if self._is_measured else _INDENT.match(line)
        if found is not None:
            self._step, self._inner, self._is_measured = found.group(1), found.group(1) * 3, True
        yield from self._read(line, number)

    def finish(self) -> Iterator[Record]:
        """Nothing more comes. A message that has not ended is not read: it may be half of one."""
        if self._lines and self._is_message:
            self._report("the document is not finished", self._first)
            self._lines = []
        yield from self._close()

    def _read(self, line: bytes, number: int) -> Iterator[Record]:
        step = self._step
        if line.startswith((step + b"{", step * 2 + b"{")) and not self._is_field_open():
            yield from self._close()
            self._open(line, number, is_message=True)
        elif line.startswith(step * 2 + b"}") and self._is_message:
            end = len(step) * 2 + 1
            self._add(line[:end])
            yield from self._close()
            yield from self._rest(line[end:], number)
        elif line.startswith(step + b'"'):
            yield from self._close()
            yield from self._field(line, number)
        elif line.startswith((step + b"]", step + b"}")):
            yield from self._end_list(line, number)
        elif line[:1] == b"{":
            yield from self._close()
            yield from self._rest(line[1:], number)
        elif line.rstrip() == b"}":
            yield from self._close()
        elif self._lines:
            self._add(line)
        elif line.startswith(self._inner + b'"'):
            self._open(b"{" + line, number, is_message=True)
        else:
            self._report("nothing but NUL bytes" if not line.strip(b"\0 ") else "not a record", number)

    def _is_field_open(self) -> bool:
        """Is this inside a field of the document, that is no list of messages?"""
        return bool(self._lines) and not self._is_message

    def _rest(self, rest: bytes, number: int) -> Iterator[Record]:
        """What stands on the same line behind the end of something: two lines that are glued together."""
        text = rest.lstrip(b", \t")
        if not text:
            return
        depth = 1 if text[:1] in b'"]' else 0 if text.rstrip() == b"}" else 2
        yield from self._read(self._step * depth + text, number)

    def _field(self, line: bytes, number: int) -> Iterator[Record]:
        """A field of the document; where it is the list of messages, they come next."""
        found = _LIST.search(line)
        if found is None:
            yield from self._whole_field(line, number)
            return
        if line[: found.start()].strip():
            yield from self._whole_field(line[: found.start()], number)
        rest = line[found.end() :].lstrip()
        if rest and not rest.startswith(b"]"):
            yield from self._read(self._step * 2 + rest, number)

    def _whole_field(self, line: bytes, number: int) -> Iterator[Record]:
        """One field, or several that are glued together; one that goes on in the next lines is held open."""
        text = b"{" + line.rstrip(b", \t")
        record = decoded(text + b"}", Record) or decoded(text, Record)
        if record is not None:
            yield record
        elif line.endswith((b"{", b"[")):
            self._open(line, number, is_message=False)
        else:
            self._report("not a record", number)

    def _end_list(self, line: bytes, number: int) -> Iterator[Record]:
        end = len(self._step) + 1
        if self._is_field_open():
            self._add(line[:end])
        yield from self._close()
        yield from self._rest(line[end:], number)

    def _open(self, line: bytes, number: int, *, is_message: bool) -> None:
        self._first, self._is_message = number, is_message
        self._lines, self._size = [line], len(line)

    def _add(self, line: bytes) -> None:
        self._size += len(line) + 1
        if self._size <= LONGEST:
            self._lines.append(line)

    def _close(self) -> Iterator[Record]:
        """The record that is open, if there is one."""
        lines, self._lines = self._lines, []
        is_message, self._is_message = self._is_message, False
        if not lines:
            return
        if self._size > LONGEST:
            self._report(f"a message of {self._size:,} bytes is too long to read", self._first)
            return
        if not is_message:
            lines = [b"{" + lines[0], *lines[1:]]
        data = b"\n".join(lines).rstrip(b", \t\r\n") + (b"" if is_message else b"}")
        try:
            yield decode_record(data)
        except UNREADABLE:
            yield from mended(data.split(b"\n"), self._first, self._report)


def mended(lines: list[bytes], first: int, report: Report) -> Iterator[Record]:
    """The record that these lines hold, without those that do not belong to it; `first`: the number of the first."""
    numbered = []
    for number, line in enumerate(lines, first):
        if b"\0" in line:
            report("NUL bytes", number)
            line = line.replace(b"\0", b"")
        numbered.append((number, line))
    dropped: list[int] = []
    for _ in range(_ROUNDS if sum(map(len, lines)) < _LARGE else 1):
        record, place = _tried(numbered, first if not dropped else 0, report)
        if record is not None:
            for number in dropped:
                report("not a record", number)
            yield record
            return
        if place < 0:
            break
        candidates = [numbered[:at] + numbered[at + 1 :] for at in (place, place - 1) if at >= 0]
        gone = [numbered[at][0] for at in (place, place - 1) if at >= 0]
        reached = [_stumbles(one) for one in candidates]
        best = reached.index(max(reached))
        numbered = candidates[best]
        dropped.append(gone[best])
    report("a message that cannot be read", first)


def _tried(numbered: list[tuple[int, bytes]], told: int, report: Report) -> tuple[Record | None, int]:
    """(the record, -1), or (None, the place of the line where it stops being JSON; -1: it is JSON, and no record)."""
    data = b"\n".join([line for _, line in numbered])
    for whole in (data, data.rstrip(b", \t\r\n") + b"}"):
        try:
            value, repairs = decode_tolerantly(whole, with_controls=False)
        except (BrokenFormat, RecursionError):
            continue
        if not isinstance(value, dict):
            return None, -1
        if told:
            reasons = [*dict.fromkeys(repairs)] or [misfit(decode_record, encode(value))]
            is_cut = whole is not data
            report(", ".join(["a message without its end"] if is_cut else reasons), told)
        return fit_record(value), -1
    return None, _stumbles(numbered)


def _stumbles(numbered: list[tuple[int, bytes]]) -> int:
    """The place of the line where these stop being JSON; one past the last where they do not."""
    text = b"\n".join([line for _, line in numbered]).decode(errors="replace")
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return min(error.lineno, len(numbered)) - 1
    except RecursionError:
        return -1
    return len(numbered)
