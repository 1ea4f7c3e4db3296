"""Turns the lines of one Claude Code file into messages that stand where they belong.

Owns ids, order and place of every message of a file, and which lines are one message. It reads lines in the
order of the file and decides each at once; what it remembers of them is bounded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Raw

from raddle.actions.importing.bounded import keep_first
from raddle.actions.importing.claude_code_agents import Agents
from raddle.actions.importing.claude_code_facts import Facts, see_leaf, type_title
from raddle.actions.importing.claude_code_flow import Flow
from raddle.actions.importing.claude_code_lines import Entry, Sidecar, blocks_of
from raddle.actions.importing.claude_code_tree import Spot, Tangle
from raddle.actions.importing.claude_code_turns import parts_of
from raddle.actions.importing.facts import be_active
from raddle.actions.importing.fitting import NOTHING, decoded, plain_of
from raddle.actions.importing.importer import Anchor, Links, Lookup, SourceName, message_id_of
from raddle.actions.importing.parts import ASSISTANT, TOOL, Aside, MessagePart
from raddle.actions.importing.replays import Replays, digest_of
from raddle.actions.importing.timestamps import as_ts
from raddle.model.clock import parse_time
from raddle.model.threads.carried import carried_message
from raddle.model.threads.message import NOTICE, TURN, Message, ToolCall, Usage

AGENT = "claude-code"
PROVIDER = "anthropic"

_CALLS = 128
_SILENT = 32
_REPLAYED = 384


class Call(NamedTuple):
    """A call that was made: of which tool, on which strand."""

    tool_name: str
    strand: int


class Weaver:
    """The messages of one file. `is_part`: it is a sub-agent's own. `session_id` is told by the reader."""

    def __init__(
        self,
        source: SourceName,
        *,
        is_part: bool,
        links: Links | None,
        lookup: Lookup | None,
        report: Callable[[str], None],
    ) -> None:
        self.session_id = ""
        self.tangle = Tangle(is_sidechain=is_part)
        self.flow = Flow(lookup)
        self.agents = Agents(links)
        self.replays = Replays(_REPLAYED)
        self.facts = Facts()
        self.silent: dict[str, str] = {}
        """API id -> uuid of its first line, while none of its lines said anything."""
        self.calls: dict[str, Call] = {}
        self.is_unplaced = False
        """Was a sub-agent's own file begun without knowing the call that started it?"""
        self.counts: dict[str, int] = {}
        """Role and hash of the content -> how many lines without an id said that."""
        self._source = source
        self._is_part = is_part
        self._report = report

    def turn(self, entry: Entry, line: bytes, at: int | None) -> None:
        """A line that may have words. `at`: its time in microseconds."""
        if entry.raddle is not NOTHING and not self._is_part and self._take_back(entry):
            return
        is_known = self.tangle.spot_of(entry.uuid) is not None
        if (at is not None or entry.uuid) and self.replays.is_copy(_digest(entry, at), at):
            if not is_known:
                self.tangle.remember(entry.uuid, self.tangle.tip(self._strand(entry, None, at)))
            return
        aside = Aside()
        spot = None
        for part in parts_of(entry, aside):
            spot = self._add(entry, part, line, at) or spot
        self.flow.blobs += aside.blobs
        for repair in dict.fromkeys(aside.repairs):
            self._report(repair)
        if spot is None:
            self.pass_over(entry)
        else:
            self.tangle.remember(entry.uuid, spot)
            see_leaf(self.facts, entry.uuid)
            if at is not None:
                be_active(self.facts, at)

    def _take_back(self, entry: Entry) -> bool:
        """A line that raddle wrote: the message it carries is what it was. False where it carries none."""
        message = carried_message(plain_of(entry.raddle)[0], _first_text(entry))
        if message is None:
            return False
        if self.replays.is_copy(digest_of(f"raddle {message.id} ", NOTHING), None):
            return True
        at = parse_time(message.ts)
        is_typed = message.role == "user" and message.kind == TURN and not message.is_sidechain
        spot = self.tangle.stand(message, at=at, is_typed=is_typed)
        if is_typed:
            type_title(self.facts, message.content)
        self.flow.put(message)
        self._see_calls(message.tool_calls, spot.strand, message.id, self.tangle.clock)
        self.tangle.remember(entry.uuid, spot)
        if at is not None:
            be_active(self.facts, at)
        return True

    def pass_over(self, entry: Entry) -> None:
        """A line without words: what names it as parent stands where it stands."""
        if not entry.uuid:
            return
        tangle = self.tangle
        parent = entry.parent_uuid
        spot = tangle.spot_of(parent) if isinstance(parent, str) else None
        if spot is None or spot.strand not in tangle.strands:
            is_side = entry.is_sidechain and tangle.side in tangle.strands
            spot = tangle.tip(tangle.side if is_side else tangle.main)
        tangle.remember(entry.uuid, spot)
        see_leaf(self.facts, entry.uuid)

    def _add(self, entry: Entry, part: MessagePart, line: bytes, at: int | None) -> Spot | None:
        """One part; the spot after it, None where it makes no message."""
        said = entry.message
        if said is not None and said.id and part.role == ASSISTANT:
            return self._add_api_part(entry, part, said.id, at)
        if part.is_empty:
            return None
        spot, message = self._place(entry, part, entry.uuid, at)
        self.flow.put(message)
        if part.role == TOOL and part.tool_call_id:
            self.agents.see_result(part.tool_call_id, part.content, line)
        self._see_calls(part.tool_calls, spot.strand, message.id, self.tangle.clock)
        return spot

    def _add_api_part(self, entry: Entry, part: MessagePart, api_id: str, at: int | None) -> Spot | None:
        """One more part of an API message, or its first."""
        if self.flow.is_growing(api_id):
            strand = self._strand(entry, None, at)
            message = self.flow.grow(api_id, part, _usage_of(entry))
            if message is not None:
                self._see_calls(part.tool_calls, strand, message.id, message.order if part.tool_calls else 0)
            return self.tangle.tip(strand)
        if part.is_empty:
            keep_first(self.silent, api_id, entry.uuid, _SILENT)
            return None
        spot, message = self._place(entry, part, self.silent.pop(api_id, entry.uuid), at)
        self.flow.begin(api_id, spot.strand, message)
        self._see_calls(part.tool_calls, spot.strand, message.id, self.tangle.clock)
        return spot

    def _see_calls(self, calls: tuple[ToolCall, ...], strand: int, message_id: str, seq: int) -> None:
        for call in calls:
            if call.id:
                keep_first(self.calls, call.id, Call(call.tool_name, strand), _CALLS)
                self.agents.see_call(call, Anchor(message_id, seq))

    def _place(self, entry: Entry, part: MessagePart, uuid: str, at: int | None) -> tuple[Spot, Message]:
        """A new message at the place where `entry` puts it."""
        tangle = self.tangle
        number = self._strand(entry, part, at)
        strand = tangle.strands[number]
        extra = part.extra
        if strand.is_sidechain and not strand.has_messages:
            extra = extra | self._start_sidechain(number, entry, part)
        is_typed = part.is_typed and not strand.is_sidechain
        if is_typed:
            self._type(entry, part, number)
        message_id = self._id(entry, part, uuid)
        stand = tangle.append(number, message_id, at=at, is_notice=part.kind == NOTICE, is_typed=is_typed)
        said = entry.message
        model = said.model if said is not None and part.role == ASSISTANT and part.kind != NOTICE else ""
        call = self.calls.get(part.tool_call_id)
        message = Message(
            id=message_id,
            parent_id=stand.parent_id,
            branch_id=stand.branch_id,
            role=part.role,
            content=part.content,
            ts="" if at is None else as_ts(entry.timestamp, at),
            seq=None if stand.seq == at else stand.seq,
            rev=1 if part.content or part.role != TOOL or part.attachments else 0,
            tool_calls=part.tool_calls,
            tool_call_id=part.tool_call_id,
            tool_name=part.tool_name or (call.tool_name if call is not None else ""),
            is_error=part.is_error,
            thinking=part.thinking,
            attachments=part.attachments,
            provider=PROVIDER if model else "",
            model=model,
            usage=_usage_of(entry) if model else None,
            is_sidechain=strand.is_sidechain,
            kind=part.kind,
            extra=extra,
        )
        return stand.spot, message

    def _type(self, entry: Entry, part: MessagePart, number: int) -> None:
        """A person typed on a strand: a later line with the same parent is that person typing again."""
        if isinstance(entry.parent_uuid, str):
            spot = self.tangle.spot_of(entry.parent_uuid)
            if spot is None or spot.strand == number:
                self.tangle.anchor(entry.parent_uuid, self.tangle.tip(number))
        type_title(self.facts, part.content)

    def _strand(self, entry: Entry, part: MessagePart | None, at: int | None) -> int:
        """The strand that a line, or a part of it, goes on."""
        tangle = self.tangle
        if self._is_part:
            return 0
        parent = entry.parent_uuid
        spot = tangle.spot_of(parent) if isinstance(parent, str) else None
        if entry.is_sidechain:
            return self._side_strand(entry, spot)
        call = self.calls.get(part.tool_call_id) if part is not None and part.tool_call_id else None
        if call is not None and call.strand in tangle.strands:
            return call.strand
        if spot is not None and spot.strand in tangle.strands and tangle.strands[spot.strand].is_sidechain:
            spot = None
        is_typed = part is not None and part.is_typed and entry.type == "user"
        if parent is None and is_typed:
            spot = tangle.root_spot()
        elif spot is None and isinstance(parent, str) and part is not None:
            self._report("it is its own parent" if parent == entry.uuid else "its parent is not known here")
        return tangle.strand_for(spot, typed_at=(-1 if at is None else at) if is_typed else None)

    def _side_strand(self, entry: Entry, spot: Spot | None) -> int:
        """The strand of a sub-agent whose lines stand among those of the session."""
        strands = self.tangle.strands
        if spot is not None and spot.strand in strands and strands[spot.strand].is_sidechain:
            return spot.strand
        if spot is None and entry.parent_uuid is not None and self.tangle.side in strands:
            return self.tangle.side
        return self.tangle.fork(spot.message_id if spot is not None else "", is_sidechain=True)

    def _start_sidechain(self, number: int, entry: Entry, part: MessagePart) -> dict[str, Any]:
        """Hang a sub-agent's first message on the call that started it; what is known of the sub-agent."""
        sidecar = (decoded(self._source.sidecar, Sidecar) if self._is_part else None) or Sidecar()
        agent_id = entry.agent_id or (agent_id_in(self._source.name) if self._is_part else "")
        folders = self._source.folders
        run_id = folders[-1] if self._is_part and "workflows" in folders else ""
        starter = self.agents.starter_of(
            agent_id, part.content, call_id=sidecar.tool_use_id or "", run_id=run_id
        )
        self.is_unplaced = self._is_part and starter is None
        if starter is not None:
            self.tangle.hang(number, starter.message_id, starter.seq)
        known = {"agent_id": agent_id, "agent_type": sidecar.agent_type, "description": sidecar.description}
        return {name: value for name, value in known.items() if value}

    def _id(self, entry: Entry, part: MessagePart, uuid: str) -> str:
        """The id of the message that `part` begins."""
        parts = [part.key] if part.key else []
        if uuid:
            if uuid == entry.uuid and self.tangle.has_met(uuid):  # came before, with other words
                what = f"{entry.type} {entry.timestamp} ".encode(errors="replace")
                parts.append(_hash(what + bytes(content_of(entry))))
            return message_id_of(AGENT, uuid, *parts)
        seen = f"{part.role} {_hash(content_of(entry))}"
        if not part.key:
            self.counts[seen] = self.counts.get(seen, -1) + 1
        return message_id_of(AGENT, self.session_id, part.role, seen, self.counts.get(seen, 0), *parts)


def agent_id_in(name: str) -> str:
    """The sub-agent's id in the name of its file; empty where it is not named so."""
    stem = name.rpartition(".")[0]
    return stem.removeprefix("agent-") if stem.startswith("agent-") else ""


def content_of(entry: Entry) -> Raw:
    """What a line says, as its bytes stand."""
    if entry.message is not None:
        return entry.message.content
    if entry.type == "attachment":
        return entry.attachment
    if entry.type == "tool_use":
        return entry.input
    return entry.output if entry.type == "tool_result" else entry.content


def _first_text(entry: Entry) -> str:
    """The text of a line that raddle wrote, which has one."""
    found, _ = blocks_of(content_of(entry))
    if isinstance(found, str):
        return found
    return next((block.text for block in found if block.type == "text"), "")


def _digest(entry: Entry, at: int | None) -> int:
    """What a copy of the line has too, under another uuid; without a time, only one of the same uuid is a copy."""
    return digest_of(f"{entry.type} {entry.uuid if at is None else at} ", content_of(entry))


def _hash(data: bytes | Raw) -> str:
    return hashlib.sha256(data).hexdigest()


def _usage_of(entry: Entry) -> Usage | None:
    count = entry.message.usage if entry.message is not None else None
    if count is None:
        return None
    return Usage(
        input_tokens=count.input_tokens,
        output_tokens=count.output_tokens,
        cache_read_tokens=count.cache_read_input_tokens,
        cache_write_tokens=count.cache_creation_input_tokens,
        cost_usd=entry.cost_usd,
    )
