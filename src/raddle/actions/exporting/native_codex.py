"""Added turns as lines of a Codex rollout, in the dialect of the rollout itself.

Owns how raddle writes an item of that format: bare or wrapped, with ordinals or without, and with the event that
shows it to a person where the rollout has such events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from raddle.actions.exporting.native import Added, Insertion, SourceEnd, Where, lines_at_end, stamp_of
from raddle.model.clock import parse_time
from raddle.model.threads.carried import FIELD, carried_form, carried_mark
from raddle.model.threads.message import Message

_PLAIN_EVENTS = frozenset(("user_message", "agent_message"))
_SHOWN_ITEMS = frozenset(("UserMessage", "AgentMessage"))


class _Item(Struct, gc=False):
    """`item` of an event."""

    type: str = ""


class _Payload(Struct, gc=False):
    """What is looked at of a payload."""

    type: str = ""
    turn_id: str | None = None
    item: _Item | None = None


class _Line(Struct, gc=False):
    """What is looked at of a line."""

    type: str = ""
    ordinal: int | None = None
    payload: _Payload | None = None
    role: str | None = None


_decode = msgspec.json.Decoder(_Line).decode


class CodexWriter:
    """Learns the dialect line by line."""

    def __init__(self) -> None:
        self._is_bare = False
        self._is_wrapped = False
        self._ordinal: int | None = None
        self._turn = ""
        self._has_events = False
        self._has_items = False

    def scan(self, chunk: bytes) -> None:
        """Lines tell everything."""

    def see(self, line: bytes, where: Where) -> None:
        """A line of the rollout."""
        try:
            found = _decode(line)
        except (msgspec.DecodeError, RecursionError):
            return
        payload = found.payload
        if payload is None:
            self._is_bare = self._is_bare or bool(found.role) or found.type == "message"
            return
        self._is_wrapped = True
        if found.ordinal is not None:
            self._ordinal = max(self._ordinal or 0, found.ordinal)
        self._turn = payload.turn_id or self._turn
        if found.type == "event_msg":
            self._has_events = self._has_events or payload.type in _PLAIN_EVENTS
            shown = payload.item.type if payload.item is not None else ""
            self._has_items = self._has_items or shown in _SHOWN_ITEMS

    def insertion(self, added: Sequence[Added], session_id: str, end: SourceEnd) -> Insertion:
        """Lines at the end."""
        lines = [msgspec.json.encode(line) for one in added for line in self._lines(one.message, session_id)]
        return lines_at_end(lines, end)

    def _lines(self, message: Message, session_id: str) -> Iterator[dict[str, Any]]:
        """The lines of one message: its items, then what shows its words to a person."""
        items = list(_items(message))
        is_said = items[0]["type"] == "message"
        for number, item in enumerate(items):
            field = carried_mark(message) if number else carried_form(message, is_said=is_said)
            yield self._wrapped("response_item", item, message, field)
        event = self._event(message, session_id) if is_said and not self._is_now_bare else None
        if event is not None:
            yield self._wrapped("event_msg", event, message, carried_mark(message))

    @property
    def _is_now_bare(self) -> bool:
        return self._is_bare and not self._is_wrapped

    def _wrapped(
        self, kind: str, payload: dict[str, Any], message: Message, field: dict[str, Any]
    ) -> dict[str, Any]:
        if self._is_now_bare:
            return {**payload, FIELD: field}
        line: dict[str, Any] = {"timestamp": stamp_of(message)}
        if self._ordinal is not None:
            self._ordinal += 1
            line["ordinal"] = self._ordinal
        return line | {"type": kind, "payload": payload, FIELD: field}

    def _event(self, message: Message, session_id: str) -> dict[str, Any] | None:
        is_user = message.role == "user"
        if self._has_items and self._turn:
            return self._shown(message, session_id, is_user=is_user)
        return event_of(message.role, message.content) if self._has_events else None

    def _shown(self, message: Message, session_id: str, *, is_user: bool) -> dict[str, Any]:
        at = (parse_time(stamp_of(message)) or 0) // 1000
        words: dict[str, Any] = {"type": "text" if is_user else "Text", "text": message.content}
        if is_user:
            words["text_elements"] = []
        return {
            "type": "item_completed",
            "thread_id": session_id,
            "turn_id": self._turn,
            "item": {
                "type": "UserMessage" if is_user else "AgentMessage",
                "id": message.id,
                "content": [words],
            },
            "started_at_ms": at,
            "completed_at_ms": at,
        }


def _items(message: Message) -> Iterator[dict[str, Any]]:
    """What the model is given of a message: its words, its calls, or the result of one."""
    if message.role == "tool":
        yield result_item(message.tool_call_id, message.content)
        return
    if message.content or not message.tool_calls:
        yield message_item(message.role, message.content)
    for call in message.tool_calls:
        yield call_item(call.id, call.tool_name, call.arguments_json)


def message_item(role: str, text: str, pictures: Iterable[str] = ()) -> dict[str, Any]:
    """Words of a person or of a model. `pictures`: as data URLs."""
    kind = "input_text" if role == "user" else "output_text"
    content = [{"type": kind, "text": text}] if text else []
    shown = [{"type": "input_image", "image_url": picture} for picture in pictures]
    return {"type": "message", "role": role, "content": [*content, *shown] or [{"type": kind, "text": ""}]}


def call_item(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    """A call of a tool."""
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return {"type": "function_call", "name": name, "arguments": text, "call_id": call_id}


def result_item(call_id: str, output: Any) -> dict[str, Any]:
    """What came back from a call. `output`: a text, or a list of blocks."""
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def event_of(role: str, text: str) -> dict[str, Any]:
    """What shows these words to a person."""
    if role == "user":
        return {"type": "user_message", "message": text, "images": []}
    return {"type": "agent_message", "message": text}
