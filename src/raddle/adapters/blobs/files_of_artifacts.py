"""Files on their way into a store of blobs and out of one: read twice without a change, fetched on from where it broke.

Owns what a broken download leaves: a part that says of what it is a part, which nobody takes for the whole.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from raddle.adapters.disk import sync, sync_folder
from raddle.adapters.files import NewFile, make_folder, storage_error
from raddle.model.errors import BrokenFormat, ConflictError, InvalidInput, NotFound

_PIECE = 1 << 20
PART_SUFFIX = ".part"


class FileSource(NamedTuple):
    """An `ArtifactSource` over a file. `name`: what it is called, which need not be its path's."""

    path: Path
    name: str

    def pieces(self) -> Iterator[bytes]:
        """All its bytes, in pieces of a mebibyte."""
        try:
            with self.path.open("rb") as file:
                while piece := file.read(_PIECE):
                    yield piece
        except OSError as error:
            raise storage_error(error, self.path, "read") from error


@contextlib.contextmanager
def file_source(path: Path, spool: Path) -> Iterator[FileSource]:
    """The file; what can be read only once (a pipe, `<(…)`) is copied into the folder `spool` first."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise NotFound("file", str(path), "check the path") from error
    except OSError as error:
        raise storage_error(error, path, "read") from error
    except ValueError as error:  # a NUL
        raise InvalidInput("that is no path", "name a file") from error
    if stat.S_ISDIR(mode):
        raise InvalidInput(
            f"{path} is a folder", "pack it first, such as with `tar -czf`; an artifact is one file"
        )
    if stat.S_ISREG(mode):
        yield FileSource(path, path.name)
        return
    if not stat.S_ISFIFO(mode):  # a device may never end
        raise InvalidInput(f"{path} is no file", "name a file, or give the bytes to stdin: -")
    try:
        with path.open("rb") as opened, spooled(opened, spool) as source:
            yield source
    except OSError as error:
        raise storage_error(error, path, "read") from error


@contextlib.contextmanager
def spooled(stream: IO[bytes], folder: Path) -> Iterator[FileSource]:
    """What a stream gives, as a file of its own in `folder` for the length of the block."""
    make_folder(folder)
    with NewFile(folder) as new:
        try:
            while piece := stream.read(_PIECE):
                new.write(piece)
        except OSError as error:
            raise storage_error(error, Path("stdin"), "read") from error
        yield FileSource(new.path, "")


def holds(target: Path, sha256: str, size: int) -> bool:
    """Are these very bytes at `target` already?"""
    try:
        if not target.is_file() or target.stat().st_size != size:
            return False
        with target.open("rb") as file:
            return _so_far(file, size)[0].hexdigest() == sha256
    except OSError as error:
        raise storage_error(error, target, "read") from error


def fetch(target: Path, sha256: str, size: int, pieces_from: Callable[[int], Iterator[bytes]]) -> int:
    """Put the bytes at `target`, whole and checked, or not at all; how many were there already, from an earlier try.

    `pieces_from`: the bytes from a place on. What breaks off stays beside the target as `.<name>.<hash>.part`, where
    the next try goes on. BrokenFormat, and nothing stays, where the bytes are not those of the hash.
    """
    part = target.with_name(f".{target.name[:100]}.{sha256[:12]}{PART_SUFFIX}")
    try:
        with _held(part) as file:
            digest, start = _so_far(file, size)
            for piece in pieces_from(start):
                digest.update(piece)
                file.write(piece)
            file.flush()
            if digest.hexdigest() != sha256:
                part.unlink()
                raise _damaged(target, start)
            sync(file.fileno())
            part.replace(target)
            sync_folder(target.parent)
    except OSError as error:
        raise storage_error(error, target, "write") from error
    return start


def _so_far(file: IO[bytes], size: int) -> tuple[hashlib._Hash, int]:
    """(The hash of what an earlier try brought, how much that is). More than there can be is dropped."""
    digest, start = hashlib.sha256(), 0
    if os.fstat(file.fileno()).st_size > size:
        file.truncate(0)
    while piece := file.read(_PIECE):
        digest.update(piece)
        start += len(piece)
    return digest, start


@contextlib.contextmanager
def _held(part: Path) -> Iterator[IO[bytes]]:
    """The part, open and nobody else's. A link in its place is not followed."""
    fd = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "r+b") as file:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConflictError(
                f"another process is fetching {part.name.split('.')[1]}", "wait until it is done"
            ) from None
        yield file


def _damaged(target: Path, start: int) -> BrokenFormat:
    if start:
        return BrokenFormat(
            f"what was fetched for {target} is not what it should be",
            "its first part was of an earlier try: try again",
        )
    return BrokenFormat(
        f"what was fetched for {target} is not what it should be: the bytes are damaged where they lie",
        "add the file again under the same id: that puts the bytes back",
    )
