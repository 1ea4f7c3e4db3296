"""A socket between processes of one user of this machine, at a path: listened on, connected to, and whose it is.

Owns that it is open to this user alone, and that a path too long for the system is no hindrance where that can be
helped. A second opener would trust whoever answers.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from raddle.adapters.files import make_folder, storage_error

_LONGEST = 107 if sys.platform == "linux" else 103
"""Bytes of a path that the system takes."""
_WAITING = 16
_LOCAL_PEERCRED = 1
"""Of macOS, which Python has no name for."""


def listen_at(path: Path) -> socket.socket:
    """Listen there, for this user's processes alone; whatever socket lay there before is replaced, at once.

    The folder is made where it is missing. StorageError where it cannot be, as for a path that is too long.
    """
    make_folder(path.parent)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    name = f"{path.name}.{os.getpid()}"
    new = path.with_name(name)
    try:
        with _short(path.parent) as folder:
            with contextlib.suppress(FileNotFoundError):
                new.unlink()  # of a process that had our number, and died here
            made.bind(os.path.join(folder, name))  # noqa: PTH118  as bytes go: no path of anybody's
        new.chmod(0o600)
        made.listen(_WAITING)
        new.rename(path)  # nobody connects to one that is not open yet, and never finds none
    except OSError as error:
        made.close()
        with contextlib.suppress(OSError):
            new.unlink()
        raise storage_error(error, path, "listen at") from error
    return made


def connect_to(path: Path, *, seconds: float) -> socket.socket | None:
    """A connection to the process of this user that listens there; None where none does, or it is somebody else's.

    What is read from it or written to it then waits no longer than `seconds`.
    """
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return None
    except OSError:
        return None
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(seconds)
    try:
        with _short(path.parent) as folder:
            made.connect(os.path.join(folder, path.name))  # noqa: PTH118  as above
        if is_own(made):
            return made
    except OSError:  # a socket file that was left behind, a folder that is not ours to look into
        pass
    made.close()
    return None


def identity_of(path: Path) -> tuple[int, int] | None:
    """Tells a socket's file from another one in its place; None where there is none."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_own(connection: socket.socket) -> bool:
    """Is the process at the other end one of this user?"""
    if hasattr(socket, "SO_PEERCRED"):
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return bool(struct.unpack("3i", told)[1] == os.geteuid())
    told = connection.getsockopt(0, _LOCAL_PEERCRED, struct.calcsize("2I"))
    return bool(struct.unpack("2I", told)[1] == os.geteuid())


@contextlib.contextmanager
def _short(folder: Path) -> Iterator[str]:
    """A name of the folder that leaves room for a file's: its own, else one by way of its number."""
    if sys.platform != "linux" or len(os.fsencode(folder)) < _LONGEST - 60:
        yield str(folder)
        return
    number = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{number}"
    finally:
        os.close(number)
