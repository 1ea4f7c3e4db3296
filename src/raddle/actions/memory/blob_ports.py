"""What the verbs of artifacts ask of the places where large files lie. Whoever keeps blobs keeps these promises, and no
verb knows which of them it speaks to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol


class ArtifactSource(Protocol):
    """A file that is to become an artifact. Its name is without a folder, and empty where it has none."""

    @property
    def name(self) -> str:
        """What it is called."""

    def pieces(self) -> Iterator[bytes]:
        """All its bytes, in pieces, as often as it is asked."""


class StoreOfBlobs(Protocol):
    """Bytes by their SHA-256, somewhere. StorageError or NetworkError where it cannot be got at."""

    def size(self, sha256: str) -> int | None:
        """How many bytes it is; None where it is not there, or not for us."""

    def put(self, sha256: str, size: int, pieces: Iterable[bytes]) -> None:
        """Keep the bytes, durably. ConflictError where they are not those of that hash; then nothing is kept."""

    def pieces(self, sha256: str, start: int, end: int) -> Iterator[bytes]:
        """Bytes `start` up to `end`, as a slice has them, in pieces and unchecked. NotFound."""


class StoresOfBlobs(Protocol):
    """The stores of blobs that a project's pointers name."""

    def own(self) -> StoreOfBlobs:
        """This machine's own, which is read before the one that a pointer names."""

    def chosen(self) -> str:
        """The name of the one that new bytes go to."""

    def for_writing(self, name: str) -> StoreOfBlobs:
        """UserError where bytes may not go there, or nobody has agreed to it yet; NotFound where none has that name."""

    def for_reading(self, name: str) -> StoreOfBlobs:
        """Whatever may have what was put into the one of that name."""
