"""One import at a time, and no purge beside it: an import would write again what a purge is erasing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from raddle.adapters.locks import LockFiles, LockHeld
from raddle.model.errors import StorageError
from raddle.wiring import Stores

WAIT_SECONDS = 5.0


class ImportIsRunning(StorageError):
    """Another import, or a purge, does not end in time."""

    code = "import_running"


@contextlib.contextmanager
def import_lock(stores: Stores, *, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold it; StorageError naming the process that does, where it does not let go in time.

    Who holds it may mend the ledger. It is a file of its own: one shared with threads would keep some of them
    locked for as long as an import takes.
    """
    locks = LockFiles(stores.paths.import_lock_dir, stripes=1)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locks.held("import", timeout_seconds=wait_seconds))
        except LockHeld as error:
            raise ImportIsRunning(f"an import is running here: {error.message}", error.hint) from error
        stores.ledger.mend_damage(stores.report)
        yield
