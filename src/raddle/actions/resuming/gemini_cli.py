"""A conversation as a session of Gemini CLI: a header, then messages.

Owns how a session that did not come from Gemini CLI looks there, and which fields of its own name the project and the
session. A message's line: `exporting/native_gemini_cli.py`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from raddle.actions.exporting.native_gemini_cli import answer_line, prompt_line, response_part
from raddle.actions.resuming.session import Header, Move, as_line
from raddle.actions.resuming.told import Call, Turn
from raddle.model.clock import format_time
from raddle.model.ids import derived_id
from raddle.model.threads.carried import FIELD, copied_form
from raddle.model.threads.message import Message, changed

_UNHEARD = re.compile(r"\s*(?:[/?]|<(?:session|hook)_context>)")
"""How words begin that Gemini CLI takes for a command or for its own, and does not tell the model again."""
_HEAD = re.compile(rb'("(?:projectHash|sessionId)"\s*:\s*")([^"\\]*)(")')


def write(header: Header, turns: Sequence[Turn]) -> Iterator[bytes]:
    """The lines of a session that tells these turns."""
    yield as_line(
        {
            "sessionId": header.session_id,
            "projectHash": project_hash(header.workspace),
            "startTime": _stamp(header.began),
            "lastUpdated": _stamp(header.ends),
            "kind": "main",
        }
    )
    for turn in turns:
        yield from map(as_line, _lines(turn))


def move_line(line: bytes, move: Move) -> bytes:
    """The line with the project and the session that it has here: those stand in a header, or in a change of it."""
    if not line.lstrip().startswith(
        (b'{"sessionId"', b'"sessionId"', b'"projectHash"', b'{"$set":{"sessionId"')
    ):
        return line

    def moved(found: re.Match[bytes]) -> bytes:
        if found[1].startswith(b'"projectHash"'):
            return found[1] + project_hash(move.to_workspace).encode() + found[3]
        is_its = found[2] == move.session.encode()
        return found[1] + move.to_session.encode() + found[3] if is_its else found[0]

    return _HEAD.sub(moved, line, count=2)


def folder_in(_: bytes) -> str:
    """No line names the folder itself."""
    return ""


def argv(session_id: str) -> tuple[str, ...]:
    """What goes on with a session."""
    return ("gemini", "--resume", session_id)


def stubs(turn: Turn) -> list[bytes]:
    """A line for each call that nothing answered: the program itself sends such calls as they are."""
    return [as_line(_stub(turn.message, call)) for call in turn.calls if call.result.message is None]


def project_hash(workspace: str) -> str:
    """What a session calls its project."""
    return hashlib.sha256(workspace.encode(errors="replace")).hexdigest()


def _lines(turn: Turn) -> Iterator[dict[str, Any]]:
    message = turn.message
    shown = [{"inlineData": {"mimeType": one.media_type, "data": one.data}} for one in turn.pictures]
    if turn.role == "user":
        is_heard = not _UNHEARD.match(turn.text)
        text = turn.text if is_heard else f"[user] {turn.text}"
        said = [{"text": text}] if text else []
        line = prompt_line(message, [*said, *shown])
        yield line | {FIELD: copied_form(message, is_said=turn.is_said and is_heard)}
        return
    calls = [(call.id, call.name, call.named_arguments) for call in turn.calls]
    line = answer_line(message, turn.text, calls)
    yield line | {FIELD: copied_form(message, is_said=turn.is_said)}
    for call in turn.calls:
        result = call.result
        named = [f"[a picture: {one.name or one.media_type}]" for one in result.pictures]
        text = "\n".join(filter(None, (result.text, *named)))
        if result.message is None:
            yield _stub(message, call)
        else:
            part = response_part(call.id, call.name, text, is_error=result.is_error)
            line = prompt_line(result.message, [part])
            yield line | {FIELD: copied_form(result.message, is_said=False)}


def _stub(message: Message, call: Call) -> dict[str, Any]:
    stub = changed(message, id=derived_id("gemini-cli", "no result", message.id, call.id))
    return prompt_line(stub, [response_part(call.id, call.name, call.result.text, is_error=True)])


def _stamp(at: int) -> str:
    return format_time(at)[:23] + "Z"
