"""Words that come with a push go into the index a moment later, so that a push costs what it brings and no more.

What others may see of a thread (its header, who may read it, that it was withdrawn) changes in the push itself. Its
messages wait in a list that never makes a push wait; whoever searches takes in what waits in their spaces first,
as far as there is time, and says how many threads are left (docs/adr/0083).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from uuid import UUID

from psycopg import Connection

from raddle.model.threads.message import Message
from raddle.model.threads.summary import ThreadSummary
from raddle.server import rows
from raddle.server.search.index import ServerIndex
from raddle.server.tables.queries import queries

SQL = queries("raddle.server.search", "waiting.sql")
CHANNEL = "raddle_words"
_LOCK = 7_233_537
"""Of the advisory locks of a database, with a thread: who puts its messages into the index."""
_BATCH_BYTES, _HURRIED_BYTES = 4 << 20, 256 << 10


class WaitingIndex:
    """The `MessageIndex` of a server: headers at once, messages as soon as somebody has time."""

    def __init__(self, index: ServerIndex | None = None) -> None:
        self._index = index or ServerIndex()

    def put(
        self, connection: Connection, number: int, summary: ThreadSummary, messages: Sequence[Message]
    ) -> None:
        """The thread's header now; these messages wait. Words that were erased are taken out now."""
        values = {"thread": number, "lock": _LOCK}
        purged = [message for message in messages if message.is_purged]
        if purged:
            connection.execute(SQL["has_the_thread"], values)
            self._index.put(connection, number, summary, purged)
        is_new = self._index.put_header(connection, number, summary)
        if is_new:
            connection.execute(SQL["start_over"], values)
        if messages or is_new:
            connection.execute(SQL["wait"], values)
            connection.execute(SQL["tell"])

    def erase(self, connection: Connection, number: int) -> None:
        """Leave no word of a thread, now."""
        values = {"thread": number, "lock": _LOCK}
        connection.execute(SQL["has_the_thread"], values)
        self._index.erase(connection, number)
        connection.execute(SQL["forget"], values)


def take_in(
    connection: Connection,
    spaces: Sequence[UUID] | None = None,
    *,
    seconds: float | None = None,
    batches: int | None = None,
    index: ServerIndex | None = None,
) -> int:
    """Put into the index what waits (of these spaces); how many batches that were.

    With `seconds` no longer than about that: then what is too much for it is left to who has time. `batches`: so many
    at most.
    """
    ends = None if seconds is None else time.monotonic() + seconds
    count = 0
    while (ends is None or time.monotonic() < ends) and (batches is None or count < batches):
        if not _take_one(connection, spaces, index or ServerIndex(), is_hurried=seconds is not None):
            break
        count += 1
    return count


def waiting_in(connection: Connection, spaces: Sequence[UUID]) -> int:
    """How many threads of these spaces have messages that are not in the index yet."""
    found = connection.execute(SQL["count"], {"spaces": list(spaces)}).fetchone()
    return 0 if found is None else int(found[0])


def oldest_wait(connection: Connection) -> float:
    """Seconds since the oldest of what waits came; less than 0 where nothing does."""
    found = connection.execute(SQL["oldest"]).fetchone()
    return -1.0 if found is None else float(found[0])


def _take_one(
    connection: Connection, spaces: Sequence[UUID] | None, index: ServerIndex, *, is_hurried: bool
) -> bool:
    """One batch of one thread that nobody else has in hand; False where there is none."""
    wanted = None if spaces is None else list(spaces)
    with connection.transaction():
        found = connection.execute(SQL["next_thread"], {"spaces": wanted, "lock": _LOCK}).fetchone()
        if found is None:
            return False
        number = found[0]
        reach = connection.execute(SQL["reach"], {"thread": number}).fetchone()
        if reach is None:  # it was withdrawn or purged meanwhile
            connection.execute(SQL["forget"], {"thread": number})
            return True
        space, thread_id, version, since = reach
        where = {
            "space": space,
            "thread_id": thread_id,
            "since": since,
            "version": version,
            "limit": _HURRIED_BYTES if is_hurried else _BATCH_BYTES,
        }
        fitting, least = connection.execute(SQL["page_end"], where).fetchone() or (None, None)
        if is_hurried and fitting is None and least is not None:
            return False
        end = fitting or least or version
        bodies = connection.execute(SQL["messages_between"], {**where, "version": end}, binary=True)
        messages = [rows.message_of(body) for (body,) in bodies]
        index.put_messages(connection, number, messages)
        connection.execute(
            SQL["note_progress"], {"thread": number, "version": version if least is None else end}
        )
    return True
