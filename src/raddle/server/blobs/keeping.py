"""Where a server keeps its blobs: a folder, or a bucket. What it asks of either stands here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from raddle.adapters.blobs.directory import BlobDirectory


class NewBlob(Protocol):
    """A blob in the making."""

    def write(self, data: bytes) -> None:
        """Add `data` at the end."""

    def sha256(self) -> str:
        """The SHA-256 of what was written so far."""

    def finish(self) -> str:
        """Put it in its place, durably; its SHA-256. One that is there, and whole, is left as it is."""

    def discard(self) -> None:
        """Keep nothing of it, unless it is finished."""


class ServerBlobs(Protocol):
    """Bytes by their SHA-256 (64 hex; else InvalidInput). StorageError where they cannot be got at.

    Any number of processes and threads use the same at once.
    """

    def writer(self, *, compress: bool = True) -> NewBlob:
        """For bytes that come in pieces; `compress` where they may be kept in fewer, at the cost of ranges."""

    def chunks(self, sha256: str) -> Iterator[bytes]:
        """All of it in pieces; the last one comes only after the check. NotFound, BrokenFormat."""

    def range(self, sha256: str, start: int, end: int) -> Iterator[bytes]:
        """Bytes `start` up to `end`, as a slice has them, in pieces and unchecked. NotFound."""

    def is_whole(self, sha256: str) -> bool:
        """Is it here, and what its name says? Reads all of it."""

    def size(self, sha256: str) -> int | None:
        """How many bytes it is; None where it is not here."""

    def delete(self, sha256: str) -> bool:
        """Remove it; was it here?"""

    def ids(self) -> Iterator[str]:
        """Every SHA-256 that is here, in no particular order."""

    def sweep(self) -> int:
        """Remove what killed processes left half-made long ago; how many of it."""


def open_blobs(place: Path | str) -> ServerBlobs:
    """Blobs in a folder, or in a bucket (`s3://bucket/prefix`). InvalidInput, UserError where that cannot be."""
    if isinstance(place, Path):
        return BlobDirectory(place)
    from raddle.adapters.blobs.object_store import open_object_store  # noqa: PLC0415

    return open_object_store(place)


def check_blobs(place: Path | str) -> None:
    """Can a bucket be written to? StorageError where not. A folder is made when the first blob comes."""
    if not isinstance(place, Path):
        from raddle.adapters.blobs.object_store import open_object_store  # noqa: PLC0415

        open_object_store(place).check()
