"""The list of threads written since the index last looked: appended to by every writer, taken by readers.

One id a line, in a file of its own, so that a save pays one small append and never waits for the index.
Losing a line would hide a save from every search until the next sweep.

A reader takes the list by renaming it to a name nobody else will use, and removes that file once what it
names is in the index and committed. A crash between leaves the file, and the next reader takes it again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

from msgspec import Struct

from raddle.adapters.files import make_folder, storage_error
from raddle.model.errors import InvalidInput
from raddle.model.ids import parse_thread_id

_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


class Taken(Struct, frozen=True):
    """What was on the list: thread ids, each once, and the files that held them."""

    ids: tuple[str, ...]
    files: tuple[Path, ...]


def mark_dirty(path: Path, thread_id: str) -> None:
    """Note that `thread_id` was written, removed or created."""
    line = f"{parse_thread_id(thread_id)}\n".encode()
    try:
        while not _append(path, line):
            pass
    except OSError as error:
        raise storage_error(error, path, "write") from error


def is_dirty(path: Path) -> bool:
    """Is anything on the list, or left of one that a reader took and did not finish?"""
    try:
        return path.exists() or bool(_left_over(path))
    except OSError as error:
        raise storage_error(error, path, "read") from error


def take_dirty(path: Path) -> Taken:
    """Take the list as it stands. The caller holds the index, so that one reader takes at a time.

    In a folder that may only be read it is read, and stays.
    """
    try:
        is_taken = _set_aside(path)
        files = _left_over(path) if is_taken else [path, *_left_over(path)]
        ids = tuple(dict.fromkeys(each for file in files for each in _ids_in(file)))
        return Taken(ids, tuple(files) if is_taken else ())
    except OSError as error:
        raise storage_error(error, path, "take") from error


def count_dirty(path: Path) -> int:
    """How many threads are on the list, without taking it."""
    try:
        files = [path, *_left_over(path)]
        return len({each for file in files for each in _ids_in(file)})
    except OSError as error:
        raise storage_error(error, path, "read") from error


def drop_taken(taken: Taken) -> None:
    """Forget what was taken: it is in the index, and committed."""
    for file in taken.files:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(error, file, "remove") from error


def _append(path: Path, line: bytes) -> bool:
    """False where a reader renamed the file between our opening and our locking it."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o600)
    except FileNotFoundError:
        make_folder(path.parent)
        fd = os.open(path, flags, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        if not _is_still_there(fd, path):
            return False
        os.write(fd, line)
        return True
    finally:
        os.close(fd)


def _set_aside(path: Path) -> bool:
    """False where nothing may be renamed here."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)  # a writer who has it open writes first, or opens it anew
        if _is_still_there(fd, path):
            path.rename(path.with_name(f"{path.name}.{os.urandom(8).hex()}"))
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise
        return False
    finally:
        os.close(fd)
    return True


def _is_still_there(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def _left_over(path: Path) -> list[Path]:
    start = f"{path.name}."
    try:
        with os.scandir(path.parent) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.name.startswith(start))
    except FileNotFoundError:
        return []


def _ids_in(file: Path) -> list[str]:
    ids: list[str] = []
    try:
        lines = file.read_bytes().splitlines()
    except FileNotFoundError:
        return ids
    for line in lines:
        with contextlib.suppress(InvalidInput):  # torn by a crash: it names nothing that could be looked up
            ids.append(parse_thread_id(line.decode(errors="replace")))
    return ids
