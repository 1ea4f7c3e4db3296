"""Blobs in a bucket (S3 and what speaks like it, GCS, Azure): `ab/abcd…` by the SHA-256 of what they are.

Nothing gets such a name before all its bytes are there and hashed: what is too large for one request goes up under
`tmp/…` and is copied. A second way of writing here could put a name on bytes that are not its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from raddle.adapters.blobs.bucket import PART, Bucket, Upload, open_bucket
from raddle.model.clock import Clock, system_clock
from raddle.model.errors import BrokenFormat, InvalidInput, NotFound, StorageError

_TEMPORARY = "tmp"
_ABANDONED_SECONDS = 86_400
"""S3 dates an object by when its upload began, and four gibibytes may take hours to arrive."""
_KEY = re.compile(r"([0-9a-f]{2})/(\1[0-9a-f]{62})\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


def open_object_store(url: str) -> ObjectBlobs:
    """Blobs at `s3://bucket/prefix`, `gs://…` or `az://…`: `bucket.open_bucket` says what else counts, and raises."""
    return ObjectBlobs(open_bucket(url))


class ObjectBlobs:
    """What a server asks of its blobs, in a bucket; shared by any number of processes without a lock.

    Blobs lie as they are, so that any range of one can be asked for. StorageError where the store fails.
    """

    def __init__(self, bucket: Bucket, *, clock: Clock = system_clock) -> None:
        self._bucket = bucket
        self._clock = clock

    def check(self) -> None:
        """Write something and remove it; StorageError where that may not be, or nobody answers."""
        key = _temporary_key()
        self._bucket.put(key, b"", is_new=False)
        self._bucket.remove(key)

    def writer(self, *, compress: bool = True) -> ObjectWriter:
        """For bytes that come in pieces. They are kept as they are, whatever `compress` allows."""
        return ObjectWriter(self, self._bucket)

    def read(self, sha256: str) -> bytes:
        """All of it, checked. NotFound; BrokenFormat where the bytes are not what their name says."""
        return b"".join(self.chunks(sha256))

    def chunks(self, sha256: str) -> Iterator[bytes]:
        """The same in pieces of about a mebibyte; the last one comes only after the check."""
        pieces = self._bucket.pieces(_key(sha256))
        if pieces is None:
            raise _missing(sha256)
        digest = hashlib.sha256()
        held = b""
        for piece in pieces:
            digest.update(piece)
            if held:
                yield held
            held = piece
        if digest.hexdigest() != sha256:
            raise BrokenFormat(
                f"{self._bucket.place}/{_key(sha256)} is damaged: its bytes are not those of its name",
                "restore it from a backup, or send it again",
            )
        yield held

    def range(self, sha256: str, start: int, end: int) -> Iterator[bytes]:
        """Bytes `start` up to `end`, as a slice has them, in pieces; a part cannot be checked. NotFound."""
        size = self.size(sha256)
        end = min(end, size or 0)
        pieces = self._bucket.pieces(_key(sha256), start, end) if start < end else iter(())
        if size is None or pieces is None:
            raise _missing(sha256)
        yield from pieces

    def is_whole(self, sha256: str) -> bool:
        """Is it here, and what its name says? Reads all of it."""
        try:
            for _ in self.chunks(sha256):
                pass
        except (NotFound, BrokenFormat):
            return False
        return True

    def size(self, sha256: str) -> int | None:
        """How many bytes it is; None where it is not here."""
        return self._bucket.size(_key(sha256))

    def delete(self, sha256: str) -> bool:
        """Remove it; was it here?"""
        return self.size(sha256) is not None and self._bucket.remove(_key(sha256))

    def ids(self) -> Iterator[str]:
        """Every SHA-256 that is here, once."""
        for key, _ in self._bucket.listed():
            if found := _KEY.match(key):
                yield found[2]

    def sweep(self) -> int:
        """Remove what killed processes left half-made, a day ago or longer; how many objects went.

        Parts of an upload that was cut off are no objects yet; a rule of the bucket removes them.
        """
        limit = datetime.fromtimestamp(self._clock() / 1_000_000, UTC) - timedelta(seconds=_ABANDONED_SECONDS)
        abandoned = [key for key, made in self._bucket.listed(_TEMPORARY) if made < limit]
        return sum(self._bucket.remove(key) for key in abandoned)


class ObjectWriter:
    """A blob in the making. `finish` gives it its name; `discard` drops it, unless it is finished."""

    def __init__(self, blobs: ObjectBlobs, bucket: Bucket) -> None:
        self._blobs = blobs
        self._bucket = bucket
        self._digest = hashlib.sha256()
        self._held = bytearray()
        self._upload: Upload | None = None
        self._is_over = False

    def write(self, data: bytes) -> None:
        """Add `data` at the end."""
        self._must_be_open()
        self._digest.update(data)
        if self._upload is not None:
            self._upload.write(data)
            return
        self._held += data
        if len(self._held) > PART:
            self._upload = self._bucket.upload(_temporary_key())
            self._upload.write(bytes(self._held))
            self._held.clear()

    def sha256(self) -> str:
        """The SHA-256 of what was written so far."""
        return self._digest.hexdigest()

    def finish(self) -> str:
        """Put it in its place, durably; its SHA-256."""
        self._must_be_open()
        sha256 = self.sha256()
        key = _key(sha256)
        if self._upload is None:
            data = bytes(self._held)
            self._place(sha256, lambda is_new: self._bucket.put(key, data, is_new=is_new))
        else:
            source = self._upload.key
            self._upload.close()
            self._place(sha256, lambda is_new: self._bucket.copy(source, key, is_new=is_new))
        self.discard()
        return sha256

    def discard(self) -> None:
        """Keep nothing of it, unless it is finished."""
        self._is_over = True
        self._held.clear()
        upload, self._upload = self._upload, None
        if upload is not None:
            with contextlib.suppress(StorageError):  # what cannot go now is swept later
                upload.remove()

    def _place(self, sha256: str, place: Callable[[bool], None]) -> None:
        """Put it there unless it is there; one that is there and damaged is put anew.

        Stores that cannot make the one depend on the other say so in many ways; so whatever they say, a look
        decides. Where two writers then write at once, they write the same bytes.
        """
        with contextlib.suppress(StorageError):
            place(True)
            return
        if not self._blobs.is_whole(sha256):
            place(False)

    def _must_be_open(self) -> None:
        if self._is_over:
            raise AssertionError("this blob is finished or dropped")


def _key(sha256: str) -> str:
    if _SHA256.match(sha256) is None:
        raise InvalidInput(f"{sha256[:80]!r} is not a SHA-256", "it is 64 hex digits, in lower case")
    return f"{sha256[:2]}/{sha256}"


def _temporary_key() -> str:
    return f"{_TEMPORARY}/{os.urandom(16).hex()}"


def _missing(sha256: str) -> NotFound:
    return NotFound("blob", sha256, "it was purged, or never came to this server")
