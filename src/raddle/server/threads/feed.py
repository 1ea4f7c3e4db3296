"""The feed: what changed in the spaces of a reader, in commit order, no gap, nothing missed; and the hub's epoch.

A number of the feed is given by the last statement of a transaction, under the row of its space, so that who
reads up to a number has read all that will ever stand below it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from uuid import UUID

import msgspec
from psycopg import Connection
from psycopg.errors import InsufficientPrivilege, UndefinedFunction

from raddle.model.errors import InvalidInput
from raddle.model.ids import NewId
from raddle.model.protocol.hub import Change, Changes
from raddle.server.threads.holding import SQL

CHANNEL = "raddle_changes"
"""NOTIFY: its payload is the id of the space, and nothing else of anybody."""


def hub_epoch(connection: Connection, new_id: NewId) -> str:
    """This hub's epoch. A new one where the database is new, or is another cluster's (restored from a backup)."""
    with connection.transaction():
        connection.execute(b"LOCK TABLE hub IN SHARE ROW EXCLUSIVE MODE")
        here = _cluster(connection)
        found = connection.execute(SQL["hub_epoch"]).fetchone()
        if found is not None and found[1] == here:
            return str(found[0])
        return _set(connection, new_id(), here)


def begin_epoch(connection: Connection, new_id: NewId) -> str:
    """Start another epoch, for who restored a backup in a way that does not show; the new one."""
    with connection.transaction():
        return _set(connection, new_id(), _cluster(connection))


def _set(connection: Connection, epoch: str, cluster: str) -> str:
    connection.execute(SQL["set_hub"], {"epoch": epoch, "cluster": cluster})
    return epoch


def _cluster(connection: Connection) -> str:
    """What tells this cluster, and this line of its history, from the one that a backup was taken of."""
    try:
        with connection.transaction():
            found = connection.execute(SQL["cluster"]).fetchone()
    except (InsufficientPrivilege, UndefinedFunction):
        return ""  # a hosted database may keep this to itself: then a restore is told by hand
    return "" if found is None else str(found[0])


def changes(
    connection: Connection, spaces: Sequence[UUID], cursor: str, *, limit: int, epoch: str
) -> Changes:
    """The next page after `cursor` (empty: from the start, and so is a cursor of another epoch)."""
    seen = _read_cursor(cursor, epoch)
    found: list[Change] = []
    has_more = False
    for space in spaces:
        left = limit - len(found)
        if left <= 0:
            has_more = True
            break
        values = {"space": space, "after": seen.get(str(space), 0), "limit": left + 1}
        lines = connection.execute(SQL["changes"], values).fetchall()
        has_more = has_more or len(lines) > left
        for thread_id, version, kind, number, is_deleted in lines[:left]:
            change = Change(
                thread_id=thread_id, version=version, kind=kind, space=str(space), is_deleted=is_deleted
            )
            found.append(change)
            seen[str(space)] = number
    return Changes(
        changes=tuple(found), cursor=_write_cursor(seen, epoch), hub_epoch=epoch, has_more=has_more
    )


def check_cursor(cursor: str) -> None:
    """InvalidInput for a cursor that no server gave."""
    _read_cursor(cursor, "")


def _write_cursor(seen: dict[str, int], epoch: str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode([epoch, seen])).decode()


def _read_cursor(cursor: str, epoch: str) -> dict[str, int]:
    if not cursor:
        return {}
    try:
        of_epoch, seen = msgspec.json.decode(
            base64.urlsafe_b64decode(cursor.encode("ascii")), type=tuple[str, dict[str, int]]
        )
    except (binascii.Error, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidInput("cursor is none that this server gave", "leave it out to start anew") from error
    if any(not 0 <= number < 1 << 63 for number in seen.values()):
        raise InvalidInput("cursor is none that this server gave", "leave it out to start anew")
    return seen if of_epoch == epoch else {}
