"""How the files of a thread change places: kept under a second name, removed for good, taken over in a batch.

Each leaves, at whatever point the process dies, names that all lead to whole files.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable
from pathlib import Path

from raddle.adapters.file_batches import FileBatch
from raddle.adapters.files import NewFile, storage_error, write_atomic

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
_ATTEMPTS = 3


def keep_as(path: Path, target: Path, data: bytes) -> None:
    """Give the file at `path`, which holds `data`, the name `target` as well, in place of what is there.

    A second name costs nothing and leaves no moment in which the first is gone; a file system without hard
    links gets a copy. Whoever replaces `path` afterwards leaves the two apart.
    """
    temporary = NewFile(target.parent).set_aside()
    try:
        _link(path, temporary, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise storage_error(error, target, "write") from error
        write_atomic(target, data)
    finally:
        with contextlib.suppress(OSError):  # it is swept later
            temporary.unlink(missing_ok=True)


def _link(path: Path, temporary: Path, target: Path) -> None:
    """A second name cannot be locked, so a doctor may tidy it away; then it is made again."""
    for attempt in range(_ATTEMPTS):
        temporary.unlink(missing_ok=True)
        os.link(path, temporary)
        try:
            temporary.replace(target)
        except FileNotFoundError:
            if attempt + 1 == _ATTEMPTS:
                raise
        else:
            return


def rename(path: Path, target: Path) -> None:
    """Move a file within its folder, in place of what is there; durable with the folder's next sync."""
    try:
        path.replace(target)
    except OSError as error:
        raise storage_error(error, path, "rename") from error


def remove_all(paths: Iterable[Path]) -> int:
    """Remove these files, in this order, and wait for the disk; how many were there."""
    removed = 0
    folders = set()
    for path in paths:
        try:
            path.unlink()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise storage_error(error, path, "remove") from error
        removed += 1
        folders.add(path.parent)
    for folder in folders:
        _sync_folder(folder)
    return removed


def _sync_folder(folder: Path) -> None:
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:  # some network file systems cannot, and need not
            raise storage_error(error, folder, "write in") from error


class TakingBatch(FileBatch):
    """A batch that also takes over files that somebody else has written beside their place."""

    def take(self, temporary: Path, path: Path) -> None:
        """Put `temporary`, which lies in the folder of `path`, at `path` with the others."""
        self._waiting.append((str(temporary), str(path)))
