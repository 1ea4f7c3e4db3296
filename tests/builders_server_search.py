"""Threads put straight into the tables of the server, for tests of its search, which need no push."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

import msgspec
from psycopg import Connection

from raddle.model.clock import parse_time
from raddle.model.threads.message import Message
from raddle.model.threads.summary import ThreadSummary
from raddle.server.rows import message_json, packed
from raddle.server.search.index import ServerIndex
from raddle.server.search.reading import Reader
from tests.builders_server import Person, new_id


def reader_of(person: Person, *spaces: UUID) -> Reader:
    """Somebody who looks into their own space and these."""
    return Reader(person.user, (person.space, *spaces))


def an_organization(connection: Connection, *members: Person) -> UUID:
    """A space that these people are members of."""
    space = UUID(new_id())
    connection.execute("INSERT INTO spaces (id, kind, name) VALUES (%s, 'org', 'org')", (space,))
    for member in members:
        connection.execute(
            "INSERT INTO memberships (space_id, user_id, role) VALUES (%s, %s, 'member')",
            (space, member.user),
        )
    return space


def store(
    connection: Connection,
    owner: Person,
    summary: ThreadSummary,
    messages: Sequence[Message],
    removed: Collection[str] = (),
    *,
    space: UUID | None = None,
) -> int:
    """Write the thread's rows, as a push would; its number. The index is told nothing."""
    where = owner.space if space is None else space
    found = connection.execute(
        "INSERT INTO threads (space_id, id, owner_id, version, has_removed, summary, last_activity, is_private)"
        " VALUES (%s, %s, %s, 1, %s, %s, %s, %s) ON CONFLICT (space_id, id) DO UPDATE SET summary = excluded.summary,"
        " has_removed = excluded.has_removed, last_activity = excluded.last_activity,"
        " is_private = excluded.is_private RETURNING number",
        (
            where,
            summary.id,
            owner.user,
            bool(removed),
            msgspec.json.encode(summary),
            parse_time(summary.last_activity_at) or 0,
            summary.is_private,
        ),
    ).fetchone()
    assert found is not None
    with connection.cursor() as cursor:
        for message in messages:
            body = message_json(message)
            cursor.execute(
                "INSERT INTO messages (space_id, thread_id, id, seq, changed_version, is_shown, size, body)"
                " VALUES (%s, %s, %s, %s, 1, true, %s, %s)"
                " ON CONFLICT (space_id, thread_id, id) DO UPDATE SET body = excluded.body, seq = excluded.seq",
                (where, summary.id, message.id.encode(), message.order, len(body), packed(body)),
            )
    gone = [message_id.encode() for message_id in removed]
    connection.execute(
        "UPDATE messages SET is_shown = NOT id = ANY(%s) WHERE space_id = %s AND thread_id = %s",
        (gone, where, summary.id),
    )
    return int(found[0])


def put(
    connection: Connection,
    owner: Person,
    summary: ThreadSummary,
    messages: Sequence[Message],
    removed: Collection[str] = (),
    *,
    space: UUID | None = None,
) -> int:
    """Write the thread and make it findable; its number."""
    number = store(connection, owner, summary, messages, removed, space=space)
    ServerIndex().put(connection, number, summary, messages)
    return number
