"""Who may do what with a thread of this server: one pure function, and the error that says no.

Lists, search, feed and counts ask the SQL function `thread_is_readable` (migrations/0002_pre_accounts.sql) with what
`reader_values` says; it is this module's twin, and a property test holds the two together. A third answer would leak.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, assert_never
from uuid import UUID

from psycopg import Connection

from raddle.model.errors import Forbidden, NotFound, Purged, UserError
from raddle.model.threads.visibility import Viewer, may_read
from raddle.server.accounts.callers import Caller
from raddle.server.tables.queries import queries

SQL = queries("raddle.server.accounts", "access.sql")

Action = Literal["read", "write", "share", "delete"]


class ThreadFacts(NamedTuple):
    """What access asks of a thread: the columns of its row."""

    space_id: UUID
    owner_id: UUID
    visibility: str
    is_private: bool = False
    is_deleted: bool = False
    is_shared_with_support: bool = False
    is_purged: bool = False


def may(actor: Caller | None, action: Action, facts: ThreadFacts) -> bool:
    """May `actor` (None: nobody is signed in) do that with the thread? With one that was purged nobody may anything."""
    if facts.is_purged:
        return False
    match action:
        case "read":
            return may_read(
                facts.visibility,
                is_private=facts.is_private,
                is_shared_with_support=facts.is_shared_with_support,
                is_deleted=facts.is_deleted,
                viewer=_viewer(actor, facts),
            )
        case "write" | "share" | "delete":
            return _is_owner(actor, facts)
        case _:
            assert_never(action)


def refusal(
    actor: Caller | None, action: Action, facts: ThreadFacts | None, thread_id: str
) -> UserError | None:
    """The error by which `actor` is told no; None where they may. `facts` None: there is no such thread.

    NotFound where they may not even see it, Forbidden where they may see but not change it, Purged where it was
    theirs and is erased for good.
    """
    if facts is None:
        return NotFound("thread", thread_id)
    if may(actor, action, facts):
        return None
    if facts.is_purged and _is_owner(actor, facts):
        return Purged(f"thread {thread_id} was erased for good", "a copy on a device of yours is still yours")
    if may(actor, "read", facts):
        return Forbidden("the thread is somebody else's to change", "only whoever made it may change it")
    return NotFound("thread", thread_id)


def _is_owner(actor: Caller | None, facts: ThreadFacts) -> bool:
    return actor is not None and actor.user == facts.owner_id


def _viewer(actor: Caller | None, facts: ThreadFacts) -> Viewer:
    if actor is None:
        return Viewer()
    return Viewer(
        is_signed_in=True,
        is_owner=_is_owner(actor, facts),
        is_member=facts.space_id in actor.spaces,
        is_support=actor.is_support,
    )


def reader_values(actor: Caller | None) -> dict[str, Any]:
    """The parameters `reader`, `spaces`, `is_support` and `own` of queries that ask `thread_is_readable`."""
    if actor is None:
        return {"reader": None, "spaces": [], "is_support": False, "own": None}
    return {
        "reader": actor.user,
        "spaces": list(actor.spaces),
        "is_support": actor.is_support,
        "own": actor.space,
    }


def facts_of(connection: Connection, space: UUID, thread_id: str) -> ThreadFacts | None:
    """What access asks of the thread of that space; None where there is none."""
    found = connection.execute(SQL["facts"], {"space": space, "thread": thread_id}).fetchone()
    return None if found is None else ThreadFacts(*found)


def find_thread(
    connection: Connection, actor: Caller | None, thread_id: str, space: UUID | None = None
) -> ThreadFacts:
    """The thread that an id means to `actor`: of their own space first, then of others that they may read.

    `space`: of that space alone. NotFound where they may read none of that name; Purged where theirs was erased.
    """
    values = {**reader_values(actor), "thread": thread_id, "space": space}
    found = connection.execute(SQL["find"], values).fetchone()
    facts = None if found is None else ThreadFacts(*found)
    refused = refusal(actor, "read", facts, thread_id)
    if facts is None or refused is not None:
        raise refused or NotFound("thread", thread_id)
    return facts
