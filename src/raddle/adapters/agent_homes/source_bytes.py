"""The bytes of another agent's file, read in whole lines, in bounded memory, and never written to.

Lines end at `\\n` only: other line separators stand inside records. What is read is what was there when the
file was opened; a file that is still being written gives its last, unfinished line the next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from raddle.actions.importing.importer import MAX_LINE_BYTES
from raddle.actions.importing.run_plan import HEAD_BYTES, SourceEntry
from raddle.actions.importing.session import KeepBytes, Lines, Tail, TooLong
from raddle.adapters.files import storage_error

CHUNK_BYTES = 1 << 20


class SourceBytes:
    """One file, open for reading."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise storage_error(error, Path(path), "read") from error

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)

    def grew_from(self, entry: SourceEntry) -> bool:
        """Does the part that was read before still stand there? (Its beginning and its end are compared.)"""
        if os.fstat(self._fd).st_size < entry.read_to:
            return False
        return self.head(entry.read_to) == entry.head and self.tail(entry.read_to) == entry.tail

    def head(self, read_to: int) -> str:
        """Hash of the first bytes, of those before `read_to`."""
        return _hash(self._pread(0, min(HEAD_BYTES, read_to)))

    def tail(self, read_to: int) -> str:
        """Hash of the last bytes before `read_to`."""
        start = max(0, read_to - HEAD_BYTES)
        return _hash(self._pread(start, read_to - start))

    def _pread(self, offset: int, size: int) -> bytes:
        try:
            return os.pread(self._fd, size, offset)
        except OSError as error:
            raise storage_error(error, Path(self.path), "read") from error

    def first_line(self, most: int = 1 << 16) -> bytes:
        """The first line, or as much of it as `most` bytes hold."""
        return self._pread(0, most).partition(b"\n")[0]

    def read(self, start: int, first: int, keep: KeepBytes) -> Iterator[Lines | TooLong | Tail]:
        """Lines from the offset `start`, which is line `first`, in batches; every byte that is read goes to `keep`,
        those of a line that is too long (`MAX_LINE_BYTES`) and of the tail too."""
        number, offset, carry, dropped = first, start, b"", 0
        with contextlib.suppress(AttributeError, OSError):  # advice only; not every system or file takes it
            os.posix_fadvise(self._fd, start, 0, os.POSIX_FADV_SEQUENTIAL)
        position = start
        while chunk := self._pread(position, CHUNK_BYTES):
            position += len(chunk)
            end = chunk.rfind(b"\n") + 1
            if not end:
                carry, dropped = _carry(carry, chunk, dropped, keep)
                continue
            whole = carry + chunk[:end]
            carry = chunk[end:]
            keep(whole)
            lines = whole[:-1].split(b"\n")
            offset += len(whole) + dropped
            if dropped:
                size = dropped + len(lines.pop(0))
                yield TooLong(number, size, offset - sum(len(line) + 1 for line in lines))
                number, dropped = number + 1, 0
            if lines:
                yield Lines(lines, number, offset)
                number += len(lines)
        keep(carry)
        if dropped:
            yield TooLong(number, dropped + len(carry), offset + dropped + len(carry))
        elif carry:
            yield Tail(carry)


def _carry(carry: bytes, chunk: bytes, dropped: int, keep: KeepBytes) -> tuple[bytes, int]:
    """The line so far; once it is too long its bytes are only kept, not held."""
    carry += chunk
    if dropped or len(carry) > MAX_LINE_BYTES:
        keep(carry)
        return b"", dropped + len(carry)
    return carry, 0


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
