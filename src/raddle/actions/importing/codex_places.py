"""Where a rollout belongs among other files: whose session it is, and on what its first message hangs.

Owns what a header says of that, for the import that groups files before it reads them and for the reader alike:
a sub-agent's file is part of the session that started it, and one that goes on from a record of another file of
the same thread is part of that thread.
"""

from __future__ import annotations

import re

from msgspec import Struct, field

from raddle.actions.importing.codex_lines import WRAPPERS, Line, Payload, bare_payload, spawn_of
from raddle.actions.importing.codex_strand import anchor_at
from raddle.actions.importing.fitting import decoded
from raddle.actions.importing.importer import Anchor, Links
from raddle.model.clock import parse_time

_ROLLOUT = re.compile(r"rollout-.*-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl\Z")
_HEADER = re.compile(rb'"type" ?: ?"session_meta"')
_ID = re.compile(rb'(?<=[{,])"id" ?: ?"([^"\\]{1,200})"')
_SESSION_ID = re.compile(rb'(?<=[{,])"session_id" ?: ?"([^"\\]{1,200})"')
_PARENT = re.compile(rb'(?<=[{,])"parent_thread_id" ?: ?"([^"\\]{1,200})"')


_CLOCKS = 1_000_000
"""Microseconds by which the order of messages may be ahead of the clock that they were written by."""


class Start(Struct, array_like=True):
    """What a header says of where the file's first message hangs; plain values, for a state.

    `parent`: of a sub-agent's file, the session it is part of. `told`: facts that go with the first message.
    `hangs`: does it hang on a message of another file of its session? `base`: or of another session's, that it was
    forked from? `anchor`: which one, where that is known.
    """

    parent: str = ""
    told: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    anchor: Anchor | None = None
    base: str = ""

    @property
    def is_sub_agents(self) -> bool:
        """Is it a sub-agent's file?"""
        return bool(self.parent)


def start_of(header: Payload, rollout: str, links: Links) -> Start:
    """`rollout`: the id in the file's name. `links`: what the session's other files told."""
    session, base = header.id or "", header.history_base
    if parent := parent_of(header):
        spawn = spawn_of(header)
        named = {
            "agent_id": session,
            "agent_type": spawn.agent_role,
            "agent_nickname": spawn.agent_nickname,
            "agent_path": spawn.agent_path,
        }
        told = {name: value for name, value in named.items() if value}
        return Start(parent, told, hangs=True, anchor=links.calls.get(links.agents.get(session, "")))
    if base is not None and goes_on(header, rollout):
        anchor = anchor_at(links.calls, base.thread_id, base.end_ordinal_exclusive or 0)
        return Start(hangs=True, anchor=anchor)
    told = {"forked_from": header.forked_from_id} if header.forked_from_id else {}
    forked_from = base_of(header)
    if base is None or not forked_from:
        return Start(told=told)
    anchor = anchor_at(links.calls, base.thread_id, base.end_ordinal_exclusive or 0)
    began = parse_time(header.timestamp) if header.timestamp else None
    if anchor is not None and began is not None and anchor.seq > began + _CLOCKS:
        anchor = None  # the turn that it goes on from is not among those that are remembered
    return Start(told=told, anchor=anchor, base=forked_from)


def base_of(header: Payload) -> str:
    """The session that this one was forked from, where only that one's file has the turns before; empty elsewhere."""
    return header.forked_from_id or "" if header.history_base is not None else ""


def parent_of(header: Payload) -> str:
    """The session that a sub-agent's file is part of; empty where it is no sub-agent's.

    A sub-agent's sub-agent knows the whole session since `session_id` is written; before, only its starter.
    """
    starter = spawn_of(header).parent_thread_id
    if not starter or starter == header.id:
        return ""
    return header.session_id if header.session_id not in (None, "", header.id) else starter


def goes_on(header: Payload, rollout: str) -> bool:
    """Does this file hold what came after a thread was reverted to a record of another file of its own?"""
    base = header.history_base
    return base is not None and (base.thread_id == header.id or rollout not in ("", header.id))


def rollout_in(name: str) -> str:
    """The id of the rollout in the name of its file; empty where it is not named so."""
    found = _ROLLOUT.match(name)
    return found[1] if found is not None else ""


def header_in(head: bytes) -> Payload | None:
    """The header that a file begins with, as far as `head` holds it; an empty one where a rollout begins with
    something else; None where it does not look like a rollout."""
    first, _, _ = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
    line = decoded(first, Line)
    if line is None:
        return _header_cut(first)
    if line.payload is not None:
        if line.type not in WRAPPERS:
            return None
        return line.payload if line.type == "session_meta" else Payload()
    bare = bare_payload(first)
    if bare.record_type == "state":
        return Payload()
    is_header = bare.id and bare.timestamp and not bare.type and b'"instructions"' in first
    return bare if is_header else None


def _header_cut(first: bytes) -> Payload | None:
    """A header that is longer than the head, or damaged: its ids stand near its beginning."""
    if _HEADER.search(first) is None or b'"payload"' not in first:
        return None
    found = [one.search(first) for one in (_ID, _SESSION_ID, _PARENT)]
    named = [one[1].decode(errors="replace") if one is not None else None for one in found]
    return Payload(id=named[0], session_id=named[1], parent_thread_id=named[2])
