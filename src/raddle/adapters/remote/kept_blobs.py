"""Blobs on the sync server that no thread names: artifacts, kept because their giver said so, read by them alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from raddle.adapters.remote.http_hub import MOST_BLOB_BYTES
from raddle.adapters.remote.http_link import HttpLink
from raddle.adapters.remote.refusals import Wanted
from raddle.model.errors import ConflictError, InvalidInput, NetworkError, NotFound, TooLarge


class KeptBlobs:
    """A `StoreOfBlobs` at the server of `link`. Every call may raise what `HttpLink` says."""

    def __init__(self, link: HttpLink) -> None:
        self._link = link

    def size(self, sha256: str) -> int | None:
        """How many bytes it is; None where it is not there, or not for us."""
        return self._look(sha256)[0]

    def put(self, sha256: str, size: int, pieces: Iterable[bytes]) -> None:
        """Keep the bytes, whether a thread names them or not; what is there, kept and whole is not sent again."""
        if size > MOST_BLOB_BYTES:
            raise TooLarge(
                f"the file is larger than the {MOST_BLOB_BYTES >> 30} GiB that a server takes",
                "put it into a folder or a bucket: --blobs NAME",
            )
        if self._look(sha256) == (size, True) and self._is_whole(sha256, size):
            return
        path, wanted = _place(sha256)
        self._link.send(f"{path}?keep=true", _expected(sha256, size, pieces), size, wanted=wanted)

    def pieces(self, sha256: str, start: int, end: int) -> Iterator[bytes]:
        """Bytes `start` up to `end`, unchecked. NotFound."""
        path, wanted = _place(sha256)
        if start >= end:
            if self.size(sha256) is None:
                raise NotFound(*wanted)
            return iter(())
        return self._link.receive(path, wanted=wanted, most_bytes=end - start, part=(start, end))

    def _is_whole(self, sha256: str, size: int) -> bool:
        """The server tells what it was given, and not what its disk has made of it since."""
        digest = hashlib.sha256()
        try:
            for piece in self.pieces(sha256, 0, size):
                digest.update(piece)
        except (NotFound, NetworkError):  # where the network is away, the sending says so
            return False
        return digest.hexdigest() == sha256

    def _look(self, sha256: str) -> tuple[int | None, bool]:
        path, wanted = _place(sha256)
        headers = self._link.look(path, wanted=wanted)
        if headers is None:
            return None, False
        text = headers.get("x-blob-size", "")
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise self._link.nonsense("it does not say how long the blob is")
        return int(text), headers.get("x-blob-kept") == "true"


def _place(sha256: str) -> tuple[str, Wanted]:
    if len(sha256) != 64 or set(sha256) - set("0123456789abcdef"):
        raise InvalidInput(f"{sha256[:80]!r} is not a SHA-256", "it is 64 hex digits, in lower case")
    return f"/api/blobs/{sha256}", Wanted("blob", sha256)


def _expected(sha256: str, size: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces, and an error in place of the last one where they are not what they should be."""
    digest, sent = hashlib.sha256(), 0
    held = b""
    for piece in pieces:
        digest.update(piece)
        sent += len(piece)
        if held:
            yield held
        held = piece
    if sent != size or digest.hexdigest() != sha256:
        raise ConflictError(
            "the file changed while it was read", "wait until nobody writes to it, then add it again"
        )
    yield held
