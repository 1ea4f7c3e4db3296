"""What killed processes left half-made: told from what somebody is making, and removed.

The one place that removes a temporary file of another process. A second one that judged by age alone would take
away what a slow writer is about to put in its place, or leave words that a purge has promised to erase.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from raddle.adapters.files import TEMPORARY_PREFIX, TEMPORARY_SUFFIX, storage_error
from raddle.model.clock import Clock, system_clock
from raddle.model.errors import StorageError


def abandoned_temporaries(
    folder: Path, *, older_than_seconds: int = 3600, clock: Clock = system_clock
) -> list[Path]:
    """What killed processes left half-made in `folder` (not below it), by name: old enough, and nobody's.

    A shorter time than an hour (0: whatever its age) is for who knows that no import is running: the files of
    one wait for their places without anybody holding them.
    """
    limit = clock() / 1_000_000 - older_than_seconds if older_than_seconds else float("inf")
    try:
        with os.scandir(folder) as entries:
            made = [Path(entry.path) for entry in entries if _is_temporary(entry.name)]
        return sorted(path for path in made if _is_abandoned(path, limit))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(error, folder, "tidy") from error


def sweep_temporaries(folder: Path, *, older_than_seconds: int = 3600, clock: Clock = system_clock) -> int:
    """Remove those; how many files went. One that cannot go now is swept later."""
    swept = 0
    for path in abandoned_temporaries(folder, older_than_seconds=older_than_seconds, clock=clock):
        with contextlib.suppress(StorageError):
            swept += remove_temporary(path)
    return swept


def remove_temporary(path: Path) -> bool:
    """Remove an abandoned temporary file, or folder; False where it is gone, or somebody's after all."""
    try:
        with _held(path) as is_nobodys:
            if is_nobodys and path.is_dir():
                import shutil  # noqa: PLC0415  # seldom needed, and no command should wait for it

                shutil.rmtree(path)
            elif is_nobodys:
                path.unlink()
            return is_nobodys
    except FileNotFoundError:
        return False
    except OSError as error:
        raise storage_error(error, path, "remove") from error


def _is_abandoned(path: Path, limit: float) -> bool:
    """Was it not written to since `limit` (seconds), and does nobody hold it?"""
    try:
        if path.lstat().st_mtime > limit:
            return False
        with _held(path) as is_nobodys:
            return is_nobodys
    except OSError:
        return False  # it got its place meanwhile, or is somebody else's: nobody can tell


@contextlib.contextmanager
def _held(path: Path) -> Iterator[bool]:
    """Hold a temporary file as its maker would; False where its maker does, or nobody can tell."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            is_nobodys = False
        else:
            is_nobodys = True
        yield is_nobodys
    finally:
        os.close(fd)


def _is_temporary(name: str) -> bool:
    return name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX)
