"""What every reader of a session does alike, whatever its records say.

Owns how records reach a reader, how lines that are not handed over are counted, and how a kind that nobody knows is
named: once, and never with anything that may be a secret.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from raddle.actions.importing.importer import Problem
from raddle.actions.importing.records import Records, Shape

T = TypeVar("T")

_KIND = re.compile(r"[a-z]+(?:[-_][a-z]+)*\Z")
"""How a kind is spelt. What is spelt otherwise may be anything, a secret too, and is not repeated."""


def strange(what: str, kind: str) -> str:
    """What to say of a `what` (a line, a record) of a kind that is not known."""
    if not kind:
        return f"a {what} that says no kind"
    named = repr(kind) if _KIND.match(kind) else "one whose name is no plain word"
    return f"a kind of {what} that is not known: {named}"


class RecordReader(ABC, Generic[T]):
    """The base of a `Reader`: whoever extends it says in `_read` what becomes of a record. Arguments: see `Records`."""

    def __init__(self, decode: Callable[[bytes], T], fit: Callable[[Any], list[T]], shape: Shape) -> None:
        self._records: Records[T] = Records(decode, fit, shape)
        self._strange: set[str] = set()

    @property
    def problems(self) -> list[Problem]:
        """What could not be read as it stands, so far."""
        return self._records.problems

    def feed(self, lines: Iterable[bytes]) -> None:
        """Read complete lines, in order, each without its final newline."""
        for record, line in self._records.feed(lines):
            self._read(record, line)

    def skip_line(self, reason: str) -> None:
        """Count a line whose bytes are not handed over, and report it."""
        self._records.line += 1
        self._records.report(reason)

    def _read_tail(self, tail: bytes) -> None:
        """Read what stands after the last newline, where it is a whole record."""
        for record, line in self._records.finish(tail):
            self._read(record, line)

    @abstractmethod
    def _read(self, record: T, line: bytes) -> None:
        """Take in one record; `line`: its bytes."""

    def _report_stranger(self, what: str, kind: str) -> None:
        """Report, once, a kind of `what` (a line, a record) that is not known."""
        if kind not in self._strange:
            self._strange.add(kind)
            self._records.report(strange(what, kind))
