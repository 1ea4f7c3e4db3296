"""The SQLite file under the search index: opened, given its format, and made anew when it is unfit.

Owns every pragma and every error of SQLite that can reach a person. Were the file opened elsewhere, one
process might search an index of another format, or wait for ever on a lock.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from raddle.adapters.file_systems import is_on_network
from raddle.adapters.files import make_folder, storage_error
from raddle.model.errors import StorageError
from raddle.model.threads.search_text import CUT_VERSION

FORMAT = f"2.{CUT_VERSION}"
"""Of the tables here and of the cut: an index of any other format is emptied and asks to be built anew."""

BUSY_SECONDS = 20.0
_CACHE_KILOBYTES = 32 << 10
_MAPPED_BYTES = 1 << 30
_LOG_BYTES = 16 << 20
"""What is left of the write-ahead log once it is written back: an import's is as large as what it imported."""


class Database:
    """One connection to the index at `path`, which is made where it is missing, unreadable or of another format.

    `rebuild_reason`: why its content has to be built anew; empty where it is whole. `notes`: what a person
    should know of how it is kept. For one thread at a time.
    """

    def __init__(self, path: Path, *, is_network: Callable[[Path], bool] = is_on_network) -> None:
        self.path = path
        self._is_network = is_network
        self.notes: tuple[str, ...] = ()
        self.sql = self._open()

    def close(self) -> None:
        """Let go of the file."""
        self.sql.close()

    @property
    def rebuild_reason(self) -> str:
        """Why the index lacks what the thread files hold; empty where it does not."""
        return self.meta("rebuild") or ""

    def meta(self, key: str) -> str | None:
        """A stored fact about the index itself."""
        row = self.sql.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        """Store one; inside a transaction of the caller."""
        self.sql.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One unchanging view for several statements; a writer elsewhere does not disturb it."""
        with self.errors():
            if self.sql.in_transaction:
                yield self.sql
                return
            self.sql.execute("BEGIN")
            try:
                # The view is that of the first reading, not of BEGIN.
                self.sql.execute("SELECT 1 FROM meta").fetchone()
                yield self.sql
            finally:
                self._end("COMMIT")

    @contextlib.contextmanager
    def writing(self, *, wait_seconds: float = BUSY_SECONDS) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it or nothing. StorageError where another writer does not finish in time."""
        with self.errors():
            self.begin(wait_seconds)
            try:
                yield self.sql
            except BaseException:
                self._end("ROLLBACK")
                raise
            self.sql.execute("COMMIT")

    def _end(self, statement: str) -> None:
        if self.sql.in_transaction:  # SQLite ends it by itself where the disk fails
            self.sql.execute(statement)

    def begin(self, wait_seconds: float = BUSY_SECONDS) -> None:
        """Start a transaction that may write."""
        self.sql.execute(f"PRAGMA busy_timeout = {int(wait_seconds * 1000)}")
        try:
            self.sql.execute("BEGIN IMMEDIATE")
        finally:
            self.sql.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """What SQLite refuses, as a StorageError that names the file and says what to do."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if _is_busy(error):
                raise IndexBusy(self.path) from error
            if "disk is full" in str(error) or "readonly" in str(error):
                raise StorageError(
                    f"cannot write {self.path}: {error}", "make room, or set RADDLE_CACHE_DIR"
                ) from error
            raise StorageError(f"cannot read {self.path}: {error}", _REINDEX) from error
        except sqlite3.DatabaseError as error:
            raise StorageError(f"{self.path} is damaged: {error}", _REINDEX) from error

    def write_back(self) -> None:
        """Bring the write-ahead log into the file, if nobody reads at this moment."""
        self.sql.execute("PRAGMA busy_timeout = 0")
        try:
            self.sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            self.sql.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")

    def start_over(self, reason: str) -> None:
        """Empty it and note why it has to be built anew; for everybody who has it open."""
        with self.writing():
            _drop_all(self.sql)
            self._create(reason)

    def _open(self) -> sqlite3.Connection:
        try:
            return self._open_file()
        except sqlite3.OperationalError as error:
            if _is_busy(error):
                raise IndexBusy(self.path) from error
            raise StorageError(
                f"cannot open {self.path}: {error}", "check who owns it, or set RADDLE_CACHE_DIR"
            ) from error
        except sqlite3.DatabaseError:
            # Not a database, or a damaged one: everything in it can be made again.
            for suffix in ("", "-wal", "-shm", "-journal"):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            with self.errors():
                return self._open_file(reason="the search index was damaged")

    def map_pages(self, *, is_mapped: bool) -> None:
        """Read the file through memory that it shares with the system, or no longer. What is only written is not
        worth it: its pages would count as memory of this process.
        """
        self.sql.execute(f"PRAGMA mmap_size = {_MAPPED_BYTES if is_mapped else 0}")

    def cache_pages(self, kilobytes: int = _CACHE_KILOBYTES) -> None:
        """Hold at most so much of the file in memory of our own."""
        self.sql.execute(f"PRAGMA cache_size = -{kilobytes}")

    def _open_file(self, reason: str = "") -> sqlite3.Connection:
        is_new = self._touch()
        sql = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            self.sql = sql
            if is_new:
                sql.execute("PRAGMA auto_vacuum = INCREMENTAL")  # merging leaves pages free: they go back
                self._choose_journal()
            mode = sql.execute("PRAGMA journal_mode").fetchone()[0]
            sql.execute("PRAGMA synchronous = NORMAL")
            sql.execute("PRAGMA temp_store = MEMORY")
            self.cache_pages()
            if mode == "wal":
                sql.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
                self.map_pages(is_mapped=True)
            else:
                self.notes = (_WITHOUT_LOG.format(self.path.parent),)
            self._check_format(reason)
        except BaseException:
            sql.close()
            raise
        return sql

    def _touch(self) -> bool:
        """Make the file 0600, which its log then is too; whether it was missing."""
        try:
            if self.path.exists():
                return self.path.stat().st_size == 0
            make_folder(self.path.parent)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise storage_error(error, self.path, "open") from error
        return True

    def _choose_journal(self) -> None:
        """WAL, so that nobody waits; but its shared memory does not reach over a network."""
        if self._is_network(self.path.parent):
            return
        # A file system without shared memory refuses: there it stays without.
        with contextlib.suppress(sqlite3.OperationalError):
            self.sql.execute("PRAGMA journal_mode = WAL")

    def _check_format(self, reason: str) -> None:
        found = self._format()
        if found == FORMAT:
            return
        self.begin()
        try:
            found = self._format()  # another process may have been first
            if found != FORMAT:
                if found is not None:
                    reason = f"the search index had format {found}, this raddle makes {FORMAT}"
                _drop_all(self.sql)
                self._create(reason or "the search index is new")
            self.sql.execute("COMMIT")
        except BaseException:
            self._end("ROLLBACK")
            raise

    def _format(self) -> str | None:
        """The stored format; None for an empty file."""
        if self.sql.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is None:
            tables = self.sql.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            return "unknown" if tables else None
        return self.meta("format") or "unknown"

    def _create(self, reason: str) -> None:
        schema = Path(__file__).with_name("search_schema.sql").read_text(encoding="utf-8")
        for statement in _statements(schema):
            self.sql.execute(statement)
        self.set_meta("format", FORMAT)
        self.set_meta("rebuild", reason)


class IndexBusy(StorageError):
    """Another process is writing the index and does not finish in time."""

    code = "index_busy"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"the search index {path} is being written by another process", "try again in a moment"
        )


_WITHOUT_LOG = (
    "{} may be written by several machines: the search index there is kept without a write-ahead log, so a"
    " search may have to wait for an import"
)
_REINDEX = "build it anew: raddle doctor --reindex"


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _statements(schema: str) -> Iterator[str]:
    """One by one: `executescript` would commit the transaction around them."""
    lines = [line for line in schema.splitlines() if not line.lstrip().startswith("--")]
    return (statement for part in "\n".join(lines).split(";") if (statement := part.strip()))


def _drop_all(sql: sqlite3.Connection) -> None:
    tables = sql.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    # Virtual tables first: they take their shadow tables with them; the views of a vocabulary before what they show.
    tables.sort(
        key=lambda row: (not str(row[1]).startswith("CREATE VIRTUAL"), "fts5vocab" not in str(row[1]))
    )
    for name, _ in tables:
        quoted = str(name).replace('"', '""')
        if not str(name).startswith("sqlite_"):
            sql.execute(f'DROP TABLE IF EXISTS "{quoted}"')
