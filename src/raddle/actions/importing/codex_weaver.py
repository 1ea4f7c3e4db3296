"""Turns the items of one Codex rollout into messages that stand where they belong.

Owns ids, order and place of every message of a file, and which items are one message. It reads in the order of
the file and decides each item at once; what it remembers of them is bounded, but for sixteen bytes a message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Struct

from raddle.actions.importing.bounded import keep_first
from raddle.actions.importing.codex_facts import Facts, see_context, type_title
from raddle.actions.importing.codex_flow import Flow
from raddle.actions.importing.codex_items import parts_of, said_in
from raddle.actions.importing.codex_lineage import Lineage
from raddle.actions.importing.codex_lines import Payload, blocks_of
from raddle.actions.importing.codex_places import Start
from raddle.actions.importing.codex_spawns import Spawns
from raddle.actions.importing.codex_strand import Strand, append, hang, take_place
from raddle.actions.importing.facts import be_active
from raddle.actions.importing.importer import Anchor, Lookup, message_id_of
from raddle.actions.importing.parts import ASSISTANT, TOOL, USER, Aside, MessagePart
from raddle.actions.importing.timestamps import as_ts
from raddle.model.threads.carried import carried_message, is_carried_mark
from raddle.model.threads.message import COMPACTION, NOTICE, TURN, Message, Usage

AGENT = "codex"

_CALLS = 128
_SEEN = 512
COUNTED = 4096
_SHORTEST_ID = 16
"""Ids of records and calls that are shorter are counted by a server (`msg_1`), and name nothing by themselves."""


class When(NamedTuple):
    """Where a line stands: its time as text and in microseconds, and its ordinal (-1: it has none)."""

    stamp: str = ""
    at: int | None = None
    ordinal: int = -1


class Memory(Struct, array_like=True):
    """A `Weaver` as plain values, for a state."""

    strand: Strand
    start: Start
    calls: dict[str, str]
    seen: list[tuple[int, int]]
    counts: list[tuple[int, int]]


class Weaver:
    """The messages of one file."""

    def __init__(self, lookup: Lookup | None, report: Callable[[str], None]) -> None:
        self.flow = Flow(lookup)
        self.facts = Facts()
        self.lineage = Lineage()
        self.strand = Strand()
        self.spawns = Spawns()
        self.start = Start()
        self._lookup = lookup
        self._report = report
        self._calls: dict[str, str] = {}
        self._seen: dict[int, int] = {}
        self._counts: dict[int, int] = {}

    @property
    def is_forgetful(self) -> bool:
        """Are there more records without ids than a state holds?"""
        return len(self._counts) > COUNTED

    def read(self, item: Payload, when: When) -> None:
        """An item of the conversation."""
        aside = Aside()
        parts = [part for part in parts_of(item, aside) if not part.is_empty]
        self.flow.blobs += aside.blobs
        for repair in dict.fromkeys(aside.repairs):
            self._report(repair)
        if parts:
            self._read_parts(item, parts, when)

    def read_kept(self, item: Payload, *, summary: str, is_all: bool) -> None:
        """An item that a compaction kept: news only where what stood before it is gone from the file.

        `is_all`: nothing stands before the compaction, so that an item without an id is news too.
        """
        unique = self._unique(item)
        if not (unique or is_all):
            return
        if unique and (_digest(*unique)[0] in self._seen or self._is_stored(unique)):
            return
        aside = Aside()
        parts = [part for part in parts_of(item, aside) if part.role != TOOL and not part.is_empty]
        if summary and any(summary in part.content for part in parts):
            return
        self.flow.blobs += aside.blobs
        self.strand.clock = max(self.strand.clock, self.lineage.began)
        self.flow.end_response()
        self._read_parts(item, parts, When(), rev=0)
        self.flow.end_response()

    def take_back(self, form: Any, item: Payload) -> bool:
        """A line that raddle wrote: the message it carries is what it was. False where it carries none."""
        if self.start.is_sub_agents:
            return False
        blocks, _ = blocks_of(item.content)
        message = carried_message(form, next((block.text for block in blocks if block.text), ""))
        if message is None:
            return is_carried_mark(form)
        is_typed = message.role == USER and message.kind == TURN
        take_place(self.strand, message, is_typed=is_typed)
        if is_typed:
            type_title(self.facts, message.content)
        for call in message.tool_calls:
            if call.id:
                keep_first(self._calls, call.id, call.tool_name, _CALLS)
                self.spawns.see_call(call, Anchor(message.id, message.order))
        self.flow.end_response()
        self.flow.put(message)
        self.lineage.has_words = True
        if message.order:
            be_active(self.facts, message.order)
        return True

    def _is_stored(self, unique: tuple[str, ...]) -> bool:
        return self._lookup is not None and self._lookup(self._id(*unique)) is not None

    def tell(self, part: MessagePart, key: str, when: When) -> None:
        """Something that the program told, and no item repeats."""
        _, text = _digest(part.content)
        self._put(part, self._counted(text, key, self.lineage.origin), when, rev=1)

    def compact(self, summary: str, history: Any, when: When) -> None:
        """What came before is summed up here; it stays where it is. The same line again says nothing."""
        key, text = _digest(summary, history)
        if key in self._seen:
            return
        self._seen[key] = 0
        identity = ("compacted", self.lineage.origin, text)
        part = MessagePart(role=USER, kind=COMPACTION, content=summary)
        self.flow.compact(self._placed(part, identity, when, rev=1))
        self._say(when)

    def _read_parts(self, item: Payload, parts: list[MessagePart], when: When, *, rev: int = 1) -> None:
        identity = self._identity(item)
        if identity is None:
            return
        for part in parts:
            own = (*identity, part.key) if part.key else identity
            if part.role == ASSISTANT and part.kind == TURN:
                self._respond(part, own, when, rev)
            else:
                self._put(part, own, when, rev)
        self._say(when)

    def _say(self, when: When) -> None:
        self.lineage.has_words = True
        if when.at is not None:
            be_active(self.facts, when.at)

    def _respond(self, part: MessagePart, identity: tuple[Any, ...], when: When, rev: int) -> None:
        """A thought, a word or a call of the model."""
        if self.flow.takes_parts:
            message = self.flow.grow(part)
        else:
            message = self._placed(part, identity, when, rev)
            self.flow.begin(message)
        if message is not None and not message.is_purged:
            for call in part.tool_calls:
                if call.id:
                    keep_first(self._calls, call.id, call.tool_name, _CALLS)
                    self.spawns.see_call(call, Anchor(message.id, message.order))

    def _put(self, part: MessagePart, identity: tuple[Any, ...], when: When, rev: int) -> None:
        if part.kind == NOTICE:
            see_context(self.facts, part.content)
        elif part.role == TOOL:
            rev = rev if part.content or part.attachments else 0
            self.spawns.see_result(part.tool_call_id, part.content)
        if part.is_typed and not self.start.hangs:
            type_title(self.facts, part.content)
        self.flow.put(self._placed(part, identity, when, rev))

    def _placed(self, part: MessagePart, identity: tuple[Any, ...], when: When, rev: int) -> Message:
        """A new message at the end of the strand. `rev`: 0 where a better witness of the same words may come."""
        strand, extra = self.strand, part.extra
        if not strand.branch_id:
            if self.start.anchor is not None:
                hang(strand, self.start.anchor)
            extra = extra | self.start.told
        is_side = self.start.is_sub_agents
        message_id = self._id(*identity)
        place = append(
            strand,
            message_id,
            at=when.at,
            is_notice=part.kind == NOTICE,
            is_typed=part.is_typed and not is_side,
            ordinal=when.ordinal,
        )
        is_models = part.role == ASSISTANT and part.kind == TURN
        return Message(
            id=message_id,
            parent_id=place.parent_id,
            branch_id=place.branch_id,
            role=part.role,
            content=part.content,
            ts="" if when.at is None else as_ts(when.stamp, when.at),
            seq=None if place.seq == when.at else place.seq,
            rev=rev,
            tool_calls=part.tool_calls,
            tool_call_id=part.tool_call_id,
            tool_name=part.tool_name or self._calls.get(part.tool_call_id, ""),
            is_error=part.is_error,
            thinking=part.thinking,
            attachments=part.attachments,
            provider=self.facts.provider.value if is_models else "",
            model=self.facts.model.value if is_models else "",
            is_sidechain=is_side,
            kind=part.kind,
            extra=extra,
        )

    def _id(self, *record: Any) -> str:
        """A sub-agent's ids are its own: what it copied of its session must not move there."""
        scope = (self.lineage.session,) if self.start.is_sub_agents else ()
        return message_id_of(AGENT, *scope, *record)

    def _identity(self, item: Payload) -> tuple[Any, ...] | None:
        """What the id of an item's message is made of; None where the same item came before."""
        unique = self._unique(item)
        number, text = _digest(*said_in(item))
        if not unique:
            scope = item.turn if len(item.turn) >= _SHORTEST_ID else self.lineage.origin
            return self._counted(text, item.role or item.type, scope)
        key, _ = _digest(*unique)
        before = self._seen.get(key)
        if before is None:
            self._seen[key] = number
            return unique
        if before == number:
            return None
        return self._counted(text, *unique)

    def _unique(self, item: Payload) -> tuple[str, ...]:
        """The id that an item has of its own, in whatever session it stands; none where it has none."""
        if item.id and len(item.id) >= _SHORTEST_ID:
            return "item", item.id
        if item.call_id and len(item.call_id) >= _SHORTEST_ID:
            return item.type, item.call_id
        return ()

    def _counted(self, text: str, *scope: str) -> tuple[Any, ...]:
        """The nth time that this was said in that scope."""
        key, _ = _digest(*scope, text)
        self._counts[key] = nth = self._counts.get(key, -1) + 1
        return *scope, text, nth

    def count(self, usage: Usage) -> None:
        """What the last response cost."""
        self.flow.count(usage)

    def memory(self) -> Memory:
        """All of it that a later reading needs."""
        return Memory(
            self.strand,
            self.start,
            self._calls,
            list(self._seen.items())[-_SEEN:],
            list(self._counts.items()),
        )

    def recall(self, memory: Memory) -> None:
        """Go on where `memory` was taken."""
        self.strand, self.start = memory.strand, memory.start
        self._calls = memory.calls
        self._seen, self._counts = dict(memory.seen), dict(memory.counts)


def _digest(*said: Any) -> tuple[int, str]:
    """(eight bytes as a number, sixteen as text) of what was said."""
    digest = hashlib.blake2b(digest_size=16)
    for one in said:
        digest.update(one.encode(errors="replace") + b"\0" if isinstance(one, str) else one)
    found = digest.digest()
    return int.from_bytes(found[:8], "big", signed=True), found.hex()
