"""What was read of which source file: local facts, so that nothing is read twice.

The ledger names paths, offsets and times of this machine; none of it ever stands in a thread. It also names
the segments under which the source bytes were kept, so it lies in the data folder, not in the cache. Losing
it costs one whole reading: every id is derived, so what is read again is found to be there. Which threads were
purged is not in it, since nothing could tell that again: it hands that on to `purge_marks`.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from raddle.actions.importing.known_sources import hidden, is_hidden
from raddle.actions.importing.run_plan import Segment, SourceEntry
from raddle.actions.ports import Finding
from raddle.adapters.files import make_folder, storage_error
from raddle.adapters.local_store.import_ledger_damage import is_damage, move_away, saved_from
from raddle.adapters.local_store.purge_marks import PurgeMarks
from raddle.adapters.paths import Paths
from raddle.model.errors import BrokenFormat, NewerFormat, StorageError

T = TypeVar("T")

FORMAT = 4
_WITHOUT_BASES = 3
"""The format that did not note which forks wait for the turns before them."""
_WITH_MARKS = 2
"""The format that held the purge marks itself."""
_SCHEMA = """
CREATE TABLE sources (
    path TEXT PRIMARY KEY, agent TEXT NOT NULL, session TEXT NOT NULL, is_main INTEGER NOT NULL,
    thread_id TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
    read_to INTEGER NOT NULL, lines INTEGER NOT NULL, head TEXT NOT NULL, tail TEXT NOT NULL,
    generation INTEGER NOT NULL, is_unplaced INTEGER NOT NULL, problems INTEGER NOT NULL,
    base TEXT NOT NULL DEFAULT '', state BLOB
) WITHOUT ROWID;
CREATE INDEX sources_thread ON sources (thread_id);
CREATE TABLE segments (
    path TEXT NOT NULL, generation INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,
    sha256 TEXT NOT NULL, thread_id TEXT NOT NULL,
    PRIMARY KEY (path, generation, start, end, sha256, thread_id)
) WITHOUT ROWID;
CREATE INDEX segments_thread ON segments (thread_id);
CREATE INDEX segments_blob ON segments (sha256);
"""
_BUSY_SECONDS = 30.0


_NAMES = SourceEntry.__struct_fields__
"""Of the columns of `sources`; the importer's state, which may be large and is seldom wanted, is apart."""
_COLUMNS = ", ".join(_NAMES)
_MARKS = ", ".join("?" * (len(_NAMES) + 1))
_SELECT = f"SELECT {_COLUMNS} FROM sources"  # noqa: S608  names of our own
_OF_THREAD = f"{_SELECT} WHERE thread_id = ?"
_REPLACE = f"INSERT OR REPLACE INTO sources ({_COLUMNS}, state) VALUES ({_MARKS})"  # noqa: S608
_FORGET = "DELETE FROM sources WHERE path = ?"
_KEEP = "INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_SHARE = (
    "INSERT INTO segments SELECT path, generation, start, end, sha256, ? FROM segments"
    " WHERE path = ? AND generation = ? AND start < ? AND thread_id <> ? ON CONFLICT DO NOTHING"
)
"""What was read of a file while it was another session's is this one's too: it begins with those bytes."""
_UNREAD = "UPDATE sources SET size = -1, read_to = 0, lines = 0, head = '', tail = '', state = NULL"
_UNREAD_OF_BLOB = f"{_UNREAD} WHERE path IN (SELECT path FROM segments WHERE sha256 = ?)"  # noqa: S608
_FLAGS = ("is_main", "is_unplaced")


class ImportLedger:
    """The ledger of one data folder, made when something is first written to it.

    Reads see the last commit; writes are one transaction a call. May be shared between threads. Whatever
    SQLite refuses is a StorageError; a file that is damaged is a BrokenFormat, unless it may be mended.
    """

    def __init__(self, paths: Paths, marks: PurgeMarks) -> None:
        self._paths = paths
        self._path = paths.import_ledger
        self._marks = marks
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.RLock()
        self._told_of_mending: Callable[[Finding], None] | None = None

    def mend_damage(self, report: Callable[[Finding], None]) -> None:
        """From now on a damaged ledger is set aside and made anew, and `report` is told.

        For the holder of the import lock alone: two processes would set aside each other's new one.
        """
        self._told_of_mending = report

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
        """Path -> what is known of it; of a purged thread's files by what hides their paths (`KnownSources`).
        The importer's state is left out: see `state_of`."""
        rows = self._rows(_SELECT)
        return {row[0]: _entry(row) for row in rows}

    def states_of(self, thread_id: str) -> list[bytes]:
        """What the importer needs to go on at the ends of a thread's files, those that no main file is last."""
        rows = self._rows(
            "SELECT state FROM sources WHERE thread_id = ? ORDER BY is_main DESC, path", thread_id
        )
        return [row[0] for row in rows if row[0]]

    def state_of(self, path: str) -> bytes | None:
        """What the importer needs to go on at the end of this file; None where the file is to be read whole."""
        rows = self._rows("SELECT state FROM sources WHERE path = ?", path)
        return rows[0][0] if rows else None

    def record(
        self, entries: Iterable[tuple[SourceEntry, bytes | None]], segments: Iterable[tuple[str, Segment]]
    ) -> None:
        """Note how far each source was read, with the importer's state, and which segments hold its bytes."""
        purged = self._marks.whole()
        read, unnamed = [], []
        for entry, state in entries:
            if entry.thread_id in purged:
                unnamed.append((entry.path,))
                read.append(_row(hidden(entry), None))
            else:
                read.append(_row(entry, state))
        kept, shared = [], []
        for path, segment in segments:
            kept.append((path, *_values(segment)))
            if segment.start:
                thread_id = segment.thread_id
                shared.append((thread_id, path, segment.generation, segment.start, thread_id))
        if not read and not kept:
            return
        self._write((_FORGET, unnamed), (_REPLACE, read), (_KEEP, kept), (_SHARE, shared))

    def segments_of(self, thread_id: str) -> list[tuple[str, Segment]]:
        """(path, segment) of every source segment of a thread, in (path, generation, start) order."""
        rows = self._rows(
            "SELECT path, generation, start, end, sha256, thread_id FROM segments WHERE thread_id = ?"
            " ORDER BY 1, 2, 3, 4",
            thread_id,
        )
        return [(path, _segment(values)) for path, *values in rows]

    def all_segments(self) -> list[tuple[str, str, int, int, int, str]]:
        """(thread, path, generation, start, end, sha256) of every source segment, in no particular order."""
        return self._rows("SELECT thread_id, path, generation, start, end, sha256 FROM segments")

    def sharing(self, thread_id: str) -> dict[str, frozenset[str]]:
        """SHA-256 of a thread's segments -> the other threads whose segments have these bytes, where there are any."""
        rows = self._rows(
            "SELECT DISTINCT other.sha256, other.thread_id FROM segments AS mine JOIN segments AS other"
            " ON other.sha256 = mine.sha256 AND other.thread_id <> mine.thread_id WHERE mine.thread_id = ?",
            thread_id,
        )
        found: dict[str, set[str]] = {}
        for sha256, other in rows:
            found.setdefault(sha256, set()).add(other)
        return {sha256: frozenset(others) for sha256, others in found.items()}

    def entry_of(self, path: str) -> SourceEntry | None:
        """What is known of one source file."""
        rows = self._rows(f"{_SELECT} WHERE path = ?", path)
        return _entry(rows[0]) if rows else None

    def holders_of(self, sha256: str) -> list[str]:
        """The threads whose source segments have these bytes."""
        rows = self._rows("SELECT DISTINCT thread_id FROM segments WHERE sha256 = ?", sha256)
        return [thread_id for (thread_id,) in rows]

    def paths_of_blob(self, sha256: str) -> list[str]:
        """The source files that these bytes are of."""
        rows = self._rows("SELECT DISTINCT path FROM segments WHERE sha256 = ? ORDER BY path", sha256)
        return [path for (path,) in rows]

    def kept_blobs(self) -> dict[str, str]:
        """SHA-256 of every source segment -> a thread that it belongs to."""
        return dict(self._rows("SELECT sha256, min(thread_id) FROM segments GROUP BY sha256"))

    def forget_segments(self, thread_id: str) -> None:
        """The source bytes of a thread were erased."""
        self._write(("DELETE FROM segments WHERE thread_id = ?", [(thread_id,)]))

    def forget_blob(self, sha256: str) -> None:
        """Source bytes were lost: the files that they were of count as unread, so that they are kept again."""
        self._write(
            (_UNREAD_OF_BLOB, [(sha256,)]),
            ("DELETE FROM segments WHERE sha256 = ?", [(sha256,)]),
        )

    def purged(self) -> set[str]:
        """Threads that were purged here: no import brings them back."""
        self._hand_marks_over()
        return self._marks.whole()

    def without_bytes(self) -> set[str]:
        """Threads of which some words were purged: of their sources no byte is kept any more."""
        self._hand_marks_over()
        return self._marks.in_part()

    def note_purged(self, thread_id: str, *, is_whole: bool = True) -> None:
        """Keep a thread gone; not `is_whole`: only the source bytes, which hold words that were erased.

        So may the importer's states: they go at once, and the files are read from their start if they are read.
        """
        self._hand_marks_over()
        self._marks.note({thread_id: is_whole})
        self._write(("UPDATE sources SET state = NULL WHERE thread_id = ?", [(thread_id,)]))
        self.hide_purged()

    def hide_purged(self) -> None:
        """Let no path of a purged thread's files stand here: a digest is enough to know them again."""
        rows = [row for thread_id in self._marks.whole() for row in self._rows(_OF_THREAD, thread_id)]
        named = [entry for entry in map(_entry, rows) if not is_hidden(entry.path)]
        if named:
            self._write(
                (_FORGET, [(entry.path,) for entry in named]),
                (_REPLACE, [_row(hidden(entry), None) for entry in named]),
            )

    def revive(self, thread_id: str) -> None:
        """Let an import bring a purged thread back: as if nothing of its sources had been read."""
        self._write(("DELETE FROM sources WHERE thread_id = ?", [(thread_id,)]))
        self._marks.revive(thread_id)

    def unreadable_marks(self) -> int:
        """How many lines of the purge marks say nothing that could be read."""
        return self._marks.unreadable()

    def _hand_marks_over(self) -> None:
        """A ledger that holds marks gives them away when it is opened."""
        self._rows("PRAGMA user_version")

    def _rows(self, query: str, *values: Any) -> list[Any]:
        """What a query finds; nothing where there is no ledger yet (a look makes none)."""

        def look() -> list[Any]:
            if self._connection is None and not self._path.exists():
                return []
            return self._db().execute(query, values).fetchall()

        return self._mended(look)

    def _write(self, *statements: tuple[str, list[tuple[Any, ...]]]) -> None:
        """Each statement for each of its rows, all or nothing."""

        def write() -> None:
            with _transaction(self._db()) as db:
                for statement, rows in statements:
                    db.executemany(statement, rows)

        self._mended(write)

    def _mended(self, work: Callable[[], T]) -> T:
        """What `work` answers; once more with a new ledger, where this one is damaged and may be mended."""
        with self._lock:
            try:
                return self._told(work)
            except BrokenFormat as damage:
                report = self._told_of_mending
                if report is None:
                    raise
                report(self._told(functools.partial(self._begin_anew, damage)))
                return self._told(work)

    def _told(self, work: Callable[[], T]) -> T:
        """What `work` answers; what SQLite and the disk refuse told as ours."""
        try:
            return work()
        except sqlite3.Error as error:
            if is_damage(error):
                raise self._damage(str(error)) from error
            raise StorageError(
                f"cannot use the import ledger {self._path}: {error}", "check the disk, then try again"
            ) from error
        except OSError as error:
            raise storage_error(error, self._path, "open the import ledger") from error

    def _damage(self, reason: str) -> BrokenFormat:
        return BrokenFormat(
            f"the import ledger {self._path} is damaged: {reason}",
            "the next `raddle import` sets it aside and makes it anew",
        )

    def _begin_anew(self, damage: BrokenFormat) -> Finding:
        """Set it aside and save what can be read of it: the purge marks, and which segments hold which bytes."""
        self.close()
        kept = move_away(self._paths, damage.message)
        saved = saved_from(kept)
        self._marks.note(saved.marks)
        with _transaction(self._db()) as db:
            entries = [_row(entry, None) for entry in saved.entries]
            db.executemany(_REPLACE, entries)
            db.execute(_UNREAD)
            db.executemany(_KEEP, [(path, *_values(segment)) for path, segment in saved.segments])
        reason = damage.message.partition("is damaged: ")[2]
        return Finding(
            path=str(self._path),
            what=f"it was damaged: {reason}",
            done=f"set aside as {kept.name} and made anew; every session is read once more",
        )

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
        if _format(connection) in (0, _WITH_MARKS, _WITHOUT_BASES):
            with _transaction(connection):
                self._bring_up(connection)
        found = _format(connection)
        if found > FORMAT:
            raise NewerFormat(f"the import ledger {self._path}", found, FORMAT)
        if found < FORMAT:
            raise self._damage(f"it has format {found}, which is no longer read")

    def _bring_up(self, connection: sqlite3.Connection) -> None:
        """Make the tables, or bring earlier ones up to date; unless another process was first."""
        found = _format(connection)
        if found == 0:
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
        elif found == _WITH_MARKS:
            marks = connection.execute("SELECT thread_id, is_whole FROM purged")
            self._marks.note({thread_id: bool(is_whole) for thread_id, is_whole in marks})
            connection.execute("DROP TABLE purged")
        columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(sources)")]
        if found in (_WITH_MARKS, _WITHOUT_BASES) and "base" not in columns:
            connection.execute("ALTER TABLE sources ADD COLUMN base TEXT NOT NULL DEFAULT ''")
        if found in (0, _WITH_MARKS, _WITHOUT_BASES):
            connection.execute(f"PRAGMA user_version={FORMAT}")


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """BEGIN IMMEDIATE … COMMIT, or ROLLBACK where the block fails."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # some errors end it themselves
            db.execute("ROLLBACK")
        raise


def _format(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _row(entry: SourceEntry, state: bytes | None) -> tuple[Any, ...]:
    return (*(getattr(entry, name) for name in _NAMES), state)


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
