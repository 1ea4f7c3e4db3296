"""Reads one file of a Claude Code session: lines in, messages and facts out.

Owns whose session a file is, which kinds of line there are, and the state that lets a grown file be read on
from its end. A state is bounded: some 40 kB, and for each of 512 calls that start sub-agents 150 bytes.
"""

from __future__ import annotations

import hashlib
from typing import Any

from msgspec import Struct

from raddle.actions.importing.claude_code_facts import (
    CUSTOM,
    GENERATED,
    Facts,
    entitle,
    see,
    summarize,
    writes_of,
)
from raddle.actions.importing.claude_code_lines import SHAPE, Entry, decode_entry, fit_entry
from raddle.actions.importing.claude_code_tree import Memory
from raddle.actions.importing.claude_code_weaver import AGENT, Call, Weaver, content_of
from raddle.actions.importing.fitting import NOTHING, decoded
from raddle.actions.importing.importer import Ending, Links, Lookup, SourceName, Taken, thread_id_of
from raddle.actions.importing.other_agents import agent_of
from raddle.actions.importing.record_reader import RecordReader
from raddle.actions.importing.replays import Told
from raddle.actions.importing.states import decode_state, encode_state
from raddle.actions.importing.titles import title_from
from raddle.model.clock import parse_time

VERSION = 2
"""Of the state: another number means that a grown file is read from its start once."""

_TURNS = frozenset(("user", "assistant", "system", "attachment", "tool_use", "tool_result"))
_BOOKKEEPING = frozenset(
    (
        "file-history-snapshot queue-operation agent-name agent-setting agent-color last-prompt mode started"
        " permission-mode pr-link frame-link result relocated worktree-state bridge-session atis-latch tag"
        " attribution-snapshot content-replacement task-summary"
    ).split()
)
_COUNTED = 256
_LINES_TO_SNIFF = 20


class State(Struct, array_like=True):
    """What a reading leaves for the next one."""

    version: int
    line: int
    session: str
    fallback: str
    tangle: Memory
    growing: list[tuple[str, str]]
    silent: list[tuple[str, str]]
    calls: list[tuple[str, str, int]]
    links: Links
    unlinked: list[str]
    facts: Facts
    told: Told
    counts: list[tuple[str, int]]


class ClaudeCodeReader(RecordReader[Entry]):
    """A reading of one file. `is_part`: a sub-agent's own file."""

    def __init__(
        self,
        source: SourceName,
        *,
        is_part: bool,
        links: Links | None = None,
        lookup: Lookup | None = None,
    ) -> None:
        super().__init__(decode_entry, self._fit, SHAPE)
        self._source = source
        self._is_part = is_part
        self._stem = source.name.rpartition(".")[0] or source.name
        self._weaver = Weaver(
            source, is_part=is_part, links=links, lookup=lookup, report=self._records.report
        )
        self._links_session = links.session_id if links is not None else ""
        self._session = ""
        self._fallback = ""
        self._session_before = ""
        self._is_unreadable_state = False
        self._other_agent = ""
        self._minute = ("", 0)

    def recall(self, state: bytes) -> None:
        """Go on where `state` was taken."""
        found = decode_state(state, State, VERSION)
        if found is None:
            self._is_unreadable_state = True
            return
        weaver = self._weaver
        self._records.line = found.line
        self._session, self._fallback = found.session, found.fallback
        self._session_before = found.session or found.fallback
        weaver.session_id = found.session or found.fallback
        weaver.tangle.recall(found.tangle)
        weaver.flow.recall(found.growing)
        weaver.silent = dict(found.silent)
        weaver.calls = {call_id: Call(name, strand) for call_id, name, strand in found.calls}
        weaver.agents.recall(found.links, found.unlinked)
        weaver.facts = found.facts
        weaver.replays.recall(found.told)
        weaver.counts = dict(found.counts)

    def _state(self) -> bytes:
        weaver = self._weaver
        if not self._records.is_between_records or len(weaver.counts) > _COUNTED:
            return b""
        links, unlinked = weaver.agents.memory()
        return encode_state(
            State(
                VERSION,
                self._records.line,
                self._session,
                self._fallback,
                weaver.tangle.memory(),
                weaver.flow.memory(),
                list(weaver.silent.items()),
                [(call_id, *call) for call_id, call in weaver.calls.items()],
                links,
                unlinked,
                weaver.facts,
                weaver.replays.memory(),
                list(weaver.counts.items()),
            )
        )

    def take(self) -> Taken:
        """What is finished so far."""
        return self._weaver.flow.take()

    def message_after(self, uuid: str) -> str:
        """The id of the message after which the line `uuid` stands; empty where it is not known (any more)."""
        spot = self._weaver.tangle.spot_of(uuid)
        return spot.message_id if spot is not None else ""

    def finish(self, tail: bytes = b"") -> Ending:
        """End the reading; `tail` is read where it is a whole record."""
        state = self._state()
        self._read_tail(tail)
        self._weaver.flow.close()
        session_id = self._session_id()
        if not session_id or self._other_agent:
            return Ending(other_agent=self._other_agent, state=state, needs_whole=self._is_in_doubt())
        return Ending(
            thread_id=thread_id_of(AGENT, session_id),
            session_id=session_id,
            registers=writes_of(self._weaver.facts, AGENT, session_id, is_part=self._is_part),
            links=self._weaver.agents.links(session_id),
            state=state,
            needs_whole=self._is_in_doubt(),
            is_unplaced=self._weaver.is_unplaced,
        )

    def _is_in_doubt(self) -> bool:
        """Did this reading go on from a state that knew too little?"""
        is_other_session = self._session_before not in ("", self._session or self._fallback)
        weaver = self._weaver
        return (
            self._is_unreadable_state
            or is_other_session
            or weaver.replays.is_in_doubt
            or bool(weaver.flow.lost)
        )

    def _fit(self, value: Any) -> list[Entry]:
        """Entries of a plain JSON value: one of them, a document that lists them, or none."""
        if not isinstance(value, dict):
            return []
        if isinstance(value.get("loglines"), list):
            return [fit_entry(one) for one in value["loglines"] if isinstance(one, dict)]
        agent = agent_of(value)
        if agent and not self._session:
            self._other_agent = agent
        return [fit_entry(value)] if "type" in value and not agent else []

    def _read(self, entry: Entry, line: bytes) -> None:
        """Take in one line."""
        if self._other_agent:
            return
        kind = entry.type
        if kind == "progress":
            self._weaver.pass_over(entry)
            if entry.parent_tool_use_id is not None:
                self._weaver.agents.see_progress(entry.parent_tool_use_id, line)
        elif kind in _TURNS:
            self._identify(entry, is_turn=True)
            at = self._time(entry.timestamp)
            is_added = entry.raddle is not NOTHING and bool(self._weaver.facts.created)
            if not (self._is_part or entry.is_sidechain or is_added):
                see(self._weaver.facts, entry, at or 0)
            self._weaver.turn(entry, line, at)
        else:
            if kind:
                self._identify(entry, is_turn=False)
            self._weaver.pass_over(entry)
            self._read_aside(entry, line)

    def _identify(self, entry: Entry, *, is_turn: bool) -> None:
        """Learn the session's id: the file's own name where a line says it too, else that of the last turn.

        A file in which no line says any has an id made of its first turn: a copy of it is the same session.
        """
        session = entry.session_id
        if not session:
            if is_turn and not self._session and not self._fallback:
                first = f"{entry.type} {entry.timestamp} ".encode() + bytes(content_of(entry))
                self._fallback = hashlib.sha256(first).hexdigest()[:32]
                self._weaver.session_id = self._session_id()
        elif session != self._session and self._is_better(session, entry, is_turn=is_turn):
            self._session = session
            self._weaver.session_id = self._session_id()

    def _is_better(self, session: str, entry: Entry, *, is_turn: bool) -> bool:
        if self._is_part:
            return not self._session and not session.startswith("agent-")
        if not self._session or session == self._stem:
            return True
        return is_turn and not entry.is_sidechain and self._session != self._stem

    def _session_id(self) -> str:
        """The session's id as far as it is known."""
        if self._is_part:
            return self._links_session or self._session or session_folder(self._source) or self._fallback
        return self._session or self._fallback

    def _read_aside(self, entry: Entry, line: bytes) -> None:
        """A line that is no turn: a title, a summary, bookkeeping, or something never seen."""
        kind, facts = entry.type, self._weaver.facts
        is_ours = not self._is_part and entry.session_id in (None, self._session)
        if kind == "summary":
            if entry.leaf_uuid and not self._is_part:
                is_known = self._weaver.tangle.spot_of(entry.leaf_uuid) is not None
                summarize(facts, entry.leaf_uuid, entry.summary, is_ours=is_known)
        elif kind == "custom-title" and is_ours:
            entitle(facts, CUSTOM, title_from(entry.custom_title or ""))
        elif kind == "ai-title" and is_ours:
            entitle(facts, GENERATED, title_from(entry.ai_title or ""))
        elif kind not in _BOOKKEEPING and kind not in self._strange and not kind.endswith("-title"):
            self._meet_stranger(kind, line)

    def _meet_stranger(self, kind: str, line: bytes) -> None:
        """A kind of line that is not known: of a newer version, or of another agent's file."""
        if self._records.line <= _LINES_TO_SNIFF and not self._session:
            self._other_agent = agent_of(decoded(line, dict[str, Any]))
        if self._other_agent:
            self._records.report(f"a session of {self._other_agent}, not of Claude Code")
        else:
            self._report_stranger("line", kind)

    def _time(self, text: str) -> int | None:
        """A line's time in microseconds. `2026-01-15T23:23:50.402Z`, as nearly all are, takes no parser."""
        if len(text) == 24 and text[19] == "." and text[23] == "Z":
            minute, seconds, millis = text[:17], text[17:19], text[20:23]
            if minute != self._minute[0]:
                at = parse_time(minute + "00Z")
                self._minute = (minute, -1 if at is None else at)
            if self._minute[1] >= 0 and seconds.isdecimal() and millis.isdecimal() and seconds < "60":
                return self._minute[1] + int(seconds) * 1_000_000 + int(millis) * 1000
        return parse_time(text) if text else None


def session_folder(source: SourceName) -> str:
    """The session that the folders around a sub-agent's file name: the one above `subagents`."""
    folders = source.folders
    if "subagents" not in folders[1:]:
        return ""
    return folders[folders.index("subagents", 1) - 1]
