"""Whose a line of a Codex rollout is: the session's own, or copied in from the one that it was forked from.

Owns the two questions that copies raise. Which session did a record without an id first stand in, so that its
message has one id in both? And what of a sub-agent's file is its parent's, and stands in the thread already?

A copy is known by its ordinal (`subagent_history_start_ordinal`), else by its turn: turns and sessions have
UUIDv7 ids, and a turn that began before a session did is not that session's. Where neither is written, what
follows a foreign header is a copy for as long as a program needs to write it.
"""

from __future__ import annotations

import re

from msgspec import Struct, field

from raddle.actions.importing.codex_lines import Payload
from raddle.model.clock import parse_time

_UUID7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")
_COPYING = 5_000_000
"""Microseconds from a session's header in which copied lines may have been written."""
_CHAIN = 16


class Lineage(Struct, array_like=True):
    """What is known of it; plain values, so that a state can hold it. Times in microseconds.

    `chain`: (session, when it began) of the headers at the beginning, the file's own first.
    """

    session: str = ""
    began: int = 0
    chain: list[tuple[str, int]] = field(default_factory=list)
    origin: str = ""
    """The session in which what is read now was first written."""
    start_ordinal: int = 0
    is_own: bool = True
    """Did the session's own lines begin?"""
    has_words: bool = False
    """Was anything said yet? Headers that make a file a copy stand before that."""
    tells_turns: bool = False
    """Did a copied line name a turn that tells its time?"""

    @property
    def is_copied(self) -> bool:
        """Does the line being read stand in another session's file too?"""
        return not self.is_own


def see_header(lineage: Lineage, header: Payload, at: int) -> bool:
    """A header; is it the session's own? `at`: of the line, in microseconds, or 0."""
    session = header.id or header.session_id or ""
    if not lineage.session:
        lineage.session, lineage.origin = session, session
        lineage.began = (parse_time(header.timestamp) if header.timestamp else None) or at
        lineage.chain = [(session, time_in(session) or lineage.began)]
        lineage.start_ordinal = header.subagent_history_start_ordinal or 0
        if lineage.start_ordinal:
            lineage.is_own = False
        elif header.forked_from_id and header.history_base is None:
            _add(lineage, header.forked_from_id)
        return True
    if session == lineage.session:
        return True
    if not lineage.has_words:
        _add(lineage, session)
    return False


def _add(lineage: Lineage, session: str) -> None:
    if session and len(lineage.chain) < _CHAIN and session not in [one for one, _ in lineage.chain]:
        lineage.chain.append((session, time_in(session)))
    lineage.origin = lineage.chain[-1][0]
    lineage.is_own = False


def see_turn(lineage: Lineage, turn: str) -> None:
    """What comes next is of that turn."""
    if lineage.is_own or lineage.start_ordinal or not (began := time_in(turn)):
        return
    lineage.tells_turns = True
    before = [(at, session) for session, at in lineage.chain if at and at <= began]
    if before:
        lineage.origin = max(before)[1]
        lineage.is_own = lineage.origin == lineage.session


def see_line(lineage: Lineage, ordinal: int | None, at: int) -> None:
    """A line, before it is read. `at`: in microseconds, or 0."""
    if lineage.is_own:
        return
    if lineage.start_ordinal:
        lineage.is_own = ordinal is not None and ordinal >= lineage.start_ordinal
    elif not lineage.tells_turns and at and lineage.began:
        lineage.is_own = at > lineage.began + _COPYING
    if lineage.is_own:
        lineage.origin = lineage.session


def time_in(session: str) -> int:
    """When an id was made, in microseconds; 0 where it does not tell."""
    found = _UUID7.match(session)
    return int(found[1] + found[2], 16) * 1000 if found is not None else 0
