"""Reads one Codex rollout: lines in, messages and facts out.

Owns whose session a file is, and which kinds of line there are; words are read in `codex_weaver.py`.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec import Raw

from raddle.actions.importing.codex_facts import (
    INDEX,
    name_title,
    see_header,
    see_model,
    with_name_in,
    writes_of,
)
from raddle.actions.importing.codex_items import said_in
from raddle.actions.importing.codex_lineage import see_header as see_lineage
from raddle.actions.importing.codex_lineage import see_line, see_turn
from raddle.actions.importing.codex_lines import (
    ITEMS,
    SHAPE,
    WRAPPERS,
    Kept,
    Line,
    Payload,
    TokenCount,
    bare_payload,
    decode_line,
    fit_line,
    text_of,
)
from raddle.actions.importing.codex_places import rollout_in, start_of
from raddle.actions.importing.codex_spawns import ACTIVITY
from raddle.actions.importing.codex_state import VERSION, State, links_in
from raddle.actions.importing.codex_strand import roll_back
from raddle.actions.importing.codex_weaver import AGENT, Weaver, When
from raddle.actions.importing.facts import see_folder, tick
from raddle.actions.importing.fitting import NOTHING, decoded, plain_of
from raddle.actions.importing.importer import Ending, Links, Lookup, SourceName, Taken, thread_id_of
from raddle.actions.importing.other_agents import agent_of
from raddle.actions.importing.parts import SYSTEM, MessagePart
from raddle.actions.importing.record_reader import RecordReader
from raddle.actions.importing.states import decode_state, encode_state
from raddle.model.clock import parse_time
from raddle.model.threads.message import NOTICE, Usage

_LINES_TO_SNIFF = 20
_TURN_ENDS = frozenset("task_started turn_started task_complete turn_complete turn_aborted".split())
_SPAWNS = frozenset("collab_agent_spawn_end sub_agent_activity item_completed".split())
_EVENTS = (
    _TURN_ENDS
    | _SPAWNS
    | frozenset("token_count thread_settings_applied thread_name_updated thread_rolled_back error".split())
)
"""Events that are read; the others repeat what an item says, or how it came to be."""
_WITHOUT_WORDS = frozenset("world_state inter_agent_communication_metadata security_risk_score".split())


class CodexReader(RecordReader[Line]):
    """A reading of one file."""

    def __init__(
        self, source: SourceName, *, links: Links | None = None, lookup: Lookup | None = None
    ) -> None:
        super().__init__(decode_line, self._fit, SHAPE)
        self._rollout = rollout_in(source.name)
        self._index = source.companions.get(INDEX, b"")
        self._given = links or Links()
        self._weaver = Weaver(lookup, self._records.report)
        self._fallback = ""
        self._session_before = ""
        self._total = (0, 0)
        self._is_begun = False
        self._is_unreadable_state = False
        self._other_agent = ""

    def recall(self, state: bytes) -> None:
        """Go on where `state` was taken."""
        found = decode_state(state, State, VERSION)
        if found is None:
            self._is_unreadable_state = True
            return
        weaver = self._weaver
        self._records.line = found.line
        self._fallback, self._total = found.fallback, found.total
        weaver.lineage = found.lineage
        weaver.recall(found.woven)
        weaver.flow.recall(found.flow)
        weaver.facts = found.facts
        weaver.spawns.calls, weaver.spawns.agents = found.calls, found.agents
        self._is_begun = True
        self._session_before = self._session_id()

    def _state(self) -> State:
        weaver = self._weaver
        return State(
            VERSION,
            self._records.line,
            self._rollout,
            self._fallback,
            weaver.lineage,
            weaver.memory(),
            weaver.flow.memory(),
            weaver.facts,
            weaver.spawns.calls,
            weaver.spawns.agents,
            self._total,
        )

    def take(self) -> Taken:
        """What is finished so far."""
        return self._weaver.flow.take()

    def finish(self, tail: bytes = b"") -> Ending:
        """End the reading; `tail` is read where it is a whole record."""
        can_go_on = self._records.is_between_records and not self._weaver.is_forgetful
        state = encode_state(self._state()) if can_go_on else b""
        self._read_tail(tail)
        weaver = self._weaver
        weaver.flow.close()
        session_id = self._session_id()
        is_in_doubt = (
            self._is_unreadable_state or self._session_before not in ("", session_id) or weaver.flow.is_lost
        )
        if not session_id or self._other_agent:
            return Ending(other_agent=self._other_agent, state=state, needs_whole=is_in_doubt)
        is_part = weaver.start.is_sub_agents
        named = weaver.facts if is_part else with_name_in(self._index, weaver.facts, session_id)
        return Ending(
            thread_id=thread_id_of(AGENT, session_id),
            session_id=session_id,
            registers=writes_of(named, AGENT, session_id, is_part=is_part),
            links=links_in(self._state()).joined(self._given),
            state=state,
            needs_whole=is_in_doubt,
            is_unplaced=weaver.start.hangs and weaver.start.anchor is None,
            waits_for=weaver.start.base if weaver.start.anchor is None else "",
        )

    def _session_id(self) -> str:
        """The session whose thread this is, as far as it is known: of a sub-agent, its session's."""
        if parent := self._weaver.start.parent:
            return self._given.session_id or parent
        return self._weaver.lineage.session or self._fallback

    def _fit(self, value: Any) -> list[Line]:
        """Lines of a plain JSON value: one of them, or none."""
        if not isinstance(value, dict):
            return []
        agent = agent_of(value)
        if agent not in ("", AGENT) and not self._is_begun:
            self._other_agent = agent
            return []
        line = fit_line(value)
        return [] if line is None else [line]

    def _read(self, entry: Line, line: bytes) -> None:
        """Take in one line."""
        if self._other_agent:
            return
        payload = entry.payload
        if entry.raddle is not NOTHING and self._weaver.take_back(
            plain_of(entry.raddle)[0], bare_payload(line) if payload is None else payload
        ):
            return
        if payload is None:
            self._read_bare(bare_payload(line), line)
            return
        lineage, kind = self._weaver.lineage, entry.type
        if lineage.is_own and (_is_echo(payload) if kind == "event_msg" else kind in _WITHOUT_WORDS):
            self._is_begun = True
            return
        when = _when(entry.timestamp, entry.ordinal)
        see_line(lineage, entry.ordinal, when.at or 0)
        if kind == "session_meta":
            self._read_header(payload, when)
        elif lineage.is_copied and self._weaver.start.is_sub_agents and not self._begins_own(kind, payload):
            pass
        else:
            self._read_payload(kind, payload, when, line)
        self._is_begun = True

    def _begins_own(self, kind: str, payload: Payload) -> bool:
        """In a sub-agent's file: do its own lines begin with this one?"""
        if kind == "response_item":
            see_turn(self._weaver.lineage, payload.turn)
        elif payload.turn_id:
            see_turn(self._weaver.lineage, payload.turn_id)
        return not self._weaver.lineage.is_copied

    def _read_payload(self, kind: str, payload: Payload, when: When, line: bytes) -> None:
        if when.at is not None and not self._weaver.start.is_sub_agents:
            tick(self._weaver.facts, when.at)
        if kind == "response_item":
            see_turn(self._weaver.lineage, payload.turn)
            self._read_item(payload, when, line)
        elif kind == "event_msg":
            self._read_event(payload, when)
        elif kind == "turn_context":
            self._turn(payload.turn_id)
            see_folder(self._weaver.facts, payload.cwd)
            see_model(self._weaver.facts, payload.model)
        elif kind == "token_usage_record":
            self._count(payload.usage, payload.thread_token_usage)
        elif kind == "compacted":
            self._read_compaction(payload, when)
        elif kind == "inter_agent_communication":
            self._read_item(msgspec.structs.replace(payload, type="agent_message"), when, line)
        elif kind not in WRAPPERS:
            self._meet_stranger(kind, line)

    def _read_bare(self, payload: Payload, line: bytes) -> None:
        """A line of the first versions: a header, an item, or a mark without words."""
        stamp = payload.timestamp or payload.created_at
        when = _when(stamp, None)
        tick(self._weaver.facts, when.at or 0)
        if payload.type in ITEMS or payload.role:
            self._read_item(payload, when, line)
        elif payload.id and payload.timestamp and not payload.type:
            self._read_header(payload, when)
            self._weaver.strand.clock = max(self._weaver.strand.clock, when.at or 0)
        elif not payload.record_type:
            self._meet_stranger(payload.type, line)
        self._is_begun = True

    def _read_header(self, header: Payload, when: When) -> None:
        weaver = self._weaver
        lineage = weaver.lineage
        if not lineage.session and self._is_begun and self._rollout and header.id != self._rollout:
            see_lineage(lineage, Payload(id=self._rollout), when.at or 0)  # its own header is lost
        is_first = not lineage.session
        if not see_lineage(lineage, header, when.at or 0):
            return
        if is_first:
            weaver.start = start_of(header, self._rollout, self._given)
        if not weaver.start.is_sub_agents:
            at = parse_time(header.timestamp) if header.timestamp else when.at
            see_header(weaver.facts, header, at or 0)

    def _read_item(self, item: Payload, when: When, line: bytes) -> None:
        if item.type and item.type not in ITEMS:
            self._meet_stranger(item.type, line)
            return
        if not self._weaver.lineage.session and not self._fallback:
            first = hashlib.sha256(f"{item.type} {item.role} {when.stamp} ".encode())
            for said in said_in(item):
                first.update(said)
            self._fallback = self._rollout or first.hexdigest()[:32]
            self._weaver.lineage.origin = self._fallback
        if item.model:
            see_model(self._weaver.facts, item.model)
        self._weaver.read(item, when)

    def _read_event(self, event: Payload, when: When) -> None:
        """An event; most of them repeat what an item says."""
        kind, weaver = event.type, self._weaver
        if kind == "token_count":
            if event.info is not None:
                self._count(event.info.last_token_usage, event.info.total_token_usage)
        elif kind in _TURN_ENDS:
            self._turn(event.turn_id)
        elif kind in _SPAWNS:
            weaver.spawns.see_event(event)
        elif kind == "thread_settings_applied" and event.thread_settings is not None:
            settings = event.thread_settings
            see_model(weaver.facts, settings.model, settings.model_provider_id)
        elif kind == "thread_name_updated":
            if event.thread_id in (None, weaver.lineage.session):
                name_title(weaver.facts, event.thread_name or "")
        elif kind == "thread_rolled_back":
            weaver.flow.end_response()
            roll_back(weaver.strand, event.num_turns or 0)
        elif kind == "error" and (words := text_of(event.message)):
            weaver.tell(MessagePart(role=SYSTEM, kind=NOTICE, content=words, is_error=True), "error", when)

    def _turn(self, turn: str | None) -> None:
        """A turn begins, goes on or ends: no response reaches beyond that."""
        self._weaver.flow.end_response()
        if turn:
            see_turn(self._weaver.lineage, turn)

    def _count(self, last: TokenCount | None, total: TokenCount | None) -> None:
        """What a response cost. It may be told twice, and again when a session is resumed."""
        now = (total.input_tokens or 0, total.output_tokens or 0) if total is not None else (0, 0)
        if last is None or (total is not None and now == self._total):
            return
        self._total = now
        if last.input_tokens or last.output_tokens:
            self._weaver.count(_usage_of(last))

    def _read_compaction(self, compacted: Payload, when: When) -> None:
        summary = text_of(compacted.message)
        is_all = not self._weaver.lineage.has_words
        for raw in decoded(compacted.replacement_history, list[Raw]) or ():
            kept = decoded(raw, Kept)
            if kept is not None and kept.type == "message" and kept.role in ("user", "assistant"):
                self._weaver.read_kept(bare_payload(bytes(raw)), summary=summary, is_all=is_all)
        self._weaver.compact(summary, compacted.replacement_history, when)

    def _meet_stranger(self, kind: str, line: bytes) -> None:
        """A kind of line that is not known: of a newer version, or of another agent's file."""
        if self._records.line <= _LINES_TO_SNIFF and not self._is_begun:
            agent = agent_of(decoded(line, dict[str, Any]))
            self._other_agent = "" if agent == AGENT else agent
        if self._other_agent:
            self._records.report(f"a session of {self._other_agent}, not of Codex")
        else:
            self._report_stranger("line", kind)


def _is_echo(event: Payload) -> bool:
    """Does this event tell nothing that is not in an item too?"""
    if event.type == "item_completed":
        return event.item is None or event.item.type != ACTIVITY
    return event.type not in _EVENTS


def _when(stamp: str | None, ordinal: int | None) -> When:
    return When(stamp or "", parse_time(stamp) if stamp else None, -1 if ordinal is None else ordinal)


def _usage_of(count: TokenCount) -> Usage:
    cached, written = count.cached_input_tokens, count.cache_write_input_tokens
    given = count.input_tokens
    return Usage(
        input_tokens=None if given is None else max(given - (cached or 0) - (written or 0), 0),
        output_tokens=count.output_tokens,
        cache_read_tokens=cached,
        cache_write_tokens=written,
    )
