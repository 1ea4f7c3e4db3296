"""What was read of which source file: local facts, so that nothing is read twice and a purged thread stays gone.

The ledger names paths, offsets and times of this machine; none of it ever stands in a thread. It also names
the segments under which the source bytes were kept, so it lies in the data folder, not in the cache. Losing
it costs one whole reading: every id is derived, so what is read again is found to be there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from raddle.actions.importing.run_plan import Segment, SourceEntry
from raddle.adapters.files import make_folder
from raddle.model.errors import StorageError

_FORMAT = 1
_SCHEMA = """
CREATE TABLE sources (
    path TEXT PRIMARY KEY, agent TEXT NOT NULL, session TEXT NOT NULL, thread_id TEXT NOT NULL,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
    read_to INTEGER NOT NULL, lines INTEGER NOT NULL, head TEXT NOT NULL, tail TEXT NOT NULL,
    generation INTEGER NOT NULL, state BLOB, problems INTEGER NOT NULL, left_out TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX sources_thread ON sources (thread_id);
CREATE TABLE segments (
    path TEXT NOT NULL, generation INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,
    sha256 TEXT NOT NULL, thread_id TEXT NOT NULL,
    PRIMARY KEY (path, generation, start)
) WITHOUT ROWID;
CREATE INDEX segments_thread ON segments (thread_id);
CREATE TABLE purged (thread_id TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_COLUMNS = "path, agent, session, thread_id, size, mtime_ns, inode, read_to, lines, head, tail, generation, problems, left_out"


class ImportLedger:
    """The ledger of one data folder. Reads see the last commit; writes are one transaction a `record`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        make_folder(self._path.parent)
        try:
            is_new = not self._path.exists()
            if is_new:
                self._path.touch(mode=0o600)
            connection = sqlite3.connect(self._path, timeout=30, isolation_level=None)
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if found == 0:
                connection.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}PRAGMA user_version={_FORMAT};COMMIT;")
            connection.execute("PRAGMA synchronous=FULL")
        except (sqlite3.Error, OSError) as error:
            raise self._trouble(error) from error
        return connection

    def _trouble(self, error: Exception) -> StorageError:
        return StorageError(
            f"cannot use the import ledger {self._path}: {error}",
            "check the disk; moved away, it is built anew by the next `raddle import`",
        )

    def entries(self, agent: str | None = None) -> dict[str, SourceEntry]:
        """Path -> what is known of it, of one agent or of all. `state` is left out: see `state_of`."""
        where, values = ("WHERE agent = ?", (agent,)) if agent is not None else ("", ())
        try:
            rows = self._db.execute(f"SELECT {_COLUMNS} FROM sources {where}", values).fetchall()  # noqa: S608
        except sqlite3.Error as error:
            raise self._trouble(error) from error
        names = [name.strip() for name in _COLUMNS.split(",")]
        return {row[0]: SourceEntry(**dict(zip(names, row, strict=True))) for row in rows}

    def state_of(self, path: str) -> bytes | None:
        """What the importer needs to go on at the end of this file; None where the file is to be read whole."""
        row = self._db.execute("SELECT state FROM sources WHERE path = ?", (path,)).fetchone()
        return None if row is None else row[0]

    def record(
        self, entries: Iterable[tuple[SourceEntry, bytes | None]], segments: Iterable[tuple[str, Segment]]
    ) -> None:
        """Note how far each source was read, with the importer's state, and which segments hold its bytes."""
        marks = ", ".join("?" * 15)
        try:
            with self._transaction() as db:
                db.executemany(
                    f"INSERT OR REPLACE INTO sources ({_COLUMNS}, state) VALUES ({marks})",  # noqa: S608
                    [(*_row(entry), state) for entry, state in entries],
                )
                db.executemany(
                    "INSERT OR IGNORE INTO segments (path, generation, start, end, sha256, thread_id)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    [
                        (
                            path,
                            segment.generation,
                            segment.start,
                            segment.end,
                            segment.sha256,
                            segment.thread_id,
                        )
                        for path, segment in segments
                    ],
                )
        except sqlite3.Error as error:
            raise self._trouble(error) from error

    def segments_of(self, thread_id: str) -> list[tuple[str, Segment]]:
        """(path, segment) of every source segment of a thread, in (path, generation, start) order."""
        rows = self._db.execute(
            "SELECT path, generation, start, end, sha256 FROM segments WHERE thread_id = ? ORDER BY 1, 2, 3",
            (thread_id,),
        )
        return [
            (path, Segment(generation=generation, start=start, end=end, sha256=sha256, thread_id=thread_id))
            for path, generation, start, end, sha256 in rows
        ]

    def holders_of(self, sha256: str) -> list[str]:
        """The threads whose source segments have these bytes."""
        rows = self._db.execute("SELECT DISTINCT thread_id FROM segments WHERE sha256 = ?", (sha256,))
        return [thread_id for (thread_id,) in rows]

    def purged(self) -> set[str]:
        """Threads that were purged here: no import brings them back."""
        return {thread_id for (thread_id,) in self._db.execute("SELECT thread_id FROM purged")}

    def note_purged(self, thread_id: str, *, is_purged: bool = True) -> None:
        """Keep a purged thread gone (or let an import bring it back), and forget its segments."""
        with self._transaction() as db:
            if is_purged:
                db.execute("INSERT OR IGNORE INTO purged VALUES (?)", (thread_id,))
                db.execute("DELETE FROM segments WHERE thread_id = ?", (thread_id,))
            else:
                db.execute("DELETE FROM purged WHERE thread_id = ?", (thread_id,))
                db.execute("DELETE FROM sources WHERE thread_id = ?", (thread_id,))

    def forget_segments(self, thread_id: str) -> None:
        """The source bytes of a thread were erased."""
        with self._transaction() as db:
            db.execute("DELETE FROM segments WHERE thread_id = ?", (thread_id,))

    def _transaction(self) -> _Transaction:
        return _Transaction(self._db)


class _Transaction:
    """BEGIN IMMEDIATE … COMMIT, or ROLLBACK where the block fails."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> sqlite3.Connection:
        self._db.execute("BEGIN IMMEDIATE")
        return self._db

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.execute("COMMIT" if kind is None else "ROLLBACK")


def _row(entry: SourceEntry) -> Iterator[object]:
    return iter(
        (
            entry.path,
            entry.agent,
            entry.session,
            entry.thread_id,
            entry.size,
            entry.mtime_ns,
            entry.inode,
            entry.read_to,
            entry.lines,
            entry.head,
            entry.tail,
            entry.generation,
            entry.problems,
            entry.left_out,
        )
    )
