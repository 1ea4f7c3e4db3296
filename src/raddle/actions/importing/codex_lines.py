"""A line of a Codex rollout as a value: which of its fields raddle reads, and nothing more.

Owns the names and types of that format in all its ages: bare items (2025), `{timestamp, type, payload}`, and
the same with ordinals. What is not named here is not decoded: instructions, tool lists, world states and the
events that repeat what an item says are most of the bytes.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw, Struct

from raddle.actions.importing.fitting import NOTHING, Count, decoded, encode, fitted
from raddle.actions.importing.records import UNREADABLE, Shape
from raddle.model.tolerant_json import decode_tolerantly


class TokenCount(Struct, frozen=True, gc=False):
    """Tokens of one response, or of all so far. `input_tokens` include the cached ones."""

    input_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    cache_write_input_tokens: Count | None = None
    output_tokens: Count | None = None


class TokenInfo(Struct, frozen=True, gc=False):
    """`info` of a `token_count` event."""

    total_token_usage: TokenCount | None = None
    last_token_usage: TokenCount | None = None


class Git(Struct, frozen=True, gc=False):
    """`git` of a session's header."""

    commit_hash: str | None = None
    branch: str | None = None
    repository_url: str | None = None


class Position(Struct, frozen=True, gc=False):
    """`history_base`: what a rollout goes on from, records of the rollout `thread_id` below an ordinal."""

    thread_id: str = ""
    end_ordinal_exclusive: Count | None = None


class Passthrough(Struct, frozen=True, gc=False):
    """`internal_chat_message_metadata_passthrough` of an item."""

    turn_id: str | None = None
    content_item_kinds: list[str | None] | None = None


class Settings(Struct, frozen=True, gc=False):
    """`thread_settings` of an event."""

    model: str | None = None
    model_provider_id: str | None = None


class Activity(Struct, frozen=True, gc=False):
    """`item` of an `item_completed` event, as far as it tells which call started which sub-agent."""

    type: str = ""
    id: str | None = None
    agent_thread_id: str | None = None


class Function(Struct, frozen=True, gc=False):
    """`function` of a call, as the first versions wrote it."""

    name: str = ""


class Payload(Struct, frozen=True, gc=False):
    """What a line says: an item, an event, a header or a turn's context, all in one."""

    type: str = ""
    id: str | None = None
    role: str | None = None
    content: Raw = NOTHING
    phase: str | None = None
    summary: Raw = NOTHING
    name: str | None = None
    namespace: str | None = None
    arguments: Raw = NOTHING
    input: Raw = NOTHING
    action: Raw = NOTHING
    call_id: str | None = None
    output: Raw = NOTHING
    result: Raw = NOTHING
    tools: Raw = NOTHING
    function: Function | None = None
    revised_prompt: str | None = None
    author: str | None = None
    recipient: str | None = None
    message: Raw = NOTHING
    replacement_history: Raw = NOTHING
    internal_chat_message_metadata_passthrough: Passthrough | None = None
    turn_id: str | None = None
    cwd: str | None = None
    model: str | None = None
    session_id: str | None = None
    forked_from_id: str | None = None
    parent_thread_id: str | None = None
    timestamp: str | None = None
    cli_version: str | None = None
    model_provider: str | None = None
    source: Raw = NOTHING
    git: Git | None = None
    history_base: Position | None = None
    subagent_history_start_ordinal: Count | None = None
    info: TokenInfo | None = None
    usage: TokenCount | None = None
    thread_token_usage: TokenCount | None = None
    thread_settings: Settings | None = None
    thread_name: str | None = None
    num_turns: Count | None = None
    thread_id: str | None = None
    new_thread_id: str | None = None
    agent_thread_id: str | None = None
    event_id: str | None = None
    item: Activity | None = None
    record_type: str | None = None
    created_at: str | None = None

    @property
    def turn(self) -> str:
        """The turn that an item belongs to, where it says so."""
        passed = self.internal_chat_message_metadata_passthrough
        return (passed.turn_id if passed is not None else None) or ""


class Line(Struct, frozen=True, gc=False):
    """One line; `payload` is None where the line is a bare item itself."""

    timestamp: str | None = None
    ordinal: Count | None = None
    type: str = ""
    payload: Payload | None = None
    raddle: Raw = NOTHING
    """Of a line that raddle wrote: the message it carries (`model/threads/carried.py`)."""


class Block(Struct, frozen=True, gc=False):
    """One element of a content list, of any type. `image_url`: a `data:` URL, or one that leads elsewhere."""

    type: str = ""
    text: str | None = None
    image_url: str | None = None
    filename: str | None = None
    file_data: str | None = None


class Spawn(Struct, frozen=True, gc=False):
    """`source.subagent.thread_spawn` of a sub-agent's header."""

    parent_thread_id: str | None = None
    agent_path: str | None = None
    agent_nickname: str | None = None
    agent_role: str | None = None


class SubAgent(Struct, frozen=True, gc=False):
    """`source.subagent`, where it says who spawned it."""

    thread_spawn: Spawn | None = None


class Source(Struct, frozen=True, gc=False):
    """`source` of a header, where it is more than a word."""

    subagent: SubAgent | None = None


class Kept(Struct, frozen=True, gc=False):
    """An item of `replacement_history`, looked at before it is read in earnest."""

    type: str = ""
    id: str | None = None
    role: str | None = None


class Outcome(Struct, frozen=True, gc=False):
    """An `output` that is an object, and the JSON that shells of 2025 wrote into the text."""

    class Exit(Struct, frozen=True, gc=False):
        """What is told of the command."""

        exit_code: int | None = None

    output: str | None = None
    content: str | None = None
    success: bool | None = None
    metadata: Exit | None = None


ITEMS = frozenset(
    (
        "message reasoning function_call function_call_output custom_tool_call custom_tool_call_output"
        " local_shell_call local_shell_call_output web_search_call tool_search_call tool_search_output"
        " image_generation_call mcp_tool_call_output agent_message tool_call tool_result function_result"
        " ghost_snapshot compaction compaction_summary context_compaction compaction_trigger other"
    ).split()
)
"""Items that are known, those without words among them."""

WRAPPERS = frozenset(
    (
        "session_meta turn_context response_item event_msg compacted world_state token_usage_record"
        " inter_agent_communication inter_agent_communication_metadata security_risk_score"
    ).split()
)
"""What the lines of a rollout can be, since they have a payload."""

decode_line = msgspec.json.Decoder(Line).decode
decode_payload = msgspec.json.Decoder(Payload).decode
_decode_blocks = msgspec.json.Decoder(str | list[Block] | Block | None).decode

_STARTS = re.compile(rb'\{"(?:timestamp|ordinal|type|payload|id|record_type|created_at|role)" ?:')


def _is_record(value: dict[str, Any]) -> bool:
    """Is this a whole line, and not an item, a block or a header inside one?"""
    kind = value.get("type")
    return isinstance(kind, str) and kind in WRAPPERS and isinstance(value.get("payload"), dict)


SHAPE = Shape(_STARTS, _is_record)


def bare_payload(line: bytes) -> Payload:
    """The line itself as a payload; what does not fit its type is left out."""
    found = decoded(line, Payload)
    if found is not None:
        return found
    plain = decode_tolerantly(line)[0]
    return fitted(plain, Payload) if isinstance(plain, dict) else Payload()


def fit_line(value: dict[str, Any]) -> Line | None:
    """A `Line` of a plain object: what does not fit its type is left out. None where it can be no line."""
    payload = value.get("payload")
    if not isinstance(payload, dict):
        is_bare = "record_type" in value or isinstance(value.get("role"), str)
        is_bare = is_bare or (isinstance(value.get("id"), str) and isinstance(value.get("timestamp"), str))
        return fitted(value, Line) if is_bare or isinstance(value.get("type"), str) else None
    line = decoded(encode(value), Line)
    if line is None:
        line = fitted({name: one for name, one in value.items() if name != "payload"}, Line)
        line = msgspec.structs.replace(line, payload=fitted(payload, Payload))
    return line


def blocks_of(content: Raw) -> tuple[list[Block], list[str]]:
    """`content` as a list of blocks, whatever shape it is in; and what was repaired for that."""
    try:
        found = _decode_blocks(content)
    except UNREADABLE:
        plain, repairs = decode_tolerantly(bytes(content))
        return [_fit_block(one) for one in (plain if isinstance(plain, list) else [plain])], repairs
    if isinstance(found, list):
        return found, []
    if isinstance(found, str):
        return [Block(type="text", text=found)], []
    return [found] if found is not None and found.type else [], []


def _fit_block(plain: Any) -> Block:
    if isinstance(plain, dict):
        return fitted(plain, Block)
    return Block(type="text", text=plain if isinstance(plain, str) else encode(plain).decode())


def text_of(raw: Raw) -> str:
    """`raw` where it is a text, else nothing."""
    return decoded(raw, str) or ""


def spawn_of(payload: Payload) -> Spawn:
    """What a header says of who started the sub-agent that it heads."""
    source = decoded(payload.source, Source)
    subagent = source.subagent if source is not None else None
    spawn = (subagent.thread_spawn if subagent is not None else None) or Spawn()
    return msgspec.structs.replace(
        spawn, parent_thread_id=payload.parent_thread_id or spawn.parent_thread_id or None
    )
