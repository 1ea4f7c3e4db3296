"""The caller of a request: found by a token or a cookie, of which this server keeps the SHA-256 alone.

Asked of the database each time and never remembered, so that what was revoked is so at once in every process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from psycopg import Connection

from raddle.model.protocol.signing_in import SCOPES
from raddle.server.tables.queries import queries

SQL = queries("raddle.server.accounts", "callers.sql")


class Caller(NamedTuple):
    """A person who is signed in, and by what. `spaces`: their own first, then those they are members of."""

    user: UUID
    name: str
    space: UUID
    """Their personal space."""
    spaces: tuple[UUID, ...]
    device: UUID | None
    """None: a web session."""
    scopes: frozenset[str]
    is_admin: bool = False
    is_support: bool = False
    session: bytes | None = None
    """Of a web session: the hash of its cookie."""


def token_hash(token: str) -> bytes:
    """What is kept of a token: it has 256 random bits, so that one round is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def caller_of_session(connection: Connection, cookie: str, *, lasts_seconds: int) -> Caller | None:
    """Who is signed in by that cookie, for `lasts_seconds` more now; None where nobody is (any more)."""
    values = {"hash": token_hash(cookie), "seconds": lasts_seconds}
    found = connection.execute(SQL["by_session"], values).fetchone()
    if found is None:
        return None
    user, name, space, spaces, is_admin, is_support, is_stale = found
    if is_stale:
        connection.execute(SQL["prolong_session"], values)
    return Caller(
        user=user,
        name=name,
        space=space,
        spaces=_own_first(space, spaces),
        device=None,
        scopes=frozenset(SCOPES),
        is_admin=is_admin,
        is_support=is_support,
        session=token_hash(cookie),
    )


def _own_first(own: UUID, spaces: Iterable[UUID]) -> tuple[UUID, ...]:
    return (own, *(other for other in spaces if other != own))


def caller_of_token(connection: Connection, token: str) -> Caller | None:
    """Who the token stands for; None where it was revoked, never was, or its person may not come in any more."""
    found = connection.execute(SQL["by_token"], {"hash": token_hash(token)}).fetchone()
    if found is None:
        return None
    device, user, name, space, spaces, scopes, is_admin, is_support, is_stale = found
    if is_stale:
        connection.execute(SQL["note_use"], {"device": device})
    return Caller(
        user=user,
        name=name,
        space=space,
        spaces=_own_first(space, spaces),
        device=device,
        scopes=frozenset(scopes),
        is_admin=is_admin,
        is_support=is_support,
    )


def is_alive(connection: Connection, caller: Caller) -> bool:
    """May the caller still come in, by the same device or the same session?"""
    values = {"user": caller.user, "device": caller.device, "session": caller.session}
    found = connection.execute(SQL["is_alive"], values).fetchone()
    return found is not None and bool(found[0])
