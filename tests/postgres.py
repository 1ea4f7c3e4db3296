"""A real PostgreSQL for tests: one cluster for a whole run, and in it a fresh database for each test that asks.

The one place in the tests that starts one. A second cluster costs a second, a second template the migrations; a
database costs some 30 ms. It is started by raddle's own launcher, without waiting for the disk. Workers of one run
share it; the last one out stops it and takes it away.

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
from typing import Protocol

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
        """The conninfo of a new database: empty but for pg_trgm, or as `prepare` left its template.

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


@pytest.fixture
def new_database(postgres: Running) -> Iterator[NewDatabase]:
    """Makes databases for one test, and drops them after it."""
    made: list[str] = []

    def make(prepare: Prepare | None = None) -> str:
        template = "raddle" if prepare is None else _template(postgres, prepare)
        name = f"test_{os.getpid()}_{next(_numbers)}"
        with _maintaining(postgres) as connection:
            connection.execute(_create(name, template))
        made.append(name)
        return make_conninfo(postgres.url, dbname=name)

    yield make
    with _maintaining(postgres) as connection:
        for name in made:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


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
