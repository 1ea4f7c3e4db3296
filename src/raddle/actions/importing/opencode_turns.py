"""What one message of OpenCode says: its words, calls, results and files, as pieces that become messages.

Owns which words a person typed and which the program put beside them, and what a piece is called (`key`): an
answer to a call and a notice are messages of their own. Knows one line at a time; where a piece stands is decided
elsewhere.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from raddle.actions.importing.fitting import NOTHING, decoded
from raddle.actions.importing.fullness import fullness
from raddle.actions.importing.opencode_lines import (
    About,
    CallState,
    Fault,
    Line,
    Part,
    Started,
    Task,
    TokenCount,
    Told,
    text_of,
)
from raddle.actions.importing.parts import ASSISTANT, TOOL, USER, Aside, MessagePart, joined
from raddle.model.threads.carried import FIELD, carried_message
from raddle.model.threads.message import COMPACTION, NOTICE, TURN, Attachment, Message, ToolCall, Usage

_READ = frozenset(("text", "reasoning", "tool", "file", "subtask"))
_WITHOUT_WORDS = frozenset("step-start step-finish snapshot patch agent retry compaction plan-patch".split())
_FIELD = FIELD.encode()
_STARTERS = frozenset(("task", "agent"))
_STARTED = re.compile(r"(?:\btask_id: ?|<task id=\")(ses_[A-Za-z0-9_-]+)")


class _Carrying(Struct, frozen=True, gc=False):
    """`metadata` of a part that raddle wrote."""

    raddle: dict[str, Any] | None = None


class Piece(MessagePart, frozen=True, gc=False, kw_only=True):
    """What a line says. `at`: milliseconds. `starts`: the session of the sub-agent that a call of it started -> the
    prompt."""

    provider: str = ""
    model: str = ""
    usage: Usage | None = None
    at: float | None = None
    starts: tuple[tuple[str, str], ...] = ()


def pieces_of(line: Line, aside: Aside) -> list[Piece]:
    """The pieces of a message, the one that bears its name first; that one is empty where it says nothing yet."""
    about = line.info or About()
    if any(part.unreadable is not None for part in line.parts):
        aside.repairs.append("a part that is no JSON object")
    if about.mended or any(part.mended for part in line.parts):
        aside.repairs.append("JSON that is not quite that, and was mended")
    if about.role == USER:
        return _user_pieces(line, about, aside)
    return _assistant_pieces(line, about, aside)


def carried_in(line: Line) -> list[Message]:
    """The messages that the parts of a record carry, if raddle wrote it (`model/threads/carried.py`)."""
    found = []
    for part in line.parts:
        if part.metadata == NOTHING or _FIELD not in bytes(part.metadata):
            continue
        told = decoded(part.metadata, _Carrying)
        forms = told.raddle if told is not None and told.raddle is not None else {}
        for name in ("message", "result"):
            message = carried_message(forms.get(name), part.text)
            if message is not None:
                found.append(message)
    return found


def strange_parts(line: Line) -> list[str]:
    """The types of parts that are not known."""
    known = _READ | _WITHOUT_WORDS
    return [part.type for part in line.parts if part.unreadable is None and part.type not in known]


def first_words(line: Line) -> bytes:
    """What tells two messages of one millisecond apart: how the first part begins it. A fork copies it; nothing
    that happens later to a message changes it."""
    if not line.parts:
        return b""
    part = line.parts[0]
    said = part.text or part.prompt or part.url
    return hashlib.sha256(f"{part.type}\0{said}".encode(errors="replace")).digest()


def _user_pieces(line: Line, about: About, aside: Aside) -> list[Piece]:
    typed: list[str] = []
    shown: list[str] = []
    attachments: list[Attachment] = []
    files: list[str] = []
    is_compaction = False
    for part in line.parts:
        if part.type == "text":
            (shown if part.synthetic or part.ignored else typed).append(part.text)
        elif part.type == "subtask":
            typed.append(part.prompt)
        elif part.type == "file":
            _attach(part, attachments, files, aside)
        is_compaction = is_compaction or part.type == "compaction"
    at = about.time.created if about.time is not None else None
    turn = Piece(
        role=USER,
        kind=COMPACTION if is_compaction else TURN,
        content=joined(typed),
        attachments=tuple(attachments),
        at=at,
        extra={"files": files} if files else {},
    )
    notice = Piece(role=USER, kind=NOTICE, key="notice", content=joined(shown), at=at)
    if notice.is_empty:
        return [turn]
    return [replace(notice, key="")] if turn.is_empty else [turn, notice]


def _assistant_pieces(line: Line, about: About, aside: Aside) -> list[Piece]:
    words: list[str] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    starts: list[tuple[str, str]] = []
    attachments: list[Attachment] = []
    files: list[str] = []
    results: list[Piece] = []
    for part in line.parts:
        if part.type == "text":
            words.append(part.text)
        elif part.type == "reasoning":
            thoughts.append(part.text)
        elif part.type == "file":
            _attach(part, attachments, files, aside)
        elif part.type == "tool":
            state = part.state or CallState()
            call_id = part.call_id or f"call-{len(calls)}"
            calls.append(ToolCall(id=call_id, tool_name=part.tool, arguments_json=aside.plain(state.input)))
            starts += _started_by(part.tool, state)
            result = _result(part, state, call_id, aside)
            if result is not None:
                results.append(result)
    content = joined(words)
    extra: dict[str, Any] = {"files": files} if files else {}
    fault = decoded(about.error, Fault) if about.error != NOTHING else None
    is_only_error = False
    if fault is not None and fault.name:
        extra = extra | {"error": fault.name}
        is_only_error = not (content or thoughts or calls)
        content = content or _fault_text(fault)
    piece = Piece(
        role=about.role or ASSISTANT,
        kind=_kind_of(about, is_only_error=is_only_error),
        content=content,
        thinking=joined(thoughts),
        tool_calls=tuple(calls),
        is_error=fault is not None,
        attachments=tuple(attachments),
        provider=about.provider_id or (about.model.provider_id if about.model else ""),
        model=about.model_id or (about.model.model_id if about.model else ""),
        usage=_usage(about, line.parts),
        at=about.time.created if about.time is not None else None,
        extra=extra,
        starts=tuple(starts),
    )
    return [piece, *results]


def _kind_of(about: About, *, is_only_error: bool) -> str:
    if bytes(about.summary) == b"true":
        return COMPACTION
    return NOTICE if is_only_error else TURN


def _result(part: Part, state: CallState, call_id: str, aside: Aside) -> Piece | None:
    """The answer to a call; None while there is none. It is kept when it is empty: the call was answered."""
    is_error = state.status == "error"
    if not is_error and state.output == NOTHING:
        return None
    attachments: list[Attachment] = []
    files: list[str] = []
    for one in state.attachments or ():
        _attach(one, attachments, files, aside)
    time = state.time
    return Piece(
        role=TOOL,
        key=call_id,
        content=text_of(state.error if is_error else state.output),
        tool_call_id=call_id,
        tool_name=part.tool,
        is_error=is_error,
        attachments=tuple(attachments),
        at=None if time is None else time.start if time.end is None else time.end,
        extra={"files": files} if files else {},
    )


def _started_by(tool: str, state: CallState) -> Iterator[tuple[str, str]]:
    """(session of the sub-agent that this call started, or nothing; its prompt)."""
    if tool not in _STARTERS:
        return
    task = decoded(state.input, Task) or Task()
    started = decoded(state.metadata, Started) or Started()
    session = started.session_id or started.old_session_id or ""
    if not session and (named := _STARTED.search(text_of(state.output))) is not None:
        session = named.group(1)
    if session or task.prompt:
        yield session, task.prompt


def _fault_text(fault: Fault) -> str:
    told = decoded(fault.data, Told)
    return f"{fault.name}: {told.message}" if told is not None and told.message else fault.name


def _usage(about: About, parts: list[Part]) -> Usage | None:
    """The tokens of one message: of its steps together, where it tells of several, else its own."""
    steps = [part.tokens for part in parts if part.type == "step-finish" and part.tokens is not None]
    counts = steps if len(steps) > 1 or about.tokens is None else [about.tokens]
    cost = decoded(about.cost, float)
    if not cost and not any(_is_counted(count) for count in counts):
        return None  # what a message says before its model has answered
    return Usage(
        input_tokens=_sum(count.input for count in counts),
        output_tokens=_sum(map(_output_of, counts)),
        cache_read_tokens=_sum(count.cache.read if count.cache else None for count in counts),
        cache_write_tokens=_sum(count.cache.write if count.cache else None for count in counts),
        cost_usd=cost,
    )


def _is_counted(count: TokenCount) -> bool:
    return bool(count.input or count.output or (count.cache and (count.cache.read or count.cache.write)))


def _output_of(count: TokenCount) -> float | None:
    """With the thoughts: versions that tell a `total` count them apart from `output`."""
    if count.total is None or count.output is None or not count.reasoning:
        return count.output
    cache = (count.cache.read or 0) + (count.cache.write or 0) if count.cache else 0
    is_apart = (count.input or 0) + cache + count.output + count.reasoning <= count.total
    return count.output + count.reasoning if is_apart else count.output


def _sum(counts: Iterable[float | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return int(sum(known)) if known else None


def _attach(part: Part, attachments: list[Attachment], files: list[str], aside: Aside) -> None:
    """A file: its bytes where they are in the part, else where it lies."""
    found = aside.from_data_url(part.url)
    if found is None:
        if named := part.url or part.filename:
            files.append(named)
        return
    body, media_type = found
    attachments.append(aside.attach(body, part.mime or media_type, part.filename or ""))


def fuller(stored: Message, new: Message) -> Message:
    """Both forms of one message in one: of each field the one that says more, at the place of `stored`."""
    said = {call.id for call in new.tool_calls}
    lost = tuple(call for call in stored.tool_calls if call.id not in said)
    is_stored_longer = len(stored.content) > len(new.content)
    kept = tuple(
        one
        for one in stored.attachments
        if one not in new.attachments and (is_stored_longer or not one.is_body)
    )
    joined = replace(
        new,
        parent_id=stored.parent_id,
        branch_id=stored.branch_id,
        seq=stored.seq,
        ts=stored.ts or new.ts,
        kind=stored.kind if is_stored_longer else new.kind,
        content=stored.content if is_stored_longer else new.content,
        thinking=max(new.thinking, stored.thinking, key=len),
        tool_calls=new.tool_calls + lost,
        attachments=new.attachments + kept,
        usage=new.usage or stored.usage,
        extra=stored.extra | new.extra,
    )
    return replace(joined, rev=max(stored.rev, fullness(joined)))
