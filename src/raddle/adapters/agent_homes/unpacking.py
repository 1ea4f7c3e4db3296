"""What zstd compressed, as it was: as far as it is whole, and whether it is.

The library ends quietly where its input does, also in the middle of a frame, and gives up what it had read of a piece
in which it meets damage. Here neither costs a record: every byte before the damage is given, and the damage is told.
"""

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import zstandard
    from typing_extensions import Buffer

_HEADER_BYTES = 18
"""The longest header of a frame."""
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_RUN = 1
"""The type of a block that is one byte, repeated."""
_FINE = 1 << 10


class Unpacked(io.RawIOBase):
    """The bytes of `file`, which is open at its start. Not to be read by two at a time.

    `damage`: why it ends where it does, once it was read to its end; empty where it is whole.
    """

    def __init__(self, file: IO[bytes]) -> None:
        import zstandard  # most homes hold nothing that is compressed  # noqa: PLC0415

        self._damaged = zstandard.ZstdError
        self._file = file
        self._stream = _stream_of(file)
        self._given = 0
        self._most = 0
        """So much is asked for at once where there is damage ahead; 0 where none was met."""
        self._is_over = False
        self.damage = ""

    def readable(self) -> bool:
        """It is for nothing else."""
        return True

    def readinto(self, buffer: Buffer) -> int:
        """As many bytes as come at once; 0 at the end, and where damage begins."""
        room = memoryview(buffer).cast("B")
        while not self._is_over:
            size = min(len(room), self._most or len(room))
            try:
                data = self._stream.read(size)
            except self._damaged as error:
                self._go_nearer(size, str(error))
                continue
            if data:
                room[: len(data)] = data
                self._given += len(data)
                return len(data)
            self._is_over = True
            if not self.damage and not _is_complete(self._file):
                self.damage = "it ends in the middle"
        return 0

    def _go_nearer(self, size: int, why: str) -> None:
        """Begin once more and pass over what was given: what the failed reading had before it failed is lost to it."""
        self.damage = why
        if size == 1:
            self._is_over = True
            return
        self._most = 1 if size <= _FINE else _FINE
        self._file.seek(0)
        self._stream = _stream_of(self._file)
        left = self._given
        while left and (passed := self._stream.read(min(left, 1 << 16))):
            left -= len(passed)


def _stream_of(file: IO[bytes]) -> zstandard.ZstdDecompressionReader:
    import zstandard  # noqa: PLC0415

    return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True, closefd=False)


def _is_complete(file: IO[bytes]) -> bool:
    """Does the file, which is frame after frame, end with the end of one?"""
    file.seek(0)
    while head := file.read(_HEADER_BYTES):
        file.seek(-len(head), io.SEEK_CUR)
        if not _passed(file, head):
            return False
    return True


def _passed(file: IO[bytes], head: bytes) -> bool:
    """Go to the end of the frame that begins with `head`; is it there?"""
    import zstandard  # noqa: PLC0415

    if int.from_bytes(head[:4], "little") in _SKIPPABLE:
        return _skipped(file, 8) and _skipped(file, int.from_bytes(head[4:8], "little"))
    try:
        has_checksum = zstandard.get_frame_parameters(head).has_checksum
        size = zstandard.frame_header_size(head)
    except zstandard.ZstdError:  # not even the header is whole
        return False
    if not _skipped(file, size):
        return False
    is_last = False
    while not is_last:
        header = file.read(3)
        if len(header) < 3:
            return False
        told = int.from_bytes(header, "little")
        is_last, kind, size = bool(told & 1), told >> 1 & 3, told >> 3
        if not _skipped(file, 1 if kind == _RUN else size):
            return False
    return _skipped(file, 4) if has_checksum else True


def _skipped(file: IO[bytes], size: int) -> bool:
    """Go on by so many bytes; were they there?"""
    if not size:
        return True
    file.seek(size - 1, io.SEEK_CUR)
    return bool(file.read(1))
