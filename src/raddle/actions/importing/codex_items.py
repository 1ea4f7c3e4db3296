"""What one item of a Codex session says: its words, thoughts, calls, results and pictures, as parts of messages.

Owns which words a person typed and which a program put in their mouth. Knows one item at a time; where a part
stands, and which parts are one response of the model, is decided elsewhere.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Raw

from raddle.actions.importing.codex_lines import Block, Outcome, Payload, blocks_of, text_of
from raddle.actions.importing.fitting import decoded, encode, plain_of
from raddle.actions.importing.parts import ASSISTANT, SYSTEM, TOOL, USER, Aside, MessagePart, joined
from raddle.model.threads.message import NOTICE, Attachment, ToolCall
from raddle.model.tolerant_json import DEEPEST

_INJECTED = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|INSTRUCTIONS|permissions instructions|app-context"
    r"|skills?_instructions|plugins?_instructions|apps?_instructions|environments?_instructions|skill"
    r"|recommended_plugins|collaboration_mode|codex_internal_context|turn_aborted|user_shell_command"
    r"|subagent_notification|codex_delegation|user_action|personality_spec|model_switch|multi_agent_mode"
    r"|realtime_conversation|hook_prompt|goal_context|token_budget|world_state|git_attribution)\b[^>]*>"
    r"|# AGENTS\.md instructions|# Instructions\s)"
)
"""How words begin that the program wrote."""

_REQUEST = "## My request for Codex:"
_IDE = ("# Context from my IDE setup:", "# Files mentioned by the user:")
_IMAGE_TAG = re.compile(r"\s*<(/?)image(?: name=([^>]*))?>\s*\Z")
_FAILED = re.compile(r"(?:Exit code: |[\s\S]{0,200}?Process exited with code )(-?\d+)")

_CALLS = frozenset(
    "function_call custom_tool_call local_shell_call web_search_call tool_search_call tool_call".split()
)


def parts_of(item: Payload, aside: Aside) -> list[MessagePart]:
    """The parts of an item, in order; none where it has no words for anyone."""
    kind = item.type
    if kind == "message" or (not kind and item.role):
        return _message_parts(item, aside)
    if kind == "reasoning":
        thoughts = [*_texts(item.summary, aside), *_texts(item.content, aside)]
        return [MessagePart(role=ASSISTANT, thinking=joined(dict.fromkeys(thoughts)))]
    if kind in _CALLS:
        return [MessagePart(role=ASSISTANT, tool_calls=(_call_of(item, aside),))]
    if kind == "image_generation_call":
        return [_drawn(item, aside)]
    if kind == "agent_message":
        words = joined(_texts(item.content, aside))
        told = {"author": item.author, "recipient": item.recipient}
        extra = {name: value for name, value in told.items() if value}
        return [MessagePart(role=USER, kind=NOTICE, content=words, extra=extra)]
    if kind.endswith(("_output", "_result")):
        return [_result_part(item, aside)]
    return []


def said_in(item: Payload) -> tuple[Raw | bytes, ...]:
    """What an item says, as its bytes stand: what its id is made of where it has none."""
    if item.type in _CALLS or item.type == "image_generation_call":
        return (item.name or "").encode(errors="replace"), item.arguments, item.input, item.action
    if item.type == "reasoning":
        return item.summary, item.content
    if item.type.endswith(("_output", "_result")):
        return item.output, item.result, item.tools
    return item.content, item.message


def _texts(content: Raw, aside: Aside) -> list[str]:
    blocks, repairs = blocks_of(content)
    aside.repairs += repairs
    return [block.text for block in blocks if block.text]


def _message_parts(item: Payload, aside: Aside) -> list[MessagePart]:
    blocks, repairs = blocks_of(item.content)
    aside.repairs += repairs
    if not blocks and (words := text_of(item.message)):
        blocks = [Block(type="text", text=words)]
    if item.role == USER:
        return _user_parts(item, blocks, aside)
    words = joined(block.text or "" for block in blocks)
    attachments = _attachments(blocks, aside)
    if item.role == ASSISTANT:
        extra = {"phase": item.phase} if item.phase else {}
        return [MessagePart(role=ASSISTANT, content=words, attachments=attachments, extra=extra)]
    role = item.role if item.role == TOOL else SYSTEM
    return [MessagePart(role=role, kind=NOTICE, content=words, attachments=attachments)]


def _user_parts(item: Payload, blocks: list[Block], aside: Aside) -> list[MessagePart]:
    """What a person typed, and what stands beside it in the same item."""
    passed = item.internal_chat_message_metadata_passthrough
    kinds = (passed.content_item_kinds if passed is not None else None) or []
    typed: list[str] = []
    injected: list[str] = []
    for at, block in enumerate(blocks):
        text = block.text
        if not text or _IMAGE_TAG.match(text):
            continue
        if _is_injected(text, (kinds[at] if at < len(kinds) else None) or ""):
            injected.append(text)
            continue
        before, said = _request_in(text)
        injected.append(before)
        typed.append(said)
    parts = [
        MessagePart(role=USER, kind=NOTICE, key="notice", content=joined(injected)),
        MessagePart(role=USER, key="said", content=joined(typed), attachments=_attachments(blocks, aside)),
    ]
    parts = [part for part in parts if not part.is_empty]
    if parts:
        parts[0] = msgspec.structs.replace(parts[0], key="")
    return parts


def _is_injected(text: str, kind: str) -> bool:
    """Newer versions say of each text where it comes from; the words themselves tell in all others."""
    if kind and kind != "unknown":
        return not kind.startswith("user.")
    return _INJECTED.match(text) is not None


def _request_in(text: str) -> tuple[str, str]:
    """(what an editor put before it, what the person asked)."""
    if text.startswith(_IDE):
        before, mark, said = text.partition(_REQUEST)
        if mark and said.strip():
            return before.rstrip(), said.strip()
    return "", text


def _call_of(item: Payload, aside: Aside) -> ToolCall:
    kind = item.type
    name = item.name or (item.function.name if item.function is not None else "")
    if kind in ("local_shell_call", "web_search_call", "tool_search_call"):
        name = name or kind.removesuffix("_call")
    if item.namespace and name:
        name = f"{item.namespace}.{name}"
    arguments = next(
        (one for one in (item.arguments, item.input, item.action) if bytes(one) != b"null"), item.arguments
    )
    value = aside.plain(arguments)
    if kind == "function_call" and isinstance(value, str):
        value = _parsed(value)
    return ToolCall(id=item.call_id or item.id or "", tool_name=name, arguments_json=value)


def _parsed(text: str) -> Any:
    """Arguments are JSON inside a text; a text that is no JSON object stays as it is."""
    if not text.lstrip().startswith("{"):
        return text
    data = text.encode(errors="replace")
    value = decoded(data, dict[str, Any])
    if value is None:
        return text
    is_deep = data.count(b"[") + data.count(b"{") > DEEPEST
    return plain_of(Raw(data))[0] if is_deep else value


def _drawn(item: Payload, aside: Aside) -> MessagePart:
    """A picture that the model made: its call and its result are one item."""
    attachments: tuple[Attachment, ...] = ()
    if data := text_of(item.result):
        attachments = (aside.attach(aside.from_base64(data), "image/png"),)
    asked = {"prompt": item.revised_prompt} if item.revised_prompt else None
    call = ToolCall(id=item.call_id or item.id or "", tool_name="image_generation", arguments_json=asked)
    return MessagePart(role=ASSISTANT, tool_calls=(call,), attachments=attachments)


def _result_part(item: Payload, aside: Aside) -> MessagePart:
    """The answer to one call. It is kept when it is empty: the call was answered."""
    content, is_error = "", False
    attachments: tuple[Attachment, ...] = ()
    if bytes(item.tools) != b"null":
        named = decoded(item.tools, list[dict[str, Any]]) or []
        content = "\n".join(str(one.get("name") or "") for one in named)
    else:
        output = item.output if bytes(item.output) != b"null" else item.result
        content, is_error, attachments = _outcome(output, aside)
    return MessagePart(
        role=TOOL,
        content=content,
        tool_call_id=item.call_id or "",
        tool_name=item.name or "",
        is_error=is_error,
        attachments=attachments,
    )


def _outcome(output: Raw, aside: Aside) -> tuple[str, bool, tuple[Attachment, ...]]:
    """(text, did it fail?, pictures) of an output, whatever shape it is in."""
    text = decoded(output, str)
    if text is not None:
        return *_of_shell(text), ()
    told = decoded(output, Outcome)
    if told is not None and (told.content is not None or told.output is not None):
        return *_of_outcome(told), ()
    blocks, repairs = blocks_of(output)
    if not blocks:
        plain = aside.plain(output)
        return ("" if plain is None else encode(plain).decode()), False, ()
    aside.repairs += repairs
    words = joined((block.text or "" for block in blocks), "\n")
    found = _FAILED.match(words)
    return words, found is not None and found[1] != "0", _attachments(blocks, aside)


def _of_shell(text: str) -> tuple[str, bool]:
    if text.startswith('{"output":') and text.endswith("}"):
        told = decoded(text.encode(errors="replace"), Outcome)
        if told is not None and told.output is not None:
            return _of_outcome(told)
    found = _FAILED.match(text)
    return text, found is not None and found[1] != "0"


def _of_outcome(told: Outcome) -> tuple[str, bool]:
    code = told.metadata.exit_code if told.metadata is not None else None
    return told.content or told.output or "", told.success is False or code not in (None, 0)


def _attachments(blocks: list[Block], aside: Aside) -> tuple[Attachment, ...]:
    """Pictures and files whose bytes are in the item. The tag before a picture tells its name."""
    kept: list[Attachment] = []
    name = ""
    for block in blocks:
        tag = _IMAGE_TAG.match(block.text) if block.text else None
        if tag is not None:
            name = (tag[2] or "").strip("\"' ")
        found = aside.from_data_url(block.image_url or block.file_data or "")
        if found is not None:
            kept.append(aside.attach(*found, block.filename or name))
            name = ""
    return tuple(kept)
