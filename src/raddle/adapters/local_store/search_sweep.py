"""The sweep: which thread files are not as the index last saw them, whoever wrote them.

What raddle writes it notes itself (`search_dirty`); an editor, a checkout, a copy or `rm` notes nothing. So before an
answer, at most every few seconds over all processes, every file is looked at from outside and compared with what
was noted when its thread was read. Nothing is opened: `docs/adr/0011-how-foreign-edits-reach-the-index.md` says what
that costs. Were a stamp spelled in a second place, every thread would look changed, or none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path

import msgspec

from raddle.adapters.files import storage_error
from raddle.adapters.local_store.search_database import Database, IndexBusy
from raddle.model.clock import Clock, system_clock
from raddle.model.errors import StorageError
from raddle.model.ids import is_thread_id

SWEEP_SECONDS = 2.0
"""So long a sweep of any process counts for all of them."""
HURRIED_SECONDS = 60.0
"""The same for who is hurried, while nothing came, went or was replaced."""
_PATIENCE = 50
"""Where looking takes long (a network), this many times as long passes until the next look."""
_TICK_NS, _COARSE_NS = 25_000_000, 2_000_000_000
"""Two writes within one tick of a file system's clock show the same times; some count whole seconds."""

_SUFFIXES = (".journal", ".json")
_LARGEST = (1 << 63) - 1
"""Some file systems count inodes further; SQLite has no room for it."""
_UNSURE = -1
_NEVER = "0 0 0"
"""When the last look was (microseconds), the seconds it took, the time of the folder then (nanoseconds)."""

_facts = attrgetter("st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
"""An edit that puts size and time back still changes the inode or the time of the change."""

Facts = tuple[int, int, int, int]
FileFacts = tuple[tuple[str, int, int, int, int], ...]
"""What the files of one thread look like: of each the name and what the system says of it."""


class Sweep:
    """Looks at the thread files of one folder for one index. `trouble`: why it could not; empty where it could."""

    def __init__(self, database: Database, folder: Path, clock: Clock = system_clock) -> None:
        self._database = database
        self.folder = folder
        self._clock = clock
        self._cost = 0.0
        self._folder_time = 0
        self.trouble = ""

    def changed(self, *, is_hurried: bool = False) -> list[str]:
        """The threads whose files are not as noted; empty too where another look is not due yet.

        `is_hurried`: the folder itself tells most (a file that came, went or was replaced), so every file is looked at
        only once a minute where it does not.
        """
        if not self._is_due(is_hurried=is_hurried):
            return []
        self._folder_time = self._time_of_folder()
        started = time.perf_counter()
        try:
            names, facts = _look(self.folder)
        except OSError as error:
            self.trouble = storage_error(error, self.folder, "look for edits of other programs in").message
            return []
        self.trouble = ""
        seen = _print_of(names, facts)
        changed = [] if seen == self._database.meta("sweep_print") else self._compared(names, facts)
        self._cost = time.perf_counter() - started
        if not changed:
            self._finish(seen)
        return changed

    def took_all(self) -> None:
        """All that had changed is in the index."""
        self._finish("")

    def _is_due(self, *, is_hurried: bool) -> bool:
        if self._database.rebuild_reason:  # everything is about to be read
            return False
        at, cost, folder_time = (self._database.meta("swept") or _NEVER).split(" ")
        passed = self._clock() - int(at)
        wait = max(SWEEP_SECONDS, _PATIENCE * float(cost))
        if is_hurried and int(folder_time) == self._time_of_folder():
            wait = max(wait, HURRIED_SECONDS)
        # A clock that was set back makes the last look one of the future: it says nothing then.
        return not 0 <= passed < 1_000_000 * wait

    def _time_of_folder(self) -> int:
        try:
            return self.folder.stat().st_mtime_ns
        except OSError:  # what is wrong with it is told when it is looked through
            return 0

    def _compared(self, names: Sequence[str], facts: Sequence[Facts]) -> list[str]:
        seen = {(name, *one) for name, one in zip(names, facts, strict=True)}
        known = set(self._database.sql.execute("SELECT name, inode, size, modified, changed FROM files"))
        ids = {row[0].partition(".")[0] for row in seen ^ known}
        return sorted(each for each in ids if is_thread_id(each))

    def _finish(self, seen: str) -> None:
        """Note that everybody's next look may wait; what was seen, where all of it is in the index."""
        try:
            with self._database.writing(wait_seconds=0):
                self._database.set_meta("swept", f"{self._clock()} {self._cost:.4f} {self._folder_time}")
                if seen:
                    self._database.set_meta("sweep_print", seen)
        except IndexBusy:
            return  # who writes just now may look again: that costs time, no edit
        except StorageError as error:  # a cache that may only be read
            self.trouble = error.message

    def stamp(self, thread_id: str) -> FileFacts:
        """What the files of a thread look like now; empty where there are none. Ask before they are read."""
        stamp = []
        for suffix in _SUFFIXES:
            name = f"{thread_id}{suffix}"
            try:
                status = (self.folder / name).stat()
            except OSError:  # gone, or nobody may look: a later look finds it changed
                continue
            stamp += [(name, *one) for one in _within_bounds([_facts(status)])]
        return tuple(stamp)

    def note(self, thread_id: str, stamp: FileFacts, *, is_sure: bool = True) -> None:
        """The index holds what the files said when they looked so; inside a transaction of the caller.

        Not `is_sure`: the next look finds them changed again.
        """
        sql = self._database.sql
        sql.executemany(
            "DELETE FROM files WHERE name = ?", [(f"{thread_id}{suffix}",) for suffix in _SUFFIXES]
        )
        rows = stamp if is_sure else [(*row[:-1], _UNSURE) for row in stamp]
        sql.executemany("INSERT INTO files VALUES (?, ?, ?, ?, ?)", rows)

    def noted(self, thread_id: str) -> FileFacts:
        """The stamp that was last noted."""
        found = self._database.sql.execute(
            "SELECT name, inode, size, modified, changed FROM files WHERE name IN (?, ?) ORDER BY name",
            [f"{thread_id}{suffix}" for suffix in _SUFFIXES],
        )
        return tuple(found)


def is_other(stamp: FileFacts, noted: FileFacts) -> bool:
    """Have the files changed since that was noted? What was noted unsurely counts where it is the same but for that."""
    if is_unsure(noted):
        return [row[:-1] for row in stamp] != [row[:-1] for row in noted]
    return stamp != noted


def is_settled(stamp: FileFacts) -> bool:
    """Would another write show? Not where the last one is of this very moment."""
    now = system_clock() * 1000
    times = [at for row in stamp for at in row[3:]]
    return all(abs(now - at) > (_TICK_NS if at % 1_000_000_000 else _COARSE_NS) for at in times)


def is_unsure(stamp: FileFacts) -> bool:
    """Was it noted as one that may have changed since?"""
    return any(row[-1] == _UNSURE for row in stamp)


def _look(folder: Path) -> tuple[list[str], list[Facts]]:
    """The names of thread files and journals with what the system says of each."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return [], []
    try:
        names = [name for name in os.listdir(fd) if name.endswith(_SUFFIXES)]
        try:
            # No Python between one file and the next: at ten thousand of them that is felt.
            return names, _within_bounds(list(map(_facts, map(partial(os.stat, dir_fd=fd), names))))
        except FileNotFoundError:
            found = list(_still_there(fd, names))
            return [name for name, _ in found], _within_bounds([facts for _, facts in found])
    finally:
        os.close(fd)


def _still_there(fd: int, names: Sequence[str]) -> Iterator[tuple[str, Facts]]:
    """The same, where a file went between its name and the look at it."""
    for name in names:
        try:
            yield name, _facts(os.stat(name, dir_fd=fd))
        except FileNotFoundError:
            continue


def _print_of(names: Sequence[str], facts: Sequence[Facts]) -> str:
    """A short text that is another whenever any name or fact is."""
    from hashlib import blake2b  # noqa: PLC0415

    digest = blake2b(os.fsencode("\0".join(names)), digest_size=16)
    digest.update(msgspec.msgpack.encode(facts))
    return digest.hexdigest()


def _within_bounds(facts: list[Facts]) -> list[Facts]:
    if max(facts, default=(0,))[0] <= _LARGEST:
        return facts
    return [(inode & _LARGEST, *rest) for inode, *rest in facts]  # type: ignore[misc]
