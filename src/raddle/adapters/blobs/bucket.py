"""Objects in a bucket, by obstore: the one place that speaks to S3, GCS or Azure, and puts their errors into our words.

What a store says of an error holds keys, signatures and URLs. A second place that caught it would carry them into a
log. obstore is imported by whoever opens a bucket, and by nobody else.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from raddle.adapters.blobs.object_urls import parse_object_url
from raddle.adapters.blobs.pieces import cut
from raddle.model.errors import InvalidInput, StorageError, UserError

if TYPE_CHECKING:
    from obstore import GetOptions, WritableFile
    from obstore.store import ClientConfig, ObjectStore, RetryConfig, S3Config

PART = 5 << 20
"""Bytes: the least that S3 takes as a part of a larger upload."""
_PIECE = 1 << 20
_PARTS_UNDER_WAY = 2
_CODE = re.compile(r"<Code>([A-Za-z]{1,40})</Code>")
_STATUS = re.compile(r"status code: (\d{3})\b")
_NO_RANGES = "non-partial response"
_METADATA_SERVICE = "169.254.169.254"
"""Where credentials are asked for when none are set."""
_CLIENT: ClientConfig = {
    "allow_http": True,  # https all the same, unless somebody writes http:// into AWS_ENDPOINT_URL
    "connect_timeout": timedelta(seconds=5),
    "read_timeout": timedelta(seconds=120),  # a store may say nothing while it copies
    "timeout": timedelta(hours=1),
}
_RETRIES: RetryConfig = {"max_retries": 4, "retry_timeout": timedelta(seconds=60)}
_S3: S3Config = {
    "copy_if_not_exists": "multipart",
    "disable_bulk_delete": True,  # not every store has it, and blobs go one by one
}


def open_bucket(url: str) -> Bucket:
    """The bucket and prefix of `s3://bucket/prefix`, `gs://…` or `az://…`; nothing is asked of the network yet.

    Credentials and the endpoint come from the variables that obstore reads (`AWS_ACCESS_KEY_ID`,
    `AWS_ENDPOINT_URL`, …). InvalidInput for another URL; UserError where obstore is not installed.
    """
    place = parse_object_url(url)
    try:
        from obstore.exceptions import BaseError  # noqa: PLC0415  # only a server with a bucket needs it
        from obstore.store import from_url  # noqa: PLC0415
    except ImportError:
        hint = "install it: pip install 'raddle[cloud]'"
        raise UserError("what reaches a bucket is not installed", hint) from None
    try:
        if place.startswith("s3:"):
            store = from_url(place, config=_S3, client_options=_CLIENT, retry_config=_RETRIES)
        else:
            store = from_url(place, client_options=_CLIENT, retry_config=_RETRIES)
    except (BaseError, ValueError, OSError):
        hint = "see which variables obstore reads for it (AWS_…, GOOGLE_…, AZURE_…)"
        raise InvalidInput(f"{place} cannot be used as it is set up", hint) from None
    return Bucket(store, place)


class Bucket:
    """Objects by their key. Each call may raise a StorageError that says `place` and nothing of a credential."""

    def __init__(self, store: ObjectStore, place: str) -> None:
        self.place = place
        self._store = store

    def size(self, key: str) -> int | None:
        """In bytes; None where there is no such object."""
        with self._errors("look into"):
            try:
                return self._store.head(key)["size"]
            except FileNotFoundError:
                return None

    def pieces(self, key: str, start: int = 0, end: int | None = None) -> Iterator[bytes] | None:
        """Its bytes, or those from `start` up to `end`, in pieces of about a mebibyte; None where it is not there.

        `start` lies before the `end`, and before that of the object.
        """
        whole = end is None
        with self._errors("read from"):
            try:
                options: GetOptions | None = None if end is None else {"range": (start, end)}
                return self._each(iter(self._store.get(key, options=options).stream(_PIECE)))
            except FileNotFoundError:
                return None
            except Exception as error:
                if whole or _NO_RANGES not in str(error):
                    raise
        # Not every store has ranges: what comes before is read and dropped.
        all_of_it = self.pieces(key)
        return None if all_of_it is None else cut(all_of_it, start, end or 0)

    def listed(self, prefix: str | None = None) -> Iterator[tuple[str, datetime]]:
        """(Key, when it was made) of each object, a page at a time."""
        with self._errors("list"):
            pages = iter(self._store.list(prefix))
        while True:
            with self._errors("list"):
                page = next(pages, None)
            if page is None:
                return
            for entry in page:
                yield entry["path"], entry["last_modified"]

    def put(self, key: str, data: bytes, *, is_new: bool) -> None:
        """Put an object there at once; where it must be new, one that is there is an error, if the store can tell."""
        with self._errors("write in"):
            self._store.put(key, data, mode="create" if is_new else "overwrite", use_multipart=False)

    def copy(self, source: str, key: str, *, is_new: bool) -> None:
        """Copy an object within the store; `is_new` as in `put`."""
        with self._errors("write in"):
            self._store.copy(source, key, overwrite=not is_new)

    def upload(self, key: str) -> Upload:
        """Begin an object whose bytes come in pieces."""
        import obstore  # noqa: PLC0415

        with self._errors("write in"):
            file = obstore.open_writer(self._store, key, buffer_size=PART, max_concurrency=_PARTS_UNDER_WAY)
        return Upload(self, key, file)

    def remove(self, key: str) -> bool:
        """Remove an object; False where the store says that it was not there. Not every store does."""
        with self._errors("remove from"):
            try:
                self._store.delete(key)
            except FileNotFoundError:
                return False
        return True

    def _each(self, stream: Iterator[bytes]) -> Iterator[bytes]:
        while True:
            with self._errors("read from"):
                piece = next(stream, None)
            if piece is None:
                return
            yield bytes(piece)

    @contextlib.contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        from obstore.exceptions import BaseError  # noqa: PLC0415

        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            reason, hint = _reason(error)
            raise StorageError(f"cannot {verb} {self.place}: {reason}", hint) from None


class Upload:
    """An object on its way up, in parts of `PART` bytes: a few of them are in memory, never all."""

    def __init__(self, bucket: Bucket, key: str, file: WritableFile) -> None:
        self.key = key
        self._bucket = bucket
        self._file: WritableFile | None = file

    def write(self, data: bytes) -> None:
        """Add `data` at the end."""
        assert self._file is not None
        with self._bucket._errors("write in"):  # noqa: SLF001  # the two are one
            self._file.write(data)

    def close(self) -> None:
        """The object is there from now on; once is enough."""
        file, self._file = self._file, None
        if file is not None:
            with self._bucket._errors("write in"):  # noqa: SLF001
                file.close()

    def remove(self) -> None:
        """Leave nothing of it. It is ended first: the parts of an upload that is only dropped would stay."""
        self.close()
        self._bucket.remove(self.key)


def _reason(error: Exception) -> tuple[str, str]:
    """(Why, what to do), of the error's kind and code only: its text may hold a key or a signature."""
    text = str(error)
    code, status = _CODE.search(text), _STATUS.search(text)
    said = code[1] if code else f"status {status[1]}" if status else ""
    if said == "NoSuchBucket" or isinstance(error, FileNotFoundError):
        return "there is no such bucket", "make it, or name another one"
    if _METADATA_SERVICE in text:
        return "no credentials are set", "set them, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if type(error).__name__ in {"PermissionDeniedError", "UnauthenticatedError"}:
        return f"permission denied ({said or 'no reason given'})", "check the credentials and what they allow"
    if said:
        return f"the store answers {said}", "see what the store's own log says about it"
    return "the store cannot be reached", "check the network and the endpoint (AWS_ENDPOINT_URL)"
