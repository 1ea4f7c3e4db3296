"""Added turns as lines of a Claude Code session: each hangs on the last record of the message that it answers.

Owns how raddle writes a line of that format. The line has the message's own id as its `uuid`, so a second export
writes the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec
from msgspec import Struct

from raddle.actions.exporting.native import Added, Insertion, SourceEnd, Where, lines_at_end, stamp_of
from raddle.model.ids import derived_id
from raddle.model.threads.carried import FIELD, carried_form
from raddle.model.threads.message import Message, Usage

_TURNS = frozenset(("user", "assistant", "system", "attachment"))
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z")
_NOBODY = "<synthetic>"
"""The model of an answer that no model gave, as the program itself writes it."""


class _Line(Struct, gc=False, rename="camel"):
    """What is looked at of a line."""

    type: str = ""
    uuid: str = ""
    is_sidechain: bool | None = None
    cwd: str | None = None
    version: str | None = None
    git_branch: str | None = None


_decode = msgspec.json.Decoder(_Line).decode


class ClaudeCodeWriter:
    """`around`: the messages whose records may be asked for."""

    def __init__(self, around: AbstractSet[str]) -> None:
        self._around = around
        self._records: dict[str, str] = {}
        self._others: dict[str, str] = {}
        self._last = ""
        self._facts: dict[str, Any] = {}

    def scan(self, chunk: bytes) -> None:
        """Lines tell everything."""

    def see(self, line: bytes, where: Where) -> None:
        """A line of the session."""
        try:
            found = _decode(line)
        except (msgspec.DecodeError, RecursionError):
            return
        if not found.uuid or found.is_sidechain:
            return
        message_id = where(found.uuid)
        is_turn = found.type in _TURNS
        if message_id in self._around:
            (self._records if is_turn else self._others)[message_id] = found.uuid
        if is_turn:
            self._last = found.uuid
            self._see_facts(found)

    def _see_facts(self, found: _Line) -> None:
        for name, value in (
            ("cwd", found.cwd),
            ("version", found.version),
            ("gitBranch", found.git_branch),
        ):
            if value is not None:
                self._facts[name] = value

    def insertion(self, added: Sequence[Added], session_id: str, end: SourceEnd) -> Insertion:
        """Lines at the end."""
        lines = []
        for one in added:
            message = one.message
            self._records[message.id] = _uuid_of(message)
            lines.append(msgspec.json.encode(self._line(message, self._record(one.under), session_id)))
        return lines_at_end(lines, end)

    def _record(self, under: str) -> str | None:
        """The record that a line under this message names as its parent."""
        return self._records.get(under) or self._others.get(under) or (self._last or None if under else None)

    def _line(self, message: Message, parent: str | None, session_id: str) -> dict[str, Any]:
        is_model = message.role == "assistant"
        return {
            "parentUuid": parent,
            "isSidechain": False,
            "userType": "external",
            **self._facts,
            "sessionId": session_id,
            "type": "assistant" if is_model else "user",
            "message": _answer(message) if is_model else {"role": "user", "content": _said(message)},
            "uuid": _uuid_of(message),
            "timestamp": stamp_of(message),
            FIELD: carried_form(message, is_said=message.role != "tool"),
        }


def _uuid_of(message: Message) -> str:
    return message.id if _UUID.match(message.id) else derived_id("claude-code", "line", message.id)


def _said(message: Message) -> Any:
    """What a person typed, or what came back from a call."""
    if message.role != "tool":
        return message.content
    result: dict[str, Any] = {
        "tool_use_id": message.tool_call_id,
        "type": "tool_result",
        "content": message.content,
    }
    return [result | ({"is_error": True} if message.is_error else {})]


def _answer(message: Message) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": message.content}] if message.content else []
    for call in message.tool_calls:
        arguments = call.arguments_json
        given = arguments if isinstance(arguments, dict) else {"arguments": arguments}
        blocks.append({"type": "tool_use", "id": call.id, "name": call.tool_name, "input": given})
    usage = message.usage or Usage()
    return {
        "id": f"msg_raddle_{message.id}",
        "type": "message",
        "role": "assistant",
        "model": message.model or _NOBODY,
        "content": blocks,
        "stop_reason": "tool_use" if message.tool_calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input_tokens or 0,
            "output_tokens": usage.output_tokens or 0,
            "cache_creation_input_tokens": usage.cache_write_tokens or 0,
            "cache_read_input_tokens": usage.cache_read_tokens or 0,
        },
    }
