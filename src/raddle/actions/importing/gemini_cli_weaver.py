"""Turns the records of one Gemini CLI file into messages that stand where they belong.

Owns ids, order and place of every message of a file. A record is a whole message each time it is written, and the
last time is not always the fullest: outputs are masked, histories compressed. So `rev` is how much a message says,
the same from every form of it, and one that says less never takes the place of one that says more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from raddle.actions.importing.bodies import put
from raddle.actions.importing.fitting import NOTHING, plain_of
from raddle.actions.importing.gemini_cli_agents import Agents
from raddle.actions.importing.gemini_cli_facts import (
    PROVIDER,
    Facts,
    be_active,
    see_context,
    see_model,
    see_time,
    type_title,
)
from raddle.actions.importing.gemini_cli_lines import Record, parts_in
from raddle.actions.importing.gemini_cli_memory import Asked, Known, Memory, Spot
from raddle.actions.importing.gemini_cli_trunk import Trunk, time_of, usage_of
from raddle.actions.importing.gemini_cli_turns import (
    ROLES,
    Said,
    is_context,
    said_in,
)
from raddle.actions.importing.importer import Blob, Taken, message_id_of
from raddle.actions.importing.parts import ASSISTANT, TOOL, USER, Aside
from raddle.actions.importing.timestamps import as_ts
from raddle.model.clock import parse_time
from raddle.model.threads.carried import carried_message
from raddle.model.threads.message import COMPACTION, NOTICE, TURN, Message, changed

AGENT = "gemini-cli"

_WAITING = 64
_WAITING_CHARACTERS = 1 << 14
_NOTICES = 1024
"""So many notices are a session, even if nobody said anything."""
_CONTEXT, _CONTEXT_STARTS = b"<session_context>", 64


class Weaver:
    """The messages of one file. `session_id` is told by the reader."""

    def __init__(self, agents: Agents, report: Callable[[str], None], *, is_sidechain: bool) -> None:
        self.session_id = ""
        self.is_sidechain = is_sidechain
        self.facts = Facts()
        self.trunk = Trunk()
        self.memory = Memory()
        self.agents = agents
        self.counts: dict[str, int] = {}
        """Role and hash of the content -> how many records without an id said that."""
        self.is_copying = False
        """Was the history just compressed? What the program keeps of it is written again, under new ids."""
        self._report = report
        self._queue: list[Message] = []
        self._blobs: list[Blob] = []
        self._open_from = 0
        self._is_closed = False

    def see_list(self, records: Iterable[Record]) -> None:
        """A list of messages: most of them, or all, were read before."""
        for record in records:
            if record.type in ROLES or record.role in ROLES:
                self.see(record, is_listed=True)
        self.is_copying = False

    def see(self, record: Record, *, is_listed: bool = False) -> None:
        """A record that holds a message, or that message again."""
        if record.raddle is not NOTHING and not self.is_sidechain and self._take_back(record):
            return
        at = time_of(record)
        named = self._names(record)
        key = " ".join(named)
        known = self.memory.recent.get(key)
        if known is None and self.memory.is_told(key, at):
            self._remember_calls(record, key)
            return
        aside = Aside()
        said = said_in(record, aside, self._is_answered)
        if known is None:
            see_time(self.facts, at)
            known = Known(named, self.trunk.tip)
            known.is_copy = (is_listed or self.is_copying) and self._is_copy(said)
            self._begin(key, known, said)
        elif record.type == "user":  # a result that it holds answered the call of that time
            said = [one for one in said if one.role != TOOL]
        for one in said if not known.is_copy else self._news(key, said):
            self._put(record, key, known, one, at)
        self._see_agents(record, known)
        self._blobs += aside.blobs
        for repair in dict.fromkeys(aside.repairs):
            self._report(repair)

    def _take_back(self, record: Record) -> bool:
        """A record that raddle wrote: the message it carries is what it was. False where it carries none."""
        parts, _ = parts_in(record.said)
        message = carried_message(
            plain_of(record.raddle)[0], next((one.text for one in parts if one.text), "")
        )
        if message is None:
            return False
        key, at = record.id or message.id, message.order
        if self.memory.is_told(key, at):
            return True
        if message.role == USER and message.kind == TURN:
            self.memory.turn(key, message.parent_id or "")
            type_title(self.facts, message.content)
        if message.content and message.role != TOOL:
            self.memory.hear(message.role, message.content)
        for call in message.tool_calls:
            self.memory.ask(call.id, Asked(key, call.tool_name))
        if message.role == TOOL and (asked := self.memory.calls.get(message.tool_call_id)) is not None:
            asked.is_answered = True
        trunk = self.trunk
        trunk.tip, trunk.branch_id, trunk.forks = message.id, message.branch_id or message.id, False
        trunk.clock = max(trunk.clock, message.order)
        trunk.has_turn = True
        self._open_from = len(self._queue)
        self._queue.append(message)
        be_active(self.facts, at)
        return True

    def step_back(self, record_id: str) -> None:
        """The person went back to before a record; what comes next stands beside it."""
        before = self.memory.before(record_id)
        if before is None:
            self._report("a step back to a message that is not known")
        else:
            self.trunk.step_back(before)

    def close(self) -> None:
        """Nothing more comes: what waits is whole."""
        self._is_closed = True

    def become_sidechain(self) -> None:
        """All of this is a sub-agent's, as the file says only now."""
        self.is_sidechain = True
        self._queue = [changed(message, is_sidechain=True) for message in self._queue]

    def waiting(self) -> list[Message] | None:
        """Notices that wait for the first turn, for a state; None where that would be too much."""
        if self.trunk.has_turn:
            return []
        size = sum(len(message.content) for message in self._queue)
        return None if self._blobs or size > _WAITING_CHARACTERS else self._queue

    def wait_on(self, waiting: list[Message]) -> None:
        """Go on where `waiting` was remembered."""
        self._queue = waiting

    def take(self) -> Taken:
        """What is finished: not the last answer, which may grow, nor notices before anything was said."""
        waiting = len(self._queue)
        ready = waiting if self._is_closed or waiting > self._open_from + _WAITING else self._open_from
        if not self.trunk.has_turn:
            self.trunk.has_turn = waiting > _NOTICES
            ready = 0
        taken = Taken(messages=[], blobs=[])
        if ready:
            taken.blobs, self._blobs = self._blobs, []
        for message in self._queue[:ready]:
            put(taken, message)
        del self._queue[:ready]
        self._open_from = max(self._open_from - ready, 0)
        return taken

    def _names(self, record: Record) -> list[str]:
        """What a record is known by: its own id, but for the context, which has one id in all sessions there are."""
        role = ROLES.get(record.type or record.role, "")
        is_context = role == USER and _CONTEXT in bytes(memoryview(record.said)[:_CONTEXT_STARTS])
        if record.id and not is_context:
            return [record.id]
        content = hashlib.sha256(record.said).hexdigest()
        if record.id:
            return [record.id, content]
        seen = f"{role} {content}"
        self.counts[seen] = self.counts.get(seen, -1) + 1
        return [self.session_id, role, content, str(self.counts[seen])]

    def _begin(self, key: str, known: Known, said: list[Said]) -> None:
        """A record that was never read before."""
        trunk = self.trunk
        self.memory.begin(key, known)
        if known.is_copy:
            return
        if any(one.role in (USER, ASSISTANT) for one in said):
            self._open_from = len(self._queue)
            self.is_copying = self.is_copying and all(one.kind == NOTICE for one in said)
        if any(one.is_typed for one in said):
            self.memory.turn(key, trunk.tip)
        if said and self.is_sidechain and not trunk.tip:
            known.agent_id = self.agents.agent_id
            starter = self.agents.starter(next((one.content for one in said if one.is_typed), ""))
            if starter is not None:
                trunk.hang(starter)

    def _is_copy(self, said: list[Said]) -> bool:
        """Does a record under a new id say nothing but what was just said?"""
        memory = self.memory
        return bool(said) and all(
            (one.tool_call_id in memory.calls)
            if one.role == TOOL
            else memory.is_heard(one.role, one.content)
            if one.content
            else bool(one.tool_calls) and all(call.id in memory.calls for call in one.tool_calls)
            for one in said
        )

    def _news(self, key: str, said: list[Said]) -> list[Said]:
        """Of a copy, what it says beyond that: it may grow as any record does."""
        memory = self.memory
        news: list[Said] = []
        for one in said:
            if one.role != TOOL and memory.is_heard(one.role, one.content):
                one = replace(one, content="", thinking="")
            calls = (call for call in one.tool_calls if _is_of(memory.calls.get(call.id), key))
            one = replace(one, tool_calls=tuple(calls))
            news += [] if one.is_empty else [one]
        return news

    def _remember_calls(self, record: Record, key: str) -> None:
        """Calls of a record that was read long ago are known again: their results may follow."""
        for call in record.tool_calls or ():
            if call.id and call.id not in self.memory.calls:
                self.memory.ask(call.id, Asked(key, call.name, is_answered=call.result != NOTHING))

    def _see_agents(self, record: Record, known: Known) -> None:
        """Learn which sub-agents the calls of a record started."""
        spot = known.spots.get("")
        if spot is None:
            return
        for call in record.tool_calls or ():
            if call.agent_id and call.id:
                self.agents.see_agent(call.agent_id, call.id, spot.message_id, spot.seq)

    def _is_answered(self, call_id: str) -> bool:
        asked = self.memory.calls.get(call_id)
        return asked is not None and asked.is_answered

    def _put(self, record: Record, key: str, known: Known, said: Said, at: int) -> None:
        """One message's worth of a record: a new message, or a fuller form of one that is there."""
        if said.role == TOOL and said.tool_call_id:
            known = self._owner(record, key, known, said)
        rev = said.weight + (said.role == ASSISTANT and usage_of(record.tokens) is not None)
        spot = known.spots.get(said.key)
        if spot is not None and rev <= spot.rev:
            return
        at = (parse_time(said.at) or 0) if said.at else at
        is_new = spot is None
        if spot is None:
            message_id = message_id_of(AGENT, *known.named, *([said.key] if said.key else ()))
            spot = self.trunk.place(message_id, at)
        known.spots[said.key] = spot = spot._replace(rev=rev)
        message = self._message(record, known, said, spot, at)
        if is_new:
            self._queue.append(message)
        else:
            self._grow(message)
        self._learn(key, said, message, at)

    def _owner(self, record: Record, key: str, known: Known, said: Said) -> Known:
        """The record that a result belongs to: the one that made the call."""
        asked = self.memory.calls.get(said.tool_call_id)
        if asked is None:
            asked = Asked(key, said.tool_name)
            self.memory.ask(said.tool_call_id, asked)
        is_own = asked.record == key
        if not is_own and ROLES.get(record.type or record.role) == ASSISTANT:
            return known  # its call is an old one; a later one has the same id
        asked.is_answered = True
        return known if is_own else self.memory.recent.get(asked.record, known)

    def _message(self, record: Record, known: Known, said: Said, spot: Spot, at: int) -> Message:
        model = record.model or "" if said.role == ASSISTANT and said.kind != NOTICE else ""
        asked = self.memory.calls.get(said.tool_call_id) if said.tool_call_id else None
        return Message(
            id=spot.message_id,
            parent_id=spot.parent_id,
            branch_id=spot.branch_id,
            role=said.role,
            content=said.content,
            ts=as_ts(said.at or record.timestamp, at) if at else "",
            seq=None if spot.seq == at else spot.seq,
            rev=spot.rev,
            tool_calls=said.tool_calls,
            tool_call_id=said.tool_call_id,
            tool_name=said.tool_name or (asked.tool_name if asked is not None else ""),
            is_error=said.is_error,
            thinking=said.thinking,
            attachments=said.attachments,
            provider=PROVIDER if model else "",
            model=model,
            usage=usage_of(record.tokens) if said.role == ASSISTANT else None,
            is_sidechain=self.is_sidechain,
            kind=said.kind,
            extra=said.extra | ({"agent_id": known.agent_id} if known.agent_id else {}),
        )

    def _grow(self, message: Message) -> None:
        """A fuller form on its way out; it takes the place of one that has not left yet."""
        for number in range(len(self._queue) - 1, -1, -1):
            if self._queue[number].id == message.id:
                self._queue[number] = message
                return
        self._queue.append(message)

    def _learn(self, key: str, said: Said, message: Message, at: int) -> None:
        """Learn from a message what others may ask for."""
        memory = self.memory
        for call in said.tool_calls:
            if call.id:
                memory.ask(call.id, Asked(key, call.tool_name))
                self.agents.see_call(call, message.id, message.order)
        if said.content and said.role in (USER, ASSISTANT):
            memory.hear(said.role, said.content)
        self.is_copying = self.is_copying or said.kind == COMPACTION
        if is_context(said):
            see_context(self.facts, said.content)
        if said.kind == NOTICE:
            return
        self.trunk.has_turn = True
        be_active(self.facts, at)
        see_model(self.facts, message.model)
        if said.is_typed and not self.is_sidechain:
            type_title(self.facts, said.content)


def _is_of(asked: Asked | None, key: str) -> bool:
    """Is a call none of another record's?"""
    return asked is None or asked.record == key
