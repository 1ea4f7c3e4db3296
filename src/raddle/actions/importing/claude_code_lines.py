"""A line of a Claude Code session file as a value: which of its fields raddle reads, and nothing more.

Owns the names and types of that format, which has no public schema. What is not named here is not decoded:
`toolUseResult`, `snapshot` and `data` are two thirds of the bytes and repeat what other fields say.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from raddle.actions.importing.fitting import NOTHING, Count, decoded, encode, fitted, fitting
from raddle.actions.importing.records import UNREADABLE, Shape
from raddle.model.tolerant_json import decode_tolerantly


class TokenCount(Struct, frozen=True, gc=False):
    """`message.usage`."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None


class Block(Struct, frozen=True, gc=False):
    """One element of a content list, of any type."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: Raw = NOTHING
    tool_use_id: str = ""
    content: str | list[Block] | None = None
    is_error: bool | None = None
    source: Raw = NOTHING
    title: str | None = None
    tool_name: str = ""


class Said(Struct, frozen=True, gc=False):
    """`message`: what the API took or gave. `content`: a text or a list of blocks, not decoded yet."""

    id: str = ""
    model: str = ""
    content: Raw = NOTHING
    usage: TokenCount | None = None


class Origin(Struct, frozen=True, gc=False, rename="camel"):
    """Where a prompt came from."""

    kind: str = ""
    sender_task_id: str | None = None


class Entry(Struct, frozen=True, gc=False, rename="camel"):
    """One line. `parent_uuid` is UNSET in files that know no tree, None at a root."""

    type: str = ""
    uuid: str = ""
    parent_uuid: str | UnsetType | None = UNSET
    timestamp: str = ""
    session_id: str | None = None
    is_sidechain: bool | None = None
    message: Said | None = None
    cwd: str | None = None
    git_branch: str | None = None
    version: str | None = None
    subtype: str = ""
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_visible_in_transcript_only: bool | None = None
    is_api_error_message: bool | None = None
    agent_id: str | None = None
    parent_tool_use_id: str | None = field(default=None, name="parentToolUseID")
    origin: Origin | None = None
    cost_usd: float | None = field(default=None, name="costUSD")
    content: Raw = NOTHING
    error: Raw = NOTHING
    attachment: Raw = NOTHING
    summary: str = ""
    leaf_uuid: str | None = None
    custom_title: str | None = None
    ai_title: str | None = None
    name: str = ""
    input: Raw = NOTHING
    output: Raw = NOTHING
    raddle: Raw = NOTHING
    """Of a line that raddle wrote: the message it carries (`model/threads/carried.py`)."""


class Enclosed(Struct, frozen=True, gc=False, rename="camel"):
    """`attachment`, as far as it can hold words for people."""

    type: str = ""
    prompt: Raw = NOTHING
    origin: Origin | None = None
    is_meta: bool | None = None
    content: Raw = NOTHING
    filename: str = ""
    snippet: str = ""
    blocking_error: Raw = NOTHING


class StartedAgent(Struct, frozen=True, gc=False, rename="camel"):
    """The ids of what a call started: one sub-agent, or a run of them."""

    agent_id: str | None = None
    run_id: str | None = None


class ProgressLine(Struct, frozen=True, gc=False):
    """The one fact a progress line is asked for."""

    data: StartedAgent | None = None


class OutcomeLine(Struct, frozen=True, gc=False, rename="camel"):
    """The one fact the result of a call that starts agents is asked for."""

    tool_use_result: StartedAgent | None = None


class Sidecar(Struct, frozen=True, gc=False, rename="camel"):
    """`agent-<id>.meta.json` beside a sub-agent's file."""

    agent_type: str | None = None
    description: str | None = None
    tool_use_id: str | None = None


decode_entry = msgspec.json.Decoder(Entry).decode
_decode_blocks = msgspec.json.Decoder(str | list[Block] | None).decode

_STARTS = re.compile(
    rb'\{"(?:parentUuid|logicalParentUuid|type|uuid|sessionId|isSidechain|userType|cwd|version|gitBranch|message'
    rb'|timestamp|agentId|leafUuid|summary|messageId|operation|customTitle|aiTitle|isMeta|slug|requestId)":'
)


def _is_record(value: dict[str, Any]) -> bool:
    """Is this a whole line of a session, and not a block, a message or a sub-agent's line inside one?"""
    kind = value.get("type")
    if not isinstance(kind, str):
        return False
    return (
        isinstance(value.get("sessionId"), str)
        or (kind == "summary" and "leafUuid" in value)
        or (kind == "file-history-snapshot" and "snapshot" in value)
    )


SHAPE = Shape(_STARTS, _is_record)


def fit_entry(value: dict[str, Any]) -> Entry:
    """An `Entry` of a plain object: what does not fit its type is left out."""
    entry = decoded(encode(value), Entry)
    if entry is not None:
        return entry
    if isinstance(said := value.get("message"), dict):
        value = value | {"message": fitting(said, Said)}
    return fitted(value, Entry)


def blocks_of(content: Raw) -> tuple[str | list[Block], list[str]]:
    """`content` as a text or a list of blocks, whatever shape it is in; and what was repaired for that."""
    try:
        return _decode_blocks(content) or "", []
    except UNREADABLE:
        plain, repairs = decode_tolerantly(bytes(content))
    if isinstance(plain, list):
        return [_fit_block(one) for one in plain], repairs
    return _fit_block(plain).text, repairs


def _fit_block(plain: Any) -> Block:
    if isinstance(plain, str):
        return Block(type="text", text=plain)
    if not isinstance(plain, dict):
        return Block(type="text", text=encode(plain).decode())
    fits = fitting(plain, Block)
    if plain.get("content") is not None and "content" not in fits:
        fits["content"] = encode(plain["content"]).decode()
    return msgspec.json.decode(encode(fits), type=Block)
