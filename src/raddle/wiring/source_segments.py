"""Source segments laid over each other: the bytes of a source file, one generation of it, as they were read.

Owns that overlap. Whoever builds a thread anew and whoever gives a session file back must mean the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from raddle.actions.importing.run_plan import Segment
from raddle.adapters.blobs.directory import BlobDirectory


def generations_in(kept: Iterable[tuple[str, Segment]]) -> dict[str, dict[int, list[Segment]]]:
    """Path -> generation -> its segments, each in order."""
    found: dict[str, dict[int, list[Segment]]] = {}
    for path, segment in kept:
        found.setdefault(path, {}).setdefault(segment.generation, []).append(segment)
    return {
        path: {
            number: sorted(each[number], key=lambda one: (one.start, one.end, one.sha256))
            for number in sorted(each)
        }
        for path, each in found.items()
    }


def bytes_of(blobs: BlobDirectory, generation: list[Segment]) -> Iterator[bytes]:
    """The bytes of a generation. A segment that ends in an unfinished line is overlapped by the next, which begins
    with that line; where one is gone, so are its lines, and no other."""
    laid = without_repeats(blobs, generation)
    for segment, following in zip(laid, (*laid[1:], None), strict=True):
        left = segment.end - segment.start
        if following is not None:
            left = min(left, following.start - segment.start)
        last = b"\n"
        for piece in blobs.chunks(segment.sha256):
            data = piece[:left]
            left -= len(data)
            last = data[-1:] or last
            if data:
                yield data
        if following is not None and following.start > segment.end and last != b"\n":
            yield b"\n"


def has_gaps(generation: list[Segment]) -> bool:
    """Are there bytes of it in no segment?"""
    if generation[0].start > 0:
        return True
    reached = 0
    for segment, following in pairwise(generation):
        reached = max(reached, segment.end)
        if following.start > reached:
            return True
    return False


def without_repeats(blobs: BlobDirectory, generation: list[Segment]) -> list[Segment]:
    """The segments, in order, but for those that only repeat bytes of another one.

    A file that is read once more from its start, after the ledger was lost, is kept once more as a whole; its earlier
    segments, laid over that, would end it where they end. One that lies inside another and differs from it is no
    repeat: an unfinished line was cut off, and a shorter one written in its place.
    """
    kept: list[Segment] = []
    for segment in generation:
        around = (
            other
            for other in generation
            if other is not segment
            and other.start <= segment.start
            and segment.end <= other.end
            and (other.start, other.end) != (segment.start, segment.end)
        )
        widest = max(around, key=lambda one: one.end - one.start, default=None)
        if widest is None or not _repeats(blobs, segment, widest):
            kept.append(segment)
    return kept


def _repeats(blobs: BlobDirectory, segment: Segment, around: Segment) -> bool:
    """Does `segment` hold the same bytes as that part of `around`?"""
    theirs = _part(blobs, around.sha256, segment.start - around.start, segment.end - segment.start)
    waiting = b""
    for mine in blobs.chunks(segment.sha256):
        while len(waiting) < len(mine):
            more = next(theirs, None)
            if more is None:
                return False
            waiting += more
        if waiting[: len(mine)] != mine:
            return False
        waiting = waiting[len(mine) :]
    return True


def _part(blobs: BlobDirectory, sha256: str, start: int, size: int) -> Iterator[bytes]:
    for piece in blobs.chunks(sha256):
        skipped = min(start, len(piece))
        start -= skipped
        data = piece[skipped : skipped + size]
        size -= len(data)
        if data:
            yield data
        if not size:
            return
