"""The SQLite file under the index of a store: opened, and made anew when it is unfit.

Nothing in it is the truth, so no trouble with it is anybody's: a damaged file is thrown away, one that cannot be
written is copied into memory and gone on with there. Were it opened elsewhere, somebody would wait on its lock.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from raddle.adapters.file_systems import is_on_network
from raddle.adapters.files import make_folder
from raddle.model.errors import StorageError
from raddle.model.threads.search_text import CUT_VERSION

FORMAT = 1000 * 3 + CUT_VERSION
"""Of the tables here and of the cut."""
BUSY_SECONDS = 5.0
"""So long a writer elsewhere is waited for; reading past it costs less than most rebuilds take."""
_CACHE_KILOBYTES = 16 << 10


class Database:
    """One connection to the index at `path`. For one thread at a time.

    `is_aside`: it is a copy in memory, which the next process knows nothing of.
    """

    def __init__(self, path: Path, *, is_network: Callable[[Path], bool] = is_on_network) -> None:
        self.path = path
        self._is_network = is_network
        self.is_aside = False
        self.sql = self._open()

    def close(self) -> None:
        """Let go of the file."""
        self.sql.close()

    @contextlib.contextmanager
    def writing(self, *, wait_seconds: float | None = None) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it or nothing. sqlite3.Error where it is not to be had."""
        wait = BUSY_SECONDS if wait_seconds is None else wait_seconds
        self.sql.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
        self.sql.execute("BEGIN IMMEDIATE")
        try:
            yield self.sql
            self.sql.execute("COMMIT")
        except BaseException:
            if self.sql.in_transaction:
                self.sql.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One unchanging view for several statements."""
        self.sql.execute("BEGIN")
        try:
            yield self.sql
        finally:
            if self.sql.in_transaction:
                self.sql.execute("ROLLBACK")

    def start_over(self) -> None:
        """Throw the file away and begin with an empty one."""
        self.sql.close()
        self._throw_away()
        self.sql = self._open()

    def step_aside(self, *, with_content: bool = True) -> None:
        """Go on in memory: with what the file holds, as far as that can be read, or with nothing."""
        aside = _connected(":memory:")
        if with_content:
            try:
                # Asked first: a backup of what is locked would wait for ever.
                self.sql.execute("SELECT count(*) FROM folders").fetchone()
                self.sql.backup(aside)
            except sqlite3.Error:
                aside.close()
                aside = _connected(":memory:")
        self.sql.close()
        self.sql = aside
        self.is_aside = True
        self._check_format()

    def _open(self) -> sqlite3.Connection:
        try:
            return self._opened()
        except sqlite3.OperationalError:
            return self._in_memory()
        except sqlite3.DatabaseError:
            self._throw_away()
        except StorageError:
            return self._in_memory()
        try:
            return self._opened()
        except sqlite3.Error:
            return self._in_memory()

    def _opened(self) -> sqlite3.Connection:
        self._touch()
        self.sql = sql = _connected(self.path)
        try:
            if sql.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
                # WAL, so that nobody waits; but its shared memory does not reach over a network.
                if not self._is_network(self.path.parent):
                    sql.execute("PRAGMA journal_mode = WAL")
                self._check_format()
            sql.execute("PRAGMA synchronous = NORMAL")
            sql.execute("SELECT count(*) FROM folders").fetchone()
        except BaseException:
            sql.close()
            raise
        return sql

    def _in_memory(self) -> sqlite3.Connection:
        self.sql = _connected(":memory:")
        self.is_aside = True
        self._check_format()
        return self.sql

    def _touch(self) -> None:
        """Make the file 0600, which its log then is too."""
        if not self.path.exists():
            make_folder(self.path.parent)
            try:
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
            except OSError as error:
                raise StorageError(f"cannot make {self.path}: {error.strerror}") from error

    def _throw_away(self) -> None:
        for suffix in ("", "-wal", "-shm", "-journal"):
            with contextlib.suppress(OSError):  # where it cannot go, memory will do
                Path(f"{self.path}{suffix}").unlink()

    def _check_format(self) -> None:
        with self.writing() as sql:
            if sql.execute("PRAGMA user_version").fetchone()[0] == FORMAT:
                return  # another process was first
            _drop_all(sql)
            for statement in _statements():
                sql.execute(statement)
            sql.execute(f"PRAGMA user_version = {FORMAT}")


def _connected(path: Path | str) -> sqlite3.Connection:
    sql = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    sql.execute("PRAGMA temp_store = MEMORY")
    sql.execute(f"PRAGMA cache_size = -{_CACHE_KILOBYTES}")
    return sql


def _statements() -> Iterator[str]:
    """One by one: `executescript` would commit the transaction around them."""
    schema = Path(__file__).with_name("shelf_schema.sql").read_text(encoding="utf-8")
    lines = [line for line in schema.splitlines() if not line.lstrip().startswith("--")]
    return (statement for part in "\n".join(lines).split(";") if (statement := part.strip()))


def _drop_all(sql: sqlite3.Connection) -> None:
    tables = sql.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    # The view of the vocabulary first, then what it shows, which takes its shadow tables with it.
    tables.sort(
        key=lambda row: ("fts5vocab" not in str(row[1]), not str(row[1]).startswith("CREATE VIRTUAL"))
    )
    for name, _ in tables:
        if not str(name).startswith("sqlite_"):
            quoted = str(name).replace('"', '""')
            sql.execute(f'DROP TABLE IF EXISTS "{quoted}"')
