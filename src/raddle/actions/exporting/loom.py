"""A thread as the first seed's program stores it: its own fields and no other, one line of conversation."""

from __future__ import annotations

from typing import Any

import msgspec

from raddle.model.errors import NotFound
from raddle.model.threads.agent_state import AgentState
from raddle.model.threads.message import NOTICE, ROLES, Message
from raddle.model.threads.plain_fields import plain_of
from raddle.model.threads.thread import Thread

_FIELDS = (
    "id",
    "version",
    "created_at",
    "updated_at",
    "last_activity_at",
    "workspace_root",
    "cwd",
    "loom_version",
    "git_branch",
    "git_remote_url",
    "git_initial_branch",
    "git_initial_commit_sha",
    "git_current_commit_sha",
    "git_commits",
    "git_start_dirty",
    "git_end_dirty",
    "provider",
    "model",
    "conversation",
    "agent_state",
    "metadata",
    "is_private",
    "visibility",
    "is_shared_with_support",
)
_METADATA = ("title", "tags", "is_pinned", "extra")


def to_loom(thread: Thread, leaf: str | None = None) -> bytes:
    """The thread file of the first seed: the path to the tip, or to `leaf`. NotFound for an unknown leaf.

    It knows no tree, so other lines of conversation are left out, and so are notices, purged turns and a
    sub-agent's. A role that it does not know becomes the user's, an agent state that it does not know waits
    for input.
    """
    plain = plain_of(thread)
    plain["loom_version"] = plain.get("client_version")
    plain.setdefault("git_commits", [])
    plain["conversation"] = {"messages": [_message(message) for message in _path(thread, leaf)]}
    plain["metadata"] = {"extra": {}} | plain["metadata"]
    plain["metadata"] = {name: plain["metadata"].get(name) for name in _METADATA}
    state = thread.agent_state if thread.agent_state.is_known else AgentState()
    plain["agent_state"] = msgspec.to_builtins(state)
    known = {name: plain[name] for name in _FIELDS if plain.get(name) is not None}
    return msgspec.json.format(msgspec.json.encode(known), indent=2) + b"\n"


def _path(thread: Thread, leaf: str | None) -> list[Message]:
    if leaf is not None and leaf not in thread.tree:
        raise NotFound("message", leaf, f"`raddle show {thread.id} --tree` lists them")
    tip = thread.tree.tip()
    at = leaf if leaf is not None else tip.id if tip is not None else None
    return [
        message
        for message in thread.tree.path_to_root(at)
        if message.kind != NOTICE and not message.is_purged
    ]


def _message(message: Message) -> dict[str, Any]:
    is_known = message.role in ROLES
    plain: dict[str, Any] = {
        "role": message.role if is_known else "user",
        "content": message.content if is_known else f"[{message.role}] {message.content}",
    }
    if message.tool_call_id:
        plain["tool_call_id"] = message.tool_call_id
    if message.tool_name:
        plain["tool_name"] = message.tool_name
    if message.tool_calls:
        plain["tool_calls"] = [
            {"id": call.id, "tool_name": call.tool_name, "arguments_json": call.arguments_json}
            for call in message.tool_calls
        ]
    return plain
