"""Whose blobs are whose: who gave the bytes, who may read them, and when nobody names them any more.

A blob is found by its hash, and a hash can be guessed or overheard. So a thread opens a blob to its readers only
where its own space has given the bytes, and who has not is told nothing, not even that the server has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from uuid import UUID

from psycopg import Connection

from raddle.model.errors import InvalidInput, NotFound
from raddle.server.accounts.access import reader_values
from raddle.server.accounts.callers import Caller
from raddle.server.tables.queries import queries

SQL = queries("raddle.server.blobs", "blobs.sql")
_LOCK = 7_233_538
"""Of the advisory locks of a database, with a blob: who gives it, or lets go of it."""
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


class Unnamed(NamedTuple):
    """A blob of a space that no thread of it names."""

    space: UUID
    sha256: bytes


def parse_sha256(text: str) -> str:
    """`text` itself where it is a SHA-256 in lower-case hex; else InvalidInput."""
    if _SHA256.match(text) is None:
        raise InvalidInput("sha256: it is not 64 hex digits", "it is the SHA-256 of the bytes, in lower case")
    return text


def note_upload(
    connection: Connection, space: UUID, sha256: str, size: int, *, is_kept: bool = False
) -> None:
    """The space gave these bytes, and they are stored. `is_kept`: also where no thread names them, until it lets go."""
    values = {"space": space, "sha256": bytes.fromhex(sha256), "size": size, "is_kept": is_kept}
    connection.execute(SQL["note_upload"], values)


def is_kept(connection: Connection, caller: Caller, sha256: str) -> bool:
    """Did the caller say that these bytes are to be kept, whether a thread names them or not?"""
    found = connection.execute(SQL["is_kept"], _own(caller, sha256)).fetchone()
    return found is not None and bool(found[0])


def keep_no_longer(connection: Connection, caller: Caller, sha256: str) -> None:
    """From now on the bytes are kept for the threads that name them alone; NotFound where the caller gave none."""
    if connection.execute(SQL["keep_no_longer"], _own(caller, sha256)).fetchone() is None:
        raise NotFound("blob", sha256)


def _own(caller: Caller, sha256: str) -> dict[str, object]:
    return {"own": caller.space, "sha256": bytes.fromhex(sha256)}


def size_for(connection: Connection, caller: Caller | None, sha256: str) -> int:
    """How many bytes it is, to who may read it; NotFound to everybody else, and where there is none."""
    values = {**reader_values(caller), "sha256": bytes.fromhex(sha256)}
    found = connection.execute(SQL["size_for"], values).fetchone()
    if found is None:
        raise NotFound("blob", sha256)
    return int(found[0])


@contextmanager
def holding(connection: Connection, sha256: str) -> Iterator[None]:
    """Keep everybody else from giving or letting go of these bytes for the length of the block."""
    values = {"lock": _LOCK, "sha256": sha256}
    connection.execute(SQL["hold"], values)
    try:
        yield
    finally:
        connection.execute(SQL["let_go"], values)


def unnamed(connection: Connection, *, older_than_seconds: float) -> list[Unnamed]:
    """Up to 200 uploads of so long ago that no thread names."""
    rows = connection.execute(SQL["unnamed"], {"seconds": older_than_seconds})
    return [Unnamed(space, bytes(sha256)) for space, sha256 in rows]


def forget(connection: Connection, one: Unnamed, *, older_than_seconds: float) -> bool:
    """Let go of an upload, if still no thread names it; does no space have these bytes any more?

    The caller holds them, and removes the bytes before it lets go: the row goes first, for bytes without a row are
    found by a sweep, and a row without bytes would be a lie.
    """
    values = {"space": one.space, "sha256": one.sha256, "seconds": older_than_seconds}
    with connection.transaction():
        if connection.execute(SQL["forget_upload"], values).fetchone() is None:
            return False
        return connection.execute(SQL["unused"], values).fetchone() is not None
