"""Another program's SQLite database, read as it stands at one moment, with nothing written beside it.

Owns how such a database is opened. SQLite makes the files `-wal` and `-shm` beside a database it opens, also for
reading, and writes into `-shm`; and a reading that passes over the log misses what the program wrote last. Which way
of opening does neither depends on what lies there (tried with SQLite 3.40):

- with its log and the log's index there, `mode=ro&readonly_shm=1` reads both and touches neither, also beside a
  writer, and where the program crashed;
- with no log, or an empty one, and no index, all is in the database: `immutable=1`, and afterwards a look whether the
  program came back meanwhile;
- a log without its index, as in a copied folder, can be read from a copy only;
- one that keeps a rollback journal makes no files: `mode=ro`.

Whatever cannot be opened so is copied, with its log, and the copy is read, by all who ask while the original is as it
was. It is made where what a killed process left is swept.
"""

from __future__ import annotations

import functools
import os
import sqlite3
import weakref
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from raddle.actions.importing.source_reading import SourceError
from raddle.adapters.agent_homes.source_bytes import first_bytes, source_error
from raddle.adapters.files import make_folder, new_temporary_folder
from raddle.model.errors import StorageError

_MAGIC = b"SQLite format 3\0"
_WAL_MODE = 2
_LOCK_SECONDS = 5.0
_COPIES = 3
_LOGS = ("-wal", "-journal")
_TO_COPY = frozenset(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_IOERR"))
_HINT = "try again when the program that writes it is idle"

_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_IOERR")

Sign = tuple[tuple[int, int, int] | None, ...]


class Damaged(SourceError):
    """A page that was asked for cannot be read; others may be."""


def is_sqlite(head: bytes) -> bool:
    """Are these the first bytes of a SQLite database?"""
    return head.startswith(_MAGIC)


class ReadOnlyDatabase:
    """One read transaction over the database at `path`: what it holds does not change until `close`.

    Texts come as bytes. `scratch`: where a copy is made, if one has to be; None: see `keep_copies_in`.
    SourceError where it cannot be read.
    """

    def __init__(self, path: str, *, scratch: str | None = None) -> None:
        self._path = path
        self._copy: _Copy | None = None
        self._sign: Sign | None = None
        """How the files looked, where nothing but their look tells of a change."""
        try:
            self._connection = self._open(scratch)
        except sqlite3.Error as error:
            raise self._unreadable(error) from error
        except OSError as error:
            raise source_error(error, path) from error

    def _open(self, scratch: str | None) -> sqlite3.Connection:
        head = first_bytes(self._path, 20)
        if head and not is_sqlite(head):
            raise SourceError(self._path, "it is no SQLite database", "check the path")
        way = self._way(len(head) == 20 and head[18] == _WAL_MODE)
        if way:
            try:
                return _begun(f"file:{quote(os.fsencode(self._path))}?{way}")
            except sqlite3.OperationalError as error:
                if not _name_of(error).startswith(tuple(_TO_COPY)):
                    raise
        self._sign = None
        return self._open_copy(scratch)

    def _way(self, is_logged: bool) -> str:
        """How to open it; empty where only a copy can be."""
        if not is_logged:
            return "mode=ro"
        wal = Path(f"{self._path}-wal")
        has_index = Path(f"{self._path}-shm").exists()
        if wal.exists() and has_index:
            return "mode=ro&readonly_shm=1"
        if has_index or (wal.exists() and wal.stat().st_size):
            return ""
        self._sign = _sign_of(self._path)
        return "immutable=1"

    def _open_copy(self, scratch: str | None) -> sqlite3.Connection:
        for _ in range(_COPIES):
            sign = _sign_of(self._path)
            self._copy = _copied(self._path, sign, scratch)
            if sign == _sign_of(self._path):
                return _begun(f"file:{quote(os.fsencode(self._copy.path))}?mode=rw")
        raise SourceError(self._path, "it changes all the time", _HINT)

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query; Damaged where a page is that it needs."""
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def rows_until_damage(self, query: str, *values: Any) -> tuple[list[tuple[Any, ...]], bool]:
        """The rows of a query up to the first that cannot be read, and whether these are all."""
        rows: list[tuple[Any, ...]] = []
        try:
            for row in self._connection.execute(query, values):
                rows.append(row)  # noqa: PERF402 - what came before the damage is kept
        except sqlite3.Error as error:
            told = self._unreadable(error)
            if not isinstance(told, Damaged):
                raise told from error
            return rows, False
        return rows, True

    def columns(self, table: str) -> list[str]:
        """The names of a table's columns; none where there is no such table."""
        return [row[0].decode() for row in self.rows("SELECT name FROM pragma_table_info(?)", table)]

    def check(self) -> None:
        """After reading: SourceError where the program wrote meanwhile and what was read may be of two moments."""
        if self._sign is not None and self._sign != _sign_of(self._path):
            raise SourceError(self._path, "it changed while it was read", _HINT)

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()
        self._copy = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _unreadable(self, error: sqlite3.Error) -> SourceError:
        if _name_of(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return SourceError(self._path, "another program has it locked", _HINT)
        kind = Damaged if _name_of(error).startswith(_DAMAGE) else SourceError
        return kind(self._path, f"SQLite says: {error}", "is it damaged? other sessions are read")


class _Copy:
    """A database and its log, copied to a folder of their own, which goes when nobody holds this any more."""

    def __init__(self, path: str, sign: Sign, scratch: str | None) -> None:
        import shutil  # most sources are no database  # noqa: PLC0415

        self.sign = sign
        try:
            parent = Path(scratch) if scratch is not None else _usual_place()
            folder, held = new_temporary_folder(parent)
        except StorageError as error:
            raise SourceError(path, error.message, error.hint) from error
        weakref.finalize(self, _drop, folder, held, os.getpid())
        self.path = folder / "copy.db"
        for end in ("", *_LOGS):
            if not end or Path(f"{path}{end}").exists():
                copy = Path(f"{self.path}{end}")
                copy.touch(mode=0o600)
                shutil.copyfile(f"{path}{end}", copy)


def _usual_place() -> Path:
    if _place.folder is not None:
        make_folder(_place.folder)
        return _place.folder
    import tempfile  # noqa: PLC0415  # no import of raddle's own comes here

    return Path(tempfile.gettempdir())


def _drop(folder: Path, held: int, owner: int) -> None:
    """Remove a copy and let go of it; a worker that was forked from its maker leaves it to the maker."""
    import shutil  # noqa: PLC0415

    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
    os.close(held)


class _Place:
    """Where copies are made; None: where the system keeps what is temporary."""

    folder: Path | None = None


_place = _Place()


def keep_copies_in(folder: Path) -> None:
    """From now on, in this process and those forked from it, copies are made in `folder`: one that is swept."""
    _place.folder = folder


@functools.lru_cache(maxsize=1)
def _copied(path: str, sign: Sign, scratch: str | None) -> _Copy:
    """A copy of the database as it looks by `sign`: an import opens one for each session in it."""
    return _Copy(path, sign, scratch)


def forget_copies() -> None:
    """Remove the copy that was made last; without this it goes with the process."""
    _copied.cache_clear()


def _begun(uri: str) -> sqlite3.Connection:
    """A connection in whose read transaction the first page is read."""
    connection = sqlite3.connect(uri, uri=True, timeout=_LOCK_SECONDS, isolation_level=None)
    try:
        connection.text_factory = bytes
        _begin(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _begin(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")
    query = "SELECT count(*) FROM sqlite_master"
    try:
        connection.execute(query).fetchone()
    except sqlite3.DatabaseError as error:
        if not _name_of(error).startswith(_DAMAGE[0]):
            raise
        # A file that is shorter than it says is refused as a whole, but for those who would mend it. Nothing is
        # written for that: the connection still only reads.
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(query).fetchone()


def _name_of(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", "") or "")


def _sign_of(path: str) -> Sign:
    """How the database and its logs look from outside."""
    signs: list[tuple[int, int, int] | None] = []
    for suffix in ("", *_LOGS):
        try:
            status = Path(f"{path}{suffix}").stat()
        except FileNotFoundError:
            signs.append(None)
        else:
            signs.append((status.st_size, status.st_mtime_ns, status.st_ino))
    return tuple(signs)
