"""Files on the local disk: put in place whole or not at all, appended to durably, synced to the disk.

The one place that writes, renames and syncs. A second one would forget the sync of the folder, or leave
half a file behind when the disk is full, and the next power cut would cost somebody a turn. Every failure
of the disk leaves here as a StorageError that names the path. Who may write when: `locks.py`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from raddle.adapters.disk import sync, sync_folder, write_all
from raddle.model.errors import StorageError

TEMPORARY_PREFIX, TEMPORARY_SUFFIX = ".raddle-", ".tmp"
PRIVATE_FILE, _PRIVATE_FOLDER = 0o600, 0o700
MAKE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC

_REASONS = {
    errno.ENOSPC: ("the disk is full", "free some space, then try again"),
    errno.EDQUOT: ("the disk quota is used up", "free some space or ask for more, then try again"),
    errno.EFBIG: (
        "the file would be larger than allowed here",
        "raise the limit (ulimit -f), then try again",
    ),
    errno.EROFS: (
        "the file system is read-only",
        "make it writable, or name another place (RADDLE_DATA_DIR)",
    ),
    errno.EACCES: ("permission denied", "check who owns it and its mode, then try again"),
    errno.EPERM: ("permission denied", "check who owns it and its mode, then try again"),
    errno.EIO: ("the disk reports an error", "copy what matters to another disk, then check this one"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter path"),
    errno.ENOENT: ("it is not there", "check the path"),
    errno.ENOTDIR: ("a part of the path is not a folder", "check the path"),
    errno.EISDIR: ("it is a folder", "check the path"),
    errno.EEXIST: ("something else is already there", "check the path"),
    errno.ELOOP: ("its symbolic links lead in a circle", "check the path"),
    errno.EMFILE: ("too many files are open", "raise the limit (ulimit -n), then try again"),
    errno.ENFILE: ("too many files are open on this machine", "close some programs, then try again"),
    errno.ENOLCK: ("this file system gives no locks", "name a place on a local disk (RADDLE_DATA_DIR)"),
    errno.ESTALE: ("the network file system lost it", "mount it again, then try again"),
}


def storage_error(error: OSError, path: Path, verb: str) -> StorageError:
    """What to raise for `error`: cannot `verb` `path`, why, and what to do."""
    shown = os.fsencode(path).decode(errors="replace")
    reason, hint = _REASONS.get(
        error.errno or 0, (error.strerror or type(error).__name__, "see what the system says about it")
    )
    return StorageError(f"cannot {verb} {shown}: {reason}", hint)


def make_folder(path: Path) -> None:
    """Make `path` and whatever is missing above it, 0700; a folder that is there keeps its mode."""
    try:
        _make_folder(path)
    except OSError as error:
        raise storage_error(error, path, "make the folder") from error


def _make_folder(path: Path) -> None:
    """`Path.mkdir(parents=True)` would make the folders above with the mode of the umask."""
    try:
        path.mkdir(_PRIVATE_FOLDER)
    except FileNotFoundError:
        if path.parent == path:
            raise
        _make_folder(path.parent)
        path.mkdir(_PRIVATE_FOLDER, exist_ok=True)
    except FileExistsError:
        if not path.is_dir():
            raise


def find_bytes(path: Path) -> bytes | None:
    """All bytes of the file, None where there is none; StorageError where it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error, path, "read") from error


def write_atomic(path: Path, data: bytes) -> None:
    """Put `data` at `path`, 0600, durable: who looks, also after a crash, sees the old bytes or the new."""
    with NewFile(path.parent) as new:
        new.write(data)
        new.publish(path)


def write_note(path: Path, data: bytes) -> None:
    """The same without waiting for the disk: for what is made anew where a power cut took it, and is known by its form
    where it left half of it."""
    with NewFile(path.parent) as new:
        new.write(data)
        new.publish(path, waits=False)


class NewFile:
    """A file in the making, under a temporary name in the folder where it will stay.

    `publish` gives it its name, which need not be known before; leaving the `with` block without that
    removes it. For bytes that come in pieces, such as a blob named by its hash. While it is open it is locked:
    what is locked has somebody who is making it (`temporaries.py`).
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder
        """The temporary name."""
        try:
            while True:
                self.path = folder / f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}{TEMPORARY_SUFFIX}"
                self._fd = os.open(self.path, MAKE_NEW, PRIVATE_FILE)
                if _claim(self._fd):
                    return
                self._close()
        except OSError as error:
            raise storage_error(error, folder, "write in") from error

    def write(self, data: bytes) -> None:
        """Add `data` at the end."""
        try:
            write_all(self._fd, data)
        except OSError as error:
            raise storage_error(error, self.path.parent, "write in") from error

    def publish(self, path: Path, *, waits: bool = True) -> None:
        """Make it durable (where it `waits`) and put it at `path` (in the same folder), in place of what is there."""
        try:
            if waits:
                sync(self._fd)
            self.path.replace(path)
            self._close()
            if waits:
                sync_folder(path.parent)
        except OSError as error:
            raise storage_error(error, path, "write") from error

    def publish_new(self, path: Path) -> bool:
        """The same where nothing is at `path`; False, and nothing has changed, where something is."""
        try:
            sync(self._fd)
            try:
                path.hardlink_to(self.path)
            except FileExistsError:
                return False
            self._close()
            self.path.unlink()
            sync_folder(path.parent)
        except OSError as error:
            raise storage_error(error, path, "write") from error
        return True

    def set_aside(self) -> Path:
        """Close it, not yet durable, and leave it to the caller under its temporary name.

        Nothing says any more that somebody wants it, but for its age and whatever lock the caller holds.
        """
        try:
            self._close()
        except OSError as error:
            raise storage_error(error, self.path.parent, "write in") from error
        return self.path

    def discard(self) -> None:
        """Remove it, unless it is published; removing twice does no harm."""
        with contextlib.suppress(OSError):  # an error of the write itself is on its way and says more
            self._close()
        remove_temporary_file(self.path)

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()


def new_temporary_folder(parent: Path) -> tuple[Path, int]:
    """A private folder under a temporary name in `parent`, and the descriptor that holds it until it is closed.

    What is held has somebody who uses it; what a killed process left is swept like a file (`temporaries.py`).
    """
    try:
        while True:
            path = parent / f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}{TEMPORARY_SUFFIX}"
            path.mkdir(mode=_PRIVATE_FOLDER)
            with contextlib.suppress(FileNotFoundError):
                fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                _claim(fd)
                if path.exists():
                    return path, fd
                os.close(fd)
    except OSError as error:
        raise storage_error(error, parent, "write in") from error


def append_durable(path: Path, data: bytes) -> int:
    """Add `data` at the end of the file (made 0600 where there is none), wait for the disk; its new size.

    All of it or none: what a full disk let through is cut off again. The caller holds the lock of the file.
    """
    try:
        fd, is_new = _open_to_append(path)
        try:
            size = os.fstat(fd).st_size
            try:
                write_all(fd, data)
                sync(fd)
            except BaseException:
                os.ftruncate(fd, size)
                raise
        finally:
            os.close(fd)
        if is_new:
            sync_folder(path.parent)
    except OSError as error:
        raise storage_error(error, path, "write") from error
    return size + len(data)


class GrowingFile:
    """A file that grows by small pieces, each with the system at once: a process that dies loses none of it. Made 0600
    where there is none; whoever writes to it holds a lock."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._fd, is_new = _open_to_append(path)
            if is_new:
                sync_folder(path.parent)
        except OSError as error:
            raise storage_error(error, path, "write") from error

    def write(self, data: bytes, *, waits: bool = False) -> None:
        """Add `data` at the end; `waits`: until all of the file is on the disk itself."""
        try:
            write_all(self._fd, data)
            if waits:
                sync(self._fd)
        except OSError as error:
            raise storage_error(error, self._path, "write") from error

    def close(self) -> None:
        """Let go of it; twice does no harm."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _open_to_append(path: Path) -> tuple[int, bool]:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
    try:
        return os.open(path, flags), False
    except FileNotFoundError:
        return os.open(path, flags | os.O_CREAT, PRIVATE_FILE), True


def truncate_durable(path: Path, size: int) -> None:
    """Cut the file to `size` bytes and wait for the disk. The caller holds the lock of the file."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.ftruncate(fd, size)
            sync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise storage_error(error, path, "cut") from error


def _claim(fd: int) -> bool:
    """Lock a file that was just made; False where somebody tidied it away before it was locked."""
    with contextlib.suppress(OSError):  # without locks nobody tidies
        fcntl.flock(fd, fcntl.LOCK_EX)
    return os.fstat(fd).st_nlink > 0


def remove_temporary_file(path: Path) -> None:
    """Remove a temporary file; one that cannot go now is swept later."""
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
