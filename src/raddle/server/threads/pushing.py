"""A push: compare and set, join, erase where it withdraws; one transaction, or nothing (`merge.md`, rules 10 to 13)."""

from __future__ import annotations

import hashlib
from uuid import UUID

from psycopg import Connection

from raddle.model.errors import InvalidInput
from raddle.model.protocol.hub import PUT, Answer, Pushed
from raddle.model.threads.delta import Delta, delta_to_json
from raddle.server.threads.answering import find_state, since
from raddle.server.threads.blob_refs import note_blobs
from raddle.server.threads.checking import check_delta
from raddle.server.threads.holding import SQL, Held, Holding, Joined, Key, MessageIndex
from raddle.server.threads.sources import drop_sources

_PRIVATE = "is_private"


class _StaysPrivate(Exception):
    """Something was pushed to a private thread that does not open it again."""


def push(
    connection: Connection,
    key: Key,
    owner: UUID,
    delta: Delta,
    hub_epoch: str,
    *,
    index: MessageIndex,
    epoch: str,
) -> Pushed:
    """Take `delta` of the thread's owner where it was made on the newest version; else say what its maker lacks.

    `hub_epoch`: of the hub that the maker's base is of; `epoch`: this hub's own. InvalidInput for what cannot be
    stored, or for a withdrawal that says more than that; Purged where the thread was erased for good.
    """
    check_delta(delta)
    digest = hashlib.sha256(delta_to_json(delta)).digest()
    try:
        with connection.transaction():
            held = _take(connection, key, owner, delta, digest, is_of_this_hub=hub_epoch == epoch)
            if held is not None:
                _store(Holding(connection, key, held), connection, delta, index)
                return Pushed(version=held.version, hub_epoch=epoch)
    except _StaysPrivate:
        answer = since(connection, key, 0, epoch, epoch=epoch)
        return Pushed(version=answer.delta.version, hub_epoch=epoch, answer=answer)
    return _refusal(connection, key, delta, hub_epoch, digest=digest, epoch=epoch)


def _take(
    connection: Connection, key: Key, owner: UUID, delta: Delta, digest: bytes, *, is_of_this_hub: bool
) -> Held | None:
    """The compare-and-set: of any number that race for a version, one statement takes it, and the others nothing."""
    values = {
        "space": key.space,
        "thread": key.thread,
        "owner": owner,
        "base": delta.base_version,
        "version": delta.version,
        "digest": digest,
    }
    if delta.base_version and not is_of_this_hub:
        return None
    name = "take_version" if delta.base_version else "create_thread"
    found = connection.execute(SQL[name], values).fetchone()
    return None if found is None else Held(*found)


def _store(holding: Holding, connection: Connection, delta: Delta, index: MessageIndex) -> None:
    joined = holding.join(delta)
    if holding.thread.is_private:
        if delta.messages or set(delta.registers) - {_PRIVATE}:
            if holding.held.is_private:
                raise _StaysPrivate
            raise InvalidInput(
                "the thread is made private by a push that holds more than that",
                "send the register is_private alone: what is private does not leave its machine",
            )
        if joined.registers:
            holding.erase(_PRIVATE)
            index.erase(connection, holding.held.number)
            joined = Joined([], [], joined.registers, {})
    summary = holding.note(joined)
    if not holding.thread.is_private:
        note_blobs(connection, holding.key, joined.messages)
        if any(message.is_purged for message in joined.messages):
            drop_sources(connection, holding.key)
        index.put(connection, holding.held.number, summary, joined.messages)
    holding.tell(PUT)


def _refusal(
    connection: Connection, key: Key, delta: Delta, hub_epoch: str, *, digest: bytes, epoch: str
) -> Pushed:
    """The 409; or, where the very same push was taken before and its answer got lost, that answer."""
    state = find_state(connection, key)
    if state is not None and state.pushed_digest == digest and hub_epoch in {epoch, ""}:
        return Pushed(version=state.version, hub_epoch=epoch)
    answer: Answer = since(connection, key, delta.base_version, hub_epoch, epoch=epoch)
    return Pushed(
        version=answer.delta.version if state is None else state.version, hub_epoch=epoch, answer=answer
    )
