"""Many files written together, whole, with one wait for the disk.

The one place that syncs a file system as a whole. A second one would rename before it had waited, and a power cut
would leave a whole file's name on an empty file.
"""

# ruff: noqa: PTH105, PTH120  texts, for to make a `Path` takes as long as to make a small file

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from raddle.adapters.disk import file_system_sync, sync, sync_folder, write_all
from raddle.adapters.files import (
    MAKE_NEW,
    PRIVATE_FILE,
    TEMPORARY_PREFIX,
    TEMPORARY_SUFFIX,
    remove_temporary_file,
    storage_error,
)

_FOLDERS_SYNCED_ONE_BY_ONE = 16
"""A batch over more folders than this asks for one more sync of the file system instead."""


class FileBatch:
    """Many files written together: each is put in place whole, and the disk is waited for once, not for each.

    Nothing shows before `commit` (the end of the `with` block); an exception inside it leaves everything
    as it was. Several files do not appear in one instant: a crash inside `commit` leaves some of them new
    and some old, never half of one. The same path twice: the later bytes stay. Not for several threads, and
    not for an hour: what waits here looks abandoned by then.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[str, str]] = []
        """(temporary name, path)."""
        self._mark = os.urandom(8).hex()

    def write(self, path: Path | str, data: bytes, *, mode: int | None = None) -> None:
        """Lay `data` beside `path`, 0600 unless said, ready for the commit."""
        place = os.fspath(path)
        folder = os.path.dirname(place) or "."
        number = len(self._waiting)
        temporary = f"{folder}/{TEMPORARY_PREFIX}{self._mark}-{number}{TEMPORARY_SUFFIX}"
        try:
            fd = os.open(temporary, MAKE_NEW, PRIVATE_FILE)
            self._waiting.append((temporary, place))
            try:
                write_all(fd, data)
                if mode is not None:
                    os.fchmod(fd, mode)
            except BaseException:
                del self._waiting[number]
                remove_temporary_file(Path(temporary))
                raise
            finally:
                os.close(fd)
        except OSError as error:
            raise storage_error(error, Path(folder), "write in") from error

    def commit(self) -> None:
        """Make all of it durable, then give each file its name."""
        folders = {Path(folder) for folder in {os.path.dirname(place) or "." for _, place in self._waiting}}
        try:
            # Before the renames, or a power cut could leave a whole file's name on an empty file.
            if not _sync_file_systems(folders):
                for temporary, _ in self._waiting:
                    _on_open(Path(temporary), sync)
            self._rename_all()
            _sync_folders(folders)
        finally:
            self.discard()

    def _rename_all(self) -> None:
        done = 0
        try:
            for temporary, place in self._waiting:
                os.replace(temporary, place)
                done += 1
        except OSError as error:
            raise storage_error(error, Path(self._waiting[done][1]), "write") from error
        finally:
            del self._waiting[:done]

    def discard(self) -> None:
        """Drop what is not committed."""
        for temporary, _ in self._waiting:
            remove_temporary_file(Path(temporary))
        self._waiting.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()


def _sync_folders(folders: set[Path]) -> None:
    """Wait for the names in all `folders`."""
    if len(folders) > _FOLDERS_SYNCED_ONE_BY_ONE and _sync_file_systems(folders):
        return
    for folder in folders:
        try:
            sync_folder(folder)
        except OSError as error:
            raise storage_error(error, folder, "write in") from error


def _sync_file_systems(folders: Iterable[Path]) -> bool:
    """Wait for every file system that one of `folders` lies on; False where there is no call for that."""
    syncfs = file_system_sync()
    if syncfs is None:
        return False
    devices: set[int] = set()
    for folder in folders:
        try:
            device = folder.stat().st_dev
        except OSError as error:
            raise storage_error(error, folder, "write in") from error
        if device not in devices:
            devices.add(device)
            _on_open(folder, syncfs)
    return True


def _on_open(path: Path, sync: Callable[[int], None]) -> None:
    """Call `sync` with `path` opened for reading."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            sync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise storage_error(error, path, "write") from error
