"""What keeps a store in order: the doctor's look at everything, and the index built anew."""

from __future__ import annotations

from collections.abc import Iterator

from raddle.actions.ports import Finding
from raddle.adapters.local_store.doctor import examine
from raddle.adapters.local_store.search_index import SearchIndex
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.model.errors import FormatError, NotFound, StorageError
from raddle.model.threads.search_fields import index_row
from raddle.model.threads.search_text import Cutter
from raddle.wiring import Stores
from raddle.wiring.purging import finish_purge, unfinished_purges


def check(stores: Stores, *, fix: bool) -> list[Finding]:
    """What is not as it should be: threads, journals, temporary files, the ledger with its blobs, the index."""
    findings = examine(stores.paths, stores.locks, stores.author, fix=fix, changed=stores.mark_dirty)
    findings.extend(_wrong_sources(stores, fix=fix))
    findings.extend(Finding(path=str(stores.paths.search_index), what=what) for what in stores.index.verify())
    return findings


def _wrong_sources(stores: Stores, *, fix: bool) -> Iterator[Finding]:
    """Kept source bytes that are not there, purges that were not finished, a ledger that cannot be read."""
    try:
        kept, unfinished = stores.ledger.kept_blobs(), unfinished_purges(stores)
    except (StorageError, FormatError) as error:
        what = f"{error.message}; {error.hint}" if error.hint else error.message
        yield Finding(path=str(stores.paths.import_ledger), what=what)
        return
    for thread_id in unfinished:
        if fix:
            finish_purge(stores, thread_id)
        what = f"a purge of {thread_id} was not finished: source bytes are left"
        yield Finding(path=str(stores.paths.import_ledger), what=what, done="finished" if fix else "")
    for sha256, thread_id in kept.items():
        if thread_id not in unfinished and stores.blobs.size(sha256) is None:
            if fix:
                stores.ledger.forget_blob(sha256)
            what = f"source bytes of {thread_id} are gone"
            done = "the next import keeps them again, where the source is still there" if fix else ""
            yield Finding(path=str(stores.paths.blob_file(sha256)), what=what, done=done)


def rebuild_index(stores: Stores) -> int:
    """Build the index anew from the thread files; how many threads it holds then."""
    stores.index.start_over()
    return fill_index(stores.index, stores.threads)


def fill_index(index: SearchIndex, threads: ThreadFiles) -> int:
    """Put every thread into an index that says it is not whole; how many it holds then."""
    with index.bulk() as bulk:
        cutter = Cutter()
        for thread_id in threads.ids():
            try:
                thread = threads.load(thread_id)
            except (FormatError, NotFound):  # the doctor names it; it has no words that could be found
                continue
            if thread.is_deleted:
                continue
            removed = {
                message_id for message_id in thread.removed_messages if thread.tree.is_removed(message_id)
            }
            bulk.add(thread_id, (index_row(message, cutter) for message in thread.tree), removed)
            bulk.finish(thread_id, thread.summary())
    index.finish_rebuild()
    return len(index.ids())
