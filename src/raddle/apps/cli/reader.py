"""A thread as lines for a terminal: the conversation along one path, or the whole tree as an outline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from raddle.apps.cli import words
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread

RESULT_LINES, THINKING_LINES, NOTICE_LINES = 6, 3, 2
_ROLE_COLOURS = {"user": "cyan", "assistant": "green", "tool": "yellow", "system": "magenta"}
_ARGUMENT_NAMES = ("command", "file_path", "path", "pattern", "query", "url", "description", "prompt")
"""The argument that says most of a tool call, in the order they are looked for."""


def header(thread: Thread, now: int, notes: Iterable[str] = ()) -> Iterator[str]:
    """What the thread is: title, id, where and when it was; then notes that a reader should know."""
    summary = thread.summary()
    yield words.style(words.one_line(summary.title) or "(no title)", "bold")
    facts = [summary.id]
    if summary.source is not None:
        facts.append(summary.source.agent)
    facts += [words.count(summary.message_count, "message"), words.ago(summary.last_activity_at, now)]
    yield words.style("  ".join(facts), "dim")
    place = " @ ".join(
        part for part in (summary.git_remote_url or summary.workspace_root, summary.git_branch) if part
    )
    marks = [f"#{tag}" for tag in summary.tags]
    marks += [word for word, is_so in _flags(thread) if is_so]
    second = "  ".join(part for part in (place, " ".join(marks)) if part)
    if second:
        yield words.style(words.one_line(second), "dim")
    for note in notes:
        yield words.style(f"note: {note}", "yellow")


def _flags(thread: Thread) -> list[tuple[str, bool]]:
    return [
        ("pinned", thread.is_pinned),
        ("private", thread.is_private),
        ("archived", thread.is_archived),
        ("deleted", thread.is_deleted),
        (thread.visibility, thread.visibility == "public"),
    ]


def conversation(thread: Thread, leaf: str | None, *, is_full: bool) -> Iterator[str]:
    """The messages from the root to `leaf`, tool results and thinking shortened unless `is_full`."""
    path = thread.tree.path_to_root(leaf)
    yield from messages(thread, path, is_full=is_full)
    if not path:
        yield ""
        yield "(no messages)"


def messages(thread: Thread, path: Sequence[Message], *, is_full: bool = False) -> Iterator[str]:
    """These messages, one after the other."""
    names = {call.id: call.tool_name for message in path for call in message.tool_calls}
    for message in path:
        yield ""
        yield from _message(thread, message, names, is_full=is_full)


def lost_and_found(thread: Thread) -> Iterator[str]:
    """Messages that no root leads to: their parent is missing, or they stand in a circle."""
    lost = thread.tree.lost()
    if lost:
        yield ""
        yield words.style(
            f"Lost and found: {words.count(len(lost), 'message')} with no way to a root", "bold"
        )
        for message in lost:
            yield f"  {_first_line(message, 80)}  {words.style(message.id, 'dim')}"
        yield words.style("  `raddle doctor --fix` gives them a root", "dim")


def _message(thread: Thread, message: Message, names: dict[str, str], *, is_full: bool) -> Iterator[str]:
    yield _label(thread, message, names)
    if message.thinking:
        yield from _block(message.thinking, THINKING_LINES, is_full=is_full, style="dim")
    if message.kind == "purged":
        yield words.style("  (erased)", "dim")
    elif message.content:
        most = RESULT_LINES if message.role == "tool" else NOTICE_LINES if message.kind == "notice" else None
        style = "dim" if message.role == "tool" or message.kind == "notice" else None
        yield from _block(message.content, most, is_full=is_full, style=style)
    for call in message.tool_calls:
        yield words.style("  → ", "yellow") + words.cut(
            f"{words.one_line(call.tool_name)}  {call_in_short(call.arguments_json)}", 120
        )
    for attachment in message.attachments:
        name = attachment.name or attachment.media_type or "attachment"
        yield words.style(f"  [{words.one_line(name)}, {attachment.size:,} bytes]", "dim")


def _label(thread: Thread, message: Message, names: dict[str, str]) -> str:
    role = message.role
    if role == "tool":
        name = message.tool_name or names.get(message.tool_call_id, "")
        role = f"{name or 'tool'} {'failed' if message.is_error else 'answered'}"
    elif message.kind != "turn":
        role = f"{role} ({message.kind})"
    label = words.style(words.one_line(role), _ROLE_COLOURS.get(message.role))
    facts = [words.local_minute(message.ts), message.id]
    siblings = thread.tree.children(message.parent_id)
    if len([sibling for sibling in siblings if sibling.is_sidechain == message.is_sidechain]) > 1:
        facts.append(f"1 of {len(siblings)} here")
    agents = (
        sum(child.is_sidechain for child in thread.tree.children(message.id))
        if not message.is_sidechain
        else 0
    )
    if agents:
        facts.append(words.count(agents, "sub-agent"))
    return f"{label}  {words.style('  '.join(fact for fact in facts if fact), 'dim')}"


def _block(text: str, most: int | None, *, is_full: bool, style: str | None) -> Iterator[str]:
    lines = words.safe_lines(text).strip("\n").split("\n")
    shown = lines if is_full or most is None else lines[:most]
    for line in shown:
        yield words.style(f"  {line}", style) if line else ""
    if len(shown) < len(lines):
        yield words.style(f"  … {words.count(len(lines) - len(shown), 'line')} more (--full)", "dim")


def call_in_short(arguments: Any) -> str:
    """One line of a tool call's arguments: the one that says most, else all of them as JSON."""
    if isinstance(arguments, dict):
        for name in _ARGUMENT_NAMES:
            if isinstance(arguments.get(name), str):
                return words.one_line(arguments[name])
    if isinstance(arguments, str):
        return words.one_line(arguments)
    return "" if arguments in (None, {}) else words.one_line(msgspec.json.encode(arguments).decode())


def outline(thread: Thread, *, with_removed: bool = False) -> Iterator[str]:
    """Every message as one line under the one it answers; a line that only goes on is not indented further."""
    tip = thread.tree.tip()
    names = {call.id: call.tool_name for message in thread.tree for call in message.tool_calls}
    waiting: list[tuple[Message, int]] = [
        (root, 0) for root in reversed(thread.tree.children(None, removed=with_removed))
    ]
    seen: set[str] = set()
    while waiting:
        message, depth = waiting.pop()
        if message.id in seen:
            continue
        seen.add(message.id)
        yield _outline_line(thread, message, depth, names, is_tip=tip is not None and tip.id == message.id)
        children = thread.tree.children(message.id, removed=with_removed)
        goes_on = next((child for child in children if child.is_sidechain == message.is_sidechain), None)
        if goes_on is not None:  # printed last, below the forks and sub-agents that hang here
            waiting.append((goes_on, depth))
        waiting.extend((child, depth + 1) for child in reversed(children) if child is not goes_on)


def _outline_line(
    thread: Thread, message: Message, depth: int, names: dict[str, str], *, is_tip: bool
) -> str:
    marks = []
    if is_tip:
        marks.append("tip")
    if thread.tree.is_removed(message.id):
        marks.append("removed")
    name = thread.branch_marks.get(message.id, {}).get("name") if thread.branch_marks else None
    if isinstance(name, str):
        marks.append(f"branch {words.one_line(name)}")
    role = names.get(message.tool_call_id) or "tool" if message.role == "tool" else message.role
    text = f"{'│ ' * depth}{words.style(words.one_line(role), _ROLE_COLOURS.get(message.role))}  {_first_line(message, 72)}"
    tail = "  ".join(part for part in (message.id, " ".join(f"[{mark}]" for mark in marks)) if part)
    return f"{text}  {words.style(tail, 'dim')}"


def _first_line(message: Message, columns: int) -> str:
    if message.content.strip():
        return words.cut(words.one_line(message.content[: columns * 8]), columns)
    if message.tool_calls:
        call = message.tool_calls[0]
        more = f" (+{len(message.tool_calls) - 1})" if len(message.tool_calls) > 1 else ""
        return words.cut(
            f"→ {words.one_line(call.tool_name)}{more}  {call_in_short(call.arguments_json)}", columns
        )
    return words.cut(words.one_line(message.thinking[: columns * 8]), columns) or f"({message.kind})"
