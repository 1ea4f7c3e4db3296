"""What each device keeps of the agents' own files of a thread: lists of blobs, the owner's alone.

The blobs that these lists name stand as the thread's sources beside its attachments: a blob that no list names any
more is let go, and a list that its thread does not have any more would name blobs that nobody may read.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from psycopg import Connection

from raddle.model.errors import BrokenFormat, ConflictError, InvalidInput, NotFound, Purged
from raddle.model.protocol.sources import DeviceSources, SourceSegment
from raddle.server import rows
from raddle.server.tables.queries import queries
from raddle.server.threads.holding import Key

SQL = queries("raddle.server.threads", "sources.sql")


def put_sources(
    connection: Connection, key: Key, device: str, segments: Sequence[SourceSegment], version: int
) -> list[str]:
    """Replace what a device keeps of a thread, which is at `version`; the blobs of it that the space has not given.

    A list that is there already writes nothing. ConflictError where the thread is at another version: what the device
    knows of it may not be true any more. InvalidInput for a private thread; NotFound, Purged.
    """
    where = {"space": key.space, "thread": key.thread}
    body = msgspec.json.encode(segments)
    with connection.transaction():
        _expect_open(connection, key, version)
        lists = _bodies(connection, key)
        if lists.get(device, b"[]") != body:
            if segments:
                values = {**where, "device": device, "body": rows.packed(body)}
                connection.execute(SQL["put_list"], values)
            else:
                connection.execute(SQL["drop_list"], {**where, "device": device})
            hashes = _hashes_in({**lists, device: body})
            connection.execute(SQL["forget_blobs"], {**where, "hashes": hashes})
            connection.execute(SQL["name_blobs"], {**where, "hashes": hashes})
        named = {"space": key.space, "hashes": _hashes_in({device: body})}
        return [bytes(sha256).hex() for (sha256,) in connection.execute(SQL["missing"], named)]


def sources(connection: Connection, key: Key) -> list[DeviceSources]:
    """Every device's list."""
    return [
        DeviceSources(device=device, segments=_segments(body))
        for device, body in _bodies(connection, key).items()
    ]


def drop_sources(connection: Connection, key: Key) -> None:
    """Let go of every device's list: words of it were erased, and the agents' own files hold them too."""
    where = {"space": key.space, "thread": key.thread}
    connection.execute(SQL["drop_lists"], where)
    connection.execute(SQL["forget_blobs"], {**where, "hashes": []})


def _expect_open(connection: Connection, key: Key, version: int) -> None:
    """Hold the thread's row, so that no push erases the thread while its sources are written."""
    found = connection.execute(SQL["hold"], {"space": key.space, "thread": key.thread}).fetchone()
    if found is None:
        raise NotFound("thread", key.thread)
    held, is_private, is_purged = found
    if is_purged:
        raise Purged(f"thread {key.thread} was erased for good", "a copy on a device of yours is still yours")
    if is_private:
        raise InvalidInput("the thread is private", "what is private does not leave its machine")
    if held != version:
        raise ConflictError(
            f"version: the thread is at {held}, not at {version}", "bring it into step, then send them again"
        )


def _bodies(connection: Connection, key: Key) -> dict[str, bytes]:
    found = connection.execute(SQL["lists"], {"space": key.space, "thread": key.thread})
    return {device: rows.unpacked(bytes(body)) for device, body in found}


def _hashes_in(bodies: dict[str, bytes]) -> list[bytes]:
    names = {segment.sha256 for body in bodies.values() for segment in _segments(body)}
    return [bytes.fromhex(sha256) for sha256 in sorted(names)]


def _segments(body: bytes) -> tuple[SourceSegment, ...]:
    try:
        return msgspec.json.decode(body, type=tuple[SourceSegment, ...])
    except msgspec.ValidationError as error:
        raise BrokenFormat(f"a row of the database is damaged: {error}") from error
