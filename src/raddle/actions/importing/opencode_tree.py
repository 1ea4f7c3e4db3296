"""Where a message of an OpenCode session stands: under which other one, on which branch, in which order.

Owns the difference between a session as OpenCode lists it and the tree of the person's conversation. A session is a
list: each line tells the message before it. A tree comes of it over time, where somebody took messages back and typed
again: the new one stands beside those that are gone from the list. Whatever else turns up late (the result of a call
after which the talk went on) goes to the end of its session, so that nothing is hidden beside the main line.

The sessions of sub-agents are strands of the same tree, each hung on the call that started it.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from raddle.actions.importing.bounded import forget_oldest, keep_first, keep_last
from raddle.actions.importing.importer import prompt_digest
from raddle.model.threads.message import Message

TURNS, CALLS, PROMPTS, STRANDS = 128, 128, 64, 64
"""Messages, calls that started sub-agents, prompts of such calls, and sessions that a state remembers."""

_REMEMBERED = 1 << 16
"""As many are remembered while one session is read: some 30 MB of them."""


class Spot(Struct, array_like=True):
    """After a message: `message_id` "" is the root. `is_followed`: something of the same strand stands there."""

    message_id: str = ""
    seq: int = 0
    branch_id: str = ""
    is_followed: bool = False


class Strand(Struct, array_like=True):
    """One session's messages: the spots before the first and after the last. `about`: what is known of a sub-agent."""

    is_side: bool
    start: Spot
    tip: Spot
    parent: str = ""
    about: dict[str, str] = {}

    @property
    def has_messages(self) -> bool:
        """Is there a message on it yet?"""
        return bool(self.tip.branch_id)


class Turn(Struct, array_like=True):
    """A record that was read: the id of its message, its session, the message after which the next one stands ("": the
    session's start), and the pieces of it that are messages (a number for each key)."""

    id: str
    session: str
    tip: str
    pieces: list[int]


class Stand(NamedTuple):
    """Where a message stands."""

    parent_id: str | None
    branch_id: str
    seq: int


class Memory(Struct, array_like=True):
    """A `Tree` as plain values, for a state."""

    root: str
    clock: int
    strands: dict[str, Strand]
    turns: dict[str, Turn]
    spots: dict[str, Spot]
    calls: dict[str, tuple[str, int]]
    prompts: dict[str, tuple[str, int]]


class Tree:
    """The strands of one session and its sub-agents while they are read."""

    def __init__(self) -> None:
        self.root = ""
        """The session that the others hang below."""
        self.clock = 0
        """The greatest seq so far, in microseconds."""
        self.strands: dict[str, Strand] = {}
        self.turns: dict[str, Turn] = {}
        """By the record's own id."""
        self._spots: dict[str, Spot] = {}
        self._calls: dict[str, tuple[str, int]] = {}
        self._prompts: dict[str, tuple[str, int]] = {}

    def strand_of(self, session: str) -> Strand:
        """The strand of a session; the one that is met first is the root's, all others are sub-agents'."""
        found = self.strands.get(session)
        if found is None:
            self.root = self.root or session
            start = Spot()
            found = self.strands[session] = Strand(session != self.root, start, start)
        return found

    def introduce(self, session: str, parent: str, about: dict[str, str]) -> None:
        """A header tells of a session, and below which other one it lies."""
        strand = self.strand_of(session)
        strand.parent, strand.about = parent, about

    def started(self, session: str, prompt: str, message_id: str, seq: int) -> None:
        """A call in a message started a sub-agent: its session, where that is known, and what it was asked."""
        if session:
            keep_first(self._calls, session, (message_id, seq), CALLS)
        if prompt:
            keep_first(self._prompts, prompt_digest(prompt), (message_id, seq), PROMPTS)

    def hang(self, strand: Strand, session: str, prompt: str) -> None:
        """Before a sub-agent's first message: hang it on its call, else on the last message of its parent."""
        anchor = self._calls.get(session) or self._prompts.get(prompt_digest(prompt))
        if anchor is None:
            above = self.strands.get(strand.parent) or self.strands.get(self.root)
            anchor = (above.tip.message_id, above.tip.seq) if above is not None else ("", 0)
        strand.start = strand.tip = Spot(*anchor)

    def spot_after(self, raw_id: str | None, strand: Strand, *, is_typed: bool) -> tuple[Spot, bool]:
        """Where the message after the record `raw_id` stands (None: it is the strand's first); is it too late for it?

        Only what a person typed may stand beside what stands there already; all else is for the strand's end.
        """
        turn = self.turns.get(raw_id) if raw_id is not None else None
        if raw_id is not None and turn is None:
            return strand.tip, False
        spot = self._spots.get(turn.tip) if turn is not None and turn.tip else strand.start
        if spot is None or (spot.is_followed and not is_typed):
            return strand.tip, True
        return spot, False

    def append(self, spot: Spot, strand: Strand, message_id: str, at: int, *, is_late: bool = False) -> Stand:
        """Put a message of a strand at a spot. `at`: its own time in microseconds, or 0.

        `is_late`: it belongs elsewhere, and what comes after the message at the spot comes after it.
        """
        branch_id = spot.branch_id if spot.branch_id and not spot.is_followed else message_id
        spot.is_followed = True
        self.clock = max(self.clock + 1, at)
        strand.tip = self._put(Spot(message_id, self.clock, branch_id))
        if is_late and spot.message_id in self._spots:
            self._spots[spot.message_id] = strand.tip
        return Stand(spot.message_id or None, branch_id, self.clock)

    def stand(self, strand: Strand, message: Message) -> None:
        """A message that raddle wrote stands where it says."""
        above = self._spots.get(message.parent_id or "")
        if above is not None:
            above.is_followed = True
        self.clock = max(self.clock, message.order)
        strand.tip = self._put(Spot(message.id, message.order, message.branch_id or message.id))

    def meet_again(self, message_id: str, seq: int, branch_id: str) -> None:
        """A message that stands in the thread already, of which nothing was remembered here: something stands after
        it, for the last of each session is remembered."""
        if message_id not in self._spots:
            self._put(Spot(message_id, seq, branch_id, is_followed=True))

    def remember(self, raw_id: str, turn: Turn) -> None:
        """A record was read."""
        self.turns.pop(raw_id, None)
        self.turns[raw_id] = turn
        forget_oldest(self.turns, _REMEMBERED)

    def _put(self, spot: Spot) -> Spot:
        keep_last(self._spots, spot.message_id, spot, _REMEMBERED)
        return spot

    def memory(self) -> Memory:
        """What of it a state holds."""
        turns = dict(list(self.turns.items())[-TURNS:])
        recent = list(self.strands.items())[-STRANDS:]
        strands = {self.root: self.strands[self.root], **dict(recent)} if self.root else {}
        tips = {turn.tip for turn in turns.values()}
        tips |= {strand.tip.message_id for strand in strands.values()}
        tips |= {self._spots[tip].message_id for tip in tips if tip in self._spots}
        spots = {tip: self._spots[tip] for tip in sorted(tips) if tip in self._spots}
        return Memory(self.root, self.clock, strands, turns, spots, self._calls, self._prompts)

    def recall(self, memory: Memory) -> None:
        """Go on where `memory` was taken."""
        self.root, self.clock = memory.root, memory.clock
        self.strands, self.turns, self._spots = memory.strands, memory.turns, memory.spots
        self._calls, self._prompts = memory.calls, memory.prompts
