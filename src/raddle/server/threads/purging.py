"""The end of a deleted thread: its words go after their time, its id stays for ever and answers 410."""

from __future__ import annotations

from psycopg import Connection

from raddle.model.protocol.hub import GONE
from raddle.server.threads.holding import SQL, Held, Holding, Key, MessageIndex

_DELETED = "deleted"


def purge_deleted(connection: Connection, index: MessageIndex, *, older_than_seconds: float) -> int:
    """Purge up to twenty threads that have been deleted for so long; how many there were."""
    with connection.transaction():
        keys = [
            Key(space, thread)
            for space, thread in connection.execute(SQL["to_purge"], {"seconds": older_than_seconds})
        ]
        for key in keys:
            _purge(connection, key, index)
    return len(keys)


def purge(connection: Connection, key: Key, index: MessageIndex) -> bool:
    """Purge a thread now, at its owner's word; was there anything to purge?"""
    with connection.transaction():
        return _purge(connection, key, index)


def _purge(connection: Connection, key: Key, index: MessageIndex) -> bool:
    values = {"space": key.space, "thread": key.thread}
    found = connection.execute(SQL["note_purge"], values).fetchone()
    if found is None:
        return False
    holding = Holding(connection, key, Held(*found))
    holding.erase(_DELETED)
    index.erase(connection, holding.held.number)
    holding.forget_names()
    holding.tell(GONE)
    return True
