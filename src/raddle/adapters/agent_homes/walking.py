"""Walks the folders of another agent, by pattern; what cannot be read there is told, never passed over.

The only place that lists foreign folders: it follows no link round in a circle, opens nothing, and says of
each thing that bears a session's name and is no file what it is instead.
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


def walk(
    folder: str, pattern: str, left_alone: os.stat_result | None = None
) -> Iterator[Entry | FileProblem]:
    """What `pattern` names below `folder`, by name: `*` within a name, `**` for any folders, also none.

    `left_alone`: a folder that is not entered.
    """
    return _walk(folder, pattern.split("/"), left_alone)


def _walk(folder: str, parts: list[str], left_alone: os.stat_result | None) -> Iterator[Entry | FileProblem]:
    entries = _scan(folder)
    if isinstance(entries, FileProblem):
        yield entries
        return
    is_deep = parts[0] == "**"
    part, rest = (parts[1], parts[2:]) if is_deep else (parts[0], parts[1:])
    for entry in entries:
        fits = fnmatchcase(entry.name, part)
        if is_deep and _is_folder(entry, left_alone, follows=False):
            yield from _walk(entry.path, parts, left_alone)
        if fits and not rest:
            yield from _file(entry)
        elif fits and _is_folder(entry, left_alone, follows=True):
            yield from _walk(entry.path, rest, left_alone)


def _scan(folder: str) -> list[os.DirEntry[str]] | FileProblem:
    """The entries of a folder by name; none of one that went away meanwhile."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        return problem_of(error, folder)


def _is_folder(entry: os.DirEntry[str], left_alone: os.stat_result | None, *, follows: bool) -> bool:
    try:
        if not entry.is_dir(follow_symlinks=follows):
            return False
        is_left = left_alone is not None and entry.inode() == left_alone.st_ino
        return not (is_left and left_alone is not None and os.path.samestat(entry.stat(), left_alone))
    except OSError:
        return False  # a link that leads nowhere; one that bears a session's name is told as a file


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
