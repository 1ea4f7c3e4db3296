"""A line of an OpenCode session as a value: which of its fields raddle reads, and nothing more.

Owns the names and types of OpenCode's records (`session`, `message`, `part`, as its database and its older folder
of JSON files have them), and the two kinds of line that an adapter makes of them: a session's header, and a message
with its parts. What is not named here is not decoded: a tool's `metadata` and a turn's `summary` repeat what the
outputs say.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from raddle.actions.importing.fitting import NOTHING, decoded, encode, fitting
from raddle.actions.importing.records import UNREADABLE, Shape

SESSION, MESSAGE = "session", "message"
"""What `opencode`, the first field of a line, says."""


class Times(Struct, frozen=True, gc=False):
    """Milliseconds since 1970. `start`, `end`: of a call; `created`, `completed`: of a message."""

    created: float | None = None
    completed: float | None = None
    updated: float | None = None
    start: float | None = None
    end: float | None = None


class Cached(Struct, frozen=True, gc=False):
    """`tokens.cache`."""

    read: float | None = None
    write: float | None = None


class TokenCount(Struct, frozen=True, gc=False):
    """`tokens`. `input` does not hold the cached ones; `output` holds `reasoning` where there is no `total`."""

    total: float | None = None
    input: float | None = None
    output: float | None = None
    reasoning: float | None = None
    cache: Cached | None = None


class ModelName(Struct, frozen=True, gc=False, rename={"provider_id": "providerID", "model_id": "modelID"}):
    """`model` of a message, or of a session (there its `id` names it)."""

    provider_id: str = ""
    model_id: str = ""
    id: str = ""


class Folders(Struct, frozen=True, gc=False):
    """`path` of a message."""

    cwd: str | None = None


class CallState(Struct, frozen=True, gc=False):
    """`state` of a call: how far it is, and what came of it."""

    status: str = ""
    input: Raw = NOTHING
    output: Raw = NOTHING
    error: Raw = NOTHING
    metadata: Raw = NOTHING
    attachments: list[Part] | None = None
    time: Times | None = None


class Part(Struct, frozen=True, gc=False, rename={"call_id": "callID"}):
    """One part of a message, of any type. `unreadable`: the text of one that is no JSON; `mended`: it was
    not quite that."""

    id: str = ""
    type: str = ""
    text: str = ""
    synthetic: bool | None = None
    ignored: bool | None = None
    tool: str = ""
    call_id: str = ""
    state: CallState | None = None
    mime: str | None = None
    filename: str | None = None
    url: str = ""
    prompt: str = ""
    description: str | None = None
    command: str | None = None
    tokens: TokenCount | None = None
    cost: Raw = NOTHING
    metadata: Raw = NOTHING
    """Of a part that raddle wrote: the messages it carries."""
    unreadable: str | None = None
    mended: bool = False


class About(
    Struct,
    frozen=True,
    gc=False,
    rename={"parent_id": "parentID", "provider_id": "providerID", "model_id": "modelID"},
):
    """What a message says beside its parts: `data` of its row. `summary` is true of the summary of a compaction."""

    role: str = ""
    parent_id: str | None = None
    time: Times | None = None
    provider_id: str | None = None
    model_id: str | None = None
    model: ModelName | None = None
    path: Folders | str | None = None
    agent: str | None = None
    summary: Raw = NOTHING
    tokens: TokenCount | None = None
    cost: Raw = NOTHING
    error: Raw = NOTHING
    unreadable: str | None = None
    mended: bool = False


class Revert(Struct, frozen=True, gc=False, rename={"message_id": "messageID", "part_id": "partID"}):
    """From where on a session's messages are taken back; `part_id`: within that message, which then stays."""

    message_id: str = ""
    part_id: str | None = None


class Line(Struct, frozen=True, gc=False, rename={"parent_id": "parentID"}):
    """One line: the header of a session, or a message of one.

    `after`: the message before it in its session, None for the first.
    """

    opencode: str = ""
    type: str = ""
    id: str = ""
    # A header's:
    parent_id: str | None = None
    directory: str | None = None
    title: str | None = None
    version: str | None = None
    agent: str | None = None
    model: ModelName | None = None
    time: Times | None = None
    revert: Revert | None = None
    # A message's:
    session: str = ""
    after: str | None = None
    info: About | None = None
    parts: list[Part] = field(default_factory=list)


class Fault(Struct, frozen=True, gc=False):
    """`error` of a message."""

    name: str = ""
    data: Raw = NOTHING


class Told(Struct, frozen=True, gc=False):
    """The words of an error."""

    message: str = ""


class Started(
    Struct, frozen=True, gc=False, rename={"session_id": "sessionId", "old_session_id": "sessionID"}
):
    """`metadata` of a call that started a sub-agent: the session that is that sub-agent's."""

    session_id: str | None = None
    old_session_id: str | None = None


class Task(Struct, frozen=True, gc=False):
    """`input` of such a call."""

    prompt: str = ""
    subagent_type: str | None = None
    description: str | None = None


decode_line = msgspec.json.Decoder(Line).decode

_STARTS = re.compile(rb'\{"opencode":')


def _is_record(value: dict[str, Any]) -> bool:
    return value.get("opencode") in (SESSION, MESSAGE) and isinstance(value.get("id"), str)


SHAPE = Shape(_STARTS, _is_record)


def fit_line(value: Any) -> list[Line]:
    """The line of a plain value; what does not fit its type is left out."""
    if not isinstance(value, dict) or not ("opencode" in value or "type" in value):
        return []
    try:
        return [decode_line(encode(value))]
    except UNREADABLE:
        return [_fit_line(value)]


def _fit_line(value: dict[str, Any]) -> Line:
    if isinstance(info := value.get("info"), dict):
        value = value | {"info": fitting(info, About)}
    if isinstance(parts := value.get("parts"), list):
        value = value | {"parts": [_fit_part(part) for part in parts if isinstance(part, dict)]}
    return decode_line(encode(fitting(value, Line)))


def _fit_part(part: dict[str, Any]) -> dict[str, Any]:
    if isinstance(state := part.get("state"), dict):
        part = part | {"state": fitting(state, CallState)}
    return fitting(part, Part)


def text_of(raw: Raw) -> str:
    """A text as it is; anything else as JSON; empty where there is nothing."""
    if raw == NOTHING:
        return ""
    text = decoded(raw, str)
    return bytes(raw).decode(errors="replace") if text is None else text
