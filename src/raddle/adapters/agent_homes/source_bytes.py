r"""The bytes of another agent's file, read in whole lines, in bounded memory, and never written to.

Lines end at `\n` only: other line separators stand inside records. A file that is still being written gives
its last, unfinished line the next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from raddle.actions.importing.importer import MAX_LINE_BYTES
from raddle.actions.importing.run_plan import HEAD_BYTES, SourceEntry
from raddle.actions.importing.source_reading import Broken, KeepBytes, Lines, SourceError, Tail, TooLong
from raddle.adapters.agent_homes.unpacking import Unpacked
from raddle.adapters.files import storage_error

CHUNK_BYTES = 1 << 20
COMPRESSED = ".zst"
"""How the name of a file ends that its agent has compressed; what stands before is its name."""


class SourceBytes:
    """One file, open for reading."""

    is_repeatable = True

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = _open(path)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)

    def grew_from(self, entry: SourceEntry) -> bool:
        """Does the part that was read before still stand there? (Its beginning and its end are compared.)"""
        if not entry.read_to:
            return True
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

    def read(
        self, start: int, first: int, keep: KeepBytes, *, end: int | None = None
    ) -> Iterator[Lines | TooLong | Tail | Broken]:
        """Lines from the offset `start`, which is line `first`, to `end` (None: the end of the file), in batches.

        Every byte that is read goes to `keep`, those of a line that is too long (`MAX_LINE_BYTES`) and of the
        tail too.
        """
        number, offset, dropped = first, start, 0
        carry: list[bytes] = []
        for chunk in self._chunks(start, end):
            cut = chunk.rfind(b"\n") + 1
            if not cut:
                carry.append(chunk)
                if dropped or sum(map(len, carry)) > MAX_LINE_BYTES:
                    dropped += _give_up(carry, keep)
                continue
            whole = b"".join((*carry, chunk[:cut]))
            carry = [chunk[cut:]] if cut < len(chunk) else []
            keep(whole)
            lines = whole.split(b"\n")
            lines.pop()  # what stands after the last line end: nothing
            offset += len(whole)
            if dropped:
                size = dropped + len(lines.pop(0))
                offset += dropped
                yield TooLong(number, size, offset - sum(len(line) + 1 for line in lines))
                number, dropped = number + 1, 0
            if lines:
                del whole
                yield Lines(lines, number, offset)
                number += len(lines)
        if dropped:
            yield TooLong(number, dropped + _give_up(carry, keep), offset, is_ended=False)
        elif carry:
            tail = b"".join(carry)
            keep(tail)
            yield Tail(tail)

    def first(self, most: int) -> bytes:
        """As many bytes of its beginning."""
        return self._pread(0, most)

    def chunks(self) -> Iterator[bytes]:
        """All of it, piece by piece."""
        return self._chunks(0, None)

    def _chunks(self, start: int, end: int | None) -> Iterator[bytes]:
        with contextlib.suppress(AttributeError, OSError):  # advice only; not every system or file takes it
            os.posix_fadvise(self._fd, start, 0, os.POSIX_FADV_SEQUENTIAL)
        position = start
        while end is None or position < end:
            chunk = self._pread(position, CHUNK_BYTES if end is None else min(CHUNK_BYTES, end - position))
            if not chunk:
                return
            position += len(chunk)
            yield chunk

    def _pread(self, offset: int, size: int) -> bytes:
        try:
            return os.pread(self._fd, size, offset)
        except OSError as error:
            raise source_error(error, self.path) from error


class CompressedBytes(SourceBytes):
    """A file that its agent has compressed with zstd: its lines, and what they are known again by, are those of the
    file as it was. Offsets are in what was compressed, so to go on somewhere is to begin anew and pass over.
    """

    _damage = ""

    def grew_from(self, entry: SourceEntry) -> bool:
        """Does the part that was read before still stand there?"""
        return self.head(entry.read_to) == entry.head and self.tail(entry.read_to) == entry.tail

    def read(
        self, start: int, first: int, keep: KeepBytes, *, end: int | None = None
    ) -> Iterator[Lines | TooLong | Tail | Broken]:
        """The same; where its compressed bytes are damaged, up to there, and then that."""
        self._damage, following = "", first
        for batch in super().read(start, first, keep, end=end):
            if isinstance(batch, Lines):
                following = batch.first + len(batch.lines)
            elif isinstance(batch, TooLong):
                following = batch.number + 1
            yield batch
        if self._damage and end is None:
            reason = f"its compressed bytes are damaged ({self._damage}): what stands from here on is lost"
            yield Broken(following, reason)

    def _chunks(self, start: int, end: int | None) -> Iterator[bytes]:
        position = 0
        try:
            with _stream(self.path, os.dup(self._fd)) as file:
                while (end is None or position < end) and (chunk := file.read(CHUNK_BYTES)):
                    first, position = position, position + len(chunk)
                    if position > start:
                        yield chunk[max(start - first, 0) : None if end is None else end - first]
                self._damage = _damage_of(file)
        except OSError as error:
            raise source_error(error, self.path) from error

    def _pread(self, offset: int, size: int) -> bytes:
        return b"".join(self._chunks(offset, offset + size)) if size else b""


def open_file(path: str) -> SourceBytes:
    """The bytes of the file at `path`, whether or not they are compressed there."""
    return CompressedBytes(path) if path.endswith(COMPRESSED) else SourceBytes(path)


@contextlib.contextmanager
def _stream(path: str, fd: int) -> Iterator[IO[bytes]]:
    """The bytes from the first on, as they were before they were compressed; closes `fd`."""
    with open(fd, "rb") as file:
        file.seek(0)
        if not path.endswith(COMPRESSED):
            yield file
            return
        unpacked = Unpacked(file)
        with io.BufferedReader(unpacked) as reader:
            if not reader.peek(1) and unpacked.damage:
                reason = f"its compressed bytes are damaged ({unpacked.damage})"
                raise SourceError(path, reason, "decompress it by hand")
            yield reader


def _damage_of(file: IO[bytes]) -> str:
    """Why a stream that was read to its end has it there; empty where nothing is wrong."""
    raw = file.raw if isinstance(file, io.BufferedReader) else None
    return raw.damage if isinstance(raw, Unpacked) else ""


def source_error(error: OSError, path: str) -> SourceError:
    """What to raise for `error`: why another agent's file cannot be read."""
    told = storage_error(error, Path(path), "read")
    shown = os.fsencode(Path(path)).decode(errors="replace")
    return SourceError(path, told.message.removeprefix(f"cannot read {shown}: "), told.hint)


def first_bytes(path: str, most: int) -> bytes:
    """As many bytes of the file's beginning; SourceError where it cannot be read."""
    file = open_file(path)
    try:
        return file.first(most)
    finally:
        file.close()


def first_lines(path: str, longest: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The file's lines, for somebody who looks for one near its beginning; longer ones in pieces of `longest`."""
    try:
        with _stream(path, _open(path)) as file:
            while line := file.readline(longest):
                yield line
    except OSError as error:
        raise source_error(error, path) from error


def read_whole(path: str) -> bytes:
    """All bytes of a file that is small; SourceError where it cannot be read."""
    try:
        with open(_open(path), "rb") as file:
            return file.read()
    except OSError as error:
        raise source_error(error, path) from error


def _open(path: str) -> int:
    """A file that is one: to open a pipe would be to wait for its writer."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise source_error(error, path) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise SourceError(path, "it is no ordinary file", "check the path")
    return fd


def _give_up(carry: list[bytes], keep: KeepBytes) -> int:
    """Keep the bytes of a line that is too long, hold them no longer; how many they were."""
    size = sum(map(len, carry))
    for chunk in carry:
        keep(chunk)
    carry.clear()
    return size


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
