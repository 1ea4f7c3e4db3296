"""Which blobs a thread names: the only way by which anybody but its uploader comes to one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from psycopg import Connection

from raddle.model.threads.message import Message
from raddle.server import rows
from raddle.server.tables.queries import queries
from raddle.server.threads.holding import Key

SQL = queries("raddle.server.threads", "blob_refs.sql")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")


def note_blobs(connection: Connection, key: Key, changed: Sequence[Message]) -> None:
    """Bring the thread's blobs up to date with messages that changed; those of erased words are let go."""
    values = {"space": key.space, "thread": key.thread}
    if any(message.is_purged for message in changed):
        connection.execute(SQL["forget_attachments"], values)
        bodies = connection.execute(SQL["bodies"], values, binary=True)
        changed = [rows.message_of(body) for (body,) in bodies]
    hashes = sorted(
        {
            bytes.fromhex(attachment.sha256)
            for message in changed
            for attachment in message.attachments
            if _SHA256.match(attachment.sha256)
        }
    )
    if hashes:
        connection.execute(SQL["name_attachments"], {**values, "hashes": hashes})
