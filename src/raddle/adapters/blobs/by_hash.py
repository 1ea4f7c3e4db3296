"""A folder or a bucket as a store of an artifact's blobs: what is put there is what was named, or it is not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from raddle.adapters.blobs.directory import BlobDirectory
from raddle.model.errors import ConflictError


class _NewBlob(Protocol):
    def write(self, data: bytes) -> None: ...

    def sha256(self) -> str: ...

    def finish(self) -> str: ...

    def discard(self) -> None: ...


class _Blobs(Protocol):
    def writer(self, *, compress: bool = True) -> _NewBlob: ...

    def size(self, sha256: str) -> int | None: ...

    def is_whole(self, sha256: str) -> bool: ...

    def range(self, sha256: str, start: int, end: int) -> Iterator[bytes]: ...


class BlobsByHash:
    """A `StoreOfBlobs` over blobs that are put by hashing them. They lie plain, so that a range is no trouble."""

    def __init__(self, blobs: _Blobs) -> None:
        self._blobs = blobs

    def size(self, sha256: str) -> int | None:
        """How many bytes it is; None where it is not there."""
        return self._blobs.size(sha256)

    def put(self, sha256: str, size: int, pieces: Iterable[bytes]) -> None:
        """Keep the bytes, in pieces as they come; what is there counts once it was read, and is whole."""
        if self._blobs.size(sha256) == size and self._blobs.is_whole(sha256):
            return
        writer = self._blobs.writer(compress=False)
        try:
            for piece in pieces:
                writer.write(piece)
            if writer.sha256() != sha256:
                raise changed()
            writer.finish()
        finally:
            writer.discard()

    def pieces(self, sha256: str, start: int, end: int) -> Iterator[bytes]:
        """Bytes `start` up to `end`, unchecked."""
        return self._blobs.range(sha256, start, end)


def blobs_in_folder(folder: Path) -> BlobsByHash:
    """The blobs in a folder, which is made when the first one comes."""
    return BlobsByHash(BlobDirectory(folder))


def blobs_in_bucket(url: str) -> BlobsByHash:
    """The blobs in a bucket (`s3://bucket/prefix`, `gs://…`, `az://…`)."""
    from raddle.adapters.blobs.object_store import open_object_store  # noqa: PLC0415  heavy: obstore

    return BlobsByHash(open_object_store(url))


def changed() -> ConflictError:
    """What to raise where a file is another one when it is read the second time."""
    return ConflictError(
        "the file changed while it was read", "wait until nobody writes to it, then add it again"
    )
