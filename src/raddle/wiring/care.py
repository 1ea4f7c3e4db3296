"""What keeps a store in order: the doctor's look at everything, and the index built anew."""

from __future__ import annotations

from raddle.actions.ports import Finding
from raddle.adapters.local_store.doctor import examine
from raddle.adapters.local_store.search_index import SearchIndex
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.model.errors import FormatError, NotFound
from raddle.model.threads.search_fields import index_row
from raddle.model.threads.search_text import Cutter
from raddle.wiring import Stores


def check(stores: Stores, *, fix: bool) -> list[Finding]:
    """What is not as it should be: threads, journals, temporary files, the index."""
    findings = examine(stores.paths, stores.locks, stores.author, fix=fix, changed=stores.mark_dirty)
    findings.extend(Finding(path=str(stores.paths.search_index), what=what) for what in stores.index.verify())
    return findings


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
