"""A record of a Gemini CLI session as a value: which of its fields raddle reads, and nothing more.

Owns the names and types of that format in both its ages: a document that lists its messages, and lines of which
each is a header, a message, a change (`$set`) or a step back (`$rewindTo`). What is not named here is not
decoded: `resultDisplay` and the descriptions of tools are half of the bytes and repeat what other fields say.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from raddle.actions.importing.fitting import NOTHING, Count, decoded, encode, fitted, fitting
from raddle.actions.importing.records import UNREADABLE, Shape
from raddle.model.tolerant_json import decode_tolerantly


class TokenCount(Struct, frozen=True, gc=False):
    """`tokens`: `input` includes the cached ones, `output` does not include the thoughts."""

    input: Count | None = None
    output: Count | None = None
    cached: Count | None = None
    thoughts: Count | None = None
    tool: Count | None = None


class Thought(Struct, frozen=True, gc=False):
    """What the model said it was thinking of."""

    subject: str = ""
    description: str = ""


class Call(Struct, frozen=True, gc=False, rename="camel"):
    """A call of a tool, with its result once there is one. `agent_id`: the session of the sub-agent it started."""

    id: str = ""
    name: str = ""
    args: Raw = NOTHING
    result: Raw = NOTHING
    status: str = ""
    timestamp: str = ""
    agent_id: str | None = None


class InlineData(Struct, frozen=True, gc=False, rename="camel"):
    """Bytes of a picture or document, as base64."""

    data: str = ""
    mime_type: str | None = None


class FileData(Struct, frozen=True, gc=False, rename="camel"):
    """A file that lies elsewhere."""

    file_uri: str = ""


class FunctionCall(Struct, frozen=True, gc=False):
    """A call as the API takes it."""

    id: str | None = None
    name: str = ""
    args: Raw = NOTHING


class FunctionResponse(Struct, frozen=True, gc=False):
    """A result as the API takes it. `parts`: pictures that belong to it."""

    id: str | None = None
    name: str = ""
    response: Raw = NOTHING
    parts: list[Part] | None = None


class Answer(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What nearly every result is: a text, or what went wrong."""

    output: str | None = None
    error: str | None = None


class Code(Struct, frozen=True, gc=False):
    """Code that the API itself ran, or what it printed."""

    code: str = ""
    output: str = ""


class Part(Struct, frozen=True, gc=False, rename="camel"):
    """One element of a content list."""

    text: str | None = None
    thought: bool | None = None
    inline_data: InlineData | None = None
    file_data: FileData | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    executable_code: Code | None = None
    code_execution_result: Code | None = None


class Record(Struct, frozen=True, gc=False, rename="camel"):
    """One line, one message of a list, or a whole document: whichever of these its fields make it.

    `role`, `parts` and `ts` are what some exports have in the place of `type`, `content` and `timestamp`.
    """

    id: str = ""
    timestamp: str = ""
    type: str = ""
    content: Raw = NOTHING
    display_content: Raw = NOTHING
    thoughts: list[Thought] | None = None
    tokens: TokenCount | None = None
    model: str | None = None
    tool_calls: list[Call] | None = None
    role: str = ""
    parts: Raw = NOTHING
    ts: Count | float | None = None
    session_id: str = ""
    project_hash: str = ""
    start_time: str = ""
    kind: str | None = None
    summary: str | None = None
    messages: list[Record] | None = None
    history: list[Record] | None = None
    set: Record | None = field(default=None, name="$set")
    rewind_to: str | None = field(default=None, name="$rewindTo")
    raddle: Raw = NOTHING
    """Of a record that raddle wrote: the message it carries (`model/threads/carried.py`)."""

    @property
    def listed(self) -> list[Record] | None:
        """The messages that it lists; None where it lists none."""
        return self.messages if self.messages is not None else self.history

    @property
    def is_message(self) -> bool:
        """Is it something that was said?"""
        return bool(self.type or self.role) and self.set is None and self.rewind_to is None

    @property
    def said(self) -> Raw:
        """What was said, as its bytes stand."""
        return self.parts if self.content is NOTHING else self.content


decode_record = msgspec.json.Decoder(Record).decode
_decode_parts = msgspec.json.Decoder(str | Part | list[str | Part] | None).decode

_STARTS = re.compile(rb'\{"(?:id|sessionId|\$set|\$rewindTo)":')
_MESSAGES = frozenset(("user", "gemini", "model", "info", "warning", "error"))


def _is_record(value: dict[str, Any]) -> bool:
    """Is this a whole line, or a message, and not a call, a part or a result inside one?"""
    if isinstance(value.get("$set"), dict) or isinstance(value.get("$rewindTo"), str):
        return True
    if isinstance(value.get("sessionId"), str):
        return "projectHash" in value or "startTime" in value
    kind = value.get("type")
    return isinstance(kind, str) and kind in _MESSAGES and isinstance(value.get("id"), str)


SHAPE = Shape(_STARTS, _is_record)

_LISTED: dict[str, type[Struct]] = {
    "messages": Record,
    "history": Record,
    "toolCalls": Call,
    "thoughts": Thought,
}


def fit_record(value: dict[str, Any]) -> Record:
    """A `Record` of a plain object: what does not fit its type is left out, in what it lists too."""
    return decoded(encode(value), Record) or decode_record(encode(_fit_object(value, Record)))


def _fit_object(value: dict[str, Any], kind: type[Struct]) -> dict[str, Any]:
    return fitting({name: _fit_inner(name, given) for name, given in value.items()}, kind)


def _fit_inner(name: str, given: Any) -> Any:
    """A field that holds records, calls or thoughts, each with what fits of it."""
    if name == "$set" and isinstance(given, dict):
        return _fit_object(given, Record)
    kind = _LISTED.get(name)
    if kind is None or not isinstance(given, list):
        return given
    return [_fit_object(one, kind) for one in given if isinstance(one, dict)]


def parts_in(content: Raw) -> tuple[list[Part], list[str]]:
    """`content` as a list of parts, whatever shape it is in; and what was repaired for that."""
    repairs: list[str] = []
    try:
        found = _decode_parts(content)
    except UNREADABLE:
        plain, repairs = decode_tolerantly(bytes(content))
        found = [_fit_part(one) for one in (plain if isinstance(plain, list) else [plain])]
    listed = found if isinstance(found, list) else [] if found is None else [found]
    return [Part(text=one) if isinstance(one, str) else one for one in listed], repairs


def _fit_part(plain: Any) -> Part:
    if isinstance(plain, str):
        return Part(text=plain)
    if not isinstance(plain, dict):
        return Part(text="" if plain is None else encode(plain).decode())
    return fitted(plain, Part)
