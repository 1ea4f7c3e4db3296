"""Erasing for good: the thread with journal, earlier revision, blobs and source bytes; or only what was taken back."""

from __future__ import annotations

from collections.abc import Iterable

from raddle.model.threads.thread import Thread
from raddle.wiring import Stores


def purge_thread(stores: Stores, thread_id: str) -> int:
    """Erase a thread; how many blobs went with it. The next import does not bring it back."""
    thread = stores.threads.load(thread_id)
    blobs = _attachments(thread)
    segments = _segments(stores, thread_id)
    # Noted first: were the process to die in between, a second purge finishes it and no import revives it.
    stores.ledger.note_purged(thread_id)
    stores.threads.delete_files(thread_id)
    stores.active.set(thread_id, "")
    return _drop(stores, thread_id, [*segments, *blobs])


def purge_removed(stores: Stores, thread_id: str) -> int:
    """Erase the words of the turns that were taken back, and the source bytes, which hold them too; how many turns."""
    with stores.threads.edit(thread_id) as editor:
        removed = [message for message in editor.thread.tree if editor.thread.tree.is_removed(message.id)]
        blobs = [attachment.sha256 for message in removed for attachment in message.attachments]
        purged = editor.purge(message.id for message in removed)
    segments = _segments(stores, thread_id)
    stores.ledger.forget_segments(thread_id)
    # The words still stand in the journal and the earlier revision.
    stores.threads.scrub(thread_id)
    _drop(stores, thread_id, [*segments, *blobs])
    return len(purged)


def _attachments(thread: Thread) -> list[str]:
    return [attachment.sha256 for message in thread.tree for attachment in message.attachments]


def _segments(stores: Stores, thread_id: str) -> list[str]:
    return [segment.sha256 for _, segment in stores.ledger.segments_of(thread_id)]


def _drop(stores: Stores, thread_id: str, blobs: Iterable[str]) -> int:
    """Delete those blobs that no other thread holds."""
    wanted = set(blobs)
    if not wanted:
        return 0
    still_held = {
        sha256 for sha256 in wanted if any(other != thread_id for other in stores.ledger.holders_of(sha256))
    }
    for other in stores.threads.ids():
        if wanted <= still_held:
            break
        if other != thread_id:
            still_held |= wanted & set(_attachments(stores.threads.load(other)))
    return sum(stores.blobs.delete(sha256) for sha256 in wanted - still_held)
