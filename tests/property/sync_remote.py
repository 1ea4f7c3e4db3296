"""A hub in memory as sync asks it: `tests.fakes.hub`, a feed, blobs, and a line that can be cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from raddle.model.errors import ConflictError, InvalidInput, NetworkError, NotFound
from raddle.model.protocol.hub import Answer, Change, Changes, Pushed
from raddle.model.protocol.sources import DeviceSources, SourceSegment
from raddle.model.threads.delta import Delta
from raddle.model.threads.thread import Thread
from tests.fakes.device import over_the_wire
from tests.fakes.hub import Holding, Hub


class HubInMemory:
    """All threads of one hub, with the feed of them."""

    def __init__(self) -> None:
        self.hub = Hub()
        self.accepted = 0
        self.is_down = False
        self._feed: dict[str, int] = {}
        self._number = 0
        self._backup: tuple[Mapping[str, Holding], dict[str, int]] | None = None
        self._blobs: dict[str, bytes] = {}
        self.source_lists: dict[str, dict[str, tuple[SourceSegment, ...]]] = {}

    def _ask(self) -> None:
        if self.is_down:
            raise NetworkError("the server does not answer", "try again")

    def push(self, thread_id: str, delta: Delta, hub_epoch: str) -> Pushed:
        self._ask()
        pushed = self.hub.push(thread_id, over_the_wire(delta), hub_epoch)
        if pushed.is_accepted:
            self.accepted += 1
            self._number += 1
            self._feed[thread_id] = self._number
            if self.hub.holding(thread_id).thread.is_private:
                self.source_lists.pop(thread_id, None)
        return pushed

    def since(self, thread_id: str, version: int, hub_epoch: str) -> Answer:
        self._ask()
        return self.hub.since(thread_id, version, hub_epoch)

    def changes(self, cursor: str) -> Changes:
        self._ask()
        epoch, _, last = cursor.partition(" ")
        seen = int(last) if epoch == self.hub.epoch else 0
        rest = sorted((number, name) for name, number in self._feed.items() if number > seen)
        changes = [
            Change(
                thread_id=name,
                version=self.hub.holding(name).version,
                is_deleted=self.hub.holding(name).thread.is_deleted,
            )
            for _, name in rest
        ]
        end = max(self._feed.values(), default=0)
        return Changes(changes=tuple(changes), cursor=f"{self.hub.epoch} {end}", hub_epoch=self.hub.epoch)

    def has_blob(self, sha256: str) -> bool:
        self._ask()
        return sha256 in self._blobs

    def put_blob(self, sha256: str, pieces: Iterable[bytes], size: int) -> None:
        self._ask()
        self._blobs[sha256] = b"".join(pieces)

    def blob(self, sha256: str) -> Iterator[bytes]:
        self._ask()
        if sha256 not in self._blobs:
            raise NotFound("blob", sha256)
        yield self._blobs[sha256]

    def put_sources(
        self, thread_id: str, device: str, segments: Sequence[SourceSegment], version: int
    ) -> tuple[str, ...]:
        self._ask()
        holding = self.hub.holding(thread_id)
        if holding.thread.is_private:
            raise InvalidInput("it is private")
        if holding.version != version:
            raise ConflictError("it is newer")
        self.source_lists.setdefault(thread_id, {})[device] = tuple(segments)
        self.accepted += 1
        return ()

    def sources(self, thread_id: str) -> tuple[DeviceSources, ...]:
        self._ask()
        lists = self.source_lists.get(thread_id, {})
        return tuple(DeviceSources(device=device, segments=segments) for device, segments in lists.items())

    def threads(self) -> list[Thread]:
        """What it holds."""
        return [self.hub.holding(name).thread for name in self._feed]

    @property
    def has_backup(self) -> bool:
        return self._backup is not None

    def keep_backup(self) -> None:
        self._backup = self.hub.backup(), dict(self._feed)

    def go_back(self) -> None:
        if self._backup is not None:
            held, self._feed = self._backup[0], dict(self._backup[1])
            self.source_lists = {}
            self.hub.restore(held)
