"""Reads one ChatGPT conversation: lines in, messages and facts out.

Owns ids, order and place of its messages. The tree is in the data: children of one node are a person's edits and
the answers that were asked for again, and all of them stay. Nodes that say nothing (the root, empty system
messages) are no messages: what hangs on them hangs on what is above them.

An export is made anew each time and never grows at its end, so there is no state: what changed is read whole. Two
forms of one message are told apart by `rev`, which counts the characters: the fuller one stays.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec import UNSET, Struct

from raddle.actions.importing.bodies import put
from raddle.actions.importing.chatgpt_layout import conversation_lines, microseconds
from raddle.actions.importing.chatgpt_lines import SHAPE, Line, Said, decode_line, fit_line
from raddle.actions.importing.chatgpt_turns import Part, part_of
from raddle.actions.importing.facts import Fact, add_fact, add_model, add_time, source_write
from raddle.actions.importing.fitting import NOTHING
from raddle.actions.importing.importer import Ending, Links, Taken, Write, message_id_of, thread_id_of
from raddle.actions.importing.parts import TOOL
from raddle.actions.importing.record_reader import RecordReader
from raddle.actions.importing.records import UNREADABLE
from raddle.actions.importing.titles import title_from
from raddle.model.clock import format_time
from raddle.model.errors import BrokenFormat
from raddle.model.threads.message import Message, ToolCall

AGENT = "chatgpt"
PROVIDER = "openai"

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z")
_UNNAMED = "New chat"
"""What ChatGPT calls a conversation before it has a title."""
_ANY_MODEL = "auto"
"""No model: ChatGPT chooses one for each answer."""


class _Call(NamedTuple):
    id: str
    tool_name: str


class _Spot(NamedTuple):
    """After a node: the message that the next one answers, its branch, the calls made since a person typed."""

    message_id: str | None
    branch_id: str
    calls: tuple[_Call, ...]


_START = _Spot(None, "", ())


class _Facts(Struct):
    """What is known of the conversation beside its messages. Times in microseconds, 0: none."""

    title: str = ""
    typed: str = ""
    typed_at: int = 0
    created: int = 0
    updated: int = 0
    active: int = 0
    model: str = ""
    model_at: int = 0
    default_model: str = ""


class ChatGPTReader(RecordReader[Line]):
    """A reading of one conversation."""

    def __init__(self, *, has_state: bool = False) -> None:
        super().__init__(decode_line, fit_line, SHAPE)
        self._has_state = has_state
        self._session = ""
        self._has_header = False
        self._facts = _Facts()
        self._spots: dict[str, _Spot] = {}
        self._last = _START
        self._answered: set[str | None] = set()
        self._clock = 0
        self._given: set[str] = set()
        self._taken = Taken(messages=[], blobs=[])
        self._first_id = ""

    def take(self) -> Taken:
        """What is finished so far."""
        taken, self._taken = self._taken, Taken(messages=[], blobs=[])
        return taken

    def finish(self, tail: bytes = b"") -> Ending:
        """End the reading; `tail` is read where it is a whole line.

        Where no header was read, the lines did not begin at their beginning, or it was lost.
        """
        self._read_tail(tail)
        needs_whole = self._has_state or not self._has_header
        if not self._first_id:
            return Ending(needs_whole=needs_whole)
        session = self._session or self._first_id
        return Ending(
            thread_id=thread_id_of(AGENT, session),
            session_id=session,
            registers=_writes(self._facts, session),
            links=Links(session_id=session),
            needs_whole=needs_whole,
        )

    def _read(self, record: Line, line: bytes) -> None:
        if record.mapping is not NOTHING:
            self._read_document(record)
        elif record.conversation_id is not UNSET:
            self._read_header(record)
        elif record.is_node:
            self._read_node(record)
        else:
            self._report_once("a line that is no part of a conversation")

    def _read_document(self, line: Line) -> None:
        """A whole conversation in one line."""
        self._read_header(line)
        try:
            lines = conversation_lines(b'{"mapping":' + bytes(line.mapping) + b"}")
        except BrokenFormat as error:
            self._records.report(error.message)
            return
        for one in lines[1:]:
            try:
                self._read_node(decode_line(one))
            except UNREADABLE:
                self._records.report("a node that cannot be read")

    def _read_header(self, line: Line) -> None:
        facts = self._facts
        self._has_header = True
        named = line.conversation_id if isinstance(line.conversation_id, str) else line.id
        self._session = self._session or named or ""
        title = title_from(line.title or "")
        facts.title = title if title != _UNNAMED else ""
        facts.created = microseconds(line.create_time) or 0
        facts.updated = microseconds(line.update_time) or 0
        facts.default_model = "" if line.default_model_slug == _ANY_MODEL else line.default_model_slug or ""

    def _read_node(self, line: Line) -> None:
        """A node: its message, if it says something, and from where its children go on."""
        key = line.id or ""
        if key in self._spots:
            return
        above = self._spot_above(line)
        said = line.message if isinstance(line.message, Said) else None
        spot = above
        if said is not None:
            part = part_of(said)
            for told in part.strange:
                self._report_once(told)
            if not part.is_empty or (part.role == TOOL and above.calls):
                spot = self._add(said, part, key, above)
        self._spots[key] = spot

    def _spot_above(self, line: Line) -> _Spot:
        parent = line.parent if isinstance(line.parent, str) else None
        if parent is None:
            return _START
        spot = self._spots.get(parent)
        if spot is None:
            self._records.report(
                "it is its own parent" if parent == line.id else "its parent is not known here"
            )
            return self._last
        return spot

    def _add(self, said: Said, part: Part, key: str, above: _Spot) -> _Spot:
        """A message under `above`; the spot after it."""
        record = said.id or key
        message_id = self._id(record)
        if message_id in self._given:  # another node has it too, with other words perhaps
            message_id = message_id_of(AGENT, self._session, record, key)
        self._given.add(message_id)
        at = microseconds(said.create_time)
        self._clock = max(self._clock + 1, at or 0)
        branch_id = message_id if above.message_id in self._answered else above.branch_id or message_id
        if above.message_id is not None:
            self._answered.add(above.message_id)
        call = _call_of(part, above.calls)
        message = Message(
            id=message_id,
            parent_id=above.message_id,
            branch_id=branch_id,
            role=part.role,
            content=part.content,
            ts="" if at is None else format_time(at),
            seq=None if self._clock == at else self._clock,
            rev=part.fullness,
            tool_calls=_calls(record, part),
            tool_call_id=call.id if call is not None else "",
            tool_name=part.tool_name or (call.tool_name if call is not None else ""),
            is_error=part.is_error,
            thinking=part.thinking,
            provider=PROVIDER if part.model else "",
            model=part.model,
            kind=part.kind,
            extra=part.extra,
        )
        self._see(part, at or 0)
        self._first_id = self._first_id or message_id
        put(self._taken, message)
        calls = () if part.is_typed else above.calls
        if part.recipient:
            calls = (*calls[-_CALLS:], _Call(record, part.recipient))
        self._last = _Spot(message_id, branch_id, calls)
        return self._last

    def _id(self, record: str) -> str:
        """Two conversations may share a message, whose id is then a UUID; any other id is of its own one only."""
        if _UUID.match(record):
            return message_id_of(AGENT, record)
        return message_id_of(AGENT, self._session, record)

    def _see(self, part: Part, at: int) -> None:
        """What a message tells about the conversation."""
        facts = self._facts
        facts.active = max(facts.active, at)
        if part.is_typed and not facts.typed:
            facts.typed, facts.typed_at = title_from(part.content), at
        if part.model and at >= facts.model_at:
            facts.model, facts.model_at = part.model, at

    def _report_once(self, reason: str) -> None:
        if reason not in self._strange:
            self._strange.add(reason)
            self._records.report(reason)


_CALLS = 32
"""Calls that a result may belong to; in one turn there are rarely more than two that wait."""


def _calls(record: str, part: Part) -> tuple[ToolCall, ...]:
    if not part.recipient:
        return ()
    return (ToolCall(id=record, tool_name=part.recipient, arguments_json=part.arguments),)


def _call_of(part: Part, calls: tuple[_Call, ...]) -> _Call | None:
    """The call that a tool's message answers: the last one of that tool on the way, else the last one."""
    if part.role != TOOL or not calls:
        return None
    name = part.tool_name.partition(".")[0]
    of_tool = (call for call in reversed(calls) if call.tool_name.partition(".")[0] == name)
    return next(of_tool, calls[-1])


def _writes(facts: _Facts, session: str) -> tuple[Write, ...]:
    """The registers, at most one write a path. What can change is written with the conversation's last change."""
    now = facts.updated or facts.active
    writes = [source_write(AGENT, session, facts.created)]
    add_time(writes, "created_at", facts.created)
    typed = Fact(facts.typed, facts.typed_at)
    add_fact(writes, "title", Fact(facts.title, max(now, facts.typed_at + 1)) if facts.title else typed)
    if facts.model:
        add_model(writes, max(facts.model_at, facts.created + 1), PROVIDER, facts.model)
    else:
        add_model(writes, facts.created, PROVIDER, facts.default_model)
    add_time(writes, "updated_at", now)
    add_time(writes, "last_activity_at", facts.active or facts.created)
    return tuple(writes)
