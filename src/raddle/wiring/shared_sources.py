"""What this device keeps of the agents' own files, in the words in which other machines may hear of it.

What came from another device is left out: that one tells it. Nothing here says whether bytes may leave; that is asked
of the threads (`actions.sync.sources`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from raddle.actions.importing.run_plan import Segment
from raddle.adapters.device import this_device
from raddle.model.protocol.sources import SourceSegment
from raddle.wiring import Stores
from raddle.wiring.kept_sources import HEAD_BYTES, placed
from raddle.wiring.source_names import home_of, is_fetched, key_and_name
from raddle.wiring.source_segments import bytes_of, generations_in

_WORD = (1 << 128) - 1


class SharedSources:
    """The `SourceShelf` of a data folder."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self.device = this_device(stores.paths).id

    def digests(self) -> dict[str, str]:
        """Thread -> a digest of its segments, which does not depend on the order in which they are told."""
        sums: dict[str, int] = {}
        for thread_id, *row in self._stores.ledger.all_segments():
            if not is_fetched(str(row[0])):
                text = "\0".join((self.device, *map(str, row)))
                digest = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).digest()
                sums[thread_id] = (sums.get(thread_id, 0) + int.from_bytes(digest, "big")) & _WORD
        return {thread_id: f"{total:032x}" for thread_id, total in sums.items()}

    def segments(self, thread_id: str) -> Sequence[SourceSegment]:
        """What is kept of a thread's sources, and is here."""
        kept = [
            (path, segment)
            for path, segment in self._stores.ledger.segments_of(thread_id)
            if not is_fetched(path) and self._stores.blobs.stored_size(segment.sha256) is not None
        ]
        files = {path: known for path in dict(kept) if (known := self._agent_of(path, kept)) is not None}
        mains = [path for path, (_, is_main) in files.items() if is_main]
        found = []
        for path, segment in kept:
            if path in files:
                agent = files[path][0]
                home = home_of(path, mains, mains[-1]) if mains else path
                key, name = key_and_name(self.device, agent, path, home)
                found.append(_told(segment, key, name, agent))
        return found

    def _agent_of(self, path: str, kept: list[tuple[str, Segment]]) -> tuple[str, bool] | None:
        """(Whose file it is, is it a session's main one); None for one that nobody knows any more."""
        entry = self._stores.ledger.entry_of(path)
        if entry is not None:
            return entry.agent, entry.is_main
        generation = next(iter(generations_in(kept)[path].values()))
        head = next(bytes_of(self._stores.blobs, generation), b"")[:HEAD_BYTES]
        place = placed(Path(path), head)
        return None if place is None else (place[0], place[2])

    def sharing(self, thread_id: str) -> Mapping[str, frozenset[str]]:
        """Blob of the thread's sources -> the other threads that have it among theirs."""
        return self._stores.ledger.sharing(thread_id)


def _told(segment: Segment, key: str, name: str, agent: str) -> SourceSegment:
    return SourceSegment(
        key=key,
        name=name,
        agent=agent,
        sha256=segment.sha256,
        generation=segment.generation,
        start=segment.start,
        end=segment.end,
        size=segment.end - segment.start,
    )
