"""A conversation as a session of Claude Code: lines, each of which names the one before.

Owns how a session that did not come from Claude Code looks there, and which of the fields of its own lines it looks
at when it finds a session: `cwd` and `sessionId`. A line of a turn: `exporting/native_claude_code.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from raddle.actions.exporting.native import stamp_of
from raddle.actions.exporting.native_claude_code import (
    a_line,
    answer_of,
    call_block,
    result_block,
    uuid_for,
)
from raddle.actions.resuming.session import Header, Move, as_line, fields_of, put_text, text_in
from raddle.actions.resuming.told import Call, Picture, Turn
from raddle.model.ids import derived_id
from raddle.model.threads.carried import FIELD, copied_form
from raddle.model.threads.message import Message

VERSION = "2.1.197"
"""The program whose lines these look like."""


def write(header: Header, turns: Sequence[Turn]) -> Iterator[bytes]:
    """The lines of a session that tells these turns."""
    facts: dict[str, Any] = {"cwd": header.workspace, "version": VERSION}
    if header.git_branch:
        facts["gitBranch"] = header.git_branch
    parent: str | None = None
    for turn in turns:
        for uuid, fields in _lines(turn):
            line = a_line(uuid, parent, header.session_id, facts)
            yield as_line(line | {"timestamp": stamp_of(turn.message)} | fields)
            parent = uuid


def move_line(line: bytes, move: Move) -> bytes:
    """The line with the folder and the session that it has here."""
    fields = fields_of(line)
    if fields is None:
        return line
    is_changed = False
    folder = text_in(fields, "cwd")
    if folder is not None:
        is_changed = put_text(fields, "cwd", move.folder(folder))
    if text_in(fields, "sessionId") == move.session:
        is_changed = put_text(fields, "sessionId", move.to_session) or is_changed
    return as_line(fields) if is_changed else line


def folder_in(line: bytes) -> str:
    """The folder that a line tells; empty where it tells none."""
    return text_in(fields_of(line) or {}, "cwd") or ""


def argv(session_id: str) -> tuple[str, ...]:
    """What goes on with a session."""
    return ("claude", "--resume", session_id)


def _lines(turn: Turn) -> Iterator[tuple[str, dict[str, Any]]]:
    message = turn.message
    blocks: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
    blocks += [_picture(one) for one in turn.pictures]
    carried = {FIELD: copied_form(message, is_said=turn.is_said)}
    if turn.role == "user":
        content = blocks if turn.pictures else turn.text
        said: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": content}}
    else:
        blocks += [call_block(call.id, call.name, call.arguments) for call in turn.calls]
        said = {"type": "assistant", "message": answer_of(message, blocks)}
    yield uuid_for(message.id), said | carried
    for call in turn.calls:
        yield _result(message, call)


def _result(message: Message, call: Call) -> tuple[str, dict[str, Any]]:
    result = call.result
    content: Any = result.text
    if result.pictures:
        text = [{"type": "text", "text": result.text}] if result.text else []
        content = [*text, *(_picture(one) for one in result.pictures)]
    block = result_block(call.id, content, is_error=result.is_error)
    line: dict[str, Any] = {"type": "user", "message": {"role": "user", "content": [block]}}
    if result.message is None:
        return derived_id("claude-code", "no result", message.id, call.id), line
    carried = {
        FIELD: copied_form(result.message, is_said=False),
        "timestamp": stamp_of(result.message),
    }
    return uuid_for(result.message.id), line | carried


def _picture(picture: Picture) -> dict[str, Any]:
    source = {"type": "base64", "media_type": picture.media_type, "data": picture.data}
    return {"type": "image", "source": source}
