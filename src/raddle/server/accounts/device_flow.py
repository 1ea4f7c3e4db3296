"""How a device is let in without a password of its own (RFC 8628): it asks, a person says yes, it fetches its token.

Codes are kept as hashes. The statement that makes the token takes the code away, so that of any number of
devices that ask with one code, one is let in.
"""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from psycopg import Connection

from raddle.model.errors import InvalidInput, StorageError
from raddle.model.ids import NewId, new_token
from raddle.model.protocol.signing_in import DENIED, EXPIRED, PENDING, SLOW_DOWN
from raddle.server.accounts.callers import token_hash
from raddle.server.accounts.devices import new_device_token
from raddle.server.tables.queries import queries

EXPIRES_SECONDS, INTERVAL_SECONDS = 900, 5
INVALID_GRANT = "invalid_grant"

SQL = queries("raddle.server.accounts", "device_flow.sql")
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""No vowels, so that no word comes of it, and nothing that is taken for a digit."""
_USER_CODE = re.compile(rf"[{_LETTERS}]{{8}}\Z")
_MOST_TYPED = 40
_TRIES = 5


class Issued(NamedTuple):
    """The two codes of a device that asked: its own, and the one that its person types, as `ABCD-EFGH`."""

    device_code: str
    user_code: str


class Request(NamedTuple):
    """A device that waits for an answer. `address`: where it asked from."""

    name: str
    scopes: tuple[str, ...]
    address: str
    asked_at: datetime


class Minted(NamedTuple):
    """The one token of a code."""

    token: str
    device: UUID
    name: str
    scopes: tuple[str, ...]


class Refused(NamedTuple):
    """No token (now). `error`: in RFC 8628's words. `interval`: seconds to wait between two questions from now on."""

    error: str
    interval: int = 0


def ask(connection: Connection, name: str, scopes: tuple[str, ...], address: str) -> Issued:
    """Begin: `name` and `scopes` as `parse_device_name` and `parse_scopes` gave them."""
    for _ in range(_TRIES):
        issued = Issued(new_token(), _new_user_code())
        values = {
            "device_hash": token_hash(issued.device_code),
            "user_hash": token_hash(issued.user_code),
            "name": name,
            "scopes": list(scopes),
            "address": address,
            "seconds": EXPIRES_SECONDS,
            "interval": INTERVAL_SECONDS,
        }
        if connection.execute(SQL["ask"], values).fetchone() is not None:
            return issued
    raise StorageError("no free code was found for the device", "try again in a moment")


def _new_user_code() -> str:
    number = int.from_bytes(hashlib.sha256(new_token().encode()).digest(), "big")
    letters = []
    for _ in range(8):
        number, place = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[place])
    return "".join(letters[:4]) + "-" + "".join(letters[4:])


def parse_user_code(text: str) -> str:
    """The code that was typed, as `ABCD-EFGH`, whatever stands between its letters; InvalidInput where it is none."""
    letters = re.sub(r"[\W_]", "", text[:_MOST_TYPED]).upper()
    if len(text) > _MOST_TYPED or _USER_CODE.match(letters) is None:
        raise InvalidInput("the code is eight letters, as BCDF-GHJK", "type what the device shows")
    return f"{letters[:4]}-{letters[4:]}"


def find_request(connection: Connection, user_code: str) -> Request | None:
    """The device that waits under that code (as `parse_user_code` gave it); None where none does (any more)."""
    found = connection.execute(SQL["by_user_code"], {"user_hash": token_hash(user_code)}).fetchone()
    if found is None:
        return None
    name, scopes, address, asked_at = found
    return Request(name, tuple(scopes), address, asked_at)


def approve(connection: Connection, user_code: str, user: UUID) -> str | None:
    """Let the device in as `user`; its name, or None where none waits under that code (any more)."""
    return _decide(connection, user_code, user)


def deny(connection: Connection, user_code: str) -> str | None:
    """Do not let the device in; its name, or None where none waits under that code (any more)."""
    return _decide(connection, user_code, None)


def _decide(connection: Connection, user_code: str, approver: UUID | None) -> str | None:
    values = {"user_hash": token_hash(user_code), "approver": approver}
    found = connection.execute(SQL["decide"], values).fetchone()
    return None if found is None else str(found[0])


def poll(connection: Connection, device_code: str, *, new_id: NewId) -> Minted | Refused:
    """Is the device let in? Its token, once; else why there is none."""
    values = {"device_hash": token_hash(device_code), "slower": INTERVAL_SECONDS}
    found = connection.execute(SQL["poll"], values).fetchone()
    if found is None:
        return Refused(INVALID_GRANT)
    is_expired, is_decided, is_approved, is_early, interval = found
    if is_expired:
        return Refused(EXPIRED)
    if not is_decided:
        return Refused(SLOW_DOWN if is_early else PENDING, interval)
    return _mint(connection, values["device_hash"], new_id) if is_approved else Refused(DENIED)


def _mint(connection: Connection, device_hash: object, new_id: NewId) -> Minted | Refused:
    token, device = new_device_token(), UUID(new_id())
    values = {"device_hash": device_hash, "device": device, "token_hash": token_hash(token)}
    found = connection.execute(SQL["mint"], values).fetchone()
    if found is None:
        return Refused(INVALID_GRANT)
    name, scopes = found
    return Minted(token, device, name, tuple(scopes))
