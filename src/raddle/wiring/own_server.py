"""The sync server that `raddle up` runs in the background, one for a data folder: started, found again, ended.

That it runs is its lock; where it listens is a note beside the state. A note alone could be of one that was killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from raddle.adapters.files import find_bytes, make_folder, write_atomic
from raddle.adapters.locks import LockFiles, LockHeld
from raddle.adapters.paths import Paths
from raddle.adapters.programs import clean_environment, start_child
from raddle.config import Config
from raddle.model.errors import ConflictError, StorageError
from raddle.wiring.daemon import daemon_environment

_START_SECONDS, _STOP_SECONDS = 120.0, 20.0
_PAUSE_SECONDS = 0.05
_LONGEST_REASON = 2_000


class OwnServer(Struct, frozen=True, kw_only=True):
    """A server that runs. `address`: empty while it is starting."""

    pid: int
    address: str = ""


@contextlib.contextmanager
def being_own_server(paths: Paths) -> Iterator[None]:
    """Be the background server of this data folder; ConflictError where another one is."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(
                LockFiles(paths.own_server_lock_dir, stripes=1).held("server", timeout_seconds=1.0)
            )
        except LockHeld as error:
            raise ConflictError(
                "the server of `raddle up` runs already", "`raddle up --stop` ends it"
            ) from error
        yield


def note_address(paths: Paths, address: str) -> None:
    """It listens: say where."""
    make_folder(paths.state_dir)
    write_atomic(paths.own_server_note, msgspec.json.encode(OwnServer(pid=os.getpid(), address=address)))


def find_own_server(paths: Paths) -> OwnServer | None:
    """The server that runs for this data folder; None where none does."""
    if not paths.own_server_lock_dir.exists():
        return None
    try:
        with LockFiles(paths.own_server_lock_dir, stripes=1).held("server", timeout_seconds=0.0):
            return None
    except LockHeld as error:
        pid = error.pid or 0
    data = find_bytes(paths.own_server_note)
    if data is not None:
        with contextlib.suppress(msgspec.MsgspecError):
            note = msgspec.json.decode(data, type=OwnServer)
            if pid in {0, note.pid}:
                return note
    return OwnServer(pid=pid)


def start_own_server(config: Config, paths: Paths, *, port: int) -> OwnServer:
    """Start it, and come back once it listens; the one that runs, or is starting, where one does.

    `port` 0: any free one. StorageError where it does not start, with what it says.
    """
    found = _one_that_listens(paths, time.monotonic() + _START_SECONDS)
    if found is not None:
        return found
    make_folder(paths.state_dir)
    log = paths.own_server_log
    start = log.stat().st_size if log.exists() else 0
    environment = clean_environment() | daemon_environment(config)
    if config.database_url is not None:
        environment["RADDLE_DATABASE_URL"] = config.database_url.reveal()
    if config.pg_bin is not None:
        environment["RADDLE_PG_BIN"] = str(config.pg_bin)
    argv = [sys.executable, "-P", "-m", "raddle", "serve", "--port", str(port), "--in-background"]
    child = start_child(argv, output=log, env=environment)
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        # It is known to be alive before it is looked for: one that ends in between has left its lock to nobody.
        is_running = child.is_running
        found = _one_that_listens(paths, 0.0 if is_running else deadline)
        if found is not None:
            return found  # this one, or that of another `up`, which was faster
        if not is_running:
            raise StorageError(f"the server does not start: {_said(log, start)}", f"its log: {log}")
        time.sleep(_PAUSE_SECONDS)
    raise StorageError("the server does not begin to listen", f"see its log: {log}")


def _one_that_listens(paths: Paths, deadline: float) -> OwnServer | None:
    """The server that runs, once it listens; None where none runs, or none listens by then."""
    while (found := find_own_server(paths)) is not None:
        if found.address:
            return found
        if time.monotonic() > deadline:
            return None
        time.sleep(_PAUSE_SECONDS)
    return None


def _said(log: Path, start: int) -> str:
    data = (find_bytes(log) or b"")[start:][:_LONGEST_REASON]
    lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    return next(
        (line.removeprefix("error: ") for line in lines if line.startswith("error:")), " ".join(lines[-1:])
    )


def last_address(paths: Paths) -> str:
    """Where it last listened, or does now; empty where it never did."""
    data = find_bytes(paths.own_server_note)
    try:
        return "" if data is None else msgspec.json.decode(data, type=OwnServer).address
    except msgspec.MsgspecError:
        return ""


def last_port(paths: Paths) -> int | None:
    """The port that it last listened on, so that devices find it again; None where it never did."""
    port = last_address(paths).rpartition(":")[2]
    return int(port) if port.isdigit() else None


def stop_own_server(paths: Paths) -> int | None:
    """End it, and come back once it has ended; its process id, None where none ran."""
    found = find_own_server(paths)
    if found is None or not found.pid:
        return None
    with contextlib.suppress(ProcessLookupError):
        os.kill(found.pid, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while find_own_server(paths) is not None:
        if time.monotonic() > deadline:
            raise StorageError(f"the server (process {found.pid}) does not end", "end it by hand")
        time.sleep(_PAUSE_SECONDS)
    return found.pid
