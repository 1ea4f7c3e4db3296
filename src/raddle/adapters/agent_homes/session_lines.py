"""A session that is not a file of its own, as the lines that a file of it would have.

Owns how such lines are counted and known again. They are made anew at each reading, so equal sessions must give
equal bytes; a session that only got more lines at its end is one that grew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from raddle.actions.importing.run_plan import HEAD_BYTES, SourceEntry
from raddle.actions.importing.source_reading import KeepBytes, Lines, Tail, TooLong
from raddle.adapters.agent_homes.line_batches import batches


class SessionLines:
    """The lines (without their ends) of one session, held in memory. `read` gives them as a file's."""

    is_repeatable = True

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._bytes = b"".join(line + b"\n" for line in lines)
        self._lines = lines

    def grew_from(self, entry: SourceEntry) -> bool:
        """Does what was read before still stand at the beginning?"""
        if not entry.read_to:
            return True
        if len(self._bytes) < entry.read_to:
            return False
        return self.head(entry.read_to) == entry.head and self.tail(entry.read_to) == entry.tail

    def head(self, read_to: int) -> str:
        """Hash of the first bytes, of those before `read_to`."""
        return _hash(self._bytes[: min(HEAD_BYTES, read_to)])

    def tail(self, read_to: int) -> str:
        """Hash of all bytes before `read_to`: they are there anyway, and a change in the middle shows."""
        return _hash(self._bytes[:read_to])

    def read(
        self, start: int, first: int, keep: KeepBytes, *, end: int | None = None
    ) -> Iterator[Lines | TooLong | Tail]:
        """The lines from the offset `start`, which is line `first`, to `end` (None: the last), in batches."""
        keep(self._bytes[start:end])
        yield from batches(self._between(start, end), start, first)

    def _between(self, start: int, end: int | None) -> Iterator[bytes]:
        offset = 0
        for line in self._lines:
            if offset >= start and (end is None or offset + len(line) < end):
                yield line
            offset += len(line) + 1

    def close(self) -> None:
        """Nothing is open."""


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
