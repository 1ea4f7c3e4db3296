"""A look at a store's folders from outside: which of their files are not as they were when they were last read.

A folder's own times tell of names that came, went or were replaced, which is how raddle writes; a write in place, as
some editors do it, shows in the file alone. So folders are compared each time, files every two seconds at most. Nothing
is opened but what changed. Were a second place to compare, a file would look changed to one of them for ever.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from functools import partial
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import NamedTuple

import msgspec

from raddle.adapters.files import TEMPORARY_PREFIX, TEMPORARY_SUFFIX, storage_error
from raddle.model.clock import system_clock

_TICK_NS, _COARSE_NS = 25_000_000, 2_000_000_000
"""Two writes within one tick of a file system's clock show the same times; some count whole seconds."""
_LARGEST = (1 << 63) - 1
"""Some file systems count inodes further; SQLite has no room for it."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_UNSURE = -1
_inode = itemgetter(3)
_unpack = msgspec.msgpack.Decoder(tuple[list[str], list[tuple[int, int, int, int]]]).decode

_facts = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")
"""An edit that puts size and time back still changes the inode or the time of the change."""

Facts = tuple[int, int, int, int]
"""Of a file: size, times of the last write and the last change (nanoseconds), inode."""
Mark = tuple[int, int, int]
"""Of a folder: inode and the same times."""


class Look(NamedTuple):
    """A folder and what is right in it: `names` of files with their `facts`, `folders`, and `others` that are neither
    (links, pipes), or whose name is no UTF-8. `at`: when it was looked at (nanoseconds)."""

    folder: str
    mark: Mark
    folders: list[str]
    others: list[str]
    names: list[str]
    facts: list[Facts]
    at: int

    @property
    def packed(self) -> bytes:
        """The files, to be kept: other bytes whenever any name or fact is another."""
        return msgspec.msgpack.encode((self.names, self.facts))

    def files(self) -> dict[str, Facts]:
        """Name -> facts."""
        return dict(zip(self.names, self.facts, strict=True))

    def is_settled(self) -> bool:
        """Would another write have shown? Not where the last one, to the folder or in it, was of that very moment."""
        return is_settled(self.mark[1:], self.at) and all(
            is_settled(facts[1:3], self.at) for facts in self._near()
        )

    def as_noted(self) -> Look:
        """The same, but such as no later look equals wherever another write in that moment would not have shown."""
        unsure = {facts[3] for facts in self._near() if not is_settled(facts[1:3], self.at)}
        inode, modified, _ = self.mark
        mark = self.mark if is_settled(self.mark[1:], self.at) else (inode, modified, _UNSURE)
        if not unsure and mark is self.mark:
            return self
        facts = [
            (facts[0], facts[1], _UNSURE, facts[3]) if facts[3] in unsure else facts for facts in self.facts
        ]
        return self._replace(mark=mark, facts=facts)

    def _near(self) -> list[Facts]:
        """Of the files written about when they were looked at, mostly few: each of ten thousand asked takes longer than
        the look itself."""
        first = self.at - _COARSE_NS
        return [facts for facts in self.facts if facts[2] >= first or facts[1] >= first]


def files_in(packed: bytes) -> dict[str, Facts]:
    """Name -> facts, of what `Look.packed` made; none of what is empty."""
    return dict(zip(*_unpack(packed), strict=True)) if packed else {}


def mark_of_folder(root: Path, folder: str) -> Mark | None:
    """What marks the folder now; None where there is none (a link is none)."""
    try:
        status = os.lstat(f"{root}/{folder}")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise storage_error(error, root / folder, "read") from error
    return _mark(status) if stat.S_ISDIR(status.st_mode) else None


def look_at(root: Path, folder: str) -> Look | None:
    """All of a folder; None where there is none."""
    at = system_clock() * 1000
    try:
        fd = os.open(root / folder, _FOLDER)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if stat.S_ISLNK(os.lstat(root / folder).st_mode):
            return None
        raise storage_error(error, root / folder, "read") from error
    try:
        mark = _mark(os.fstat(fd))
        folders, others, names = _names(fd)
        names, facts = _facts_of(fd, names)
    except OSError as error:
        raise storage_error(error, root / folder, "read") from error
    finally:
        os.close(fd)
    return Look(folder, mark, folders, others, names, facts, at)


def read_in(root: Path, folder: str, names: Iterable[str]) -> Iterator[tuple[str, bytes | None]]:
    """(name, all its bytes) of files in a folder; None for what went, is no file, or may not be read."""
    try:
        fd = os.open(root / folder, _FOLDER)
    except OSError:
        yield from ((name, None) for name in names)
        return
    try:
        for name in names:
            yield name, _read(fd, name)
    finally:
        os.close(fd)


def is_settled(times: Iterable[int], at: int) -> bool:
    """Would a write after these (nanoseconds) have shown to who looked `at` that moment?"""
    first, last = at - _COARSE_NS, at + _COARSE_NS
    near = [time for time in times if first <= time <= last]
    return all(abs(at - time) > (_TICK_NS if time % 1_000_000_000 else _COARSE_NS) for time in near)


def _read(fd: int, name: str) -> bytes | None:
    try:
        file = os.open(name, _FILE, dir_fd=fd)
    except OSError:  # gone, a link, or nobody may look: a later look finds it changed
        return None
    try:
        return read_regular(file)
    finally:
        os.close(file)


def read_regular(fd: int) -> bytes | None:
    """All bytes of an open file; None where it is no regular one. A `fdopen` takes twice as long for a small one."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        return None
    data = os.read(fd, status.st_size + 1)
    while len(data) != status.st_size:  # it grew, it was cut, or the system gave less than it has
        more = os.read(fd, 1 << 20)
        if not more:
            break
        data += more
    return data


def _names(fd: int) -> tuple[list[str], list[str], list[str]]:
    """The folders, what is neither, and the files in it, but for what is half made."""
    folders, others, names = [], [], []
    with os.scandir(fd) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                name = entry.name
                if not (name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX)):  # half made
                    names.append(name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                others.append(entry.name)
    for found in (folders, names):
        others += _taken_out(found)
    return folders, others, names


def _taken_out(names: list[str]) -> list[str]:
    """Those of `names` that are no UTF-8, which are in it no more: no index and no file of notes can hold them."""
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        bad = [name for name in names if not is_text(name)]
        names[:] = [name for name in names if is_text(name)]
        return bad
    return []


def is_text(name: str) -> bool:
    """Is the name UTF-8?"""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _facts_of(fd: int, names: list[str]) -> tuple[list[str], list[Facts]]:
    try:
        # No Python between one file and the next: at ten thousand of them that is felt.
        return names, _within_bounds(list(map(_facts, map(partial(os.lstat, dir_fd=fd), names))))
    except FileNotFoundError:
        found = []
        for name in names:
            try:
                found.append((name, _facts(os.lstat(name, dir_fd=fd))))
            except FileNotFoundError:
                continue
        return [name for name, _ in found], _within_bounds([facts for _, facts in found])


def _mark(status: os.stat_result) -> Mark:
    return (status.st_ino & _LARGEST, status.st_mtime_ns, status.st_ctime_ns)


def _within_bounds(facts: list[Facts]) -> list[Facts]:
    if max(map(_inode, facts), default=0) <= _LARGEST:
        return facts
    return [(size, modified, changed, inode & _LARGEST) for size, modified, changed, inode in facts]
