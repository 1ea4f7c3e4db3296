"""Locks between processes and threads: a fixed set of files that are never written over or renamed.

The one place that locks. A lock on the file it guards would lock nothing once a rename has replaced that
file; a second scheme of locks beside this one would let two writers in.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from raddle.adapters.files import make_folder, storage_error
from raddle.model.errors import StorageError

_LONGEST_PAUSE_SECONDS = 0.025


@dataclass
class _Hold:
    """A lock file that this thread holds, `depth` times over."""

    fd: int
    is_shared: bool
    process: int
    depth: int = 1


class _HoldsOfThread(threading.local):
    def __init__(self) -> None:
        self.by_file: dict[Path, _Hold] = {}


# Of the process and not of a LockFiles: two over one folder must not wait for each other in one thread.
_holds = _HoldsOfThread()


class LockHeld(StorageError):
    """Somebody else has the lock and does not let go in time. `pid`: of the other process that holds it; None where
    that is not known, or it is a thread of this one."""

    code = "lock_held"

    def __init__(self, message: str, hint: str = "", *, pid: int | None = None) -> None:
        super().__init__(message, hint)
        self.pid = pid


class LockFiles:
    """Locks by name, spread over `stripes` files in `folder` (made when the first lock is taken).

    Two names may share a file, and so wait for each other, but a name never has two files. A lock ends with
    its `with` block or with its process, however that dies.
    """

    def __init__(self, folder: Path, *, stripes: int = 64) -> None:
        self._folder = Path(os.path.realpath(folder))
        self._stripes = stripes

    @contextlib.contextmanager
    def held(self, *names: str, shared: bool = False, timeout_seconds: float = 30.0) -> Iterator[None]:
        """Hold the locks of all `names`; `shared` ones only keep writers out.

        A thread may take again what it holds (not exclusively what it holds shared). Take several names in
        one call: they are taken in one order everywhere, so that two processes never wait for each other.
        StorageError naming the holder where a lock is not to be had in time.
        """
        deadline = time.monotonic() + timeout_seconds
        with contextlib.ExitStack() as stack:
            for stripe in sorted({zlib.crc32(name.encode()) % self._stripes for name in names}):
                file = self._folder / f"{stripe:02d}.lock"
                _take(file, shared=shared, deadline=deadline)
                stack.callback(_give_back, file)
            yield


def _take(file: Path, *, shared: bool, deadline: float) -> None:
    hold = _holds.by_file.get(file)
    if hold is None or hold.process != os.getpid():  # a fork inherits the note of a lock, not the lock
        fd = _locked(file, shared=shared, deadline=deadline)
        _holds.by_file[file] = _Hold(fd, shared, os.getpid())
        return
    if hold.is_shared and not shared:
        raise RuntimeError(
            f"this thread holds {file} shared and asks for it exclusively: it would wait for itself"
        )
    hold.depth += 1


def _give_back(file: Path) -> None:
    hold = _holds.by_file[file]
    hold.depth -= 1
    if hold.depth == 0:
        del _holds.by_file[file]
        # Closing alone would leave the lock with a child that was forked meanwhile.
        fcntl.flock(hold.fd, fcntl.LOCK_UN)
        os.close(hold.fd)


def _locked(file: Path, *, shared: bool, deadline: float) -> int:
    """The open, locked `file`, with our process id written inside."""
    try:
        while True:
            fd = _open(file, shared=shared)
            try:
                _wait_for(fd, file, shared=shared, deadline=deadline)
                is_ours = _is_still_there(fd, file)
            except BaseException:
                os.close(fd)
                raise
            if is_ours:
                _sign(fd)
                return fd
            os.close(fd)
    except OSError as error:
        raise storage_error(error, file, "lock") from error


def _open(file: Path, *, shared: bool) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(file, flags, 0o600)
    except FileNotFoundError:
        make_folder(file.parent)
        return os.open(file, flags, 0o600)
    except OSError as error:
        if shared and error.errno in {
            errno.EROFS,
            errno.EACCES,
        }:  # a reader of somebody else's or a read-only store
            return os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        raise


def _wait_for(fd: int, file: Path, *, shared: bool, deadline: float) -> None:
    """Lock `fd`, asking again and again: flock has no time limit, and an alarm is the whole process's."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    pause = 0.001
    while True:
        try:
            fcntl.flock(fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            left = deadline - time.monotonic()
            if left <= 0:
                raise _still_held(fd, file) from None
            time.sleep(min(pause, left))
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
        else:
            return


def _is_still_there(fd: int, file: Path) -> bool:
    """Is what we locked still the file of that name? Somebody may have emptied the folder while we waited."""
    try:
        return os.path.samestat(os.fstat(fd), file.stat())
    except FileNotFoundError:
        return False


def _sign(fd: int) -> None:
    """Leave our process id for the one who waits: a courtesy, which a full or read-only disk may refuse."""
    with contextlib.suppress(OSError):
        os.pwrite(fd, f"{os.getpid():<20}\n".encode(), 0)


def _still_held(fd: int, file: Path) -> LockHeld:
    text = os.pread(fd, 20, 0).strip()
    pid = int(text) if text.isdigit() else None
    holder = "another process" if pid is None else f"process {pid}"
    if pid == os.getpid():
        holder, pid = "another thread of this process", None
    return LockHeld(
        f"cannot lock {file}: {holder} holds it and does not let go",
        "wait until it is done, or stop it; then try again",
        pid=pid,
    )
