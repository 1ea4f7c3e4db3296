"""Starts a postmaster and reads what it says of itself in `postmaster.pid`.

The one place that starts one: two on one cluster would destroy it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from pathlib import Path

from msgspec import Struct

from raddle.adapters.files import make_folder, storage_error, write_atomic
from raddle.adapters.programs import Child, start_child
from raddle.model.errors import StorageError
from raddle.server.embedded_pg.keeper import exists, is_postmaster
from raddle.server.embedded_pg.pg_programs import PgPrograms
from raddle.server.embedded_pg.places import (
    PORT,
    Place,
    environment,
    open_to_read,
    open_way,
    own_names,
    socket_folder,
)
from raddle.server.embedded_pg.settings import Machine, access_rules, account_map, server_settings

_PAUSE_SECONDS = 0.01
_RECOVERY_SECONDS = 30.0
"""How long the leftovers of a killed postmaster may take to go."""
_GIVE_UP_SECONDS = 10.0
_LARGEST_LOG_BYTES = 1 << 20
_LEFTOVERS = (b"shared memory block", b"already exists", b"is still in use")
_SOCKET_NAME = f".s.PGSQL.{PORT}"
_LOG_TAIL_BYTES = 2000


class Postmaster(Struct, frozen=True, kw_only=True):
    """What `postmaster.pid` says."""

    pid: int
    socket_folder: Path | None
    """None while it is not yet written."""
    is_ready: bool


def find_postmaster(cluster: Path) -> Postmaster | None:
    """The live postmaster of a cluster; None where there is none."""
    found = _read(cluster)
    return found if found is not None and is_postmaster(found.pid, cluster) else None


def _remove_stale_marks(cluster: Path, folder: Path) -> None:
    """Remove what a killed one left where its process id is another program's now.

    PostgreSQL would take that program for a postmaster for ever; a container's process ids come back every time.
    """
    for mark in (cluster / "postmaster.pid", folder / f"{_SOCKET_NAME}.lock"):
        pid = int((_lines(mark) or ["0"])[0])
        if pid and exists(pid) and not is_postmaster(pid, cluster):
            mark.unlink(missing_ok=True)


def answers(postmaster: Postmaster) -> bool:
    """Does somebody listen at its socket? Who tidies a folder may have removed it under a running one."""
    if postmaster.socket_folder is None:
        return False
    try:
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(str(postmaster.socket_folder / _SOCKET_NAME))
    except OSError:
        return False
    return True


def launch(
    place: Place, programs: PgPrograms, *, is_first: bool, is_durable: bool, timeout_seconds: float
) -> tuple[Child, Postmaster]:
    """Start a postmaster and wait until it answers; what a killed one left is waited for.

    `is_first`: no other raddle uses the cluster. StorageError with the end of its log where it does not start.
    """
    _write_settings(place, is_durable=is_durable)
    folder = socket_folder(place)
    if is_first:
        _remove_stale_marks(place.cluster, folder)
    recovered_by = time.monotonic() + _RECOVERY_SECONDS
    while True:
        start = _turn_log(place.log)
        child = start_child(
            _argv(place, programs, folder), output=place.log, env=environment(), account=place.account
        )
        try:
            postmaster = _await_ready(place.cluster, child, time.monotonic() + timeout_seconds)
        except BaseException:
            _give_up(child)
            raise
        if postmaster is not None:
            return child, postmaster
        said = _tail(place.log, start)
        if not any(words in said for words in _LEFTOVERS) or time.monotonic() > recovered_by:
            raise StorageError(
                f"PostgreSQL does not start: {said.decode(errors='replace').strip() or 'it says nothing'}",
                f"its log is {place.log}",
            )
        time.sleep(0.2)


def await_ready(cluster: Path, timeout_seconds: float) -> Postmaster | None:
    """Wait for a postmaster that another process started; None where it ended instead, or runs and is not ready."""
    return _await_ready(cluster, None, time.monotonic() + timeout_seconds)


def _await_ready(cluster: Path, child: Child | None, deadline: float) -> Postmaster | None:
    while True:
        found = find_postmaster(cluster)
        if child is not None and found is not None and found.pid != child.pid:
            found = None
        if found is not None and found.is_ready:
            return found
        if not (child.is_running if child else found):
            return None
        if time.monotonic() > deadline:
            raise StorageError(
                "PostgreSQL does not get ready in time", f"see the log beside {cluster}, and try again"
            )
        time.sleep(_PAUSE_SECONDS)


def _give_up(child: Child) -> None:
    child.send(signal.SIGQUIT)
    child.ends_within(_GIVE_UP_SECONDS)


def _argv(place: Place, programs: PgPrograms, folder: Path) -> list[str]:
    values = {
        "config_file": place.settings / "postgresql.conf",
        "hba_file": place.settings / "pg_hba.conf",
        "ident_file": place.settings / "pg_ident.conf",
        "unix_socket_directories": '"' + str(folder).replace('"', '""') + '"',
        "unix_socket_permissions": "0700",
        "listen_addresses": "",
        "port": PORT,
    }
    words = [word for name, value in values.items() for word in ("-c", f"{name}={value}")]
    return [str(programs.folder / "postgres"), "-D", str(place.cluster), *words]


def _write_settings(place: Place, *, is_durable: bool) -> None:
    """Ours, and the account may read them: one that could write there could have root change other files."""
    make_folder(place.settings)
    machine = Machine(memory=_memory(), shared_memory=_shared_memory())
    texts = {
        "postgresql.conf": server_settings(
            machine,
            local_settings=str(place.local_settings) if place.local_settings.exists() else None,
            is_durable=is_durable,
        ),
        "pg_hba.conf": access_rules(),
        "pg_ident.conf": account_map(own_names(place)),
    }
    for name, text in texts.items():
        write_atomic(place.settings / name, os.fsencode(text))
        if place.account is not None:
            open_to_read(place.settings / name)
    if place.account is not None:
        open_way(place.settings)


def _memory() -> int:
    with contextlib.suppress(OSError, ValueError):  # not every system tells
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 1 << 30


def _shared_memory() -> int | None:
    with contextlib.suppress(OSError):
        room = os.statvfs("/dev/shm")  # noqa: S108  # to ask its size
        return room.f_frsize * room.f_blocks
    return None


def _read(cluster: Path) -> Postmaster | None:
    lines = _lines(cluster / "postmaster.pid")
    if not lines:
        return None
    return Postmaster(
        pid=int(lines[0]),
        socket_folder=Path(lines[4]) if len(lines) > 4 and lines[4] else None,
        is_ready=len(lines) > 7 and lines[7].strip() == "ready",
    )


def _lines(mark: Path) -> list[str]:
    """The lines of a file whose first is a process id; none where it is not there, or half-written."""
    try:
        lines = mark.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(error, mark, "read") from error
    return lines if lines and lines[0].strip().isdecimal() else []


def _turn_log(log: Path) -> int:
    """Set a long log aside, and say where in it the next words will stand."""
    try:
        size = log.stat().st_size
        if size <= _LARGEST_LOG_BYTES:
            return size
        log.replace(log.with_name(log.name + ".1"))
    except FileNotFoundError:
        pass
    except OSError as error:
        raise storage_error(error, log, "set aside") from error
    return 0


def _tail(log: Path, start: int) -> bytes:
    """What was added since, at most the last of it."""
    try:
        with log.open("rb") as file:
            file.seek(start)
            return file.read()[-_LOG_TAIL_BYTES:]
    except OSError as error:
        raise storage_error(error, log, "read") from error
