"""Walks the folders of another agent, by pattern; what cannot be read there is told, never passed over.

The only place that lists foreign folders: it follows links, enters no folder twice, opens no file, and says of
each thing that bears a session's name and is no file what it is instead.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase

from msgspec import Struct

from raddle.actions.importing.run_plan import FileProblem
from raddle.adapters.agent_homes.source_bytes import source_error

LEADS_NOWHERE = "it is a link that leads nowhere"


class Entry(Struct, frozen=True):
    """A file's path and its `stat`."""

    path: str
    stat: os.stat_result


class Walk:
    """Walks through the folders of a home, or below a folder that a person named.

    `left_alone`: a folder that is not entered. Links to folders are followed once all else was looked at, so
    that a file keeps its own path where it has one here; those that lead round in a circle end. `is_home`: one
    that leads nowhere is told, for sessions may have been there; below a folder that a person named it need not
    be of any agent.
    """

    def __init__(self, *, left_alone: os.stat_result | None = None, is_home: bool = False) -> None:
        self._left_alone = left_alone
        self._is_home = is_home
        self._entered: set[tuple[int, int, int]] = set()
        self._links: list[tuple[os.DirEntry[str], list[str]]] = []

    def find(self, folder: str, pattern: str) -> Iterator[Entry | FileProblem]:
        """What `pattern` names below `folder`, by name: `*` within a name, `**` for any folders, also none."""
        parts = pattern.split("/")
        with contextlib.suppress(OSError):  # what is wrong with it is told when it is listed
            self._is_first(os.stat(folder), parts)  # noqa: PTH116
        yield from self._find(folder, parts)
        while self._links:
            link, rest = self._links.pop(0)
            yield from self._follow(link, rest)

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
            if is_deep or (fits and rest):
                yield from self._go_into(entry, parts if is_deep else rest)

    def _go_into(self, entry: os.DirEntry[str], parts: list[str]) -> Iterator[Entry | FileProblem]:
        if entry.is_symlink():
            self._links.append((entry, parts))
        elif entry.is_dir(follow_symlinks=False):
            try:
                enters = self._is_first(entry.stat(follow_symlinks=False), parts)
            except FileNotFoundError:
                return
            except OSError as error:
                yield problem_of(error, entry.path)
                return
            if enters:
                yield from self._find(entry.path, parts)

    def _follow(self, link: os.DirEntry[str], parts: list[str]) -> Iterator[Entry | FileProblem]:
        """A link, where it leads to a folder."""
        try:
            status = link.stat()
        except OSError as error:
            if self._is_home:
                is_gone = isinstance(error, FileNotFoundError)
                yield _problem(link.path, LEADS_NOWHERE) if is_gone else problem_of(error, link.path)
            return
        if stat.S_ISDIR(status.st_mode) and self._is_first(status, parts):
            yield from self._find(link.path, parts)

    def _is_first(self, status: os.stat_result, parts: list[str]) -> bool:
        """Is a folder to be entered, for what is left of the pattern? Once, and not the one that is left alone."""
        key = (status.st_dev, status.st_ino, len(parts))
        is_first = key not in self._entered
        self._entered.add(key)
        return is_first and not (self._left_alone is not None and os.path.samestat(status, self._left_alone))


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
            yield _problem(entry.path, LEADS_NOWHERE)
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
    told = source_error(error, path).problem_of(path)
    return _problem(path, told.reason)


def _problem(path: str, reason: str) -> FileProblem:
    return FileProblem(path=os.fsencode(path).decode(errors="replace"), reason=reason)
