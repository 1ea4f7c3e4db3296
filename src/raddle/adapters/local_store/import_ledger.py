"""What was read of which source file: local facts, so that nothing is read twice and a purged thread stays gone.

The ledger names paths, offsets and times of this machine; none of it ever stands in a thread. It also names
the segments under which the source bytes were kept, so it lies in the data folder, not in the cache. Losing
it costs one whole reading: every id is derived, so what is read again is found to be there.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from raddle.actions.importing.run_plan import Segment, SourceEntry
from raddle.adapters.files import make_folder, storage_error
from raddle.model.errors import NewerFormat, OlderFormat, StorageError

FORMAT = 2
_SCHEMA = """
CREATE TABLE sources (
    path TEXT PRIMARY KEY, agent TEXT NOT NULL, session TEXT NOT NULL, is_main INTEGER NOT NULL,
    thread_id TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
    read_to INTEGER NOT NULL, lines INTEGER NOT NULL, head TEXT NOT NULL, tail TEXT NOT NULL,
    generation INTEGER NOT NULL, is_unplaced INTEGER NOT NULL, problems INTEGER NOT NULL, state BLOB
) WITHOUT ROWID;
CREATE INDEX sources_thread ON sources (thread_id);
CREATE TABLE segments (
    path TEXT NOT NULL, generation INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,
    sha256 TEXT NOT NULL, thread_id TEXT NOT NULL,
    PRIMARY KEY (path, generation, start, end, sha256, thread_id)
) WITHOUT ROWID;
CREATE INDEX segments_thread ON segments (thread_id);
CREATE INDEX segments_blob ON segments (sha256);
CREATE TABLE purged (thread_id TEXT PRIMARY KEY, is_whole INTEGER NOT NULL) WITHOUT ROWID;
"""
_BUSY_SECONDS = 30.0


_NAMES = SourceEntry.__struct_fields__
"""Of the columns of `sources`; the importer's state, which may be large and is seldom wanted, is apart."""
_COLUMNS = ", ".join(_NAMES)
_MARKS = ", ".join("?" * (len(_NAMES) + 1))
_SELECT = f"SELECT {_COLUMNS} FROM sources"  # noqa: S608  names of our own
_REPLACE = f"INSERT OR REPLACE INTO sources ({_COLUMNS}, state) VALUES ({_MARKS})"  # noqa: S608
_FLAGS = ("is_main", "is_unplaced")


class ImportLedger:
    """The ledger of one data folder, made when something is first written to it.

    Reads see the last commit; writes are one transaction a call. May be shared between threads. Whatever
    SQLite refuses is a StorageError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def entries(self) -> dict[str, SourceEntry]:
        """Path -> what is known of it. The importer's state is left out: see `state_of`."""
        rows = self._rows(_SELECT)
        return {row[0]: _entry(row) for row in rows}

    def state_of(self, path: str) -> bytes | None:
        """What the importer needs to go on at the end of this file; None where the file is to be read whole."""
        rows = self._rows("SELECT state FROM sources WHERE path = ?", path)
        return rows[0][0] if rows else None

    def record(
        self, entries: Iterable[tuple[SourceEntry, bytes | None]], segments: Iterable[tuple[str, Segment]]
    ) -> None:
        """Note how far each source was read, with the importer's state, and which segments hold its bytes."""
        read = [(*(getattr(entry, name) for name in _NAMES), state) for entry, state in entries]
        kept = [(path, *_values(segment)) for path, segment in segments]
        if not read and not kept:
            return
        with self._writing() as db:
            db.executemany(_REPLACE, read)
            db.executemany("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", kept)

    def segments_of(self, thread_id: str) -> list[tuple[str, Segment]]:
        """(path, segment) of every source segment of a thread, in (path, generation, start) order."""
        rows = self._rows(
            "SELECT path, generation, start, end, sha256, thread_id FROM segments WHERE thread_id = ?"
            " ORDER BY 1, 2, 3, 4",
            thread_id,
        )
        return [(path, _segment(values)) for path, *values in rows]

    def holders_of(self, sha256: str) -> list[str]:
        """The threads whose source segments have these bytes."""
        rows = self._rows("SELECT DISTINCT thread_id FROM segments WHERE sha256 = ?", sha256)
        return [thread_id for (thread_id,) in rows]

    def kept_blobs(self) -> dict[str, str]:
        """SHA-256 of every source segment -> a thread that it belongs to."""
        return dict(self._rows("SELECT sha256, min(thread_id) FROM segments GROUP BY sha256"))

    def forget_segments(self, thread_id: str) -> None:
        """The source bytes of a thread were erased."""
        with self._writing() as db:
            db.execute("DELETE FROM segments WHERE thread_id = ?", (thread_id,))

    def forget_blob(self, sha256: str) -> None:
        """Source bytes were lost: the files that they were of count as unread, so that they are kept again."""
        with self._writing() as db:
            db.execute(
                "UPDATE sources SET size = -1, read_to = 0, lines = 0, head = '', tail = '', state = NULL"
                " WHERE path IN (SELECT path FROM segments WHERE sha256 = ?)",
                (sha256,),
            )
            db.execute("DELETE FROM segments WHERE sha256 = ?", (sha256,))

    def purged(self) -> set[str]:
        """Threads that were purged here: no import brings them back."""
        return {thread_id for (thread_id,) in self._rows("SELECT thread_id FROM purged WHERE is_whole")}

    def without_bytes(self) -> set[str]:
        """Threads of which some words were purged: of their sources no byte is kept any more."""
        return {thread_id for (thread_id,) in self._rows("SELECT thread_id FROM purged WHERE NOT is_whole")}

    def note_purged(self, thread_id: str, *, is_whole: bool = True) -> None:
        """Keep a thread gone; not `is_whole`: only the source bytes, which hold words that were erased.

        So may the importer's states: they go at once, and the files are read from their start if they are read.
        """
        with self._writing() as db:
            db.execute("UPDATE sources SET state = NULL WHERE thread_id = ?", (thread_id,))
            db.execute(
                "INSERT INTO purged VALUES (?1, ?2)"
                " ON CONFLICT (thread_id) DO UPDATE SET is_whole = max(is_whole, ?2)",
                (thread_id, is_whole),
            )

    def revive(self, thread_id: str) -> None:
        """Let an import bring a purged thread back: as if nothing of its sources had been read."""
        with self._writing() as db:
            db.execute("DELETE FROM purged WHERE thread_id = ?", (thread_id,))
            db.execute("DELETE FROM sources WHERE thread_id = ?", (thread_id,))

    def _rows(self, query: str, *values: Any) -> list[Any]:
        """What a query finds; nothing where there is no ledger yet (a look makes none)."""
        with self._errors():
            if self._connection is None and not self._path.exists():
                return []
            return self._db().execute(query, values).fetchall()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """BEGIN IMMEDIATE … COMMIT, or ROLLBACK where the block fails."""
        with self._errors():
            db = self._db()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise StorageError(
                    f"cannot use the import ledger {self._path}: {error}",
                    "check the disk; moved away, it is built anew by the next `raddle import`",
                ) from error
            except OSError as error:
                raise storage_error(error, self._path, "open the import ledger") from error

    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            make_folder(self._path.parent)
            if not self._path.exists():
                self._path.touch(mode=0o600)
            connection = sqlite3.connect(
                self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA secure_delete=ON")
        if _format(connection) == 0:
            connection.execute("BEGIN IMMEDIATE")
            if _format(connection) == 0:  # another process may have been first
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version={FORMAT}")
            connection.execute("COMMIT")
        found = _format(connection)
        if found > FORMAT:
            raise NewerFormat(f"the import ledger {self._path}", found, FORMAT)
        if found < FORMAT:
            raise OlderFormat(
                f"the import ledger {self._path} has format {found}, which is no longer read",
                "move it away: the next `raddle import` builds it anew",
            )


def _format(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _entry(row: tuple[Any, ...]) -> SourceEntry:
    fields = dict(zip(_NAMES, row, strict=True))
    for flag in _FLAGS:
        fields[flag] = bool(fields[flag])
    return SourceEntry(**fields)


def _values(segment: Segment) -> tuple[int, int, int, str, str]:
    return segment.generation, segment.start, segment.end, segment.sha256, segment.thread_id


def _segment(values: list[Any]) -> Segment:
    generation, start, end, sha256, thread_id = values
    return Segment(generation=generation, start=start, end=end, sha256=sha256, thread_id=thread_id)
