"""What keeps a store in order: the doctor's look at everything, and the index built anew."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from raddle.actions.importing.collection import SEPARATOR
from raddle.actions.ports import Finding
from raddle.adapters.local_store.doctor import Beside, examine
from raddle.adapters.local_store.import_ledger_damage import ledgers_set_aside
from raddle.adapters.local_store.quarantine import reason_of
from raddle.adapters.local_store.search_index import SearchIndex
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.adapters.locks import LockFiles
from raddle.model.errors import FormatError, NotFound, StorageError
from raddle.model.threads.search_fields import index_row
from raddle.model.threads.search_text import Cutter
from raddle.model.threads.summary import ThreadSummary
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores
from raddle.wiring.import_lock import import_lock
from raddle.wiring.kept_sources import KeptSources
from raddle.wiring.purging import finish_purge, unfinished_purges
from raddle.wiring.source_names import is_fetched


def check(stores: Stores, *, fix: bool) -> list[Finding]:
    """What is not as it should be: threads, journals, temporary files, the ledger with its blobs, the index."""
    listed: dict[str, ThreadSummary] = {}

    def note(thread: Thread) -> None:
        listed[thread.id] = thread.summary()

    findings = examine(
        stores.paths,
        stores.locks,
        stores.author,
        fix=fix,
        changed=stores.mark_dirty,
        seen=note,
        beside=_beside(stores, fix=fix),
    )
    findings.extend(_wrong_sources(stores, fix=fix))
    findings.extend(_ledgers_set_aside(stores))
    findings.extend(_wrong_blobs(stores, fix=fix))
    try:
        problems = [Finding(path=str(stores.paths.search_index), what=what) for what in stores.index.verify()]
        findings.extend(problems or _wrong_index(stores, listed, fix=fix))
    except StorageError as error:
        findings.append(Finding(path=str(stores.paths.search_index), what=error.message))
    return findings


def _beside(stores: Stores, *, fix: bool) -> Beside:
    """What is known of threads beside their files, as far as the ledger can be read."""
    kept = KeptSources(stores)
    paths = stores.paths
    quiet = functools.partial(_no_import_runs, stores, fix=fix)
    folders = (paths.data_dir, paths.blobs_dir, paths.cache_dir)
    try:
        known = kept.thread_ids()
    except (StorageError, FormatError):  # `_wrong_sources` says it
        return Beside(folders=folders, no_import_runs=quiet)
    return Beside(
        kept=kept.of,
        no_purge=functools.partial(import_lock, stores),
        known=known,
        folders=folders,
        no_import_runs=quiet,
    )


@contextlib.contextmanager
def _no_import_runs(stores: Stores, *, fix: bool) -> Iterator[bool]:
    """True where no import runs, and with `fix` none begins inside the block, if its lock can be taken at all.

    To look leaves no trace, not even the lock's file.
    """
    with contextlib.ExitStack() as stack:
        is_locked = False
        if fix:
            with contextlib.suppress(StorageError):
                stack.enter_context(import_lock(stores, wait_seconds=0))
                is_locked = True
        yield is_locked or not _is_import_running(stores)


def _is_import_running(stores: Stores) -> bool:
    folder = stores.paths.import_lock_dir
    if not folder.exists():
        return False
    try:
        with LockFiles(folder, stripes=1).held("import", shared=True, timeout_seconds=0):
            return False
    except StorageError:
        return True


def _wrong_sources(stores: Stores, *, fix: bool) -> Iterator[Finding]:
    """Kept source bytes that are not there, purges that were not finished, a ledger that cannot be read."""
    try:
        kept, unfinished = stores.ledger.kept_blobs(), unfinished_purges(stores)
    except (StorageError, FormatError) as error:
        what = f"{error.message}; {error.hint}" if error.hint else error.message
        yield Finding(path=str(stores.paths.import_ledger), what=what)
        return
    for thread_id in unfinished:
        finding = Finding(
            path=str(stores.paths.import_ledger),
            what=f"a purge of {thread_id} was not finished: source bytes are left",
        )
        finish = functools.partial(finish_purge, stores, thread_id)
        yield _tried(finding, finish, "finished") if fix else finding
    for sha256, thread_id in kept.items():
        if thread_id not in unfinished and not _lies_there(stores, sha256):
            finding = Finding(
                path=str(stores.paths.blob_file(sha256)), what=f"source bytes of {thread_id} are gone"
            )
            forget = functools.partial(stores.ledger.forget_blob, sha256)
            paths = stores.ledger.paths_of_blob(sha256)
            done = _FETCHED_AGAIN if all(map(is_fetched, paths)) else _KEPT_AGAIN
            yield _tried(finding, forget, done) if fix else finding


_KEPT_AGAIN = "the next import keeps them again, where the source is still there"
_FETCHED_AGAIN = "the next export that needs these bytes fetches them from the server again"


def _lies_there(stores: Stores, sha256: str) -> bool:
    try:
        return stores.blobs.stored_size(sha256) is not None
    except StorageError:  # nobody may look: `_wrong_blobs` says so
        return True


def _ledgers_set_aside(stores: Stores) -> Iterator[Finding]:
    for kept in ledgers_set_aside(stores.paths):
        reason = reason_of(stores.paths, kept)
        yield Finding(
            path=str(kept),
            what=f"was set aside: {reason}" if reason else "was set aside",
            done="what could be read of it is in the new ledger; it may hold words of threads: remove it, "
            "or leave that to the next `raddle purge`",
        )


def _wrong_blobs(stores: Stores, *, fix: bool) -> Iterator[Finding]:
    """Blobs of which not every byte is as its name says: each is read to its end."""
    try:
        ids = list(stores.blobs.ids())
    except StorageError as error:
        yield Finding(path=str(stores.paths.blobs_dir), what=error.message)
        return
    for sha256 in ids:
        try:
            is_damaged = not stores.blobs.is_whole(sha256) and _lies_there(stores, sha256)
        except StorageError as error:
            yield Finding(path=str(stores.paths.blob_file(sha256)), what=error.message)
            continue
        if is_damaged:
            yield _damaged_blob(stores, sha256, fix=fix)


def _damaged_blob(stores: Stores, sha256: str, *, fix: bool) -> Finding:
    """Taken away only where the next import brings it again: elsewhere the good part is all that is left."""
    path = next(
        (path for path in stores.blobs.paths_of(sha256) if path.exists()), stores.paths.blob_file(sha256)
    )
    finding = Finding(path=str(path), what="is damaged: its bytes are not those of its name")
    try:
        sources = stores.ledger.paths_of_blob(sha256)
        holders = stores.ledger.holders_of(sha256)
    except (StorageError, FormatError) as error:
        return msgspec.structs.replace(finding, failed=error.message) if fix else finding
    if not sources:
        return _with_advice(
            finding, "put it back from a backup; until then what is attached there is missing"
        )
    if all(map(is_fetched, sources)):
        drop = functools.partial(_drop_damaged, stores, sha256)
        return _tried(finding, drop, f"removed; {_FETCHED_AGAIN}") if fix else finding
    if not all(_is_there(source) for source in sources if not is_fetched(source)):
        purge = ", ".join(f"`raddle purge {holder}`" for holder in holders)
        return _with_advice(
            finding,
            "it holds source bytes, and their source is no longer there: put it back from a backup "
            f"({purge} removes it with its thread)",
        )
    drop = functools.partial(_drop_damaged, stores, sha256)
    return _tried(finding, drop, "removed; the next import keeps these bytes again") if fix else finding


def _drop_damaged(stores: Stores, sha256: str) -> None:
    """No import runs meanwhile: one may just have put whole bytes there."""
    with import_lock(stores, wait_seconds=0):
        if not stores.blobs.is_whole(sha256):
            stores.blobs.delete(sha256)  # first: what is gone and not forgotten yet is found again
            stores.ledger.forget_blob(sha256)


def _is_there(source: str) -> bool:
    """Is the file there that the source is, or is kept in?"""
    try:
        return Path(source).exists() or Path(source.rpartition(SEPARATOR)[0] or source).exists()
    except (OSError, ValueError):
        return False


def _with_advice(finding: Finding, advice: str) -> Finding:
    return msgspec.structs.replace(finding, what=f"{finding.what}; {advice}")


def _wrong_index(stores: Stores, listed: Mapping[str, ThreadSummary], *, fix: bool) -> Iterator[Finding]:
    """Threads that a search finds and that have no file, and such as it knows otherwise than their files tell.

    `listed`: every thread that can be read, as a list should show it.
    """
    index = stores.index
    if index.refresh(sweeps=False):  # a look mends nothing
        return  # another process is writing it: what waits would look wrong
    there = set(stores.threads.ids())
    for thread_id in sorted(index.ids() - there):
        finding = Finding(
            path=str(stores.paths.thread_file(thread_id)),
            what="there is no such file, and a search still finds the thread",
        )
        remove = functools.partial(index.remove, thread_id)
        yield _tried(finding, remove, "taken out of the search index") if fix else finding
    for thread_id, summary in sorted(listed.items()):
        if _is_listed_as(stores, thread_id, summary) or index.is_behind(thread_id):
            continue
        finding = Finding(
            path=str(stores.paths.thread_file(thread_id)), what="the search index does not hold what it says"
        )
        yield _tried(finding, functools.partial(_take_in, stores, thread_id), "put in") if fix else finding


def _is_listed_as(stores: Stores, thread_id: str, summary: ThreadSummary) -> bool:
    """Does the index say the same, or has somebody written to the thread meanwhile?"""
    known = stores.index.get(thread_id)
    if known == summary or (known is None and summary.is_deleted):
        return True
    try:
        now = stores.threads.load(thread_id).summary()
    except (FormatError, NotFound):
        return True
    known = stores.index.get(thread_id)
    return known == now or (known is None and now.is_deleted)


def _take_in(stores: Stores, thread_id: str) -> None:
    stores.mark_dirty(thread_id)
    stores.index.refresh(sweeps=False)


def _tried(finding: Finding, mend: Callable[[], object], done: str) -> Finding:
    """The finding with what became of the attempt to put it right."""
    try:
        mend()
    except StorageError as error:
        return msgspec.structs.replace(finding, failed=error.message)
    return msgspec.structs.replace(finding, done=done)


def rebuild_index(stores: Stores) -> int:
    """Build the index anew from the thread files; how many threads it holds then."""
    stores.index.start_over()
    return fill_index(stores.index, stores.threads)


def fill_index(index: SearchIndex, threads: ThreadFiles) -> int:
    """Put every thread into an index that says it is not whole; how many it holds then."""
    with index.bulk() as bulk:
        cutter = Cutter()
        for thread_id in threads.ids():
            stamp = index.file_stamp(thread_id)
            try:
                thread = threads.load(thread_id)
            except (FormatError, NotFound):  # the doctor names it; it has no words that could be found
                bulk.note_files(thread_id, index.file_stamp(thread_id))
                continue
            bulk.note_files(thread_id, stamp)
            if thread.is_deleted:
                continue
            removed = {
                message_id for message_id in thread.removed_messages if thread.tree.is_removed(message_id)
            }
            bulk.add(thread_id, (index_row(message, cutter) for message in thread.tree), removed)
            bulk.finish(thread_id, thread.summary())
    index.finish_rebuild()
    return len(index.ids())
