"""A thread as lines for a terminal: the conversation along one path, or the whole tree as an outline.

`room`: how many columns there are; None where no terminal is, and nothing is cut or broken for its sake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from raddle.apps.cli import words
from raddle.apps.cli.plain_json import encoded
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread

RESULT_LINES, THINKING_LINES, NOTICE_LINES = 6, 3, 2
_OUTLINE_TEXT, _CALL_TEXT = 72, 120
_THOUGHT = "  ┆ "
"""Sets thoughts off from what was said, without colour too."""
_DEEPEST = 12
"""An outline is indented no further than this: deeper forks would leave no room for their words."""
_LEAST_LINE = 34
"""Columns of an outline's line that its indentation leaves to the message, where there are so many."""
_ROLE_COLOURS = {"user": "cyan", "assistant": "green", "tool": "yellow", "system": "magenta"}
_ARGUMENT_NAMES = ("command", "file_path", "path", "pattern", "query", "url", "description", "prompt")
"""The argument that says most of a tool call, in the order they are looked for."""
_LONGEST_LOOK = 2000
"""Characters of a text that are looked at to fill one line."""


class Page(NamedTuple):
    """What every line of one thread's pages depends on."""

    thread: Thread
    names: dict[str, str]
    """Message id -> what it is called on the page."""
    calls: dict[str, str]
    """Tool call id -> the tool's name."""
    marks: dict[str, dict[str, Any]]
    """Message id -> the name and marks of the branch that starts there."""
    room: int | None


def page_of(thread: Thread, room: int | None = None) -> Page:
    """The facts that are worked out once for a thread."""
    tails = Counter(words.tail(message.id) for message in thread.tree)
    names = {}
    for message in thread.tree:
        tail = words.tail(message.id)
        names[message.id] = tail if tails[tail] == 1 else message.id
    calls = {call.id: call.tool_name for message in thread.tree for call in message.tool_calls}
    return Page(thread, names, calls, thread.branch_marks, room)


def header(thread: Thread, now: int, notes: Iterable[str] = (), *, room: int | None = None) -> Iterator[str]:
    """What the thread is: title, id, where and when it was; then notes that a reader should know."""
    summary = thread.summary()
    yield from _broken(words.one_line(summary.title) or "(no title)", room, "bold")
    facts = [summary.id]
    if summary.source is not None:
        facts.append(words.one_line(summary.source.agent))
    facts += [words.count(summary.message_count, "message"), words.ago(summary.last_activity_at, now)]
    yield from _broken("  ".join(facts), room, "dim")
    place = summary.git_remote_url or words.short_path(summary.workspace_root or "")
    where = " @ ".join(part for part in (place, summary.git_branch) if part)
    marks = [f"#{tag}" for tag in summary.tags]
    marks += [word for word, is_so in _flags(thread) if is_so]
    second = "  ".join(words.one_line(part) for part in (where, " ".join(marks)) if part)
    if second:
        yield from _broken(second, room, "dim")
    for note in notes:
        yield from _broken(f"note: {words.one_line(note)}", room, "yellow")


def _flags(thread: Thread) -> list[tuple[str, bool]]:
    return [
        ("pinned", thread.is_pinned),
        ("private", thread.is_private),
        ("archived", thread.is_archived),
        ("deleted", thread.is_deleted),
        (thread.visibility, thread.visibility == "public"),
    ]


def _broken(line: str, room: int | None, style: str | None = None, *, indent: str = "") -> Iterator[str]:
    """One line as it is, or as several that fit into the room; each indented and styled."""
    if room is None:
        yield (indent + words.style(line, style)).rstrip()
        return
    line = line.expandtabs(4)
    for start, end in words.wrapped(line, room - len(indent)):
        yield (indent + words.style(line[start:end], style)).rstrip()


def conversation(
    thread: Thread, leaf: str | None, *, is_full: bool, room: int | None = None
) -> Iterator[str]:
    """The messages from the root to `leaf`, tool results and thinking shortened unless `is_full`."""
    path = thread.tree.path_to_root(leaf)
    yield from messages(thread, path, is_full=is_full, room=room)
    if not path:
        yield ""
        yield "(no messages)"


def messages(
    thread: Thread, path: Sequence[Message], *, is_full: bool = False, room: int | None = None
) -> Iterator[str]:
    """These messages, one after the other."""
    page = page_of(thread, room)
    for message in path:
        yield ""
        yield from _message(page, message, is_full=is_full)


def lost_and_found(thread: Thread, *, room: int | None = None) -> Iterator[str]:
    """Messages that no root leads to: their parent is missing, or they stand in a circle."""
    lost = thread.tree.lost()
    if not lost:
        return
    page = page_of(thread, room)
    yield ""
    yield words.style(f"Lost and found: {words.count(len(lost), 'message')} with no way to a root", "bold")
    for message in lost:
        yield _outline_line(page, message, 0, is_tip=False)
    yield words.style("`raddle doctor --fix` gives them a root", "dim")


def drafts(thread: Thread, device: str) -> Iterator[str]:
    """What this device has not sent yet, one line each."""
    for target, text in thread.drafts.get(device, {}).items():
        under = words.tail(target)
        yield f"draft under {under}: {words.cut(words.one_line(text[:_LONGEST_LOOK]), 48)}"


def launches(thread: Thread, now: int) -> Iterator[str]:
    """The turns that wait for an answer, one line each."""
    for job in thread.pending_jobs:
        under = words.tail(job.parent_id or "root")
        who = words.one_line(job.responder) or "somebody"
        yield (
            f"{under} waits for {who}, asked {words.ago(job.launched_at, now)}: `raddle jobs {thread.id}` settles it"
        )


def _message(page: Page, message: Message, *, is_full: bool) -> Iterator[str]:
    yield _label(page, message)
    if message.thinking:
        most = None if is_full else THINKING_LINES
        yield from _block(page, message.thinking, most, "dim", indent=_THOUGHT)
    if message.is_purged:
        yield words.style("  (erased)", "dim")
    elif message.content:
        most = RESULT_LINES if message.role == "tool" else NOTICE_LINES if message.kind == "notice" else None
        style = "dim" if message.role == "tool" or message.kind == "notice" else None
        yield from _block(page, message.content, None if is_full else most, style)
    for call in message.tool_calls:
        columns = _CALL_TEXT if page.room is None else page.room - 4
        name = words.cut(words.one_line(call.tool_name), columns // 2)
        short = words.cut(call_in_short(page.thread, call.arguments_json), columns - words.width(name) - 2)
        yield f"  {words.style('→', 'yellow')} {name}  {words.style(short, 'dim')}".rstrip()
        if is_full:
            yield from _block(page, _as_text(call.arguments_json), None, "dim", indent="    ")
    yield from _files(page, message)


def _files(page: Page, message: Message) -> Iterator[str]:
    """What belongs to the message and is no text of it."""
    for attachment in message.attachments:
        if attachment.is_body:
            told = f"[the whole text, {words.size(attachment.size)}, is kept apart; search knows this much of it]"
            yield from _broken(told, page.room, "dim", indent="  ")
            continue
        name = words.one_line(attachment.name or attachment.media_type) or "attachment"
        yield words.style(f"  [{name}, {words.size(attachment.size)}]", "dim")
    named_only = message.extra.get("files")  # of which its source had no bytes
    for named in named_only if isinstance(named_only, list) else ():
        if isinstance(named, dict):
            name = words.one_line(str(named.get("name") or named.get("id") or "a file"))
            yield words.style(f"  [{name}: its bytes were not in the source]", "dim")


def _label(page: Page, message: Message) -> str:
    role = message.role
    if role == "tool":
        name = message.tool_name or page.calls.get(message.tool_call_id, "")
        role = f"{name or 'tool'} {'failed' if message.is_error else 'answered'}"
    elif message.kind != "turn":
        role = f"{role} ({message.kind})"
    role = words.one_line(role)
    minute, facts = words.local_minute(message.ts), [page.names[message.id], *_around(page, message)]
    told = "  ".join(fact for fact in (minute, *facts) if fact)
    if page.room is not None and words.width(role) + words.width(told) + 2 > page.room:
        role = words.cut(role, page.room // 2)
        told = words.cut("  ".join(facts), page.room - words.width(role) - 2)  # of these, the time says least
    return f"{words.style(role, _ROLE_COLOURS.get(message.role))}  {words.style(told, 'dim')}"


def _around(page: Page, message: Message) -> Iterator[str]:
    """That it was cut, that there are other answers to the same message, and sub-agents under this one."""
    cut_by = message.extra.get("cut_by")
    if isinstance(cut_by, str) and cut_by:
        yield f"cut: {words.one_line(cut_by)}"
    siblings = [
        sibling.id
        for sibling in page.thread.tree.children(message.parent_id)
        if sibling.is_sidechain == message.is_sidechain
    ]
    if len(siblings) > 1 and message.id in siblings:
        yield f"{siblings.index(message.id) + 1} of {len(siblings)} here"
    if not message.is_sidechain:
        agents = sum(child.is_sidechain for child in page.thread.tree.children(message.id))
        if agents:
            yield words.count(agents, "sub-agent")


def _block(
    page: Page, text: str, most: int | None, style: str | None, *, indent: str = "  "
) -> Iterator[str]:
    lines = words.safe_lines(text).strip("\n").split("\n")
    shown = lines if most is None else lines[:most]
    for line in shown:
        yield from _broken(line, page.room, style, indent=indent)
    if len(shown) < len(lines):
        yield words.style(f"{indent}… {words.count(len(lines) - len(shown), 'more line')} (--full)", "dim")


def call_in_short(thread: Thread, arguments: Any) -> str:
    """One line of a tool call's arguments: the one that says most, else all of them as JSON.

    A path inside the workspace is shown from there on.
    """
    if isinstance(arguments, dict):
        for name in _ARGUMENT_NAMES:
            value = arguments.get(name)
            if isinstance(value, str):
                workspace = f"{thread.plain('workspace_root')}/"
                return words.one_line(value.removeprefix(workspace)[:_LONGEST_LOOK])
    if arguments in (None, {}):
        return ""
    return words.one_line(_as_text(arguments)[:_LONGEST_LOOK])


def _as_text(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    if isinstance(arguments, dict):
        return "\n".join(f"{name}: {_as_text(value)}" for name, value in arguments.items())
    return encoded(arguments).decode()


def outline(thread: Thread, *, with_removed: bool = False, room: int | None = None) -> Iterator[str]:
    """Every message as one line under the one it answers; a line that only goes on is not indented further.

    An empty line stands before every root but the first: it answers nothing of what is above it.
    """
    page = page_of(thread, room)
    tip = thread.tree.tip()
    roots = thread.tree.children(None, removed=with_removed)
    later_roots = {root.id for root in roots[1:]}
    waiting: list[tuple[Message, int]] = [(root, 0) for root in reversed(roots)]
    seen: set[str] = set()
    while waiting:
        message, depth = waiting.pop()
        if message.id in seen:
            continue
        seen.add(message.id)
        if message.id in later_roots:
            yield ""
        yield _outline_line(page, message, depth, is_tip=tip is not None and tip.id == message.id)
        children = thread.tree.children(message.id, removed=with_removed)
        goes_on = next((child for child in children if child.is_sidechain == message.is_sidechain), None)
        if goes_on is not None:  # printed last, below the forks and sub-agents that hang here
            waiting.append((goes_on, depth))
        waiting.extend((child, depth + 1) for child in reversed(children) if child is not goes_on)


def _outline_line(page: Page, message: Message, depth: int, *, is_tip: bool) -> str:
    room = page.room
    role = message.role
    if role == "tool":
        role = message.tool_name or page.calls.get(message.tool_call_id, "") or role
    role = words.cut(words.one_line(role), 24 if room is None else min(24, max(room // 4, 4)))
    bars = "│ " * min(depth, _DEEPEST if room is None else _deepest_in(room))
    marks = "".join(f" [{mark}]" for mark in _marks(page, message, is_tip=is_tip))
    name = words.pad(page.names[message.id], 8)
    columns = _OUTLINE_TEXT
    if room is not None:
        left = room - sum(map(words.width, (name, bars, role))) - 2
        marks = words.cut(marks, max(left // 2, 0))
        columns = left - words.width(marks) - 2
    head = f"{words.style(f'{name}  {bars}', 'dim')}{words.style(role, _ROLE_COLOURS.get(message.role))}"
    text = _first_line(page, message, columns) if columns > 0 else ""
    return f"{head}{words.style(marks, 'magenta')}  {text}".rstrip()


def _deepest_in(room: int) -> int:
    """How far a line may be indented in so many columns."""
    return min(_DEEPEST, max((room - _LEAST_LINE) // 2, 1))


def _marks(page: Page, message: Message, *, is_tip: bool) -> Iterator[str]:
    if is_tip:
        yield "tip"
    if message.is_error:
        yield "failed"
    if page.thread.tree.is_removed(message.id):
        yield "removed"
    name = page.marks.get(message.id, {}).get("name")
    if isinstance(name, str):
        yield f"branch {words.one_line(name)}"


def _first_line(page: Page, message: Message, columns: int) -> str:
    if message.is_purged:
        return words.cut("(erased)", columns)
    said = words.one_line(message.content[:_LONGEST_LOOK])
    if said:
        return words.cut(said, columns)
    if message.tool_calls:
        call = message.tool_calls[0]
        more = f" (+{len(message.tool_calls) - 1})" if len(message.tool_calls) > 1 else ""
        short = call_in_short(page.thread, call.arguments_json)
        return words.cut(f"→ {words.one_line(call.tool_name)}{more}  {short}", columns)
    return words.cut(words.one_line(message.thinking[:_LONGEST_LOOK]) or f"({message.kind})", columns)
