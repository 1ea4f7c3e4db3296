"""A window into a thread: some messages of one path, in their order, as many as an agent has room for."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from raddle.actions.threads import find_message, leaf_of
from raddle.apps.mcp_server.paging import CHARACTERS_A_TOKEN, Budget
from raddle.model.errors import InvalidInput, NotFound
from raddle.model.threads.branching import list_branches
from raddle.model.threads.message import TURN, Message
from raddle.model.threads.recalled import is_recalled
from raddle.model.threads.thread import Thread

_LONGEST_SAID, _LONGEST_OUTPUT, _LONGEST_CALL = 6000, 1200, 600
"""Characters that are shown of what somebody said, of a tool's output, of a call's arguments."""
_TAIL = 0.25
_ANCHOR_SHARE = 0.6
"""So much of the room a message may take that the rest is shown around."""
_MOST_BRANCHES = 8
_MOST_CALLS = 12
_CURSOR = re.compile(r"(before|after):([^@\s]+)@([^@\s]+)\Z")
_CUT_NOTE = "cut: characters left out; thread_read with that message_id and offset 0 has all of it"

Told = tuple[dict[str, Any], list[str]]
"""What is told, and the texts in it."""


class _Where(NamedTuple):
    """A path and the message that the window begins with (None: there is none), and which ways it goes on from it."""

    path: list[Message]
    anchor: int | None
    goes_back: bool = True
    goes_on: bool = True


def window(
    thread: Thread,
    end: str | None,
    *,
    message: str | None,
    branch: str | None,
    cursor: str | None,
    tokens: int,
) -> Told:
    """Messages around `message`, else the last ones of `branch`, else those up to `end`; or those that a cursor goes
    on to. NotFound, Ambiguous for a message or branch; InvalidInput for a cursor that is none."""
    where = _where(thread, end, message, branch, cursor)
    budget = Budget(tokens)
    told: dict[str, Any] = {}
    if not cursor and (others := _branches(thread, where.path)):
        told["branches"] = others
        budget.takes(others)
    if where.anchor is None:
        return {**told, "messages": []}, []
    first, last, shapes = _filled(thread, where, budget, tokens, is_asked_for=message is not None)
    told["messages"] = [shape for shape, _ in shapes]
    told["shown"] = f"{first + 1}-{last + 1} of {len(where.path)} on this branch"
    if first > 0:
        told["earlier"] = f"before:{where.path[first].id}@{where.path[-1].id}"
    if last < len(where.path) - 1:
        told["later"] = f"after:{where.path[last].id}@{where.path[-1].id}"
    if any("cut" in shape or "calls_left_out" in shape for shape, _ in shapes):
        told["note"] = _CUT_NOTE
    return told, [text for _, texts in shapes for text in texts]


def one_message(thread: Thread, message: str, offset: int, tokens: int) -> Told:
    """One message, whole, from a character on, as far as there is room; its thinking and calls with the first part."""
    found = find_message(thread, message)
    if offset and offset >= len(found.content):
        raise InvalidInput(
            f"offset {offset:,} is past the end", f"the message has {len(found.content):,} characters"
        )
    budget = Budget(tokens)
    text, is_all = budget.cut(found.content[offset:], share=1.0 if offset else 0.8)
    shape = _facts(thread, found)
    texts = [text]
    if not offset:
        shape |= _calls(found, most=tokens * CHARACTERS_A_TOKEN)
        if found.thinking:
            shape["thinking"] = _shortened(found.thinking, tokens)[0]
            texts.append(shape["thinking"])
    shape["text"] = text
    if not is_all:
        shape["next_offset"] = offset + len(text)
    if any(attached.is_body for attached in found.attachments):
        shape["note"] = "only the head and tail of this text are here: `raddle show` has all of it"
    return {"message": {name: value for name, value in shape.items() if value}}, texts


def _where(
    thread: Thread, end: str | None, message: str | None, branch: str | None, cursor: str | None
) -> _Where:
    if cursor:
        return _where_of_cursor(thread, cursor)
    tree = thread.tree
    leaf = end
    if branch:
        leaf = leaf_of(thread, _on_branch(thread, branch))
    if not message:
        path = tree.path_to_root(leaf)
        return _Where(path, len(path) - 1 if path else None, goes_on=False)
    found = find_message(thread, message).id
    path = tree.path_to_root(leaf)
    if found not in {one.id for one in path}:
        path = tree.path_to_root(leaf_of(thread, found))
    return _Where(path, next(at for at, one in enumerate(path) if one.id == found))


def _where_of_cursor(thread: Thread, cursor: str) -> _Where:
    found = _CURSOR.match(cursor)
    path = thread.tree.path_to_root(found[3]) if found is not None else []
    at = next((at for at, one in enumerate(path) if found is not None and one.id == found[2]), None)
    if found is None or at is None:
        raise InvalidInput("cursor is none of this thread's", "give an answer's earlier or later, or none")
    if found[1] == "before":
        return _Where(path, at - 1 if at else None, goes_on=False)
    return _Where(path, at + 1 if at + 1 < len(path) else None, goes_back=False)


def _on_branch(thread: Thread, name: str) -> str:
    """The last message of the branch of this name, or a message of this id."""
    named = [row for row in list_branches(thread) if row.name == name]
    if named:
        return named[-1].tip
    try:
        return find_message(thread, name).id
    except (NotFound, InvalidInput):
        raise NotFound(
            "branch or message", name[:80], "branches in thread_read's answer names them"
        ) from None


def _branches(thread: Thread, path: Sequence[Message]) -> list[dict[str, Any]]:
    """The other ends of the conversation, the newest first."""
    on_path = {message.id for message in path}
    heads = [head for head in thread.tree.heads() if head.id not in on_path]
    if not heads:
        return []
    names = {row.tip: row.name for row in list_branches(thread) if row.name}
    shown: list[dict[str, Any]] = []
    for head in heads[::-1][:_MOST_BRANCHES]:
        row = {"message_id": head.id, "name": names.get(head.id, ""), "at": head.ts}
        shown.append({name: value for name, value in row.items() if value})
    if len(heads) > _MOST_BRANCHES:
        shown.append({"more": len(heads) - _MOST_BRANCHES})
    return shown


def _filled(
    thread: Thread, where: _Where, budget: Budget, tokens: int, *, is_asked_for: bool
) -> tuple[int, int, list[tuple[dict[str, Any], list[str]]]]:
    """First and last place that are shown, and the messages' shapes with their texts."""
    assert where.anchor is not None
    room = int(tokens * CHARACTERS_A_TOKEN * _ANCHOR_SHARE)
    shape = _shape(thread, where.path[where.anchor], room, is_asked_for=is_asked_for)
    budget.takes(shape[0])
    shapes = [shape]
    first = last = where.anchor
    has_room = {-1: where.goes_back, 1: where.goes_on}
    for way in itertools.cycle((-1, 1)):
        at = first - 1 if way < 0 else last + 1
        if not has_room[way] or not 0 <= at < len(where.path):
            has_room[way] = False
        else:
            shape = _shape(thread, where.path[at], room)
            has_room[way] = budget.takes(shape[0])
            if has_room[way]:
                first, last = min(first, at), max(last, at)
                shapes.insert(0 if way < 0 else len(shapes), shape)
        if not any(has_room.values()):
            return first, last, shapes
    raise AssertionError("the loop above returns")


def _shape(
    thread: Thread, message: Message, room: int, *, is_asked_for: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """A message with its long parts shortened, and the texts that are in it."""
    shape = _facts(thread, message)
    if is_recalled(message.content):
        shape["text"], cut = "(an answer of raddle's, which it keeps elsewhere)", len(message.content)
    else:
        is_said = message.role in ("user", "assistant", "system") and message.kind == TURN
        most = _LONGEST_SAID if is_said or is_asked_for else _LONGEST_OUTPUT
        shape["text"], cut = _shortened(message.content, min(most, room))
    if is_asked_for and message.thinking:
        shape["thinking"] = _shortened(message.thinking, min(_LONGEST_OUTPUT, room))[0]
    shape["cut"] = cut
    shape |= _calls(message, most=_LONGEST_CALL)
    texts = [shape["text"], shape.get("thinking", "")]
    return {name: value for name, value in shape.items() if value}, texts


def _facts(thread: Thread, message: Message) -> dict[str, Any]:
    return {
        "id": message.id,
        "role": message.role,
        "at": message.ts,
        "author": message.author,
        "kind": "" if message.kind == TURN else message.kind,
        "tool": message.tool_name,
        "is_error": message.is_error,
        "is_sidechain": message.is_sidechain,
        "is_removed": thread.tree.is_removed(message.id),
        "attachments": [
            {
                name: value
                for name, value in (
                    ("name", attached.name),
                    ("media_type", attached.media_type),
                    ("size", attached.size),
                )
                if value
            }
            for attached in message.attachments
            if not attached.is_body
        ],
    }


def _calls(message: Message, *, most: int) -> dict[str, Any]:
    """The calls, their arguments as JSON, shortened."""
    calls = [
        {"tool": call.tool_name, "arguments": _shortened(_as_text(call.arguments_json), most)[0]}
        for call in message.tool_calls[:_MOST_CALLS]
    ]
    left = len(message.tool_calls) - len(calls)
    return {"tool_calls": calls, "calls_left_out": max(0, left)}


def _as_text(arguments: Any) -> str:
    """Any JSON value as text."""
    if isinstance(arguments, str):
        return arguments
    try:
        return msgspec.json.encode(arguments).decode()
    except (
        RecursionError,
        UnicodeEncodeError,
    ):  # nested too deep, or no text at all, as a program once wrote it
        return "(arguments that cannot be shown: `raddle show` has them)"


def _shortened(text: str, most: int) -> tuple[str, int]:
    """Its head and its tail where it is longer, and how many characters lie between them."""
    if len(text) <= most:
        return text, 0
    tail = int(most * _TAIL)
    cut = len(text) - most
    return f"{text[: most - tail]}\n[… {cut:,} characters …]\n{text[len(text) - tail :]}", cut
