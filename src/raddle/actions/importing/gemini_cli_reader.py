"""Reads one file of a Gemini CLI session: lines in, messages and facts out, in both ages of the format.

Owns whose session a file is, what each kind of record does, and the state that lets a grown file be read on from
its end. A document is printed anew at each save, and read anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct, field

from raddle.actions.importing.fitting import decoded
from raddle.actions.importing.gemini_cli_agents import Agents
from raddle.actions.importing.gemini_cli_document import Document, begins_document
from raddle.actions.importing.gemini_cli_facts import (
    SUMMARY,
    Facts,
    entitle,
    see_start,
    workspace_of,
    writes_of,
)
from raddle.actions.importing.gemini_cli_lines import SHAPE, Record, decode_record, fit_record
from raddle.actions.importing.gemini_cli_memory import Kept
from raddle.actions.importing.gemini_cli_trunk import Trunk
from raddle.actions.importing.gemini_cli_turns import ROLES
from raddle.actions.importing.gemini_cli_weaver import AGENT, Weaver
from raddle.actions.importing.importer import Ending, Links, SourceName, Taken, thread_id_of
from raddle.actions.importing.other_agents import agent_of
from raddle.actions.importing.record_reader import RecordReader
from raddle.actions.importing.states import decode_state, encode_state
from raddle.actions.importing.titles import title_from
from raddle.model.clock import parse_time
from raddle.model.threads.message import Message

VERSION = 1
"""Of the state: another number means that a grown file is read from its start once."""

_COUNTED = 256
_HELD_BYTES = 32 << 20


class State(Struct, array_like=True, kw_only=True):
    """What a reading leaves for the next one: of a document only whose it is, and what other files may ask for."""

    version: int
    line: int
    session: str
    fallback: str
    is_part: bool
    links: Links
    is_unplaced: bool
    is_document: bool = False
    trunk: Trunk = field(default_factory=Trunk)
    is_copying: bool = False
    memory: Kept = field(default_factory=Kept)
    facts: Facts = field(default_factory=Facts)
    counts: dict[str, int] = field(default_factory=dict)
    waiting: list[Message] = field(default_factory=list)


class GeminiCliReader(RecordReader[Record]):
    """A reading of one file. `parent`: of a sub-agent's own file, the session that its folder is named for.

    `links` are given to a part alone; older files of sub-agents lie among the sessions, and only say what they are.
    """

    def __init__(self, source: SourceName, *, parent: str, links: Links | None) -> None:
        super().__init__(decode_record, self._fit, SHAPE)
        self._source = source
        self._is_part = bool(parent) or links is not None
        self._parent = parent or (links.session_id if links is not None else "")
        agent_id = source.name.partition(".")[0] if parent else ""
        self._weaver = Weaver(Agents(links, agent_id), self._records.report, is_sidechain=self._is_part)
        self._document: Document | None = None
        self._held = 0
        self._is_ended = False
        self._session = ""
        self._fallback = ""
        self._session_before = ""
        self._is_unreadable_state = False
        self._other_agent = ""

    @property
    def names_folder(self) -> bool:
        """Does the session itself name its workspace, in what was read so far?"""
        return bool(self._weaver.facts.first_folder.value)

    @property
    def workspace(self) -> str:
        """The workspace as far as it is known; empty where nothing tells it."""
        facts = self._weaver.facts
        return workspace_of(self._source, facts.project_hash, facts.first_folder.value)

    def recall(self, state: bytes) -> None:
        """Go on where `state` was taken."""
        found = decode_state(state, State, VERSION)
        if found is None or found.is_document:
            self._is_unreadable_state = True
            return
        weaver = self._weaver
        self._records.line = found.line
        self._session, self._fallback, self._is_part = found.session, found.fallback, found.is_part
        self._session_before = found.session or found.fallback
        weaver.is_sidechain = found.is_part
        weaver.session_id = self._session_id()
        weaver.trunk, weaver.is_copying = found.trunk, found.is_copying
        weaver.memory.recall(found.memory)
        weaver.facts = found.facts
        weaver.agents.recall(found.links)
        weaver.agents.is_unplaced = found.is_unplaced
        weaver.counts = found.counts
        weaver.wait_on(found.waiting)

    def _state(self) -> bytes:
        weaver = self._weaver
        found = State(
            version=VERSION,
            line=self._records.line,
            session=self._session,
            fallback=self._fallback,
            is_part=self._is_part,
            links=weaver.agents.memory(),
            is_unplaced=weaver.agents.is_unplaced,
        )
        if self._document is not None:
            found.is_document = True
            return encode_state(found)
        waiting = weaver.waiting()
        if not self._records.is_between_records or waiting is None or len(weaver.counts) > _COUNTED:
            return b""
        found.trunk, found.is_copying, found.counts = weaver.trunk, weaver.is_copying, weaver.counts
        found.memory, found.facts, found.waiting = weaver.memory.kept(), weaver.facts, waiting
        return encode_state(found)

    def feed(self, lines: Iterable[bytes]) -> None:
        """Read complete lines, in order, each without its final newline."""
        lines = list(lines)
        self._held += sum(map(len, lines))
        for record in self._cut(lines):
            self._read(record)

    def _cut(self, lines: list[bytes]) -> Iterator[Record]:
        """The records of some lines, each a line or cut out of a document."""
        records, at = self._records, 0
        while at < len(lines):
            if self._document is not None:
                start, at = at, self._document.take(lines, at)
                records.line += at - start
                if at == len(lines):
                    return
            line = lines[at]
            at += 1
            if self._document is None and begins_document(line) and self._may_begin(line):
                self._document = self._new_document()
            if self._document is None or _is_line_of_its_own(line):
                yield from (record for record, _ in records.feed((line,)))
            else:
                records.line += 1
                yield from self._document.feed(line, records.line)

    def _may_begin(self, line: bytes) -> bool:
        """Is this no part of a record that was torn over several lines? Such a one may hold any line."""
        is_first = not self._session and line.strip() == b"{"
        return self._records.is_between_records or is_first

    def take(self) -> Taken:
        """What is finished so far. Of a document nothing, if it is not large: its end may say that it is a part."""
        if self._document is not None and not self._is_ended and self._held < _HELD_BYTES:
            return Taken(messages=[], blobs=[])
        return self._weaver.take()

    def finish(self, tail: bytes = b"") -> Ending:
        """End the reading; `tail` is read where it is a whole record."""
        records = self._records
        if self._document is None and begins_document(tail) and records.is_between_records:
            self._document = self._new_document()
        document = self._document
        if document is None:
            state = self._state()
            self._read_tail(tail)
            return self._ending(state)
        for record in (*document.feed(tail, records.line + 1), *document.finish()):
            self._read(record)
        return self._ending(self._state())

    def _new_document(self) -> Document:
        return Document(lambda reason, number: self._records.report(reason, line=number))

    def _ending(self, state: bytes) -> Ending:
        weaver = self._weaver
        weaver.close()
        self._is_ended = True
        session_id = self._session_id()
        if not session_id or self._other_agent or not weaver.trunk.has_turn:
            return Ending(other_agent=self._other_agent, state=state, needs_whole=self._is_in_doubt())
        return Ending(
            thread_id=thread_id_of(AGENT, session_id),
            session_id=session_id,
            registers=writes_of(weaver.facts, self._source, AGENT, session_id, is_part=self._is_part),
            links=weaver.agents.links(session_id),
            state=state,
            needs_whole=self._is_in_doubt(),
            is_unplaced=self._is_part and weaver.agents.is_unplaced,
        )

    def _is_in_doubt(self) -> bool:
        """Did this reading go on from a state that knew too little?"""
        is_other_session = self._session_before not in ("", self._session or self._fallback)
        return self._is_unreadable_state or is_other_session or self._weaver.memory.replays.is_in_doubt

    def _fit(self, value: Any) -> list[Record]:
        """Records of a plain JSON value: none where it is no record."""
        if not isinstance(value, dict):
            return []
        agent = agent_of(value)
        if agent not in ("", AGENT) and not self._session:
            self._other_agent = agent
        is_known = any(
            key in value for key in ("type", "role", "sessionId", "messages", "history", "$set", "$rewindTo")
        )
        return [fit_record(value)] if is_known and not self._other_agent else []

    def _read(self, record: Record, line: bytes = b"") -> None:
        """Take in one record."""
        if self._other_agent:
            return
        if record.set is not None:
            self._describe(record.set)
            if record.set.listed:
                self._weaver.see_list(record.set.listed)
        elif record.rewind_to is not None:
            self._weaver.step_back(record.rewind_to)
        elif record.is_message:
            self._see(record)
        else:
            self._describe(record)
            for one in record.listed or ():
                self._see(one)

    def _see(self, record: Record) -> None:
        """A message, or a kind of record that is not known."""
        kind = record.type or record.role
        if kind in ROLES:
            if not self._session and not self._fallback:
                first = f"{kind} {record.timestamp} ".encode(errors="replace") + bytes(record.said)
                self._fallback = hashlib.sha256(first).hexdigest()[:32]
                self._weaver.session_id = self._session_id()
            self._weaver.see(record)
        else:
            self._report_stranger("record", kind)

    def _describe(self, record: Record) -> None:
        """What a header, a document or a change says of the session itself."""
        weaver = self._weaver
        if record.session_id and not self._session:
            self._session = record.session_id
            weaver.session_id = self._session_id()
        facts = weaver.facts
        facts.project_hash = facts.project_hash or record.project_hash
        if record.start_time:
            see_start(facts, parse_time(record.start_time) or 0)
        if record.kind == "subagent" and not self._is_part:
            self._is_part = True
            weaver.become_sidechain()
        if record.summary:
            entitle(facts, SUMMARY, title_from(record.summary))

    def _session_id(self) -> str:
        """The session's id as far as it is known."""
        own = self._session or self._fallback
        return (self._parent or own) if self._is_part else own


def _is_line_of_its_own(line: bytes) -> bool:
    """Is this a whole record, in the middle of a document?"""
    return line[:2] == b'{"' and decoded(line, Record) is not None
