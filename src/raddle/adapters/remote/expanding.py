"""Bodies that a server has coded with gzip or zstd, expanded in pieces that stay small whatever it sends.

httpx would expand a piece as it came, whole: 64 KiB from the wire may be two gigabytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from raddle.model.errors import BrokenFormat

ACCEPTED = "zstd, gzip"
_PIECE = 1 << 16
_LARGEST_WINDOW = 1 << 27
_LEVEL = 3


def expanded(pieces: Iterable[bytes], coding: str) -> Iterator[bytes]:
    """The plain bytes, at most 64 KiB at a time (as they come where nothing is coded).

    BrokenFormat where they are not coded so, or in no way that was asked for.
    """
    match coding.strip().lower():
        case "" | "identity":
            yield from pieces
        case "gzip" | "x-gzip":
            yield from _from_gzip(pieces)
        case "zstd":
            yield from _from_zstd(pieces)
        case _:
            raise BrokenFormat("it is coded in a way that was not asked for")


def compressed(data: bytes) -> bytes:
    """`data` as zstd."""
    import zstandard  # noqa: PLC0415  heavy, and most pushes are one short turn

    return zstandard.ZstdCompressor(level=_LEVEL).compress(data)


def _from_gzip(pieces: Iterable[bytes]) -> Iterator[bytes]:
    inner = zlib.decompressobj(wbits=31)
    try:
        for piece in pieces:
            waiting = piece
            while waiting and not inner.eof:
                yield inner.decompress(waiting, _PIECE)
                waiting = inner.unconsumed_tail
    except zlib.error as error:
        raise BrokenFormat("it is not gzip") from error
    if not inner.eof:
        raise BrokenFormat("it ends in the middle of its gzip")


def _from_zstd(pieces: Iterable[bytes]) -> Iterator[bytes]:
    import zstandard  # noqa: PLC0415  heavy

    inner = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
    source: Any = _Source(pieces)  # it reads, and nothing else is asked of it
    try:
        with inner.stream_reader(source) as reader:
            while piece := reader.read(_PIECE):
                yield piece
    except zstandard.ZstdError as error:
        raise BrokenFormat("it is not zstd") from error


class _Source:
    """Pieces as a file that is read."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._held = b""

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most `size`; empty at the end."""
        while not self._held:
            piece = next(self._pieces, None)
            if piece is None:
                return b""
            self._held = piece
        size = len(self._held) if size < 0 else size
        taken, self._held = self._held[:size], self._held[size:]
        return taken
