"""The first person of a new server: a link that whoever started it is given, good once and for a day.

Whoever has it becomes the server's admin. Several may be out (each process prints one); the first use ends all.
"""

from __future__ import annotations

from uuid import UUID

from psycopg import Connection

from raddle.model.errors import Forbidden
from raddle.model.ids import NewId, new_token
from raddle.server.accounts.callers import token_hash
from raddle.server.accounts.users import create_user
from raddle.server.tables.queries import queries

LINK_SECONDS = 24 * 3600

SQL = queries("raddle.server.accounts", "setup.sql")


def new_link(connection: Connection) -> str | None:
    """The token of a new link (`/setup?token=…`), said once; None where there is somebody already."""
    token = new_token()
    values = {"hash": token_hash(token), "seconds": LINK_SECONDS}
    found = connection.execute(SQL["put_link"], values).fetchone()
    return None if found is None else token


def is_link_open(connection: Connection, token: str) -> bool:
    """May the first person still be made by this link?"""
    return connection.execute(SQL["is_open"], {"hash": token_hash(token)}).fetchone() is not None


def require_open_link(connection: Connection, token: str) -> None:
    """Forbidden where the first person may not be made by this link (any more)."""
    if not is_link_open(connection, token):
        raise Forbidden(
            "this set-up link was used, or is older than a day",
            "start the server anew for a fresh one, if nobody has an account on it yet",
        )


def use_link(connection: Connection, token: str, name: str, password: str, *, new_id: NewId) -> UUID:
    """Make the first person, an admin. Forbidden where the link is not good (any more); InvalidInput leaves it good."""
    require_open_link(connection, token)  # before the lock, which a stranger is not to take
    with connection.transaction():
        connection.execute(SQL["lock"])
        require_open_link(connection, token)
        user = create_user(connection, name, password, new_id=new_id, is_admin=True)
        connection.execute(SQL["end_all"])
    return user
