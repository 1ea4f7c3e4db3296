"""The folder of a store: small files, read and written whole, and a look at all of them.

The one place that turns a path of a store into a file. A second one would forget that a link in a store, which
anybody who can push may have put there, is never followed, and that a name such as `.git` is never written.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from raddle.actions.memory.ports import Change, Scan
from raddle.adapters.disk import sync_folder
from raddle.adapters.file_batches import FileBatch
from raddle.adapters.files import (
    TEMPORARY_PREFIX,
    TEMPORARY_SUFFIX,
    NewFile,
    make_folder,
    storage_error,
    write_atomic,
)
from raddle.adapters.locks import LockFiles
from raddle.adapters.memory_repo.folder_look import read_regular
from raddle.adapters.memory_repo.git_streams import blob_id
from raddle.adapters.memory_repo.scan_cache import ScanCache
from raddle.adapters.memory_repo.scanning import scan_folder
from raddle.adapters.temporaries import sweep_temporaries
from raddle.model.errors import ConflictError, InvalidInput
from raddle.model.memory.merge_trees import DiskStep
from raddle.model.memory.names import folded, is_dangerous, shown
from raddle.model.memory.repo_layout import is_safe

LARGEST_IN_GIT = 8 * 1024 * 1024
"""Bytes of a file that is taken into git; what is larger belongs into a store of blobs."""

_LOCK = "store"
_LOCK_SECONDS = 60.0
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_NO_SUCH_FILE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EMLINK}


class StoreFolder:
    """A `StoreDisk` over `root`. `locks`: of this store, kept where git does not look. `hash_name`: git's object
    format (`sha1`, `sha256`). `cache`: what was hashed before; None: everything is read each time."""

    def __init__(
        self, root: Path, locks: LockFiles, *, hash_name: str = "sha1", cache: ScanCache | None = None
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self._locks = locks
        self._hash_name = hash_name
        self._cache = cache
        self._just_read: dict[str, tuple[str, bytes]] = {}
        """Path -> id and bytes, of what the newest scan had to read; until they are asked for."""

    def read(self, path: str) -> bytes | None:
        """All bytes of a file; None where there is none."""
        file = self._file(path)
        if not self._is_inside(file.parent):
            return None
        try:
            return _read(file)
        except OSError as error:
            raise storage_error(error, file, "read") from error

    def names(self, folder: str) -> list[str]:
        """The names of the files right in a folder, sorted."""
        place = self._file(folder)
        if not self._is_inside(place):
            return []
        return sorted(entry.name for entry in _entries(place) if _is_file(entry) and _is_ours(entry.name))

    def folders(self, folder: str) -> list[str]:
        """The names of the folders right in a folder, sorted."""
        place = self._file(folder)
        if not self._is_inside(place):
            return []
        return sorted(
            entry.name
            for entry in _entries(place)
            if entry.is_dir(follow_symlinks=False) and _is_ours(entry.name)
        )

    def paths(self, folder: str = "") -> list[str]:
        """The paths of all files below a folder, sorted."""
        place = self._file(folder) if folder else self.root
        if not self._is_inside(place):
            return []
        prefix = f"{folder}/" if folder else ""
        return sorted(path for path, entry in _walk(place, prefix) if _is_file(entry))

    def twins(self, folder: str, name: str) -> list[str]:
        """The names right in a folder, of files and folders, that a file system could take for `name`."""
        place, fold = self._file(folder), folded(name)
        try:
            names = os.listdir(place) if self._is_inside(place) else []
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise storage_error(error, place, "read") from error
        together = "/".join(names)
        if together.isascii() and f"/{fold}/" not in f"/{together.lower()}/":
            return []
        return sorted(
            other for other in names if (other.lower() if other.isascii() else folded(other)) == fold
        )

    def add(self, files: Mapping[str, bytes]) -> None:
        """Put new files there, with one wait for the disk for all."""
        if len(files) == 1:
            for path, data in files.items():
                self._add_one(path, data)
            return
        places = self._new_places(files)
        with FileBatch() as batch:
            for path, data in files.items():
                batch.write(places[path], data)

    def _new_places(self, paths: Iterable[str]) -> dict[str, str]:
        """Where new files go, each folder looked at once; ConflictError where one is there already."""
        ready: dict[str, str] = {}
        places = {}
        for path in paths:
            folder, _, name = self._safe(path).rpartition("/")
            if folder not in ready:
                ready[folder] = str(self._ready(folder, path))
            place = f"{ready[folder]}/{name}"
            if os.path.lexists(place):
                raise _is_there(path)
            places[path] = place
        return places

    def _add_one(self, path: str, data: bytes) -> None:
        file = self._writable(path)
        with NewFile(file.parent) as new:
            new.write(data)
            if not new.publish_new(file):
                raise _is_there(path)

    def change(self, path: str, change: Change) -> bytes | None:
        """Read, change, write, under the store's lock."""
        with self.locked():
            old = self.read(path)
            new = change(old)
            if new is None:
                if old is not None:
                    self._remove(path)
            elif new != old:
                write_atomic(self._writable(path), new)
            return new

    def locked(self) -> AbstractContextManager[None]:
        """Hold the store's lock; a thread may take it again."""
        return self._locks.held(_LOCK, timeout_seconds=_LOCK_SECONDS)

    def scan(self) -> Scan:
        """All of it as it is now."""
        known = self._cache.load() if self._cache is not None else {}
        scan, seen, read = scan_folder(self.root, known, id_of=self.id_of, read=_read, largest=LARGEST_IN_GIT)
        self._just_read = {path: (scan.files[path], data) for path, data in read.items()}
        if self._cache is not None:
            self._cache.save(known, seen)
        return scan

    def read_many(self, wanted: Mapping[str, str]) -> dict[str, bytes]:
        """Path -> bytes, for the files that still hold what was seen, or did when the newest `scan` read them."""
        found = {}
        inside: dict[str, bool] = {}
        just_read, self._just_read = self._just_read, {}
        for path, content_id in wanted.items():
            read_id, data = just_read.get(path, ("", None))
            if data is not None and read_id == content_id:
                found[path] = data
                continue
            file, folder = self._file(path), path.rpartition("/")[0]
            if folder not in inside:  # asked once for a folder: it costs more than to read a file
                inside[folder] = self._is_inside(file.parent)
            try:
                data = _read(file) if inside[folder] else None
            except OSError as error:
                raise storage_error(error, file, "read") from error
            if data is not None and self.id_of(data) == content_id:
                found[path] = data
        return found

    def carry_out(self, steps: Iterable[DiskStep], contents: Mapping[str, bytes]) -> tuple[DiskStep, ...]:
        """Bring the files to what the steps say; what could not be done, for the file holds something else now."""
        left: list[DiskStep] = []
        written: list[DiskStep] = []
        for step in steps:
            data = self.read(step.path)
            holds = None if data is None else self.id_of(data)
            if holds == step.becomes:
                continue
            if holds != step.expects:
                left.append(step)
            elif step.becomes is None:
                self._remove(step.path)
            else:
                written.append(step)
        with FileBatch() as batch:
            for step in written:
                try:
                    batch.write(self._writable(step.path), contents[step.becomes or ""])
                except (
                    InvalidInput
                ):  # a link, or a file where a folder should be, which somebody else put there
                    left.append(step)
        return tuple(left)

    def sweep(self) -> int:
        """Remove what killed processes left half-made, an hour ago or longer; how many files went."""
        return sum(sweep_temporaries(folder) for folder in _folders(self.root))

    def id_of(self, data: bytes) -> str:
        """The id that git has for a content."""
        return blob_id(data, self._hash_name)

    def _safe(self, path: str) -> str:
        if not is_safe(path):
            raise InvalidInput(f"{shown(path)} is no path of a store", "nothing was read or written")
        return path

    def _file(self, path: str) -> Path:
        return self.root / self._safe(path)

    def _is_inside(self, folder: Path) -> bool:
        """Is no part of the way to `folder` a link?"""
        return os.path.realpath(folder) == str(folder)

    def _writable(self, path: str) -> Path:
        folder, _, name = self._safe(path).rpartition("/")
        file = self._ready(folder, path) / name
        try:
            is_other = not stat.S_ISREG(file.lstat().st_mode)
        except FileNotFoundError:
            return file
        if is_other:
            raise InvalidInput(
                f"{shown(path)} cannot be written: something else is in its place",
                "remove it, then try again",
            )
        return file

    def _ready(self, folder: str, path: str) -> Path:
        """The folder that `path` is to be written in, made where it is missing; InvalidInput where it cannot be."""
        place = self.root / folder if folder else self.root
        if not self._is_inside(place):
            raise InvalidInput(
                f"{shown(path)} cannot be written: a link is in the way", "remove it, then try again"
            )
        if not place.is_dir():
            self._make_folders(place, path)
        return place

    def _make_folders(self, folder: Path, path: str) -> None:
        if not self.root.is_dir():
            raise storage_error(FileNotFoundError(errno.ENOENT, ""), self.root, "write in")
        parts = folder.relative_to(self.root).parts
        for depth in range(1, len(parts) + 1):
            above = self.root.joinpath(*parts[:depth])
            if os.path.lexists(above) and not above.is_dir():
                raise InvalidInput(
                    f"{shown(path)} cannot be written: {shown('/'.join(parts[:depth]))} is a file",
                    "choose another name for one of them",
                )
        make_folder(folder)

    def _remove(self, path: str) -> None:
        """Remove a file, and the folders above it that are empty then."""
        file = self._file(path)
        try:
            file.unlink()
            sync_folder(file.parent)
            for folder in file.parents:
                if (
                    folder == self.root
                    or len(folder.relative_to(self.root).parts) < 2
                    or any(folder.iterdir())
                ):
                    break
                folder.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(error, file, "remove") from error


def _folders(folder: Path) -> Iterator[Path]:
    """The folder and all below it that are a store's own."""
    yield folder
    for entry in _entries(folder):
        if entry.is_dir(follow_symlinks=False) and not is_dangerous(entry.name):
            yield from _folders(Path(entry.path))


def _is_there(path: str) -> ConflictError:
    return ConflictError(f"{shown(path)} is there already", "nothing was written")


def _read(file: Path | str) -> bytes | None:
    """All bytes of a regular file; None where there is none of that name."""
    try:
        fd = os.open(file, _READ)
    except OSError as error:
        if error.errno in _NO_SUCH_FILE:
            return None
        raise
    try:
        return read_regular(fd)
    finally:
        os.close(fd)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise storage_error(error, folder, "read") from error


def _walk(folder: Path, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """(path, entry) of everything below but folders; without what is git's, half-made or of a dangerous name."""
    for entry in _entries(folder):
        if not _is_ours(entry.name):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry


def _is_ours(name: str) -> bool:
    is_half_made = name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX)
    return not is_half_made and is_safe(name)


def _is_file(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False)
