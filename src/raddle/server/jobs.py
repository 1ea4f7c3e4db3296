"""What a server does unasked, now and then: purge what was deleted long ago, let go of blobs that nobody names.

Every process may do it; rows that one has in hand the others skip, so no process is the one that matters.
"""

from __future__ import annotations

import logging
import threading

import psycopg

from raddle.model.errors import RaddleError
from raddle.server.accounts.pruning import prune
from raddle.server.blobs.uploads import forget, holding, unnamed
from raddle.server.hub import Hub
from raddle.server.search.waiting import oldest_wait, take_in
from raddle.server.threads.purging import purge_deleted

_LOG = logging.getLogger("raddle.server.jobs")
KEPT_DELETED_SECONDS = 90 * 86_400.0
_UNNAMED_SECONDS = 86_400.0
"""So long a device has between giving a blob and the push that names it."""
_EVERY_SECONDS = 600.0
_LOOK_UP_SECONDS = 10.0
_QUIET_SECONDS, _PATIENCE_SECONDS, _TURN_BATCHES = 0.3, 20.0, 4


class Jobs:
    """Does them in a thread of its own, every ten minutes."""

    def __init__(self, hub: Hub, *, every_seconds: float = _EVERY_SECONDS) -> None:
        self._hub = hub
        self._every = every_seconds
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._run, name="raddle-jobs", daemon=True).start()

    def stop(self) -> None:
        """End after the job in hand."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._every):
            try:
                run_once(self._hub)
            except (RaddleError, psycopg.Error) as error:
                _LOG.warning("the jobs stopped: %s", type(error).__name__)


def run_once(
    hub: Hub,
    *,
    kept_deleted_seconds: float = KEPT_DELETED_SECONDS,
    unnamed_seconds: float = _UNNAMED_SECONDS,
) -> None:
    """All that is due now."""
    with hub.database.connection() as connection:
        while purge_deleted(connection, hub.index, older_than_seconds=kept_deleted_seconds):
            pass
        prune(connection)
        for one in unnamed(connection, older_than_seconds=unnamed_seconds):
            sha256 = one.sha256.hex()
            with holding(connection, sha256):
                if forget(connection, one, older_than_seconds=unnamed_seconds):
                    hub.blobs.delete(sha256)
    hub.blobs.sweep()


class Indexing:
    """Puts words that wait into the index, in a thread of its own, when nobody pushes; what waits long, anyway.

    `words` is set where something waits. A process that pushes come to leaves it to one that has time.
    """

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.words = threading.Event()
        self._stopped = threading.Event()

    def start(self) -> None:
        """Begin, with what was left when the last server ended."""
        self.words.set()
        threading.Thread(target=self._run, name="raddle-indexing", daemon=True).start()

    def stop(self) -> None:
        """End after the batch in hand."""
        self._stopped.set()
        self.words.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.words.wait(_LOOK_UP_SECONDS)
            self.words.clear()
            try:
                self._take_in()
            except (RaddleError, psycopg.Error) as error:
                _LOG.warning("indexing stopped: %s", type(error).__name__)
                self._stopped.wait(1.0)

    def _take_in(self) -> None:
        while not self._stopped.is_set():
            with self._hub.database.connection() as connection:
                wait = oldest_wait(connection)
                if wait < 0:
                    return
                if self._hub.seconds_since_push() < _QUIET_SECONDS and wait < _PATIENCE_SECONDS:
                    pause = _QUIET_SECONDS / 2
                else:
                    pause = (
                        0.0 if take_in(connection, batches=_TURN_BATCHES) else 1.0
                    )  # others have all of it in hand
            self._stopped.wait(pause)
