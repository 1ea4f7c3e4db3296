"""Whose blobs are whose: who gave the bytes, who may read them, and when nobody names them any more.

A blob is found by its hash, and a hash can be guessed or overheard. So a thread opens a blob to its readers only
where its own space has given the bytes, and who has not is told nothing, not even that the server has them.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from uuid import UUID

from psycopg import Connection

from raddle.model.errors import InvalidInput, NotFound
from raddle.server.accounts.access import reader_values
from raddle.server.accounts.callers import Caller
from raddle.server.tables.queries import queries

SQL = queries("raddle.server.blobs", "blobs.sql")
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


def note_upload(connection: Connection, space: UUID, sha256: str, size: int) -> None:
    """The space gave these bytes, and they are stored."""
    connection.execute(SQL["note_upload"], {"space": space, "sha256": bytes.fromhex(sha256), "size": size})


def size_for(connection: Connection, caller: Caller | None, sha256: str) -> int:
    """How many bytes it is, to who may read it; NotFound to everybody else, and where there is none."""
    values = {**reader_values(caller), "sha256": bytes.fromhex(sha256)}
    found = connection.execute(SQL["size_for"], values).fetchone()
    if found is None:
        raise NotFound("blob", sha256)
    return int(found[0])


def forget_unnamed(connection: Connection, *, older_than_seconds: float) -> tuple[int, list[str]]:
    """Let go of uploads that no thread names; (how many there were, the hashes that no space has any more).

    The rows go before the bytes: bytes without a row are found by a sweep, a row without bytes would be a lie.
    """
    with connection.transaction():
        rows = connection.execute(SQL["unnamed"], {"seconds": older_than_seconds}).fetchall()
        gone = []
        for space, sha256 in rows:
            connection.execute(SQL["forget_upload"], {"space": space, "sha256": sha256})
            if connection.execute(SQL["unused"], {"sha256": sha256}).fetchone() is not None:
                gone.append(bytes(sha256).hex())
        return len(rows), gone
