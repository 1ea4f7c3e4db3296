"""A conversation as a rollout of Codex: a header, then items, with the events that show words to a person.

Owns how a session that did not come from Codex looks there, and which fields of its own lines name the folder and the
session. An item: `exporting/native_codex.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Raw

from raddle.actions.exporting.native import stamp_of
from raddle.actions.exporting.native_codex import call_item, event_of, message_item, result_item
from raddle.actions.resuming.session import Header, Move, as_line, fields_of, put_text, text_in
from raddle.actions.resuming.told import Call, Turn
from raddle.model.clock import format_time
from raddle.model.threads.carried import FIELD, carried_mark, copied_form

VERSION = "0.171.0"
"""The program whose lines these look like."""


def write(header: Header, turns: Sequence[Turn]) -> Iterator[bytes]:
    """The lines of a rollout that tells these turns.

    No provider is named: Codex refuses a session of one that it has no settings for, and takes its own otherwise.
    """
    began = _stamp(header.began)
    meta: dict[str, Any] = {
        "id": header.session_id,
        "timestamp": began,
        "cwd": header.workspace,
        "originator": "raddle",
        "cli_version": VERSION,
        "source": "cli",
    }
    if header.git_branch:
        meta["git"] = {"branch": header.git_branch}
    yield as_line({"timestamp": began, "type": "session_meta", "payload": meta})
    for turn in turns:
        at = stamp_of(turn.message)
        for kind, payload, field in _lines(turn):
            line: dict[str, Any] = {"timestamp": at, "type": kind, "payload": payload}
            yield as_line(line | ({FIELD: field} if field is not None else {}))


def move_line(line: bytes, move: Move) -> bytes:
    """The line with the folder and the session that it has here."""
    fields = fields_of(line)
    if fields is None or "payload" not in fields:
        return line
    kind = text_in(fields, "type")
    payload = fields_of(fields["payload"])
    if payload is None:
        return line
    is_changed = False
    if kind in ("session_meta", "turn_context"):
        folder = text_in(payload, "cwd")
        is_changed = folder is not None and put_text(payload, "cwd", move.folder(folder))
    if kind == "session_meta" and move.is_new_session and text_in(payload, "id") == move.session:
        is_changed = True
        put_text(payload, "id", move.to_session)
        if "session_id" in payload:
            put_text(payload, "session_id", move.to_session)
        put_text(payload, "forked_from_id", move.session)
        put_text(payload, "timestamp", _stamp(move.at))
    return as_line(fields | {"payload": Raw(as_line(payload))}) if is_changed else line


def folder_in(line: bytes) -> str:
    """The folder that a header tells; empty for any other line."""
    fields = fields_of(line) or {}
    if text_in(fields, "type") != "session_meta" or "payload" not in fields:
        return ""
    return text_in(fields_of(fields["payload"]) or {}, "cwd") or ""


def argv(session_id: str) -> tuple[str, ...]:
    """What goes on with a session."""
    return ("codex", "resume", session_id)


def _lines(turn: Turn) -> Iterator[tuple[str, dict[str, Any], dict[str, Any] | None]]:
    """(kind, payload, our field) of each line of a turn."""
    message = turn.message
    field: dict[str, Any] = copied_form(message, is_said=turn.is_said)
    if turn.text or turn.pictures or not turn.calls:
        pictures = [one.url for one in turn.pictures]
        yield "response_item", message_item(turn.role, turn.text, pictures), field
        if turn.text:
            yield "event_msg", event_of(turn.role, turn.text), carried_mark(message)
        field = carried_mark(message)
    for call in turn.calls:
        yield "response_item", call_item(call.id, call.name, call.arguments), field
        field = carried_mark(message)
    for call in turn.calls:
        yield "response_item", result_item(call.id, _output(call)), _field_of(call)


def _output(call: Call) -> Any:
    result = call.result
    if not result.pictures:
        return result.text
    shown = [{"type": "input_image", "image_url": one.url} for one in result.pictures]
    return [{"type": "input_text", "text": result.text or "[a picture]"}, *shown]


def _field_of(call: Call) -> dict[str, Any] | None:
    message = call.result.message
    return None if message is None else copied_form(message, is_said=False)


def _stamp(at: int) -> str:
    return format_time(at)[:23] + "Z"
