"""A thread erased from the server too, before its files go here: a purge that stopped between the two can be repeated.

The sync lock is held from one end to the other, or a sync that is running would bring back what goes.
"""

from __future__ import annotations

import contextlib

from raddle.model.errors import NotFound, Purged, RaddleError
from raddle.wiring import Stores
from raddle.wiring.purging import purge_thread
from raddle.wiring.remote import open_remote, server_of
from raddle.wiring.syncing import forget_base, no_sync

_LOCAL = "`raddle purge --local` erases it on this machine alone; the server keeps it"


def purge_everywhere(stores: Stores, thread_id: str, *, from_server: bool) -> int:
    """Erase a thread for good, `from_server` too; how many blobs went here.

    Whatever keeps the server from erasing it is raised before anything goes here, with what can be done instead.
    """
    with contextlib.ExitStack() as stack:
        if server_of(stores, is_needed=False):
            stack.enter_context(no_sync(stores))
        if from_server:
            _purge_there(stores, thread_id)
        count = purge_thread(stores, thread_id)
        forget_base(stores, thread_id)
        return count


def _purge_there(stores: Stores, thread_id: str) -> None:
    try:
        with open_remote(stores) as remote, contextlib.suppress(NotFound, Purged):
            remote.purge(thread_id)
    except RaddleError as error:
        error.hint = f"{error.hint}; {_LOCAL}" if error.hint else _LOCAL
        raise
