"""The tools of threads: find, read, list, go on with, fork, link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from raddle.apps.mcp_server.recalled import recalled
from raddle.apps.mcp_server.run_tools import RunId
from raddle.apps.mcp_server.session import Session
from raddle.apps.mcp_server.texts import warn_of_secrets
from raddle.apps.mcp_server.tools import ADDS, READS, Arguments, Call, Tool
from raddle.model.errors import Ambiguous, InvalidInput, NotFound

if TYPE_CHECKING:
    from raddle.apps.mcp_server.thread_shelf import Looked
    from raddle.model.memory.entry import ContextEntry
    from raddle.model.threads.search_answer import Hit, Scope
    from raddle.model.threads.summary import ThreadSummary
    from raddle.model.threads.thread import Thread
    from raddle.wiring.memory import ProjectMemory

Cursor = str | None
ThreadId = Annotated[str, Meta(description="its id, or the start of it")]
_MOST_TAGS = 20
_LONGEST_TURN = 1_000_000
"""Characters that an agent may add at once."""


class ThreadSearch(Arguments, frozen=True, kw_only=True):
    """A query."""

    query: Annotated[
        str,
        Meta(
            description='words, "a phrase", prefix*, -not, ~inside, repo: branch: sha: tag: role: agent: tool: file: '
            "before: after: is: has:error"
        ),
    ]
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    cursor: Cursor = None


class ThreadList(Arguments, frozen=True, kw_only=True):
    """A page of threads."""

    query: Annotated[str | None, Meta(description="filters as in thread_search, or words")] = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 20
    cursor: Cursor = None


class ThreadRead(Arguments, frozen=True, kw_only=True):
    """A window into a thread: around a message, at the end of a branch, or at the end of the one in use."""

    thread_id: ThreadId
    message_id: Annotated[str | None, Meta(description="around this message; else the end")] = None
    branch: Annotated[str | None, Meta(description="a branch's name, or a message on it")] = None
    offset: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="with message_id: that message alone, whole, from this character"),
    ] = None
    tokens: Annotated[int, Meta(ge=200, le=100_000, description="about how long the answer may be")] = 4000
    cursor: Annotated[str | None, Meta(description="an answer's earlier or later")] = None


class ThreadAppend(Arguments, frozen=True, kw_only=True):
    """A turn. Its author is the agent, whichever its role."""

    thread_id: ThreadId
    text: str
    message_id: Annotated[str | None, Meta(description="the message it answers; else the last")] = None
    role: Literal["assistant", "user"] = "assistant"


class ThreadFork(Arguments, frozen=True, kw_only=True):
    """A copy to go on with."""

    thread_id: ThreadId
    message_id: Annotated[str | None, Meta(description="up to this message; else all of it")] = None
    title: str | None = None


class ThreadLink(Arguments, frozen=True, kw_only=True):
    """What a conversation is evidence for: an entry, or the handoff of a phase."""

    thread_id: ThreadId
    message_id: str | None = None
    entry_id: Annotated[str | None, Meta(description="the entry that rests on it")] = None
    handoff: Annotated[str | None, Meta(description="or the phase whose handoff does")] = None
    note: Annotated[str | None, Meta(description="what it shows, with entry_id")] = None
    run_id: RunId = None


def thread_search(session: Session, given: ThreadSearch, call: Call) -> dict[str, Any]:
    """Messages that hold the words, grouped by thread, and what was looked at to find them."""
    with session.threads(given.workspace) as shelf:
        looked = shelf.looked
        answer = shelf.search(given.query, limit=given.limit, cursor=given.cursor or "")
    told: dict[str, Any] = {
        "scope": _scope(looked, answer.scope),
        "hits": [_hit(session, hit, looked) for hit in answer.hits],
        "total_threads": answer.total_threads,
        "cursor": answer.cursor,
    }
    if not answer.cursor:
        del told["cursor"]
    return recalled(told, is_private=any(hit.thread.is_private for hit in answer.hits))


def _scope(looked: Looked, scope: Scope) -> dict[str, Any]:
    """Where it was looked: an empty answer out of the wrong place has to show that it is."""
    told = {
        "looked_in": looked.where,
        "threads": scope.threads,
        "private": looked.private,
        "filters": scope.filters,
        "ignored": scope.ignored,
        "pending": "threads changed since and may be missing" if scope.pending else "",
        "incomplete": not scope.is_complete
        and f"looked inside the newest {scope.messages_read:,} messages only",
        "notes": scope.notes,
    }
    return {name: value for name, value in told.items() if value or name == "threads"}


def _hit(session: Session, hit: Hit, looked: Looked) -> dict[str, Any]:
    session.recalled.note(f"raddle://thread/{hit.thread.id}", hit.snippet.text)
    told = {
        **_row(hit.thread, looked),
        "message_id": hit.message_id,
        "role": hit.role,
        "field": hit.field if hit.field in ("thinking", "tools", "output", "header") else "",
        "matches": hit.matches if hit.matches > 1 else 0,
        "text": hit.snippet.text,
    }
    return {name: value for name, value in told.items() if value}


def _row(row: ThreadSummary, looked: Looked) -> dict[str, Any]:
    """A thread in a list; what is empty is left out, and its repository where all are of one."""
    told = {
        "thread_id": row.id,
        "title": row.title,
        "last_activity": row.last_activity_at,
        "message_count": row.message_count,
        "agent": row.source.agent if row.source is not None else "",
        "repository": (row.git_remote_url or row.workspace_root) if looked.is_wide else "",
        "git_branch": row.git_branch,
        "tags": row.tags[:_MOST_TAGS],
        "is_pinned": row.is_pinned,
        "is_archived": row.is_archived,
        "is_private": row.is_private,
    }
    return {name: value for name, value in told.items() if value}


def thread_list(session: Session, given: ThreadList, call: Call) -> dict[str, Any]:
    """Threads, pins first, then the newest activity."""
    with session.threads(given.workspace) as shelf:
        looked = shelf.looked
        found = shelf.listed(given.query or "", limit=given.limit, cursor=given.cursor or "")
    told: dict[str, Any] = {
        "scope": {"looked_in": looked.where, "private": looked.private},
        "threads": [_row(row, looked) for row in found.rows],
    }
    if found.cursor:
        told["cursor"] = found.cursor
    return recalled(told, is_private=any(row.is_private for row in found.rows))


def thread_read(session: Session, given: ThreadRead, call: Call) -> dict[str, Any]:
    """Messages of one path through a thread, in their order, as many as there is room for."""
    from raddle.apps.mcp_server.thread_window import one_message, window  # noqa: PLC0415

    with session.threads(given.workspace) as shelf:
        thread = shelf.load(given.thread_id)
        end = shelf.end(thread)
        looked = shelf.looked
    if given.offset is None:
        told, texts = window(
            thread,
            end,
            message=given.message_id,
            branch=given.branch,
            cursor=given.cursor,
            tokens=given.tokens,
        )
    elif given.message_id:
        told, texts = one_message(thread, given.message_id, given.offset, given.tokens)
    else:
        raise InvalidInput("offset is for one message", "give its message_id too")
    session.recalled.note(f"raddle://thread/{thread.id}", *texts)
    told = {"thread": _thread_told(thread, looked, is_short=bool(given.cursor)), **told}
    return recalled(told, is_private=thread.is_private)


def _thread_told(thread: Thread, looked: Looked, *, is_short: bool) -> dict[str, Any]:
    """The thread as in a list; nothing but its id on a page that goes on."""
    return {"thread_id": thread.id} if is_short else _row(thread.summary(), looked)


def thread_append(session: Session, given: ThreadAppend, call: Call) -> dict[str, Any]:
    """Add a turn, marked as the agent's."""
    from raddle.actions.memory.secrets_seen import seen_secrets  # noqa: PLC0415
    from raddle.actions.threads import find_message  # noqa: PLC0415

    if len(given.text) > _LONGEST_TURN:
        raise InvalidInput(
            f"a turn of {len(given.text):,} characters is too long",
            f"give {_LONGEST_TURN:,} at most; a long result belongs in a file: artifact_put",
        )
    session.recalled.refuse_copy(given.text)
    with session.threads(given.workspace) as shelf:
        thread = shelf.load(given.thread_id)
        parent = find_message(thread, given.message_id).id if given.message_id else None
        has_replies = parent is not None and not thread.tree.is_leaf(parent)
        added = shelf.append(
            thread, given.text, parent=parent, role=given.role, author=session.agent or "agent"
        )
    told = {"thread_id": thread.id, "message_id": added.id, "parent_id": added.parent_id}
    if has_replies:
        told["note"] = "the message had replies: this began a branch, and both stay"
    return {name: value for name, value in told.items() if value} | warn_of_secrets(seen_secrets(given.text))


def thread_fork(session: Session, given: ThreadFork, call: Call) -> dict[str, Any]:
    """Copy a thread up to a message; the old one stays as it is."""
    from raddle.actions.threads import find_message  # noqa: PLC0415

    with session.threads(given.workspace) as shelf:
        thread = shelf.load(given.thread_id)
        at = find_message(thread, given.message_id).id if given.message_id else None
        new_id = shelf.fork(thread, at=at, title=" ".join((given.title or "").split()))
    return {"thread_id": new_id, "forked_from": thread.id, **({"message_id": at} if at else {})}


def thread_link(session: Session, given: ThreadLink, call: Call) -> dict[str, Any]:
    """Say in the project's memory which conversation an entry or a handoff rests on."""
    from raddle.actions.threads import find_message  # noqa: PLC0415

    if bool(given.entry_id) == bool(given.handoff):
        raise InvalidInput(
            "name what rests on the thread",
            "give entry_id or handoff, one of them; context_log makes an entry",
        )
    if given.note:
        session.recalled.refuse_copy(given.note)
    with session.threads(given.workspace) as shelf:
        thread = shelf.load(given.thread_id)
        message_id = find_message(thread, given.message_id).id if given.message_id else None
    with session.memory(given.workspace) as memory:
        if given.entry_id:
            told = _link_entry(session, memory, given, thread.id, message_id)
        else:
            told = _link_handoff(session, memory, given, thread.id, message_id)
        session.freshness.wrote(memory.root)
    return {name: value for name, value in told.items() if value}


def _link_entry(
    session: Session, memory: ProjectMemory, given: ThreadLink, thread_id: str, message_id: str | None
) -> dict[str, Any]:
    """An entry never changes: another one says what it rests on."""
    from raddle.actions.memory.entries import add_entry, entry_secrets  # noqa: PLC0415

    meant = _entry(memory, given.entry_id or "", given.run_id)
    added = add_entry(
        memory.files,
        memory.writer(agent=session.agent or None),
        meant.run_id,
        meant.phase,
        type="note",
        payload={"text": given.note or f"rests on thread {thread_id}"},
        links=[meant.entry_id],
        thread_id=thread_id,
        message_id=message_id,
    )
    told = {"entry_id": added.entry_id, "links": meant.entry_id, "run_id": added.run_id, "phase": added.phase}
    return {
        **told,
        "thread_id": thread_id,
        "message_id": message_id,
        **warn_of_secrets(entry_secrets(added)),
    }


def _entry(memory: ProjectMemory, entry_id: str, run_id: str | None) -> ContextEntry:
    """The entry of a run that `entry_id` begins. NotFound, Ambiguous."""
    from raddle.actions.memory.runs import resolve_run  # noqa: PLC0415
    from raddle.wiring.memory_shelf import open_shelf  # noqa: PLC0415

    run = resolve_run(memory.files, run_id or "")
    with open_shelf(memory) as shelf:
        entries = shelf.entries(run.run_id).entries
    start = entry_id.strip().upper()
    found = [one for one in entries if start and one.entry_id.startswith(start)]
    if not found:
        raise NotFound(
            "entry", entry_id[:80], f"context_read lists those of run {run.run_id}; run_id names another run"
        )
    if len(found) > 1:
        raise Ambiguous("entry", entry_id, [one.entry_id for one in found])
    return found[0]


def _link_handoff(
    session: Session, memory: ProjectMemory, given: ThreadLink, thread_id: str, message_id: str | None
) -> dict[str, Any]:
    from msgspec.structs import replace  # noqa: PLC0415

    from raddle.actions.memory.handoffs import publish_handoff, show_handoff  # noqa: PLC0415
    from raddle.actions.memory.runs import known_phase, resolve_run  # noqa: PLC0415
    from raddle.model.memory.handoff import Evidence  # noqa: PLC0415
    from raddle.model.memory.repo_layout import handoff_file  # noqa: PLC0415
    from raddle.wiring.memory_syncing import versions_kept  # noqa: PLC0415

    if given.note:
        raise InvalidInput("a handoff's evidence takes no note", "leave note out, or link an entry")
    run = resolve_run(memory.files, given.run_id or "")
    phase = known_phase(memory.files, run, given.handoff or "")
    told = {"run_id": run.run_id, "phase": phase, "thread_id": thread_id, "message_id": message_id}
    with versions_kept(memory, [handoff_file(run.run_id, phase)]):
        there = show_handoff(memory.files, run.run_id, phase)
        if any((one.thread_id, one.message_id) == (thread_id, message_id) for one in there.evidence):
            return {**told, "state": "unchanged"}
        evidence = (*there.evidence, Evidence(thread_id=thread_id, message_id=message_id))
        publish_handoff(
            memory.files, memory.writer(agent=session.agent or None), replace(there, evidence=evidence)
        )
    return {**told, "state": "linked"}


TOOLS: tuple[Tool, ...] = (
    Tool(
        name="thread_search",
        summary="Find what was said in past conversations with any agent, best first; says where it looked.",
        arguments=ThreadSearch,
        run=thread_search,
        hints=READS,
        gives=("scope", "hits", "total_threads", "cursor"),
    ),
    Tool(
        name="thread_read",
        summary="Read a conversation: its end, or a window around a message. Long tool outputs are shortened.",
        arguments=ThreadRead,
        run=thread_read,
        hints=READS,
        gives=("thread", "messages", "message", "shown", "earlier", "later", "branches", "note"),
    ),
    Tool(
        name="thread_list",
        summary="List conversations, newest activity first.",
        arguments=ThreadList,
        run=thread_list,
        hints=READS,
        gives=("scope", "threads", "cursor"),
    ),
    Tool(
        name="thread_append",
        summary="Add a turn of yours to a conversation.",
        arguments=ThreadAppend,
        run=thread_append,
        hints=ADDS,
        gives=("thread_id", "message_id", "parent_id", "note", "warning"),
    ),
    Tool(
        name="thread_fork",
        summary="Copy a conversation up to a message, as a new one to go on with.",
        arguments=ThreadFork,
        run=thread_fork,
        hints=ADDS,
        gives=("thread_id", "forked_from", "message_id"),
    ),
    Tool(
        name="thread_link",
        summary="Note in memory which conversation an entry or a handoff rests on.",
        arguments=ThreadLink,
        run=thread_link,
        hints=ADDS,
        gives=("entry_id", "links", "run_id", "phase", "thread_id", "message_id", "state", "warning"),
    ),
)
