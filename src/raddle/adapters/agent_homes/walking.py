"""Walks the folders of another agent, by pattern; what cannot be read there is told, never passed over.

The only place that lists foreign folders: it follows no link twice, opens no file, and says of each thing that
bears a session's name and is no file what it is instead.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from raddle.actions.importing.run_plan import FileProblem
from raddle.adapters.files import storage_error


class Entry(Struct, frozen=True):
    """A file's path and its `stat`."""

    path: str
    stat: os.stat_result


class Walk:
    """Walks through the folders of a home, or below a folder that a person named.

    `left_alone`: a folder that is not entered. `follows`: are links to folders followed, too? Each is then
    followed once, so that those which lead round in a circle end.
    """

    def __init__(self, *, left_alone: os.stat_result | None = None, follows: bool = True) -> None:
        self._left_alone = left_alone
        self._follows = follows
        self._followed: set[tuple[int, int]] = set()

    def find(self, folder: str, pattern: str) -> Iterator[Entry | FileProblem]:
        """What `pattern` names below `folder`, by name: `*` within a name, `**` for any folders, also none."""
        return self._find(folder, pattern.split("/"))

    def _find(self, folder: str, parts: list[str]) -> Iterator[Entry | FileProblem]:
        entries = _scan(folder)
        if isinstance(entries, FileProblem):
            yield entries
            return
        is_deep = parts[0] == "**"
        part, rest = (parts[1], parts[2:]) if is_deep else (parts[0], parts[1:])
        for entry in entries:
            fits = fnmatchcase(entry.name, part)
            if fits and not rest:
                yield from _file(entry)
            if (is_deep or (fits and rest)) and self._enters(entry):
                yield from self._find(entry.path, parts if is_deep else rest)

    def _enters(self, entry: os.DirEntry[str]) -> bool:
        """Is it a folder to go into?"""
        try:
            if entry.is_dir(follow_symlinks=False):
                return not self._is_left_alone(entry)
            if not (self._follows and entry.is_symlink() and entry.is_dir()):
                return False
            status = entry.stat()
        except OSError:
            return False  # a link that leads nowhere; one that bears a session's name is told as a file
        key = (status.st_dev, status.st_ino)
        is_new = key not in self._followed
        self._followed.add(key)
        return is_new and not self._is_left_alone(entry)

    def _is_left_alone(self, entry: os.DirEntry[str]) -> bool:
        return self._left_alone is not None and os.path.samestat(entry.stat(), self._left_alone)


def _scan(folder: str) -> list[os.DirEntry[str]] | FileProblem:
    """The entries of a folder by name; none of one that went away meanwhile."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        return problem_of(error, folder)


def _file(entry: os.DirEntry[str]) -> Iterator[Entry | FileProblem]:
    """The entry where it is a file; else what is wrong with it."""
    try:
        status = entry.stat()
    except FileNotFoundError:
        if entry.is_symlink():
            yield _problem(entry.path, "it is a link that leads nowhere")
        return
    except OSError as error:
        yield problem_of(error, entry.path)
        return
    if stat.S_ISREG(status.st_mode):
        if entry.path.isascii() or _is_text(entry.path):
            yield Entry(entry.path, status)
        else:
            yield _problem(entry.path, "its path is not UTF-8: it can be read under another name")
    else:
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no ordinary file"
        yield _problem(entry.path, f"it has the name of a session file, and is {kind}")


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def problem_of(error: OSError, path: str) -> FileProblem:
    """Why a file or folder cannot be read."""
    return _problem(path, storage_error(error, Path(path), "read").message)


def _problem(path: str, reason: str) -> FileProblem:
    return FileProblem(path=os.fsencode(path).decode(errors="replace"), reason=reason)
