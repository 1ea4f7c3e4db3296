"""Erasing for good: the thread with journal, earlier revision, blobs and source bytes; or only what was taken back.

The thread's files go last, so that a purge that was interrupted can be asked for again, and finishes.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from raddle.actions.answering.asking import OWN_PREFIX
from raddle.actions.answering.ports import JobResponder
from raddle.actions.ports import Finding
from raddle.adapters.files import find_bytes, storage_error
from raddle.adapters.local_store.import_ledger_damage import drop_set_aside
from raddle.adapters.local_store.launch_book import LaunchBook
from raddle.adapters.temporaries import abandoned_temporaries, remove_temporary
from raddle.model.errors import Ambiguous, FormatError, NotFound, RaddleError, StorageError
from raddle.model.ids import parse_thread_id, parse_thread_id_prefix
from raddle.wiring import Stores
from raddle.wiring.import_lock import ImportIsRunning, import_lock

_BLOB = re.compile(rb'"sha256": ?"([0-9a-f]{64})"')
"""How a thread file and a journal name an attachment."""


def purgeable(stores: Stores, prefix: str) -> str:
    """The whole id that `prefix` begins: of a thread, of what was set aside of one, or of source bytes and words in
    the index whose thread file somebody removed. NotFound, Ambiguous, InvalidInput."""
    try:
        return stores.resolve(prefix)
    except NotFound:
        start = parse_thread_id_prefix(prefix)
        found = sorted(each for each in _known_beside_files(stores) if each.startswith(start))
        if not found:
            raise
        if len(found) > 1:
            raise Ambiguous("thread", prefix, found) from None
        return found[0]


def _known_beside_files(stores: Stores) -> set[str]:
    """Threads in the index and the ledger, but for those of which a purge left nothing."""
    known = stores.index.ids()
    try:
        known |= {entry.thread_id for entry in stores.ledger.entries().values()} - stores.ledger.purged()
        known |= set(stores.ledger.kept_blobs().values())
    except FormatError:  # a damaged ledger names none; an import or the doctor mends it
        return known
    return known


def purge_thread(stores: Stores, thread_id: str) -> int:
    """Erase a thread; how many blobs went with it. The next import does not bring it back.

    What is still worked on for it is ended where it is worked on, or named (`stores.report`). StorageError while an
    import is running: it might be about to write this very thread.
    """
    thread_id = parse_thread_id(thread_id)
    from raddle.wiring.answering import job_responder  # noqa: PLC0415  few threads have jobs

    end_jobs(stores, thread_id, functools.partial(job_responder, stores))
    with import_lock(stores):
        stores.ledger.note_purged(thread_id)
        blobs = _named_in(_files_of(stores, thread_id)) | _segments(stores, thread_id)
        count = drop_blobs(stores, blobs, but=thread_id)
        stores.active.set(thread_id, "")
        stores.index.remove(thread_id)
        stores.index.optimize()  # until then its words stand in pages that are only marked as free
        _sweep_half_made(stores)
        LaunchBook(stores.paths.launches_dir).forget_thread(thread_id)
        stores.threads.delete_files(thread_id)
        stores.ledger.forget_segments(thread_id)
        drop_set_aside(stores.paths)  # once more: the damage may have been met after the first time
        return count


def end_jobs(stores: Stores, thread_id: str, find: Callable[[str], JobResponder | None]) -> None:
    """Cancel the deliberations of a thread, of which nothing is to come back. `find`: who is called so.

    What cannot be cancelled is reported: nobody could find it once the thread is gone.
    """
    for job_id, name in _jobs_of(stores, thread_id).items():
        why = "it may not have been taken"
        if not job_id.startswith(OWN_PREFIX):
            try:
                who = find(name)
                if who is not None:
                    who.cancel(job_id)
                    continue
                why = f"nobody called {name or 'so'} can be asked from here"
            except RaddleError as error:
                why = error.message
        what = f"{name or 'a server'} may still work on job {job_id} of what was purged"
        stores.report(Finding(path=thread_id, what=what, failed=f"it could not be cancelled: {why}"))


def _jobs_of(stores: Stores, thread_id: str) -> dict[str, str]:
    """Job -> who works on it: those of this machine, and those that the thread knows of."""
    jobs: dict[str, str] = {}
    with contextlib.suppress(
        NotFound, FormatError, StorageError
    ):  # of what cannot be read the book still tells
        pending = stores.threads.load(thread_id).pending_jobs
        jobs = {job.job_id: job.responder for job in pending if not job.job_id.startswith(OWN_PREFIX)}
    for left in LaunchBook(stores.paths.launches_dir).all():
        if left.launch.thread_id == thread_id and left.launch.lives_on:
            jobs[left.taken_as or left.launch.job_id] = left.launch.responder
    return jobs


def unfinished_purges(stores: Stores) -> list[str]:
    """Threads that are purged and gone, or in which words were, of which source bytes are left: the process died at
    the very end, or an import was running when the words went."""
    whole, in_part = stores.ledger.purged(), stores.ledger.without_bytes()
    left = [thread_id for thread_id in sorted(whole | in_part) if stores.ledger.segments_of(thread_id)]
    return [
        thread_id
        for thread_id in left
        if thread_id in in_part or not stores.paths.thread_file(thread_id).exists()
    ]


def finish_erasures(stores: Stores) -> None:
    """Let go of what else holds words that a sync just took away: blobs, source bytes, the index.

    While an import is running its end does it (`unfinished_purges`), but for the index.
    """
    erased = {thread_id: stores.erased.pop(thread_id) for thread_id in sorted(stores.erased)}
    if not erased:
        return
    with contextlib.suppress(ImportIsRunning), import_lock(stores):
        for thread_id, blobs in erased.items():
            stores.ledger.note_purged(thread_id, is_whole=False)
            named = _named_in(_files_of(stores, thread_id))
            drop_blobs(stores, (blobs - named) | _segments(stores, thread_id), but=thread_id)
            stores.ledger.forget_segments(thread_id)
        _sweep_half_made(stores)
    stores.forget_words()


def finish_purge(stores: Stores, thread_id: str) -> None:
    """Erase what is left of the sources of a thread that is gone."""
    drop_blobs(stores, _segments(stores, thread_id), but=thread_id)
    stores.ledger.forget_segments(thread_id)


def purge_removed(stores: Stores, thread_id: str) -> int:
    """Erase the words of the turns that were taken back, and the source bytes, which hold them too; how many turns.

    Later imports keep no source bytes of this thread: a file that is read anew would bring the words back.
    """
    thread_id = parse_thread_id(thread_id)
    with import_lock(stores):
        before = _named_in(_files_of(stores, thread_id))
        with stores.threads.edit(thread_id) as editor:
            tree = editor.thread.tree
            purged = editor.purge(message.id for message in list(tree) if tree.is_removed(message.id))
        if purged:
            stores.ledger.note_purged(thread_id, is_whole=False)
        # The words still stand in the journal and the earlier revision.
        stores.threads.scrub(thread_id)
        gone = before - _named_in(_files_of(stores, thread_id))
        drop_blobs(stores, gone | _segments(stores, thread_id), but=thread_id)
        stores.ledger.forget_segments(thread_id)
        _sweep_half_made(stores)
        drop_set_aside(stores.paths)
        stores.index.refresh()
        stores.index.optimize()
        return len(purged)


def _sweep_half_made(stores: Stores) -> None:
    """What killed imports left, of whatever age, and damaged ledgers: they may hold the very words.

    The caller holds the import lock, so nobody waits for it.
    """
    paths = stores.paths
    for folder in (paths.data_dir, paths.threads_dir, paths.blobs_dir, paths.cache_dir):
        for path in abandoned_temporaries(folder, older_than_seconds=0):
            remove_temporary(path)
    drop_set_aside(paths)


def drop_blobs(stores: Stores, blobs: Collection[str], *, but: str = "") -> int:
    """Delete those blobs that no thread names and no thread's sources hold, `but` aside; how many went."""
    wanted = {sha256 for sha256 in blobs if not set(stores.ledger.holders_of(sha256)) - {but}}
    if wanted:
        wanted -= _named_in(_files_of(stores, "", but=but), wanted)
    return sum(stores.blobs.delete(sha256) for sha256 in wanted)


def _segments(stores: Stores, thread_id: str) -> set[str]:
    return {segment.sha256 for _, segment in stores.ledger.segments_of(thread_id)}


def _files_of(stores: Stores, start: str, *, but: str = "") -> Iterator[Path]:
    """The files of the threads whose id begins so, but for one's: also the earlier, the damaged, the half-made."""
    folder = stores.paths.threads_dir
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_file()]
    except FileNotFoundError:
        return
    except OSError as error:
        raise storage_error(error, folder, "list") from error
    for name in names:
        if name.startswith(start) and not (but and name.startswith(but)):
            yield folder / name


def _named_in(files: Iterator[Path], wanted: Collection[str] | None = None) -> set[str]:
    """The blobs that these files name, as bytes: a damaged thread names its attachments too. `wanted`: only these."""
    found: set[str] = set()
    for path in files:
        data = find_bytes(path) or b""
        if wanted is None:
            found.update(sha256.decode() for sha256 in _BLOB.findall(data))
        else:
            found.update(sha256 for sha256 in wanted if sha256.encode() in data)
        if wanted is not None and len(found) == len(wanted):
            break
    return found
