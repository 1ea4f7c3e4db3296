"""Whose session a record is, where it lies in the folder of an agent that did not write it.

Owns the marks by which a foreign file is named, so that an importer can say what it left out and why.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

_FIELD = re.compile(rb'^[ \t]{1,4}"(\w+)" ?:', re.MULTILINE)
_PRINTED = re.compile(rb"\s*\{\s*\n")

_KEYS: tuple[tuple[str, frozenset[str]], ...] = (
    ("gemini-cli", frozenset(("sessionId", "projectHash", "messages"))),
    ("gemini-cli", frozenset(("sessionId", "projectHash", "startTime"))),
    ("gemini-cli", frozenset(("$set",))),
    ("chatgpt", frozenset(("mapping", "current_node"))),
    ("chatgpt", frozenset(("conversation_id", "current_node"))),
    ("claude-ai", frozenset(("uuid", "chat_messages"))),
    ("continue", frozenset(("sessionId", "history", "workspaceDirectory"))),
    ("amp", frozenset(("id", "v", "messages", "created"))),
)
"""Agent -> the keys that only its records have all of."""


def agent_of(value: Any) -> str:
    """The agent that writes records such as `value`; empty where that cannot be told."""
    if not isinstance(value, dict):
        return ""
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(payload, dict) and kind in ("session_meta", "response_item", "event_msg", "turn_context"):
        return "codex"
    if isinstance(kind, str) and isinstance(value.get("data"), dict) and kind.startswith("session."):
        return "copilot-cli"
    if kind == "session" and "version" in value and "cwd" in value:
        return "pi"
    return next((agent for agent, keys in _KEYS if keys <= value.keys()), "")


def agent_of_head(head: bytes) -> str:
    """The agent that wrote a file which begins like this, by its first record; empty where that cannot be told."""
    if _PRINTED.match(head):
        return agent_of({name.decode(): "" for name in _FIELD.findall(head)})
    try:
        return agent_of(msgspec.json.decode(head.partition(b"\n")[0]))
    except (msgspec.DecodeError, RecursionError):
        return ""
