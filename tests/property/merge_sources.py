"""Turns that come from elsewhere: legacy copies of one thread that went apart, an agent's session that grows
while it is imported, and a program of the first seed that rewrites a file and knows only its own fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from raddle.model.clock import format_time
from raddle.model.ids import derived_id
from raddle.model.threads.adopt import first_sight
from raddle.model.threads.codec import decode_file, encode_thread
from raddle.model.threads.edits import imported_registers
from raddle.model.threads.message import Message
from raddle.model.threads.register import Register
from raddle.model.threads.thread import Thread
from tests.builders import DAY, NOON, SECOND, THREAD_ID

_BEGUN = NOON - 2 * DAY
RECORDS = 6
"""Records of the agent's session; two of them fold into one turn."""

_SEED_TOP = (
    *("id", "version", "created_at", "updated_at", "last_activity_at", "workspace_root", "cwd"),
    *("loom_version", "git_branch", "git_remote_url", "git_initial_branch", "git_initial_commit_sha"),
    *("git_current_commit_sha", "git_commits", "git_start_dirty", "git_end_dirty", "provider", "model"),
    *("agent_state", "is_private", "visibility", "is_shared_with_support"),
)
_SEED_MESSAGE = ("role", "content", "tool_calls", "tool_call_id", "tool_name")
_SEED_METADATA = ("title", "tags", "is_pinned")


def legacy_copy(*contents: str, title: str, minute: int) -> bytes:
    """A file as the first seed wrote it: a linear list without ids, no stamps."""
    moment = format_time(_BEGUN + minute * 60 * SECOND)
    return msgspec.json.encode(
        {
            "id": THREAD_ID,
            "version": len(contents),
            "created_at": format_time(_BEGUN),
            "updated_at": moment,
            "last_activity_at": moment,
            "conversation": {
                "messages": [
                    {"role": "assistant" if number % 2 else "user", "content": content}
                    for number, content in enumerate(contents)
                ]
            },
            "agent_state": {"kind": "waiting_for_user_input", "retries": 0},
            "metadata": {"title": title, "tags": ["old"], "is_pinned": False},
            "is_private": False,
            "visibility": "organization",
            "is_shared_with_support": False,
        }
    )


LEGACY_COPIES = (
    legacy_copy("q0", "a0", title="legacy", minute=1),
    legacy_copy("q0", "a0", "q1", title="legacy", minute=2),
    legacy_copy("q0", "a0", "q1 otherwise", "a1", title="another", minute=3),
)
"""Copies of one thread on several machines: they share their beginning."""


def session_messages(records: int) -> list[Message]:
    """The turns of the session's first `records` records. A turn's second record makes it fuller (`rev`), and
    tells of the third turn that it answers the first one, and was said earlier than it looked."""
    messages = []
    for turn in range((records + 1) // 2):
        rev = min(records - 2 * turn, 2)
        order = _BEGUN + 20 * turn * SECOND + (5 * SECOND if rev == 1 else 0)
        parent = max(turn - 1, 0) if turn < 2 or rev == 1 else 0
        message_id = session_message_id(turn)
        messages.append(
            Message(
                id=message_id,
                parent_id=session_message_id(parent) if turn else None,
                branch_id=session_message_id(0) if turn < 2 or rev == 1 else message_id,
                role="assistant" if turn % 2 else "user",
                content="words " * rev,
                ts=format_time(order),
                rev=rev,
            )
        )
    return messages


def session_message_id(turn: int) -> str:
    """The derived id of a turn of the session."""
    return derived_id("import", "some-agent", f"record-{turn}")


def session_writes(records: int) -> list[tuple[str, int, Any]]:
    """What an importer writes into registers once it has read that many records."""
    return [
        ("title", _BEGUN + 20 * number * SECOND, f"session title {number // 2}")
        for number in range(1, records + 1)
        if number % 2 == 0
    ]


def imported(known: Thread, records: int) -> tuple[list[Message], dict[str, Register]]:
    """The messages and registers of an import on top of what is known."""
    return session_messages(records), imported_registers(known.registers, session_writes(records))


def session_edits() -> Iterator[tuple[str, int, Any]]:
    """(path, n, value) of every write that an import of the session can make, earlier ones first; n of a message
    is its rev."""
    for records in range(1, RECORDS + 1):
        for message in session_messages(records):
            yield f"message/{message.id}", message.rev, message
        yield from session_writes(records)


def legacy_edits() -> Iterator[tuple[str, int, Any, str]]:
    """(path, n, value, device) of every write that a legacy copy makes when it is met for the first time."""
    for data in LEGACY_COPIES:
        found = first_sight(decode_file(data))
        for message in found.tree:
            yield f"message/{message.id}", message.rev, message, ""
        for path, register in found.registers.items():
            for n, device, value in register.writes:
                yield path, n, value, device


def rewritten_by_the_seed(thread: Thread, **changes: Any) -> bytes:
    """The thread's file after the first seed's program loaded and saved it: what it does not know is gone.

    `changes`: `title`, `tag` (one more), `turn` (one more user message), `is_pinned`.
    """
    plain = msgspec.json.decode(encode_thread(thread))
    kept = {name: plain.get(name) for name in _SEED_TOP}
    kept["loom_version"] = plain.get("client_version")
    kept["git_commits"] = plain.get("git_commits", [])
    messages = [
        {name: message[name] for name in _SEED_MESSAGE if name in message}
        | {"content": message.get("content", "")}
        for message in plain["conversation"]["messages"]
    ]
    metadata = {name: plain["metadata"].get(name) for name in _SEED_METADATA}
    if "turn" in changes:
        messages.append({"role": "user", "content": changes["turn"]})
    if "title" in changes:
        metadata["title"] = changes["title"]
    if "is_pinned" in changes:
        metadata["is_pinned"] = changes["is_pinned"]
    if "tag" in changes:
        metadata["tags"] = [*metadata["tags"], changes["tag"]]
    return msgspec.json.encode(kept | {"conversation": {"messages": messages}, "metadata": metadata})
