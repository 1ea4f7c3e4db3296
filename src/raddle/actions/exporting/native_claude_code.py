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
        line = a_line(_uuid_of(message), parent, session_id, self._facts)
        return line | {
            "type": "assistant" if message.role == "assistant" else "user",
            "message": _said(message),
            "timestamp": stamp_of(message),
            FIELD: carried_form(message, is_said=message.role != "tool"),
        }


def a_line(uuid: str, parent: str | None, session_id: str, facts: dict[str, Any]) -> dict[str, Any]:
    """What every line of a turn has. `facts`: `cwd`, `version`, `gitBranch`, as far as they are known."""
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        **facts,
        "sessionId": session_id,
        "uuid": uuid,
    }


def _uuid_of(message: Message) -> str:
    return uuid_for(message.id)


def uuid_for(message_id: str) -> str:
    """The `uuid` of a message's line."""
    return message_id if _UUID.match(message_id) else derived_id("claude-code", "line", message_id)


def _said(message: Message) -> dict[str, Any]:
    """What a person typed, what came back from a call, or what a model said."""
    if message.role == "assistant":
        text: list[dict[str, Any]] = [{"type": "text", "text": message.content}] if message.content else []
        calls = (call_block(call.id, call.tool_name, call.arguments_json) for call in message.tool_calls)
        return answer_of(message, [*text, *calls])
    if message.role != "tool":
        return {"role": "user", "content": message.content}
    block = result_block(message.tool_call_id, message.content, is_error=message.is_error)
    return {"role": "user", "content": [block]}


def call_block(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    """A call of a tool."""
    given = arguments if isinstance(arguments, dict) else {"arguments": arguments}
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result_block(call_id: str, content: Any, *, is_error: bool) -> dict[str, Any]:
    """What came back from a call. `content`: a text, or a list of blocks."""
    result: dict[str, Any] = {"tool_use_id": call_id, "type": "tool_result", "content": content}
    return result | ({"is_error": True} if is_error else {})


def answer_of(message: Message, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """`message` of an answer's line, which says these blocks."""
    usage = message.usage or Usage()
    return {
        "id": f"msg_raddle_{message.id}",
        "type": "message",
        "role": "assistant",
        "model": message.model or _NOBODY,
        "content": blocks,
        "stop_reason": "tool_use" if any(one["type"] == "tool_use" for one in blocks) else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input_tokens or 0,
            "output_tokens": usage.output_tokens or 0,
            "cache_creation_input_tokens": usage.cache_write_tokens or 0,
            "cache_read_input_tokens": usage.cache_read_tokens or 0,
        },
    }
