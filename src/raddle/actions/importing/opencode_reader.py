"""Reads one OpenCode session: lines in, messages and facts out.

Owns which kinds of line there are, whose session they are, and the state that lets what changed since be read alone.
"""

from __future__ import annotations

from msgspec import Struct

from raddle.actions.importing.importer import Ending, Links, Lookup, Taken, thread_id_of
from raddle.actions.importing.opencode_facts import Facts, see_header, writes_of
from raddle.actions.importing.opencode_lines import MESSAGE, SESSION, SHAPE, Line, decode_line, fit_line
from raddle.actions.importing.opencode_tree import Memory
from raddle.actions.importing.opencode_undone import Undone
from raddle.actions.importing.opencode_weaver import AGENT, Weaver
from raddle.actions.importing.record_reader import RecordReader
from raddle.actions.importing.states import decode_state, encode_state

VERSION = 1
"""Of the state: another number means that a session is read from its start once."""


class State(Struct, array_like=True):
    """What a reading leaves for the next one."""

    version: int
    line: int
    tree: Memory
    facts: Facts
    undone: Undone


class OpenCodeReader(RecordReader[Line]):
    """A reading of one session's lines."""

    def __init__(self, lookup: Lookup | None = None) -> None:
        super().__init__(decode_line, fit_line, SHAPE)
        self._weaver = Weaver(lookup, self._records.report)
        self._is_unreadable_state = False
        self._has_strangers = False

    def recall(self, state: bytes) -> None:
        """Go on where `state` was taken."""
        found = decode_state(state, State, VERSION)
        if found is None:
            self._is_unreadable_state = True
            return
        self._records.line = found.line
        self._weaver.tree.recall(found.tree)
        self._weaver.facts = found.facts
        self._weaver.undone = found.undone
        self._weaver.recall_turns()

    def _state(self) -> bytes:
        if not self._records.is_between_records:
            return b""
        weaver = self._weaver
        state = State(VERSION, self._records.line, weaver.tree.memory(), weaver.facts, weaver.undone.rested())
        return encode_state(state)

    def take(self) -> Taken:
        """What is finished so far."""
        return self._weaver.take()

    def finish(self, tail: bytes = b"") -> Ending:
        """End the reading; `tail` is read where it is a whole record."""
        undone = self._weaver.undone.writes()
        state = self._state()
        self._read_tail(tail)
        weaver = self._weaver
        session_id = weaver.tree.root
        needs_whole = self._is_unreadable_state or weaver.is_lost
        if not session_id:
            return Ending(state=state, needs_whole=needs_whole)
        writes = writes_of(weaver.facts, AGENT, session_id)
        writes |= {write[0]: write for write in (*undone, *weaver.undone.writes())}
        return Ending(
            thread_id=thread_id_of(AGENT, session_id),
            session_id=session_id,
            registers=tuple(writes.values()),
            links=Links(session_id=session_id),
            state=state,
            needs_whole=needs_whole,
        )

    def _read(self, record: Line, line: bytes) -> None:
        """Take in one line."""
        if record.opencode == MESSAGE and record.id:
            self._weaver.message(record)
        elif record.opencode == SESSION and record.id:
            self._header(record)
        elif not self._has_strangers:
            self._has_strangers = True
            self._records.report("a kind of line that is not known")

    def _header(self, line: Line) -> None:
        weaver = self._weaver
        strand = weaver.tree.strand_of(line.id)
        if not strand.is_side:
            see_header(weaver.facts, line)
            weaver.undone.see_header(line)
            return
        about = {"agent_id": line.id, "agent_type": line.agent, "description": line.title}
        weaver.tree.introduce(
            line.id, line.parent_id or "", {name: value for name, value in about.items() if value}
        )
