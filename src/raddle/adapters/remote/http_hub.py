"""The sync server as a hub: each call of docs/reference/http-api.md, and its answer in the words of the protocol."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, TypeVar

import msgspec

from raddle.adapters.remote.http_link import HttpLink
from raddle.adapters.remote.live_events import LiveEvents
from raddle.adapters.remote.refusals import Wanted
from raddle.model.errors import BrokenFormat, InvalidInput, NotFound, StorageError
from raddle.model.ids import is_thread_id, parse_thread_id
from raddle.model.protocol.hub import Answer, Changes, Pushed
from raddle.model.protocol.sources import (
    DeviceSources,
    SourceSegment,
    decode_missing,
    decode_sources,
    encode_source_list,
    parse_device,
)
from raddle.model.protocol.wire import (
    decode_answer,
    decode_changes,
    decode_conflict,
    decode_pushed,
    encode_push,
)
from raddle.model.threads.delta import Delta
from raddle.model.threads.search_answer import SearchAnswer

MOST_BLOB_BYTES = 4 << 30
_PAGE = 500
_MOST_HITS = 200
_Value = TypeVar("_Value")


class HttpHub:
    """A server's threads, feed and blobs, for the owner of the link's token. As a context manager it closes the link.

    Every call may raise what `actions.sync.ports.Remote` says.
    """

    def __init__(self, link: HttpLink, *, page: int = _PAGE) -> None:
        self._link = link
        self._page = page

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._link.close()

    def push(self, thread_id: str, delta: Delta, hub_epoch: str) -> Pushed:
        """Offer a delta, made on a base of that epoch."""
        path, wanted = _thread(thread_id)
        reply = self._link.ask(
            "POST",
            f"{path}/delta",
            plain=encode_push(delta, hub_epoch),
            accepted=(200, 201, 409),
            wanted=wanted,
            is_repeatable=True,  # taken twice it changes nothing: at worst its echo comes back as what is missing
        )
        return self._decoded(decode_conflict if reply.status == 409 else decode_pushed, reply.plain)

    def since(self, thread_id: str, version: int, hub_epoch: str) -> Answer:
        """What changed in a thread; one page of it."""
        path, wanted = _thread(thread_id)
        query: dict[str, str | int] = {"since": version, "epoch": hub_epoch}
        return self._decoded(decode_answer, self._link.ask("GET", path, query=query, wanted=wanted).plain)

    def changes(self, cursor: str) -> Changes:
        """A page of the feed after `cursor`; empty: from the start."""
        query: dict[str, str | int] = {"cursor": cursor, "limit": self._page}
        page = self._changes(self._link.ask("GET", "/api/changes", query=query).plain)
        if page.has_more and page.cursor == cursor:
            raise self._link.nonsense("the feed says that it goes on, and does not")
        return page

    def events(self, cursor: str) -> LiveEvents:
        """Pages of the feed after `cursor` as they come, until the connection ends or the iterator is closed."""
        return LiveEvents(self._link, cursor, self._changes)

    def search(self, query: str, *, limit: int, cursor: str = "", as_you_type: bool = False) -> SearchAnswer:
        """A page of what the server finds."""
        asked: dict[str, str | int] = {
            "q": query,
            "limit": min(limit, _MOST_HITS),
            "cursor": cursor,
            "as_you_type": int(as_you_type),
        }
        plain = self._link.ask("GET", "/api/threads/search", query=asked).plain
        try:
            return msgspec.convert(plain, SearchAnswer)
        except msgspec.ValidationError as error:
            raise self._link.nonsense(f"it is no answer to a search: {error}") from error

    def has_blob(self, sha256: str) -> bool:
        """Has the caller put these bytes there?"""
        path, wanted = _blob(sha256)
        return self._link.ask("HEAD", path, accepted=(200, 404), wanted=wanted).status == 200

    def put_blob(self, sha256: str, pieces: Iterable[bytes], size: int) -> None:
        """Give it the bytes, in pieces; StorageError where they are not `size` bytes."""
        path, wanted = _blob(sha256)
        self._link.send(path, _counted(sha256, pieces, size), size, wanted=wanted)

    def blob(self, sha256: str) -> Iterator[bytes]:
        """The bytes, in pieces; NotFound where there are none for the caller.

        That they are not the ones of that hash shows at their end, as a NetworkError: keep none before that.
        """
        path, wanted = _blob(sha256)
        seen = hashlib.sha256()
        for piece in self._link.receive(path, wanted=wanted, most_bytes=MOST_BLOB_BYTES):
            seen.update(piece)
            yield piece
        if seen.hexdigest() != sha256:
            raise self._link.nonsense(f"it is not the blob {sha256[:12]}…")

    def put_sources(
        self, thread_id: str, device: str, segments: Sequence[SourceSegment], version: int
    ) -> tuple[str, ...]:
        """Replace what a device keeps of a thread's sources; those of the blobs that the caller has not given yet."""
        path, wanted = _thread(thread_id)
        reply = self._link.ask(
            "PUT",
            f"{path}/sources/{parse_device(device)}",
            plain=encode_source_list(version, segments),
            wanted=wanted,
            is_repeatable=True,
        )
        return self._decoded(decode_missing, reply.plain)

    def sources(self, thread_id: str) -> tuple[DeviceSources, ...]:
        """What each of the caller's devices keeps of a thread's sources."""
        path, wanted = _thread(thread_id)
        return self._decoded(decode_sources, self._link.ask("GET", f"{path}/sources", wanted=wanted).plain)

    def purge(self, thread_id: str) -> None:
        """Erase the thread for good."""
        path, wanted = _thread(thread_id)
        self._link.ask("DELETE", path, query={"purge": "true"}, wanted=wanted)

    def _changes(self, plain: Any) -> Changes:
        page = self._decoded(decode_changes, plain)
        if not all(is_thread_id(change.thread_id) for change in page.changes):
            raise self._link.nonsense("a change is of something that is no thread")
        return page

    def _decoded(self, decode: Callable[[Any], _Value], plain: Any) -> _Value:
        """An answer as a value. What a newer raddle wrote says so; anything else that does not fit is the server's."""
        try:
            return decode(plain)
        except (BrokenFormat, InvalidInput) as error:
            raise self._link.nonsense(error.message) from error


def _thread(thread_id: str) -> tuple[str, Wanted]:
    return f"/api/threads/{parse_thread_id(thread_id)}", Wanted("thread", thread_id)


def _blob(sha256: str) -> tuple[str, Wanted]:
    if len(sha256) != 64 or set(sha256) - set("0123456789abcdef"):
        raise NotFound("blob", sha256[:80])
    return f"/api/blobs/{sha256}", Wanted("blob", sha256)


def _counted(sha256: str, pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    sent = 0
    for piece in pieces:
        sent += len(piece)
        if sent > size:
            break
        yield piece
    if sent != size:
        raise StorageError(
            f"the blob {sha256[:12]}… is not {size:,} bytes long", "`raddle doctor` looks at it"
        )
