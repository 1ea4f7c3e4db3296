"""Reads one OpenCode session: lines in, messages and facts out.

Owns which kinds of line there are, whose session they are, and the state that lets what changed since be read alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from raddle.actions.importing.importer import (
    Ending,
    Links,
    Lookup,
    Problem,
    Taken,
    thread_id_of,
)
from raddle.actions.importing.opencode_facts import Facts, see_header, writes_of
from raddle.actions.importing.opencode_lines import MESSAGE, SESSION, SHAPE, Line, decode_line, fit_line
from raddle.actions.importing.opencode_tree import Memory
from raddle.actions.importing.opencode_undone import Undone
from raddle.actions.importing.opencode_weaver import AGENT, Weaver
from raddle.actions.importing.records import Records

VERSION = 1
"""Of the state: another number means that a session is read from its start once."""


class State(Struct, array_like=True):
    """What a reading leaves for the next one."""

    version: int
    line: int
    tree: Memory
    facts: Facts
    undone: Undone


def decode_state(state: bytes) -> State | None:
    """A state as a value; None where it is damaged, or of another version."""
    try:
        found = msgspec.msgpack.decode(state, type=State)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if found.version == VERSION else None


class OpenCodeReader:
    """A reading of one session's lines."""

    def __init__(self, lookup: Lookup | None = None) -> None:
        self._records: Records[Line] = Records(decode_line, fit_line, SHAPE)
        self._weaver = Weaver(lookup, self._records.report)
        self._is_unreadable_state = False
        self._has_strangers = False

    @property
    def problems(self) -> list[Problem]:
        """What could not be read as it stands, so far."""
        return self._records.problems

    def recall(self, state: bytes) -> None:
        """Go on where `state` was taken."""
        found = decode_state(state)
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
        return msgspec.msgpack.encode(state)

    def feed(self, lines: Iterable[bytes]) -> None:
        """Read complete lines, in order, each without its final newline."""
        for line, _ in self._records.feed(lines):
            self._read(line)

    def skip_line(self, reason: str) -> None:
        """Count a line whose bytes are not handed over, and report it."""
        self._records.line += 1
        self._records.report(reason)

    def take(self) -> Taken:
        """What is finished so far."""
        return self._weaver.take()

    def finish(self, tail: bytes = b"") -> Ending:
        """End the reading; `tail` is read where it is a whole record."""
        undone = self._weaver.undone.writes()
        state = self._state()
        for line, _ in self._records.finish(tail):
            self._read(line)
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

    def _read(self, line: Line) -> None:
        """Take in one line."""
        if line.opencode == MESSAGE and line.id:
            self._weaver.message(line)
        elif line.opencode == SESSION and line.id:
            self._header(line)
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
