"""The devices that a person let in: each has a token of its own, which is told once and kept as a hash.

Somebody else's device is not there, as one that never was: an error that told them apart would say what others have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from psycopg import Connection

from raddle.model.errors import InvalidInput, NotFound
from raddle.model.ids import NewId, new_token
from raddle.model.protocol.signing_in import SCOPES, THREADS
from raddle.server.accounts.callers import token_hash
from raddle.server.accounts.names import parse_device_name
from raddle.server.tables.queries import queries

SQL = queries("raddle.server.accounts", "devices.sql")
_PREFIX = "rdl_"
"""By which a scanner for secrets knows a token that somebody committed."""
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


class Device(NamedTuple):
    """A device that is let in."""

    id: UUID
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    last_used_at: datetime | None


def parse_device_id(text: str) -> UUID:
    """The id of a device; NotFound where it cannot be one, as for one that is not there."""
    if _ID.match(text.lower()) is None:
        raise NotFound("device", text[:60])
    return UUID(text)


def new_device_token() -> str:
    """A token that no device has."""
    return _PREFIX + new_token()


def parse_scopes(words: Iterable[str]) -> tuple[str, ...]:
    """The scopes that are asked for, each once, in our order (none: `threads`); InvalidInput where one is unknown."""
    asked = set(words)
    if not asked <= set(SCOPES):
        raise InvalidInput("scope: it is not known here", f"scopes are {', '.join(SCOPES)}")
    return tuple(scope for scope in SCOPES if scope in asked) or (THREADS,)


def mint(connection: Connection, user: UUID, name: str, scopes: Iterable[str], *, new_id: NewId) -> str:
    """Let a device of `user` in; its token. InvalidInput where the name or a scope may not be one."""
    token = new_device_token()
    values = {
        "device": UUID(new_id()),
        "user": user,
        "name": parse_device_name(name),
        "hash": token_hash(token),
        "scopes": list(parse_scopes(scopes)),
    }
    connection.execute(SQL["mint"], values)
    return token


def list_devices(connection: Connection, user: UUID) -> list[Device]:
    """The devices of `user` that are let in, newest first."""
    rows = connection.execute(SQL["list"], {"user": user})
    return [Device(key, name, tuple(scopes), made, used) for key, name, scopes, made, used in rows]


def rename(connection: Connection, user: UUID, device: UUID, name: str) -> None:
    """Call a device of `user` something else; NotFound where it is not theirs, InvalidInput where it is no name."""
    values = {"device": device, "user": user, "name": parse_device_name(name)}
    if connection.execute(SQL["rename"], values).fetchone() is None:
        raise NotFound("device", str(device))


def revoke(connection: Connection, user: UUID, device: UUID) -> str:
    """Let a device of `user` in no more, from now on; its name. NotFound where it is not theirs, or was revoked."""
    found = connection.execute(SQL["revoke"], {"device": device, "user": user}).fetchone()
    if found is None:
        raise NotFound("device", str(device))
    return str(found[0])


def device_name(connection: Connection, device: UUID) -> str | None:
    """What a device is called; None where there is none."""
    found = connection.execute(SQL["name"], {"device": device}).fetchone()
    return None if found is None else str(found[0])
