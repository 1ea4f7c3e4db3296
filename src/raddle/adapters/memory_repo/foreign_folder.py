"""A folder of texts that another agent keeps as its memory: only ever read.

Names that begin with a dot are left out (what an editor keeps beside the notes, git's own folder), and so are links,
which may lead out of it. `actions.memory.memory_import` decides what becomes of the rest.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from raddle.actions.memory.memories import LARGEST_MEMORY
from raddle.actions.memory.memory_import import SourceFile
from raddle.adapters.files import storage_error
from raddle.model.errors import NotFound

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def texts_in(place: Path, *, without: Path | None = None) -> Iterator[SourceFile]:
    """The files below a folder, or the one file at `place`, in order, but for those below `without`. NotFound where
    there is nothing."""
    try:
        status = place.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound("folder", str(place), "check the path") from error
    except (OSError, ValueError) as error:
        raise storage_error(_os_error(error), place, "read") from error
    if stat.S_ISDIR(status.st_mode):
        yield from _below(place, "", without)
    else:
        yield _source(Path(os.path.realpath(place)), _text(place.name))


def _below(folder: Path, prefix: str, without: Path | None) -> Iterator[SourceFile]:
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        yield SourceFile(path=prefix.rstrip("/") or ".", why=storage_error(error, folder, "read").message)
        return
    for entry in found:
        path = prefix + _text(entry.name)
        if entry.name.startswith("."):
            yield SourceFile(path=path, why="its name begins with a dot")
        elif entry.is_symlink():
            yield SourceFile(path=path, why="it is a link")
        elif entry.is_dir(follow_symlinks=False):
            if without is not None and Path(os.path.realpath(entry.path)) == without:
                yield SourceFile(path=path, why="it is the memory itself")
            else:
                yield from _below(Path(entry.path), f"{path}/", without)
        else:
            yield _source(Path(entry.path), path)


def _source(file: Path, path: str) -> SourceFile:
    try:
        fd = os.open(file, _READ)
        with os.fdopen(fd, "rb") as opened:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                return SourceFile(path=path, why="it is no file")
            if status.st_size > LARGEST_MEMORY:
                return SourceFile(path=path, why=f"it is larger than {LARGEST_MEMORY // 1024} KiB")
            return SourceFile(path=path, data=opened.read())
    except OSError as error:
        return SourceFile(path=path, why=storage_error(error, file, "read").message)


def _text(name: str) -> str:
    """The name as text; bytes that are not UTF-8 as U+FFFD."""
    return os.fsencode(name).decode(errors="replace")


def _os_error(error: OSError | ValueError) -> OSError:
    return error if isinstance(error, OSError) else OSError(0, str(error))
