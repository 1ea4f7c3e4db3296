"""One thread and one hub brought into step: pull, merge, push, each step safe to repeat (`merge.md`, rules 10 to 13).

The order of the writes is what makes a crash harmless: what a hub says is joined into the thread before the base
moves, and the base moves only by what was sent or answered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import msgspec

from raddle.actions.ports import BlobStore, ThreadStore
from raddle.actions.sync.ports import Bases, Known, Mark, Remote, SourceShelf, ThreadMarks
from raddle.model.errors import ConflictError, NotFound
from raddle.model.protocol.hub import Answer
from raddle.model.protocol.wire import MOST_DELTA_BYTES
from raddle.model.threads.base import digest_of, pending, withdraws
from raddle.model.threads.delta import Delta, delta_to_json
from raddle.model.threads.message import Message
from raddle.model.threads.message_codec import encode_message

TRIES = 5
_PRIVATE = "is_private"
_SMALL_BYTES = 1 << 14
"""So few are sent sooner than asked for."""


class Place(NamedTuple):
    """What a sync of one data folder with one hub works on."""

    threads: ThreadStore
    marks: ThreadMarks
    bases: Bases
    remote: Remote
    blobs: BlobStore
    sources: SourceShelf


class Pending(NamedTuple):
    """What the hub lacks of a thread. `mark`: the state of its files in which that is all."""

    delta: Delta
    hub_epoch: str
    mark: Mark | None
    is_private: bool


def pull(place: Place, thread_id: str) -> bool:
    """Take in what the hub has since the base; was anything new here?"""
    known = place.bases.known(thread_id) or Known(0, "")
    return _pull_from(place, thread_id, known.version, known.hub_epoch)


def pull_anew(place: Place, thread_id: str) -> bool:
    """Take in all that the hub has, whatever the base says: the thread's files are gone here. Was anything new?"""
    return _pull_from(place, thread_id, 0, "")


def _pull_from(place: Place, thread_id: str, version: int, epoch: str) -> bool:
    has_news = False
    while True:
        answer = place.remote.since(thread_id, version, epoch)
        has_news = take_in(place, thread_id, answer) or has_news
        if not answer.has_more or answer.delta.version <= version:
            return has_news
        version, epoch = answer.delta.version, answer.hub_epoch


def take_in(place: Place, thread_id: str, answer: Answer) -> bool:
    """Join an answer of the hub, however old, and move the base as far as it tells; was anything new here?"""
    delta = answer.delta
    has_news = place.threads.join(thread_id, delta) if delta.version else False
    known = place.bases.known(thread_id) or Known(0, "")
    if delta.base_version == 0:
        place.bases.replace(thread_id, delta, answer.hub_epoch)
    elif answer.hub_epoch == known.hub_epoch and delta.base_version <= known.version <= delta.version:
        place.bases.add(thread_id, delta, delta.version, answer.hub_epoch)
    return has_news


def push(place: Place, thread_id: str) -> int:
    """Send what the hub lacks, taking in what it has meanwhile; the number of accepted pushes.

    ConflictError where others were faster TRIES times: it stays pending.
    """
    count = 0
    for _ in range(TRIES):
        found = pending_of(place, thread_id)
        if found.delta.is_empty:
            _settle(place, thread_id, found)
            return count
        sent = _send(place, thread_id, found)
        count += sent.accepted
        if sent.is_all:
            _settle(place, thread_id, found)
            return count
    raise ConflictError(
        f"{thread_id} was changed elsewhere at every try", "it is tried again with the next sync"
    )


def _settle(place: Place, thread_id: str, found: Pending) -> None:
    known = place.bases.known(thread_id)
    if found.is_private != (known is not None and known.is_private):
        # Bytes of it may be another thread's sources too: what that one may send is to be looked at again.
        for other in frozenset().union(*place.sources.sharing(thread_id).values()):
            place.bases.note_sources(other, "")
    if known is not None or found.is_private:
        place.bases.settle(thread_id, found.mark, is_private=found.is_private)


def pending_of(place: Place, thread_id: str) -> Pending:
    """What the hub lacks: read from the end of the journal alone where that says all, else from the whole thread."""
    known = place.bases.known(thread_id)
    if known is not None and known.mark is not None and not known.is_private:
        tail = place.marks.tail(thread_id, known.mark)
        if tail is not None and _PRIVATE not in tail.delta.registers:
            delta = _lacking(place, thread_id, known, tail.delta)
            return Pending(delta, known.hub_epoch, tail.mark, is_private=False)
    mark = place.marks.mark(thread_id)  # before the thread: what comes in between is then after the mark
    try:
        thread = place.threads.load(thread_id)
    except NotFound:
        return Pending(Delta(), "", None, is_private=False)
    base = place.bases.base(thread_id)
    return Pending(pending(thread, base), base.hub_epoch, mark, thread.is_private)


def _lacking(place: Place, thread_id: str, known: Known, tail: Delta) -> Delta:
    """Of what was written since the mark, what did not come from the hub."""
    messages, registers = place.bases.digests(thread_id, tail)
    return Delta(
        base_version=known.version,
        version=tail.version,
        messages=tuple(
            message for message in tail.messages if messages.get(message.id) != digest_of(message)
        ),
        registers={
            path: register
            for path, register in tail.registers.items()
            if registers.get(path) != digest_of(register)
        },
    )


class _Sent(NamedTuple):
    accepted: int
    is_all: bool


def _send(place: Place, thread_id: str, found: Pending) -> _Sent:
    """Push the pieces of what is pending until one is refused; then what the hub had is taken in."""
    if not found.is_private:
        send_blobs(place, found.delta)
    accepted, epoch = 0, found.hub_epoch
    for piece in pieces(found.delta):
        pushed = place.remote.push(thread_id, piece, epoch)
        if pushed.answer is not None:
            take_in(place, thread_id, pushed.answer)
            if pushed.answer.has_more:
                pull(place, thread_id)
            return _Sent(accepted, is_all=False)
        epoch = pushed.hub_epoch
        accepted += 1
        if withdraws(piece):
            held = Delta(version=pushed.version, registers=piece.registers)
            place.bases.replace(thread_id, held, epoch)
        else:
            place.bases.add(thread_id, piece, pushed.version, epoch)
        if pushed.version > found.delta.version:
            place.threads.join(thread_id, Delta(version=pushed.version))
    return _Sent(accepted, is_all=True)


def pieces(delta: Delta, most_bytes: int = MOST_DELTA_BYTES) -> Iterator[Delta]:
    """`delta` as pushes of at most `most_bytes`, parents before children, each on the version that the one before
    makes; the last one bears the thread's own version. A message that is larger goes alone."""
    batches: list[list[Message]] = [[]]
    size = len(delta_to_json(Delta(registers=delta.registers)))
    for message in delta.messages:
        length = len(msgspec.json.encode(encode_message(message)))
        if batches[-1] and size + length > most_bytes:
            batches.append([])
            size = 0
        batches[-1].append(message)
        size += length
    base = delta.base_version
    for number, batch in enumerate(batches, 1):
        version = base + 1 if number < len(batches) else delta.version
        yield Delta(
            base_version=base,
            version=version,
            messages=tuple(batch),
            registers=delta.registers if number == 1 else {},
        )
        base = max(base + 1, version)


def send_blobs(place: Place, delta: Delta) -> None:
    """Give the hub the attachments of these messages that it is not known to have, before they are named there."""
    give_blobs(place, {attachment.sha256 for message in delta.messages for attachment in message.attachments})


def give_blobs(place: Place, names: Collection[str]) -> None:
    """Give the hub those of these blobs that it is not known to have."""
    for sha256 in sorted(set(names) - place.bases.sent_blobs(names)):
        size = place.blobs.size(sha256)
        if size is None:
            continue  # it is not here either: the device that has it gives it
        if size <= _SMALL_BYTES or not place.remote.has_blob(sha256):
            place.remote.put_blob(sha256, place.blobs.chunks(sha256), size)
        place.bases.note_blob(sha256)
