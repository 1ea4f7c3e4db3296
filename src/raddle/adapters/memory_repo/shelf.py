"""The index of a store: lists, entries and searches that do not open ten thousand files.

Derived: it compares itself with the folder before each answer and reads what changed, so that nobody has to tell it of
a write, and it may be thrown away at any time. What raddle writes shows at once, in every process, for it changes the
folder's own times; what another program writes in place shows two seconds later at most.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec, Self, TypeVar

from raddle.actions.memory.memories import MemoryLine
from raddle.actions.memory.memory_search import KINDS, DocumentKind, MemoryAnswer
from raddle.actions.ports import Finding
from raddle.adapters.file_systems import is_on_network
from raddle.adapters.memory_repo.folder_look import (
    Look,
    Mark,
    files_in,
    look_at,
    mark_of_folder,
    read_in,
)
from raddle.adapters.memory_repo.shelf_database import Database
from raddle.adapters.memory_repo.shelf_writer import ShelfWriter, line_in
from raddle.model.clock import Clock, system_clock
from raddle.model.memory.entry import decode_entry
from raddle.model.memory.repo_layout import MEMORY_FOLDER, RUNS_FOLDER, is_safe, place_of, run_folder
from raddle.model.memory.ulids import parse_ulid
from raddle.model.threads.query import Query

if TYPE_CHECKING:
    from raddle.actions.memory.entries import Entries

LOOK_SECONDS = 2.0
"""So long a look at the files of a folder counts, for all processes, while the folder itself looks the same."""
_LARGEST = 8 * 1024 * 1024
"""Bytes of a file that is read; what is larger is taken in by no commit either."""

# Left to itself, SQLite looks each of ten thousand rows up in the table, and sorts them.
_LINES = "SELECT line FROM documents INDEXED BY documents_of_memory WHERE kind = 'memory'"
_CONFLICTS = "SELECT path FROM documents WHERE kind = 'conflict'"
_ENTRIES = "SELECT data FROM entries"

P = ParamSpec("P")
R = TypeVar("R")


class _Known(NamedTuple):
    """A folder as it was noted."""

    mark: Mark
    looked: int


def _answered(answer: Callable[Concatenate[Shelf, P], R]) -> Callable[Concatenate[Shelf, P], R]:
    """Answer whatever state the file is in: anew where it is damaged, in memory where it cannot be had."""

    def run(self: Shelf, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock:
            try:
                return answer(self, *args, **kwargs)
            except sqlite3.OperationalError:
                self._database.step_aside()
            except sqlite3.DatabaseError:
                self._database.start_over()
            try:
                return answer(self, *args, **kwargs)
            except sqlite3.Error:
                self._database.step_aside(with_content=False)
            return answer(self, *args, **kwargs)

    return run


class Shelf:
    """The index, kept in `file`, of the store in the folder `root`. For several threads; one answers at a time."""

    def __init__(
        self,
        file: Path,
        root: Path,
        *,
        clock: Clock = system_clock,
        is_network: Callable[[Path], bool] = is_on_network,
    ) -> None:
        self._root = Path(os.path.realpath(root))
        self._clock = clock
        self._lock = threading.RLock()
        self._database = Database(file, is_network=is_network)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    @property
    def is_aside(self) -> bool:
        """Is it kept in memory, for the file could not be written?"""
        return self._database.is_aside

    @_answered
    def memories(self, namespace: str | None = None, prefix: str = "") -> list[MemoryLine]:
        """The memories (of a namespace; whose keys begin so), by namespace and key; conflicts are none."""
        self._refresh(MEMORY_FOLDER)
        where, values = _of_memory(namespace, prefix)
        rows = self._database.sql.execute(
            f"{_LINES} AND {where} ORDER BY namespace, key",
            values,
        )
        return [line_in(packed) for (packed,) in rows]

    @_answered
    def conflicts(self, namespace: str | None = None, prefix: str = "") -> list[str]:
        """The paths of other versions of memories that wait to be settled, in order."""
        self._refresh(MEMORY_FOLDER)
        where, values = _of_memory(namespace, prefix)
        rows = self._database.sql.execute(f"{_CONFLICTS} AND {where} ORDER BY path", values)
        return [str(row[0]) for row in rows]

    @_answered
    def search(
        self,
        query: Query,
        *,
        limit: int,
        kinds: Collection[DocumentKind] = KINDS,
        namespace: str | None = None,
    ) -> MemoryAnswer:
        """What a query finds. `namespace`: memories of that one alone."""
        from raddle.adapters.memory_repo.shelf_search import Search  # a list has no query  # noqa: PLC0415

        self._refresh(MEMORY_FOLDER)
        if namespace is None and set(kinds) != {"memory"}:
            self._refresh(RUNS_FOLDER)
        with self._database.reading() as sql:
            search = Search(sql, query, kinds=kinds, namespace=namespace)
            return search.answer(limit=limit, now=self._clock())

    @_answered
    def found(self, query: Query) -> set[str]:
        """The paths of all that a query finds."""
        from raddle.adapters.memory_repo.shelf_search import Search  # noqa: PLC0415

        self._refresh(MEMORY_FOLDER)
        self._refresh(RUNS_FOLDER)
        with self._database.reading() as sql:
            return Search(sql, query, kinds=KINDS, namespace=None).paths()

    @_answered
    def entries(self, run_id: str, phase: str | None = None) -> Entries:
        """The entries of a run (of one phase of it) in the order of their ids, and what could not be read as one."""
        run_id = parse_ulid(run_id, "run id")
        folder = f"{run_folder(run_id)}/phases" + (f"/{phase}/entries" if phase else "")
        if not is_safe(folder):
            return _read_entries((), ())
        self._refresh(folder)
        where, values = "run_id = ?", [run_id]
        if phase:
            where += " AND phase = ?"
            values.append(phase)
        found = self._database.sql.execute(f"{_ENTRIES} WHERE {where} ORDER BY entry_id, path", values)
        damaged = self._database.sql.execute(
            "SELECT path, why FROM damaged WHERE path >= ? AND path < ?", _below(folder)
        )
        return _read_entries(found, damaged)

    @_answered
    def resting_on(self, thread_id: str) -> Entries:
        """The entries of any run that name this thread as what they rest on, in the order of their ids."""
        self._refresh(RUNS_FOLDER)
        rows = self._database.sql.execute(
            f"{_ENTRIES} WHERE thread_id = ? ORDER BY entry_id, path", (thread_id,)
        )
        return _read_entries(rows, ())

    @_answered
    def threads_rested_on(self, start: str, *, most: int) -> list[str]:
        """The ids of threads that begin so and that entries of any run name, in their order."""
        self._refresh(RUNS_FOLDER)
        rows = self._database.sql.execute(
            "SELECT DISTINCT thread_id FROM entries WHERE thread_id >= ? AND thread_id < ? ORDER BY thread_id LIMIT ?",
            (start, f"{start}\x7f", most),
        )
        return [row[0] for row in rows]

    @_answered
    def rebuild(self) -> int:
        """Make all of it anew from the files; how many there are in it."""
        self._database.start_over()
        self._refresh(MEMORY_FOLDER)
        self._refresh(RUNS_FOLDER)
        return int(self._database.sql.execute("SELECT count(*) FROM documents").fetchone()[0])

    def _refresh(self, scope: str) -> None:
        """Bring in what changed in the folder `scope` and below it."""
        known = self._known(scope)
        stale = self._stale(scope, known)
        looks = self._looks(stale, known)
        if all(look is not None and self._is_as(known.get(folder), look) for folder, look in looks.items()):
            if looks:
                self._note_looked(looks)
            return
        try:
            with self._database.writing() as sql:
                self._take_in(sql, scope, known, looks)
        except sqlite3.OperationalError:
            if self._database.is_aside:
                raise
            self._database.step_aside()
            self._refresh(scope)

    def _known(self, scope: str) -> dict[str, _Known]:
        rows = self._database.sql.execute(
            "SELECT path, inode, modified, changed, looked FROM folders"
            " WHERE path = ? OR (path >= ? AND path < ?)",
            (scope, *_below(scope)),
        )
        return {row[0]: _Known((row[1], row[2], row[3]), row[4]) for row in rows}

    def _is_as(self, known: _Known | None, look: Look) -> bool:
        """Is the folder as it was noted, with all of its files?"""
        return known is not None and known.mark == look.mark and self._noted(look.folder) == look.packed

    def _noted(self, folder: str) -> bytes:
        """Its files as they were noted; empty where nothing was."""
        row = self._database.sql.execute("SELECT files FROM folders WHERE path = ?", (folder,)).fetchone()
        return bytes(row[0]) if row else b""

    def _stale(self, scope: str, known: dict[str, _Known]) -> list[str]:
        """The folders to look at: those that changed or were not looked at for long, and the scope where it is new."""
        now = self._clock()
        stale = []
        for folder, noted in known.items():
            # A clock that was set back makes the last look one of the future: it says nothing then.
            is_due = not 0 <= now - noted.looked < LOOK_SECONDS * 1_000_000
            if is_due or mark_of_folder(self._root, folder) != noted.mark:
                stale.append(folder)
        is_new = scope not in known and mark_of_folder(self._root, scope) is not None
        if is_new and os.path.realpath(self._root / scope) == f"{self._root}/{scope}":
            stale.append(scope)
        return stale

    def _looks(self, folders: Iterable[str], known: Collection[str]) -> dict[str, Look | None]:
        """A look at each of these, and at what is below it and not known; None: there is no such folder any more."""
        looks: dict[str, Look | None] = {}
        waiting = list(folders)
        while waiting:
            folder = waiting.pop()
            look = looks[folder] = look_at(self._root, folder)
            for name in look.folders if look is not None else ():
                below = f"{folder}/{name}"
                if below not in known and below not in looks and _may_hold(below):
                    waiting.append(below)
        return looks

    def _note_looked(self, looks: Iterable[str]) -> None:
        now = self._clock()
        try:
            with self._database.writing(wait_seconds=0) as sql:
                sql.executemany(
                    "UPDATE folders SET looked = ? WHERE path = ?", [(now, folder) for folder in looks]
                )
        except sqlite3.OperationalError:
            return  # who writes just now, or a cache that may only be read, makes others look again, no more

    def _take_in(
        self, sql: sqlite3.Connection, scope: str, known: dict[str, _Known], looks: dict[str, Look | None]
    ) -> None:
        now_known = self._known(scope)
        moved = [folder for folder in looks if now_known.get(folder) != known.get(folder)]
        if moved:  # another process was here since: what we saw may be older than what it noted
            looks = {**looks, **self._looks(moved, now_known)}
        writer = ShelfWriter(sql)
        for folder, look in looks.items():
            if look is None:
                self._forget(sql, writer, folder)
            else:
                self._take_folder(sql, writer, look)

    def _forget(self, sql: sqlite3.Connection, writer: ShelfWriter, folder: str) -> None:
        """The folder and all below it is gone."""
        bounds = (folder, *_below(folder))
        gone = sql.execute(
            "SELECT path, files FROM folders WHERE path = ? OR (path >= ? AND path < ?)", bounds
        ).fetchall()
        for above, files in gone:
            writer.take_out(f"{above}/{name}" for name in files_in(files))
        sql.execute("DELETE FROM folders WHERE path = ? OR (path >= ? AND path < ?)", bounds)

    def _take_folder(self, sql: sqlite3.Connection, writer: ShelfWriter, look: Look) -> None:
        noted = files_in(self._noted(look.folder))
        seen = look.files()
        other = [name for name, facts in seen.items() if noted.get(name) != facts]
        writer.take_out(
            f"{look.folder}/{name}"
            for name in [*(noted.keys() - seen.keys()), *(name for name in other if name in noted)]
        )
        wanted = [name for name in other if seen[name][0] <= _LARGEST]
        for name, data in read_in(self._root, look.folder, wanted):
            if data is not None:  # what went since, or may not be read, is seen when that changes
                writer.put(f"{look.folder}/{name}", data, seen[name][1] // 1000)
        as_noted = look.as_noted()
        looked = self._clock() if as_noted is look else 0
        sql.execute(
            "INSERT OR REPLACE INTO folders VALUES (?, ?, ?, ?, ?, ?)",
            (look.folder, *as_noted.mark, looked, as_noted.packed),
        )


def _read_entries(found: Iterable[tuple[bytes]], damaged: Iterable[tuple[str, str]]) -> Entries:
    from raddle.actions.memory.entries import Entries  # a list of memories needs none of it  # noqa: PLC0415

    findings = [Finding(path=path, what=why) for path, why in damaged]
    findings.sort(key=lambda finding: place_of(finding.path).entry_id)
    return Entries([decode_entry(row[0]) for row in found], findings)


def _may_hold(folder: str) -> bool:
    """May the folder, or one below it, hold something that is looked for?"""
    parts = folder.split("/")
    return parts[0] == MEMORY_FOLDER or len(parts) < 5 or parts[4:] == ["entries"]


def _of_memory(namespace: str | None, prefix: str) -> tuple[str, Sequence[str]]:
    """What narrows rows down to a namespace and a start of keys."""
    if namespace is None:
        return "namespace <> ''", ()
    if not prefix:
        return "namespace <> '' AND namespace = ?", (namespace,)
    return "namespace <> '' AND namespace = ? AND substr(key, 1, length(?)) = ?", (namespace, prefix, prefix)


def _below(folder: str) -> tuple[str, str]:
    """The bounds of all paths below a folder: `0` comes right after `/`."""
    return f"{folder}/", f"{folder}0"
