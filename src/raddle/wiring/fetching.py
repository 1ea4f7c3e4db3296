"""Source bytes that are not here, fetched from the server when somebody asks for what is made of them, and kept.

What was fetched is noted in the ledger like what an import kept, so that the doctor and every purge know of it. The
other devices' lists are strangers' words: each blob is checked against its name and its size before it is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from raddle.actions.importing.run_plan import Segment
from raddle.actions.sync.ports import Remote
from raddle.model.errors import Forbidden, NotFound, NotSignedIn, Purged
from raddle.model.protocol.sources import DeviceSources, SourceSegment
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores
from raddle.wiring.import_lock import import_lock
from raddle.wiring.purging import drop_blobs
from raddle.wiring.remote import open_remote, server_of
from raddle.wiring.source_names import fetched_path


class Fetched(Struct, frozen=True, kw_only=True):
    """What came: its bytes, and the server that had them."""

    size: int
    server: str


def fetch_sources(stores: Stores, thread: Thread, agent: str) -> Fetched | None:
    """Fetch what another device gave of an agent's session; None where there is no such thing to be had.

    NetworkError, TooManyRequests where there is a server and it does not answer. A network is asked only where this
    device is signed in and may, and never for a private thread, or one of which bytes are not to be kept here.
    """
    server = server_of(stores, is_needed=False)
    if not server or stores.config.is_offline or thread.is_private or _is_unwanted(stores, thread):
        return None
    try:
        with open_remote(stores) as remote:
            size = fetch_from(stores, remote, thread, agent)
    except (NotSignedIn, NotFound, Forbidden, Purged):
        return None
    return Fetched(size=size, server=server) if size else None


def _is_unwanted(stores: Stores, thread: Thread) -> bool:
    return thread.id in stores.ledger.purged() | stores.ledger.without_bytes()


def fetch_from(stores: Stores, remote: Remote, thread: Thread, agent: str) -> int:
    """Bytes fetched, of the first device that has all of what it tells; the one that tells most is asked first."""
    size = 0
    for device in _ordered(remote.sources(thread.id), agent):
        came = {each.sha256: each.size for each in device.segments if _get(stores, remote, each)}
        size += sum(came.values())
        here = [each for each in device.segments if stores.blobs.stored_size(each.sha256) is not None]
        _keep(stores, thread, device.device, here, came)
        if len(here) == len(device.segments):
            break
    return size


def _ordered(told: tuple[DeviceSources, ...], agent: str) -> Iterator[DeviceSources]:
    mine = (
        DeviceSources(device=each.device, segments=tuple(one for one in each.segments if one.agent == agent))
        for each in told
    )
    yield from sorted(
        (each for each in mine if each.segments),
        key=lambda each: (max(one.end for one in each.segments), each.device),
        reverse=True,
    )


def _get(stores: Stores, remote: Remote, segment: SourceSegment) -> bool:
    """Did the bytes come now? Not where they are here, nor where the server does not have them."""
    if stores.blobs.stored_size(segment.sha256) is not None:
        return False
    writer = stores.blobs.writer()
    try:
        size = 0
        for piece in remote.blob(segment.sha256):
            size += len(piece)
            if size > segment.size:
                return False
            writer.write(piece)
        if size != segment.size or writer.sha256() != segment.sha256:
            return False
        writer.finish()
    except NotFound:
        return False
    finally:
        writer.discard()
    return True


def _keep(
    stores: Stores, thread: Thread, device: str, here: list[SourceSegment], came: dict[str, int]
) -> None:
    """Note them in the ledger, unless the thread was purged while they came: then they go again."""
    with import_lock(stores):
        if _is_unwanted(stores, thread) or not stores.paths.thread_file(thread.id).exists():
            drop_blobs(stores, came)
            return
        kept = [
            (
                fetched_path(device, each.key, each.name),
                Segment(
                    generation=each.generation,
                    start=each.start,
                    end=each.end,
                    sha256=each.sha256,
                    thread_id=thread.id,
                ),
            )
            for each in here
        ]
        stores.ledger.record((), kept)
