"""Bytes of a file inside a zip, from anywhere in it, without unpacking it to disk or to memory.

Owns the way back into a compressed stream: the state of the decompressor is kept every few megabytes, so that what
stands at the end of two gigabytes is read without reading the two gigabytes again.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from bisect import bisect_right
from pathlib import Path
from typing import IO, NamedTuple

from raddle.actions.importing.source_reading import SourceError
from raddle.adapters.agent_homes.source_bytes import source_error

_CHUNK_BYTES = 1 << 16
_PIECE_BYTES = 1 << 20
_STEP_BYTES = 1 << 20
_MOST_MARKS = 1024
"""A mark takes some 45 kB: of a zip that would need more, they stand farther apart."""
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_ENCRYPTED = 1


class _Mark(NamedTuple):
    """A place in the stream: `out` bytes came of the first `consumed` compressed ones."""

    out: int
    consumed: int
    inflate: zlib._Decompress


class ZipEntry:
    """One file inside a zip. `size`: of what it holds, as the zip says. SourceError where it cannot be read.

    `together`: bytes of all that are read of the zip (0: this one alone), which share the marks.
    """

    def __init__(self, path: str, entry: zipfile.ZipInfo, *, together: int = 0) -> None:
        self.name = entry.filename
        self.size = entry.file_size
        self._path = path
        self._packed = entry.compress_size
        self._is_deflated = entry.compress_type == zipfile.ZIP_DEFLATED
        if entry.flag_bits & _ENCRYPTED:
            raise self._error("it is encrypted", "unpack the zip and import what is in it")
        if not self._is_deflated and entry.compress_type != zipfile.ZIP_STORED:
            raise self._error(
                f"it is packed in a way that is not known here ({entry.compress_type})",
                "unpack the zip and import what is in it",
            )
        self._start = _start_of(path, entry)
        self._step = max(_STEP_BYTES, max(self.size, together) // _MOST_MARKS)
        self._marks = [_Mark(0, 0, zlib.decompressobj(-zlib.MAX_WBITS))]
        self._last = self._marks[0]
        """Where the last reading ended: most readings go on from there."""

    def read(self, offset: int, size: int) -> bytes:
        """As many bytes from `offset` on, fewer where the file ends."""
        end = min(offset + size, self.size)
        if end <= offset:
            return b""
        try:
            with Path(self._path).open("rb", buffering=0) as file:
                if self._is_deflated:
                    return self._inflated(file, offset, end)
                file.seek(self._start + offset)
                return _exactly(file, end - offset)
        except OSError as error:
            raise source_error(error, self._path) from error
        except zlib.error as error:
            raise self._error(
                "what it holds is damaged", "download or copy the zip again, then import it"
            ) from error

    def _inflated(self, file: IO[bytes], offset: int, end: int) -> bytes:
        mark = self._marks[bisect_right(self._marks, offset, key=lambda one: one.out) - 1]
        if mark.out < self._last.out <= offset:
            mark = self._last
        out, consumed, inflate = mark.out, mark.consumed, mark.inflate.copy()
        found: list[bytes] = []
        while out < end:
            file.seek(self._start + consumed)
            packed = file.read(min(_CHUNK_BYTES, self._packed - consumed))
            piece = inflate.decompress(packed, min(_PIECE_BYTES, end - out))
            used = len(packed) - len(inflate.unconsumed_tail) - len(inflate.unused_data)
            if not piece and not used:
                raise self._error("what it holds ends too early", "download or copy the zip again")
            if out + len(piece) > offset:
                found.append(piece[max(0, offset - out) :])
            out, consumed = out + len(piece), consumed + used
            if out >= self._marks[-1].out + self._step:
                self._marks.append(_Mark(out, consumed, inflate.copy()))
        self._last = _Mark(out, consumed, inflate)
        return b"".join(found)

    def _error(self, reason: str, hint: str) -> SourceError:
        return SourceError(self._path, f"{self.name} in it cannot be read: {reason}", hint)


def entries_of(path: str) -> list[zipfile.ZipInfo]:
    """What a zip says is in it, in its order. SourceError where it is no whole zip."""
    try:
        with zipfile.ZipFile(path) as opened:
            return opened.infolist()
    except OSError as error:
        raise source_error(error, path) from error
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise SourceError(
            path, "it is no whole zip file", "download or copy it again, then import it"
        ) from error


def _start_of(path: str, entry: zipfile.ZipInfo) -> int:
    """Where its bytes begin: after a header whose length only that header says."""
    try:
        with Path(path).open("rb", buffering=0) as file:
            file.seek(entry.header_offset)
            mark, name_size, extra_size = _LOCAL_HEADER.unpack(_exactly(file, _LOCAL_HEADER.size))
    except OSError as error:
        raise source_error(error, path) from error
    except struct.error as error:
        raise SourceError(path, "it is no whole zip file", "download or copy it again") from error
    if mark != b"PK\x03\x04":
        raise SourceError(path, "it is no whole zip file", "download or copy it again, then import it")
    return entry.header_offset + _LOCAL_HEADER.size + int(name_size) + int(extra_size)


def _exactly(file: IO[bytes], size: int) -> bytes:
    """As many bytes, where there are so many: one call may give fewer."""
    found: list[bytes] = []
    while size > 0 and (data := file.read(size)):
        found.append(data)
        size -= len(data)
    return b"".join(found)
