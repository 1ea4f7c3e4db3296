"""A real PostgreSQL for tests: one cluster for a whole run, and in it a fresh database for each test that asks.

The one place in the tests that starts one. A second cluster costs a second, a second template the migrations, a copy
of a template 100 ms and 10 MB: what a test leaves behind is emptied and had again, where it is then as it was made.
The cluster is started by raddle's own launcher, without waiting for the disk. Workers of one run share it; the last one
out stops it and takes it away.

A test module names this one in `pytest_plugins`, and may import its types too (PYTEST_DONT_REWRITE: or pytest would
complain of that). Not in conftest.py: most tests need no driver of PostgreSQL.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from raddle.server.embedded_pg.keeper import exists
from raddle.server.embedded_pg.running import Running, start

CHOSEN = os.environ.get("RADDLE_PG_BIN") or os.environ.get("PYTEST_RADDLE_PG_BIN")
"""The folder of PostgreSQL's programs to test with (the seal keeps only the second name); None: raddle's choice."""

Prepare = Callable[[str], None]
"""Fills the database of a conninfo, so that copies of it can be had."""

_PREFIX = "raddle-tests-"
"""Then the process id of the run: what killed runs left behind is told by it."""
_numbers = itertools.count()


class NewDatabase(Protocol):
    def __call__(self, prepare: Prepare | None = None) -> str:
        """The conninfo of a database nobody else has: empty but for pg_trgm, or as `prepare` left its template.

        `prepare` is a function of a module, and runs once in a run of the tests, not once for each test.
        """


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Iterator[Running]:
    """The run's cluster; a test that changes it for others asks for one of its own instead."""
    worker = getattr(request.config, "workerinput", None)
    run = f"{os.getpid()}" if worker is None else f"{os.getppid()}-{worker['testrunuid']}"
    for leftover in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = int(leftover.name.removeprefix(_PREFIX).split("-")[0])
        if not exists(pid) or pid == os.getpid():
            shutil.rmtree(leftover, ignore_errors=True)
    with running_below(Path(tempfile.gettempdir()) / f"{_PREFIX}{run}") as running:
        yield running


@contextlib.contextmanager
def running_below(folder: Path, pg_bin: Path | None = Path(CHOSEN) if CHOSEN else None) -> Iterator[Running]:
    """A cluster below `folder`, which goes with its last user."""
    # Not below pytest's own folder, which is private: as root PostgreSQL runs as another account.
    folder.mkdir(mode=0o711, exist_ok=True)
    folder.chmod(0o711)
    running = start(folder / "data", pg_bin, roots_folder=folder / "accounts", is_durable=False)
    try:
        yield running
    finally:
        if running.stop():
            shutil.rmtree(folder, ignore_errors=True)


class _Copies(NamedTuple):
    """The databases that this worker copied from one template."""

    shape: str
    """Of each as it was made: see `_SHAPE`."""
    kept: tuple[str, ...]
    """The tables in which something stands from the beginning."""
    free: list[str]


@pytest.fixture(scope="session")
def copies() -> dict[Prepare, _Copies]:
    """What there is of each template."""
    return {}


@pytest.fixture
def new_database(postgres: Running, copies: dict[Prepare, _Copies]) -> Iterator[NewDatabase]:
    """Makes databases for one test, and drops or empties them after it."""
    yield from _made(postgres, copies)


@pytest.fixture(scope="module")
def new_shared_database(postgres: Running, copies: dict[Prepare, _Copies]) -> Iterator[NewDatabase]:
    """The same for the tests of a module together."""
    yield from _made(postgres, copies)


def _made(postgres: Running, copies: dict[Prepare, _Copies]) -> Iterator[NewDatabase]:
    made: list[tuple[str, Prepare | None]] = []

    def make(prepare: Prepare | None = None) -> str:
        name = ""
        if prepare in copies and copies[prepare].free:
            name = copies[prepare].free.pop()
        elif prepare is None:
            name = _copied(postgres, "raddle")
        else:
            name = _copied(postgres, _template(postgres, prepare))
            if prepare not in copies:
                copies[prepare] = _measured(postgres, name)
        made.append((name, prepare))
        return make_conninfo(postgres.url, dbname=name)

    yield make
    for name, prepare in made:
        if prepare is not None and _is_emptied(postgres, name, copies[prepare]):
            copies[prepare].free.append(name)
        else:
            with _maintaining(postgres) as connection:
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


_SHAPE = b"""
    SELECT md5(string_agg(each, ';' ORDER BY each)) FROM (
        SELECT format('%s %s %s', oid, relname, reloptions) FROM pg_class WHERE relnamespace = 'public'::regnamespace
        UNION ALL SELECT format('%s %s %s %s', attrelid, attname, atttypid, attnotnull)
            FROM pg_attribute WHERE attrelid >= 16384 AND attnum > 0
        UNION ALL SELECT format('constraint %s', oid) FROM pg_constraint
        UNION ALL SELECT format('trigger %s', oid) FROM pg_trigger
        UNION ALL SELECT format('function %s', oid) FROM pg_proc WHERE oid >= 16384
        UNION ALL SELECT format('schema %s', oid) FROM pg_namespace WHERE oid >= 16384
            AND nspname NOT LIKE 'pg!_%' ESCAPE '!'
        UNION ALL SELECT format('extension %s %s', oid, extnamespace) FROM pg_extension
        UNION ALL SELECT format('setting %s', d) FROM pg_db_role_setting AS d
        UNION ALL SELECT format('statistics %s', starelid) FROM pg_statistic WHERE starelid >= 16384
    ) AS shape (each)
"""
"""What there is besides rows, by the numbers that a copy has from its template; also what ANALYZE noted of rows."""
_VISITORS = b"""
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
"""Who else is in a database is sent away."""
_TABLES = b"""
    SELECT relname::text, pg_table_size(oid) > 131072 FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND pg_relation_size(oid) > 0 ORDER BY 1
"""
"""The tables in which something ever stood, and whether each is worth new files."""


def _measured(postgres: Running, name: str) -> _Copies:
    with psycopg.connect(make_conninfo(postgres.url, dbname=name), autocommit=True) as connection:
        kept = tuple(table for table, _ in connection.execute(_TABLES))
        return _Copies(_shape(connection, kept), kept, [])


def _shape(connection: psycopg.Connection, kept: tuple[str, ...]) -> str:
    rows = (
        connection.execute(sql.SQL("TABLE {}").format(sql.Identifier(table))).fetchall() for table in kept
    )
    return f"{connection.execute(_SHAPE).fetchone()} {[sorted(map(str, each)) for each in rows]}"


def _is_emptied(postgres: Running, name: str, copies: _Copies) -> bool:
    """Nobody is in it any more, and it is as it was made? Then it is as good as a new copy."""
    try:
        with psycopg.connect(make_conninfo(postgres.url, dbname=name), autocommit=True) as connection:
            while connection.execute(_VISITORS).fetchall():
                connection.execute("SELECT pg_sleep(0.002)")  # until they have heard it
            used = [
                (table, is_large)
                for table, is_large in connection.execute(_TABLES)
                if table not in copies.kept
            ]
            connection.execute(
                "SET session_replication_role = replica"
            )  # no trigger looks for who refers to a row
            with connection.transaction(), connection.pipeline():
                for table, is_large in used:
                    empty = sql.SQL("TRUNCATE {} CASCADE" if is_large else "DELETE FROM {}")
                    connection.execute(empty.format(sql.Identifier(table)))
                connection.execute("SELECT setval(seqrelid, seqstart, false) FROM pg_sequence")
            return _shape(connection, copies.kept) == copies.shape
    except psycopg.Error:
        return False  # a test has dropped it, or stopped the cluster


@pytest.fixture
def database(new_database: NewDatabase) -> str:
    """The conninfo of this test's own database, empty but for pg_trgm."""
    return new_database()


def _template(postgres: Running, prepare: Prepare) -> str:
    """The name of the database that `prepare` has filled: now, or for an earlier test or another worker."""
    words = f"{prepare.__module__}.{prepare.__qualname__}"
    name = f"template_{hashlib.sha256(words.encode()).hexdigest()[:12]}"
    with _maintaining(postgres) as connection:
        connection.execute("SELECT pg_advisory_lock(hashtext(%s))", [name])
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
            # Under another name until it is whole: a `prepare` that fails leaves no template.
            unfinished = f"{name}_unfinished"
            connection.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(unfinished))
            )
            connection.execute(_create(unfinished, "raddle"))
            prepare(make_conninfo(postgres.url, dbname=unfinished))
            rename = sql.SQL("ALTER DATABASE {} RENAME TO {}")
            connection.execute(rename.format(sql.Identifier(unfinished), sql.Identifier(name)))
    return name


def _copied(postgres: Running, template: str) -> str:
    name = f"test_{os.getpid()}_{next(_numbers)}"
    with _maintaining(postgres) as connection:
        connection.execute(_create(name, template))
    return name


def _create(name: str, template: str) -> sql.Composed:
    # Copying files is three times as fast as PostgreSQL's usual way where nobody waits for the disk.
    words = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
    return words.format(sql.Identifier(name), sql.Identifier(template))


@contextlib.contextmanager
def _maintaining(postgres: Running) -> Iterator[psycopg.Connection]:
    """A connection to the database `postgres`: the others are copied, and so may have no visitors."""
    conninfo = make_conninfo(postgres.url, dbname="postgres")
    with contextlib.closing(psycopg.connect(conninfo, autocommit=True)) as connection:
        yield connection
