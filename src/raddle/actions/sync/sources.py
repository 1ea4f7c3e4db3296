"""The bytes of agents' own files, sent after their threads: blobs first, then the list that says what is where.

They hold every word of a session, so whether they may leave is asked of the threads themselves, right before they
do: of the thread that they are kept for, and of every other one whose sources hold the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from raddle.actions.sync.one_thread import Place, give_blobs
from raddle.model.errors import FormatError, NotFound
from raddle.model.protocol.sources import SourceSegment


def unsent(place: Place) -> dict[str, str]:
    """Thread -> the digest of its sources, of those that the hub knows and was told other sources of, or none."""
    kept = place.sources.digests()
    return {
        thread_id: kept.get(thread_id, "")
        for thread_id, known in place.bases.all_known().items()
        if known.version and not known.is_private and known.sources != kept.get(thread_id, "")
    }


def send_sources(place: Place, thread_id: str, digest: str) -> bool:
    """Tell the hub what is kept of a thread's sources, which `digest` is of; was it told?

    ConflictError where the thread is newer there; else what `Remote.put_sources` and `put_blob` raise.
    """
    known = place.bases.known(thread_id)
    segments = _fit_to_leave(place, thread_id)
    if known is None or segments is None:
        return False
    names = {segment.sha256 for segment in segments}
    give_blobs(place, names)
    for sha256 in place.remote.put_sources(thread_id, place.sources.device, segments, known.version):
        size = place.blobs.size(sha256) if sha256 in names else None
        if size is not None:  # the hub let go of it since it was given
            place.remote.put_blob(sha256, place.blobs.chunks(sha256), size)
    place.bases.note_sources(thread_id, digest)
    return True


def _fit_to_leave(place: Place, thread_id: str) -> Sequence[SourceSegment] | None:
    """The segments that the hub may have; None where it may not even be told of them.

    None of a thread in which words were erased: the agent's own file holds them still.
    """
    try:
        thread = place.threads.load(thread_id)
    except NotFound:
        return None
    if thread.is_private:
        return None
    if any(message.is_purged for message in thread.tree):
        return ()
    held_back: dict[str, bool] = {}

    def is_held_back(other: str) -> bool:
        if other not in held_back:
            held_back[other] = _is_private(place, other)
        return held_back[other]

    sharing = place.sources.sharing(thread_id)
    return [
        segment
        for segment in place.sources.segments(thread_id)
        if not any(map(is_held_back, sharing.get(segment.sha256, ())))
    ]


def _is_private(place: Place, thread_id: str) -> bool:
    """Is it, or can nobody tell?"""
    try:
        return place.threads.load(thread_id).is_private
    except (NotFound, FormatError):
        return True
