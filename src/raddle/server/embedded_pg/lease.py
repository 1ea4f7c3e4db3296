"""Who uses a cluster: every process that does holds one file shared, so that the last one out can stop it.

The one place that holds that file, but for the keeper, which waits for it. Not one of `locks.py`'s locks: those are
a thread's for the length of a block; this is a process's for as long as it runs, whichever thread began it.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from raddle.adapters.files import storage_error
from raddle.model.errors import StorageError

_PAUSE_SECONDS = 0.02


class Lease:
    """A share in a cluster; `is_first`: nobody else had one when it was taken."""

    def __init__(self, file: Path, *, timeout_seconds: float) -> None:
        """Take it, waiting while somebody stops the cluster; StorageError where that takes too long."""
        try:
            self._fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise storage_error(error, file, "lock") from error
        try:
            self.is_first = self._take(file, time.monotonic() + timeout_seconds)
        except BaseException:
            self.end()
            raise

    def _take(self, file: Path, deadline: float) -> bool:
        while True:
            is_first = self._try(fcntl.LOCK_EX)
            if self._try(fcntl.LOCK_SH):
                return is_first
            if time.monotonic() > deadline:
                raise StorageError(
                    f"PostgreSQL is being stopped by another process, which does not come to an end ({file})",
                    "see what `ps` says of it, stop it, and try again",
                )
            time.sleep(_PAUSE_SECONDS)

    def try_to_be_last(self) -> bool:
        """Does nobody else use the cluster? Then nobody can begin to, until this ends."""
        return self._try(fcntl.LOCK_EX)

    def try_to_go_on(self) -> bool:
        """After another was found: False where that is one who is stopping the cluster."""
        return self._try(fcntl.LOCK_SH)

    def end(self) -> None:
        """Give the share back; twice does no harm."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            # Closing alone would leave the lock with a child that was forked meanwhile.
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)

    def _try(self, kind: int) -> bool:
        try:
            fcntl.flock(self._fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
