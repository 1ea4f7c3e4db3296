"""Hubs in memory as the port `Remote` has them: `tests.fakes.hub.Hub` with a feed and blobs, one for each person."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence

from raddle.model.errors import ConflictError, InvalidInput, NotFound, Purged
from raddle.model.protocol.hub import GONE, PUT, Answer, Change, Changes, Pushed
from raddle.model.protocol.sources import DeviceSources, SourceSegment
from raddle.model.threads.delta import Delta
from raddle.model.threads.thread import Thread
from tests.fakes.hub import Hub


class MemoryRemote:
    """The hub of one person; many devices may share it. `page`: lines of the feed in one answer."""

    def __init__(self, name: str = "hub", *, page: int = 500) -> None:
        self.hub = Hub(name)
        self.page = page
        self.blobs: dict[str, bytes] = {}
        self.source_lists: dict[str, dict[str, tuple[SourceSegment, ...]]] = {}
        """Thread -> device -> what it keeps."""
        self.purged: set[str] = set()
        self._feed: dict[str, int] = {}
        """Thread -> the number of its newest line; the last number given is the greatest."""

    def push(self, thread_id: str, delta: Delta, hub_epoch: str) -> Pushed:
        """Offer a delta."""
        self._expect_not_purged(thread_id)
        if delta.registers.keys() - {"is_private"} or delta.messages:
            self._expect_open(thread_id, delta)
        pushed = self.hub.push(thread_id, delta, hub_epoch)
        if pushed.is_accepted:
            self._tell(thread_id)
            is_private = self.hub.holding(thread_id).thread.is_private
            if is_private or any(message.is_purged for message in delta.messages):
                self.source_lists.pop(thread_id, None)
        return pushed

    def _tell(self, thread_id: str) -> None:
        self._feed[thread_id] = max(self._feed.values(), default=0) + 1

    def _expect_not_purged(self, thread_id: str) -> None:
        if thread_id in self.purged:
            raise Purged("it was erased for good")

    def _expect_open(self, thread_id: str, delta: Delta) -> None:
        """A withdrawal says nothing else."""
        after = self.hub.holding(thread_id).thread.copy()
        after.join(delta)
        if after.is_private and not self.hub.holding(thread_id).thread.is_private:
            raise InvalidInput("the thread is made private by a push that holds more than that")

    def since(self, thread_id: str, version: int, hub_epoch: str) -> Answer:
        """What changed in a thread."""
        self._expect_not_purged(thread_id)
        return self.hub.since(thread_id, version, hub_epoch)

    def changes(self, cursor: str) -> Changes:
        """A page of the feed."""
        epoch, after = json.loads(base64.b64decode(cursor)) if cursor else ("", 0)
        after = after if epoch == self.hub.epoch else 0
        lines = sorted((number, name) for name, number in self._feed.items() if number > after)
        shown = lines[: self.page]
        end = shown[-1][0] if shown else after
        return Changes(
            changes=tuple(self._change(name) for _, name in shown),
            cursor=base64.b64encode(json.dumps([self.hub.epoch, end]).encode()).decode(),
            hub_epoch=self.hub.epoch,
            has_more=len(lines) > len(shown),
        )

    def _change(self, thread_id: str) -> Change:
        holding = self.hub.holding(thread_id)
        return Change(
            thread_id=thread_id,
            version=holding.version,
            kind=GONE if thread_id in self.purged else PUT,
            space=self.hub.name,
            is_deleted=holding.thread.is_deleted,
        )

    def has_blob(self, sha256: str) -> bool:
        """Are these bytes here?"""
        return sha256 in self.blobs

    def put_blob(self, sha256: str, pieces: Iterable[bytes], size: int) -> None:
        """Take the bytes."""
        data = b"".join(pieces)
        if hashlib.sha256(data).hexdigest() != sha256 or len(data) != size:
            raise InvalidInput("the bytes are others than the hash says")
        self.blobs[sha256] = data

    def blob(self, sha256: str) -> Iterator[bytes]:
        """The bytes."""
        if sha256 not in self.blobs:
            raise NotFound("blob", sha256)
        yield self.blobs[sha256]

    def put_sources(
        self, thread_id: str, device: str, segments: Sequence[SourceSegment], version: int
    ) -> tuple[str, ...]:
        """Replace a device's list."""
        self._expect_there(thread_id)
        holding = self.hub.holding(thread_id)
        if holding.thread.is_private:
            raise InvalidInput("the thread is private")
        if holding.version != version:
            raise ConflictError("the thread is at another version")
        lists = self.source_lists.setdefault(thread_id, {})
        lists[device] = tuple(segments)
        if not segments:
            del lists[device]
        return tuple(sorted({segment.sha256 for segment in segments} - self.blobs.keys()))

    def sources(self, thread_id: str) -> tuple[DeviceSources, ...]:
        """Every device's list."""
        self._expect_there(thread_id)
        lists = sorted(self.source_lists.get(thread_id, {}).items())
        return tuple(DeviceSources(device=device, segments=segments) for device, segments in lists)

    def _expect_there(self, thread_id: str) -> None:
        self._expect_not_purged(thread_id)
        if not self.hub.holding(thread_id).version:
            raise NotFound("thread", thread_id)

    def purge(self, thread_id: str) -> None:
        """Erase a thread for good."""
        self._expect_there(thread_id)
        holding = self.hub.holding(thread_id)
        holding.thread, holding.changed = Thread(thread_id), {}
        holding.version += 1
        self.purged.add(thread_id)
        self.source_lists.pop(thread_id, None)
        self._tell(thread_id)

    def begin_epoch(self) -> None:
        """As after a restore from a backup that lacked nothing."""
        self.hub.restore(self.hub.backup())
