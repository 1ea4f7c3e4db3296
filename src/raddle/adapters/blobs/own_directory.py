"""This machine's own store of blobs: one folder for all project memories of a data folder, and who put what there.

A blob that no memory names any more may go. The only place that decides so: a second one would not know of the memory
whose disk is not mounted today, and would take its bytes away.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from raddle.adapters.blobs.by_hash import BlobsByHash
from raddle.adapters.blobs.directory import BlobDirectory
from raddle.adapters.files import append_durable, find_bytes, make_folder, storage_error
from raddle.adapters.locks import LockFiles
from raddle.model.clock import Clock, system_clock

YOUNG_SECONDS = 3600
"""A blob is put before the pointer that names it: one that is younger than this may be waiting for its pointer."""

_LOCK = "blobs"
_CLAIMS = "claims"


class Claim(NamedTuple):
    """A memory that put blobs here: its folder, and which they were. `file`: where that is noted."""

    place: Path
    hashes: frozenset[str]
    file: Path


class Unnamed(NamedTuple):
    """A blob that may go, and how many bytes it is."""

    sha256: str
    size: int


class OwnDirectory:
    """A `StoreOfBlobs` in `folder`, for the memory at `place`: that it wants a blob is noted before the bytes come."""

    def __init__(self, folder: Path, place: Path) -> None:
        self._folder = folder
        self._place = place
        self._blobs = BlobDirectory(folder)
        self._kept = BlobsByHash(self._blobs)

    def size(self, sha256: str) -> int | None:
        """How many bytes it is; None where it is not there."""
        return self._kept.size(sha256)

    def put(self, sha256: str, size: int, pieces: Iterable[bytes]) -> None:
        """Keep the bytes. From now on for an hour nobody takes them for left over, whether they were there or not."""
        self._claim(sha256)
        with _locks(self._folder).held(_LOCK, shared=True):
            for path in self._blobs.paths_of(sha256):
                with contextlib.suppress(FileNotFoundError):
                    os.utime(path)
        self._kept.put(sha256, size, pieces)

    def pieces(self, sha256: str, start: int, end: int) -> Iterator[bytes]:
        """Bytes `start` up to `end`, unchecked."""
        return self._kept.pieces(sha256, start, end)

    def _claim(self, sha256: str) -> None:
        folder = self._folder / _CLAIMS
        make_folder(folder)
        text = os.fsencode(self._place)
        file = folder / f"{hashlib.sha256(text).hexdigest()[:16]}.txt"
        line = sha256.encode() + b"\n"
        with _locks(self._folder).held(_LOCK):
            noted = find_bytes(file) or b""
            if b"\n" + line not in noted:
                append_durable(file, line if noted else text.replace(b"\n", b"") + b"\n" + line)


def claims(folder: Path) -> list[Claim]:
    """Who put blobs into the folder."""
    found = []
    for file in sorted((folder / _CLAIMS).glob("*.txt")):
        first, *lines = (find_bytes(file) or b"").split(b"\n")
        hashes = frozenset(line.decode(errors="replace") for line in lines if len(line) == 64)
        found.append(Claim(Path(os.fsdecode(first)), hashes, file))
    return found


def unnamed_blobs(folder: Path, named: frozenset[str], *, clock: Clock = system_clock) -> list[Unnamed]:
    """The blobs of the folder that are in none of the hashes `named`, and not young."""
    blobs = BlobDirectory(folder)
    return [
        Unnamed(sha256, blobs.stored_size(sha256) or 0)
        for sha256 in blobs.ids()
        if sha256 not in named and _is_old(blobs, sha256, clock)
    ]


def remove_unnamed(folder: Path, wanted: Iterable[Unnamed], *, clock: Clock = system_clock) -> list[Unnamed]:
    """Remove them, but for those that somebody has put there anew since; what went."""
    blobs = BlobDirectory(folder)
    gone = []
    for blob in wanted:
        with _locks(folder).held(_LOCK):
            if _is_old(blobs, blob.sha256, clock) and blobs.delete(blob.sha256):
                gone.append(blob)
    blobs.sweep()
    return gone


def forget_claim(claim: Claim) -> None:
    """Let go of what a memory put here that is there no more."""
    try:
        claim.file.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, claim.file, "remove") from error


def _is_old(blobs: BlobDirectory, sha256: str, clock: Clock) -> bool:
    limit = clock() / 1_000_000 - YOUNG_SECONDS
    for path in blobs.paths_of(sha256):
        try:
            if path.stat().st_mtime > limit:
                return False
        except FileNotFoundError:
            continue
        except OSError as error:
            raise storage_error(error, path, "look at") from error
    return True


def _locks(folder: Path) -> LockFiles:
    return LockFiles(folder / "locks", stripes=1)
