"""Starts our PostgreSQL, or joins the one that runs already, and stops it when the last user goes.

The one place that decides so: who uses the cluster holds a `Lease`, and the `keeper` stops it where raddle is
killed. A second opinion would stop the database under another raddle, or leave it running when all have gone.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from raddle.adapters.locks import LockFiles
from raddle.adapters.programs import Child, start_child
from raddle.model.errors import StorageError
from raddle.server.embedded_pg import keeper
from raddle.server.embedded_pg.clusters import cluster_major, ensure_cluster
from raddle.server.embedded_pg.health import check_connection
from raddle.server.embedded_pg.lease import Lease
from raddle.server.embedded_pg.pg_programs import PgPrograms, find_programs, find_programs_of
from raddle.server.embedded_pg.places import (
    PORT,
    ROOTS_FOLDER,
    Place,
    forget_socket_folder,
    place_for,
    reachable_programs,
)
from raddle.server.embedded_pg.postmaster import (
    Postmaster,
    answers,
    await_ready,
    find_postmaster,
    launch,
)
from raddle.server.embedded_pg.settings import DATABASE, SUPERUSER

_START_SECONDS = 600.0
"""Recovery after a crash reads up to a gigabyte of log again, and begins anew if it is broken off."""
_PAUSE_SECONDS = 0.01


def start(
    data_dir: Path,
    pg_bin: Path | None = None,
    *,
    roots_folder: Path = ROOTS_FOLDER,
    is_durable: bool = True,
    timeout_seconds: float = _START_SECONDS,
) -> Running:
    """Start the PostgreSQL of `data_dir`, made if need be, or join the one that runs; it holds the database `raddle`.

    `pg_bin`: RADDLE_PG_BIN. As root the cluster lies below `roots_folder`. Not `is_durable`: faster, for tests; a
    power cut destroys it. UserError where the programs are missing, too old, or not of the cluster's version;
    StorageError where it does not start, with what it says.
    """
    place = place_for(data_dir, roots_folder=roots_folder)
    with LockFiles(place.locks).held("start", timeout_seconds=timeout_seconds):
        programs = reachable_programs(_programs(pg_bin, place), place)
        ensure_cluster(place, programs, is_durable=is_durable)
        lease = Lease(place.lease_file, timeout_seconds=timeout_seconds)
        try:
            postmaster, children = _join_or_launch(
                place, programs, lease, is_durable=is_durable, timeout_seconds=timeout_seconds
            )
            running = Running(place, programs, lease, postmaster, children)
        except BaseException:
            lease.end()
            raise
        try:
            _furnish(running.url)
        except BaseException:
            running.stop()
            raise
        return running


def _programs(pg_bin: Path | None, place: Place) -> PgPrograms:
    """Those that were named; else those of the cluster's version if there are any; else the best there are."""
    major = cluster_major(place.cluster)
    fitting = find_programs_of(major) if pg_bin is None and major is not None else None
    return fitting or find_programs(pg_bin)


def _join_or_launch(
    place: Place, programs: PgPrograms, lease: Lease, *, is_durable: bool, timeout_seconds: float
) -> tuple[Postmaster, list[Child]]:
    """The postmaster, and what we started: it, and its keeper."""
    postmaster = await_ready(place.cluster, timeout_seconds)
    if postmaster is not None and not answers(postmaster):
        _stop_deaf(place, postmaster, lease)
        postmaster = None
    children: list[Child] = []
    if postmaster is None:
        child, postmaster = launch(
            place,
            programs,
            is_first=lease.is_first,
            is_durable=is_durable,
            timeout_seconds=timeout_seconds,
        )
        children.append(child)
    if children or lease.is_first:
        try:
            children.append(_start_keeper(place, postmaster.pid))
        except BaseException:
            keeper.stop_postmaster(postmaster.pid, place.cluster)
            raise
    return postmaster, children


def _stop_deaf(place: Place, postmaster: Postmaster, lease: Lease) -> None:
    """Stop one that runs and that nobody can reach."""
    if not lease.is_first:
        raise StorageError(
            f"PostgreSQL (process {postmaster.pid}) is in use, and its socket in {postmaster.socket_folder} is gone",
            "stop the raddle that uses it, and start it again",
        )
    keeper.stop_postmaster(postmaster.pid, place.cluster)


def _start_keeper(place: Place, pid: int) -> Child:
    # Alone (-I -S) and by its file: it needs nothing of raddle, and nothing of the person's environment.
    words = [str(Path(keeper.__file__)), str(place.lease_file), str(pid), str(place.cluster)]
    return start_child([sys.executable, "-I", "-S", *words])


def _furnish(url: str) -> None:
    """See that the database is there with its extension; a start that was killed may have stopped half-way."""
    try:
        with psycopg.connect(make_conninfo(url, dbname="postgres"), autocommit=True) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone()
            if found is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
        with psycopg.connect(url) as connection:
            check_connection(connection)
    except psycopg.Error as error:
        raise _no_answer(error) from error


def _no_answer(error: psycopg.Error) -> StorageError:
    return StorageError(
        f"our PostgreSQL started, and refuses us: {str(error).strip()}", "see its log, postgres.log"
    )


class Running:
    """A PostgreSQL that answers, for as long as this process holds its share in it. A context manager."""

    def __init__(
        self, place: Place, programs: PgPrograms, lease: Lease, postmaster: Postmaster, children: list[Child]
    ) -> None:
        assert postmaster.socket_folder is not None  # it is ready
        self._place = place
        self._lease: Lease | None = lease
        self._socket_folder = postmaster.socket_folder
        self._children = children
        self.pid = postmaster.pid
        """The postmaster's process id."""
        self.version = programs.version
        """In full: `18.6`."""
        self.url = make_conninfo(host=str(self._socket_folder), port=PORT, user=SUPERUSER, dbname=DATABASE)
        """A conninfo for libpq: of the socket, without a password."""

    @property
    def is_alive(self) -> bool:
        """Does the postmaster still run?"""
        return keeper.is_postmaster(self.pid, self._place.cluster)

    def stop(self) -> bool:
        """Give our share back, and stop PostgreSQL unless others use it; twice does no harm.

        True when it is stopped; StorageError where it does not stop.
        """
        lease, self._lease = self._lease, None
        if lease is None:
            return not self.is_alive
        try:
            if lease.try_to_be_last():
                self._end_postmaster()
            elif lease.try_to_go_on():
                return False
            else:
                self._await_end()
        finally:
            lease.end()
        for child in self._children:
            child.ends_within(keeper.STOP_SECONDS)
        return True

    def _end_postmaster(self) -> None:
        # Not by our number: another process may have started it anew since.
        found = find_postmaster(self._place.cluster)
        if found is not None and not keeper.stop_postmaster(found.pid, self._place.cluster):
            raise StorageError(
                f"PostgreSQL (process {found.pid}) does not stop",
                f"see {self._place.log}, then stop it by hand",
            )
        forget_socket_folder(self._place, self._socket_folder)

    def _await_end(self) -> None:
        deadline = time.monotonic() + 2 * keeper.STOP_SECONDS
        while find_postmaster(self._place.cluster) is not None and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
