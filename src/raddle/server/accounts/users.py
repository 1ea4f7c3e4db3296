"""People: who there is, the personal space each begins with, and the password they come in by.

Everybody has exactly one personal space, made in the statement that makes them: a second way to make a person
could leave one whose threads have nowhere to lie.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.errors import UniqueViolation

from raddle.model.errors import ConflictError, InvalidInput, NotFound
from raddle.model.ids import NewId
from raddle.server.accounts.names import parse_user_name
from raddle.server.accounts.passwords import hash_password, is_outdated, is_password
from raddle.server.accounts.sessions import end_all_sessions
from raddle.server.tables.queries import queries

SQL = queries("raddle.server.accounts", "users.sql")


def create_user(
    connection: Connection, name: str, password: str | None, *, new_id: NewId, is_admin: bool = False
) -> UUID:
    """A new person with a space of their own; without a `password` they cannot sign in by one.

    InvalidInput where name or password may not be one, ConflictError where the name is taken.
    """
    called = parse_user_name(name)
    password_hash = None if password is None else hash_password(password)
    user, space = UUID(new_id()), UUID(new_id())
    values = {
        "user": user,
        "space": space,
        "name": called,
        "password_hash": password_hash,
        "is_admin": is_admin,
    }
    try:
        connection.execute(SQL["create"], values)
    except UniqueViolation as error:
        raise ConflictError(f"there is somebody called {called!r} already", "take another name") from error
    return user


class Account(NamedTuple):
    """A person as an operator sees them. `threads`: how many there are in the space of their own."""

    id: UUID
    name: str
    is_admin: bool
    has_password: bool
    is_disabled: bool
    created_at: datetime
    threads: int


def list_users(connection: Connection) -> list[Account]:
    """Everybody, by name; those who were disabled among them."""
    return [Account(*found) for found in connection.execute(SQL["all"])]


def count_users(connection: Connection) -> int:
    """How many people there are, those who were disabled among them."""
    found = connection.execute(SQL["count"]).fetchone()
    return 0 if found is None else int(found[0])


def find_user(connection: Connection, name: str) -> UUID | None:
    """Who is called so; None where nobody is, or nobody could be."""
    try:
        called = parse_user_name(name)
    except InvalidInput:
        return None
    found = connection.execute(SQL["by_name"], {"name": called}).fetchone()
    return None if found is None else UUID(str(found[0]))


def check_password(connection: Connection, name: str, password: str) -> UUID | None:
    """Who signs in by this name and password; None where they do not fit, and None after as long for an unknown name.

    TooManyRequests where too many are being checked.
    """
    user, stored, is_disabled = _password_of(connection, name)
    if not is_password(stored, password) or user is None or is_disabled:
        return None
    if stored is not None and is_outdated(stored):
        connection.execute(SQL["set_password"], {"user": user, "password_hash": hash_password(password)})
    return user


def _password_of(connection: Connection, name: str) -> tuple[UUID | None, str | None, bool]:
    try:
        called = parse_user_name(name)
    except InvalidInput:
        # Asked for all the same: a name that cannot be is answered no sooner than one that is not.
        called = ""
    found = connection.execute(SQL["password"], {"name": called}).fetchone()
    return (None, None, False) if found is None else (found[0], found[1], found[2])


def set_password(connection: Connection, user: UUID, password: str) -> None:
    """Another password; whoever was signed in by a browser has to do so again. NotFound, InvalidInput."""
    password_hash = hash_password(password)
    with connection.transaction():
        _require(
            connection.execute(
                SQL["set_password"], {"user": user, "password_hash": password_hash}
            ).fetchone(),
            user,
        )
        end_all_sessions(connection, user)


def disable_user(connection: Connection, user: UUID) -> None:
    """Let nobody in as this person any more, by whatever means, from now on; NotFound where there is none."""
    with connection.transaction():
        _require(connection.execute(SQL["disable"], {"user": user}).fetchone(), user)
        end_all_sessions(connection, user)


def enable_user(connection: Connection, user: UUID) -> None:
    """Let them in again, by password and by the devices that they did not revoke; NotFound where there is none."""
    _require(connection.execute(SQL["enable"], {"user": user}).fetchone(), user)


def _require(found: object, user: UUID) -> None:
    if found is None:
        raise NotFound("user", str(user))
