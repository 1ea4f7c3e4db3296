"""A part of a stream of bytes. Both ways of keeping blobs cut by it, so that both mean the same by a range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def cut(pieces: Iterable[bytes], start: int, end: int) -> Iterator[bytes]:
    """What lies from byte `start` up to `end`, as a slice has it; reads no further than that."""
    at = 0
    if start >= end:
        return
    for piece in pieces:
        wanted = piece[max(start - at, 0) : max(end - at, 0)]
        at += len(piece)
        if wanted:
            yield wanted
        if at >= end:
            return
