"""What is known of a data folder's daemon: that it runs (its lock), what it does (its state), what it did (its log).

The one place that writes these files and takes that lock. A second one could not tell a daemon that runs from the
words of one that was killed, and would send a signal to whoever has its process id now.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from raddle.adapters.files import append_durable, find_bytes, make_folder, storage_error, write_atomic
from raddle.adapters.locks import LockFiles, LockHeld
from raddle.adapters.paths import Paths
from raddle.model.clock import Clock, format_time
from raddle.model.errors import ConflictError, NotFound, RaddleError, StorageError

MOST_LOG_BYTES = 5_000_000
"""Then it goes on in a new one, and one older one is kept."""
_START_SECONDS = 1.0
"""So long a start waits for the lock: who asks for the status holds it for a moment."""
_PAUSE_SECONDS = 0.02

Part = Literal["import", "sync", "events", "settings", "jobs", "memory", "agents"]


class DaemonTrouble(Struct, frozen=True, kw_only=True):
    """What last went wrong. `at`: microseconds since 1970. `is_over`: that part has done its work since."""

    part: Part
    code: str
    message: str
    hint: str = ""
    at: int
    is_over: bool = False


class DaemonState(Struct, frozen=True, kw_only=True):
    """What a daemon says of itself; times in microseconds since 1970."""

    pid: int
    since: int
    version: str
    server: str = ""
    """Empty where it only imports."""
    is_offline: bool = False
    """Is the network not to be asked?"""
    last_import: int | None = None
    """When an import last brought something, or looked at everything for the first time."""
    last_sync: int | None = None
    last_memory_sync: int | None = None
    """When a project's memory was last brought into step."""
    pending: int | None = None
    """Threads of which the server lacks something; None where it was not looked."""
    is_listening: bool = False
    """Does the server tell of changes as they happen?"""
    agents: int = 0
    """So many programs of agents it serves over MCP just now."""
    last_error: DaemonTrouble | None = None
    note: str = ""
    """What the import said last of how it watches, or why it waits; empty once it brought something since."""


class DaemonStatus(Struct, frozen=True, kw_only=True):
    """`pid`: of the one that runs. `state`: what it, or the last one, said; None where none ever did."""

    is_running: bool
    pid: int | None
    state: DaemonState | None
    log: Path


class DaemonRuns(ConflictError):
    """Another daemon works on this data folder."""

    code = "daemon_runs"


@contextlib.contextmanager
def only_daemon(paths: Paths) -> Iterator[None]:
    """Be the daemon of this data folder; DaemonRuns, with its process id, where another one is."""
    locks = LockFiles(paths.daemon_lock_dir, stripes=1)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locks.held("daemon", timeout_seconds=_START_SECONDS))
        except LockHeld as error:
            told = "" if error.pid is None else f": process {error.pid}"
            raise DaemonRuns(
                f"a daemon is at work here already{told}",
                "`raddle daemon status` says what it does, `raddle daemon stop` ends it",
            ) from error
        yield


def save_state(paths: Paths, state: DaemonState) -> bool:
    """Write what the daemon says of itself; False where that cannot be, now: nothing depends on it."""
    try:
        make_folder(paths.state_dir)
        write_atomic(paths.daemon_state, msgspec.json.encode(state))
    except StorageError:
        return False
    return True


def status_of(paths: Paths) -> DaemonStatus:
    """Does one run here, and what does it say? StorageError where nobody may look."""
    is_running, pid = _running(paths.daemon_lock_dir)
    state = _read_state(paths.daemon_state)
    if is_running and state is not None and state.pid != pid:
        state = None  # it has just begun, and these are the words of the one before
    return DaemonStatus(is_running=is_running, pid=pid, state=state, log=paths.daemon_log)


def _running(lock_dir: Path) -> tuple[bool, int | None]:
    try:
        lock_dir.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False, None
    except OSError as error:
        raise storage_error(error, lock_dir, "look at") from error
    locks = LockFiles(lock_dir, stripes=1)
    try:
        with locks.held("daemon", shared=True, timeout_seconds=0):
            return False, None
    except LockHeld as error:
        return True, error.pid


def _read_state(path: Path) -> DaemonState | None:
    try:
        data = find_bytes(path)
        return None if data is None else msgspec.json.decode(data, type=DaemonState)
    except (RaddleError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def stop_daemon(paths: Paths, *, wait_seconds: float = 10.0) -> int:
    """End the daemon of this data folder, and wait until it has ended; its process id.

    NotFound where there is none. StorageError where it does not end, or is not of this machine.
    """
    deadline = time.monotonic() + wait_seconds
    asked: int | None = None
    while True:
        status = status_of(paths)
        if not status.is_running:
            if asked is None:
                raise NotFound("daemon at work on", str(paths.data_dir), "`raddle daemon` starts one")
            return asked
        # Both say so: the lock that it is alive, its state that it is a process of this machine.
        if asked is None and status.pid is not None and status.state is not None:
            asked = status.pid
            with contextlib.suppress(ProcessLookupError):
                os.kill(asked, signal.SIGTERM)
        if time.monotonic() > deadline:
            if asked is None:
                raise StorageError(
                    "the daemon of this data folder does not say that it is of this machine",
                    "stop it where it was started",
                )
            raise StorageError(f"the daemon (process {asked}) does not end", f"kill it: kill -9 {asked}")
        time.sleep(_PAUSE_SECONDS)


class DaemonLog:
    """The daemon's log: a JSON object a line, at most twice MOST_LOG_BYTES of them."""

    def __init__(self, paths: Paths, clock: Clock, *, most_bytes: int = MOST_LOG_BYTES) -> None:
        self._path = paths.daemon_log
        self._clock = clock
        self._most_bytes = most_bytes

    def write(self, event: str, **fields: Any) -> None:
        """One line. Where it cannot be written (the disk is full), it is not: the work goes on."""
        line = msgspec.json.encode({"at": format_time(self._clock()), "event": event, **fields}) + b"\n"
        with contextlib.suppress(StorageError):
            make_folder(self._path.parent)
            if append_durable(self._path, line) > self._most_bytes:
                with contextlib.suppress(OSError):  # it grows until it can be moved
                    self._path.replace(self._path.with_name(f"{self._path.name}.1"))
