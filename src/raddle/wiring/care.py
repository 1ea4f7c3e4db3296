"""What keeps a store in order: the doctor's look at everything, and the index built anew."""

from __future__ import annotations

from raddle.actions.ports import Finding
from raddle.adapters.local_store.doctor import examine
from raddle.model.errors import FormatError, NotFound
from raddle.wiring import Stores


def check(stores: Stores, *, fix: bool) -> list[Finding]:
    """What is not as it should be: threads, journals, temporary files, the index."""
    findings = examine(stores.paths, stores.locks, stores.author, fix=fix, changed=stores.mark_dirty)
    findings.extend(Finding(path=str(stores.paths.search_index), what=what) for what in stores.index.verify())
    return findings


def rebuild_index(stores: Stores) -> int:
    """Build the index anew from the thread files; how many threads it holds then."""
    count = 0
    with stores.index.rebuild() as bulk:
        for thread_id in stores.threads.ids():
            try:
                bulk.put(stores.threads.load(thread_id))
            except (FormatError, NotFound):  # the doctor names it; it has no words that could be found
                continue
            count += 1
    return count
