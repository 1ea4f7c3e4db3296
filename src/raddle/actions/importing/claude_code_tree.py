"""Where a line of a Claude Code session stands: which message it answers, on which branch, in which order.

Owns the difference between what the program recorded as a tree and the tree of the person's conversation.
The file's `parentUuid`s branch at parallel calls, progress, hooks and replays; here all of that is one
*strand*, each message under the one before it, and a strand begins only where a person typed again, or a
sub-agent was started. So nothing that was said can end up beside the path to the tip.

A decision rests on lines already read and is never taken back, so a file read in two goes gives the same
tree. What is remembered is bounded (`RECENT`, `ANCHORS`, `STRANDS`): a parent that is no longer known is the
strand that was written last, which is where all but the rarest of such lines belong.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec import Struct

from raddle.model.threads.message import NOTICE, Message

RECENT, ANCHORS, STRANDS = 256, 256, 64
"""Lines, lines a person may return to, and strands that are remembered."""

Uuid = bytes
"""A uuid, packed."""


_CANONICAL = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z")


class Spot(NamedTuple):
    """After a message of a strand: `turn` counts the strand's messages up to it, notices not counted."""

    strand: int
    turn: int
    message_id: str


class Stand(NamedTuple):
    """Where a message stands; `spot` is the spot after it."""

    parent_id: str | None
    branch_id: str
    seq: int
    spot: Spot


class Strand(Struct):
    """Messages one under the other.

    `tip`: the last one's id, or the id they all hang on; "" for the root. `last_line`: the uuid of the last
    line that stands after the tip.
    """

    tip: str = ""
    branch_id: str = ""
    turn: int = 0
    is_sidechain: bool = False
    last_line: str = ""

    @property
    def has_messages(self) -> bool:
        """Is there a message on it yet?"""
        return bool(self.branch_id)


class Memory(Struct, array_like=True):
    """A `Tangle` as plain values, for a state."""

    strands: list[tuple[int, Uuid, Uuid, int, bool, Uuid]]
    spots: list[tuple[Uuid, int, int, Uuid]]
    anchors: list[tuple[Uuid, int, int, Uuid]]
    typed: list[tuple[int, int, int]]
    next_strand: int
    main: int
    side: int
    clock: int
    awaited: list[Uuid] = []


class Tangle:
    """The strands of one file while it is read. Strand 0 is the one that the file begins with."""

    def __init__(self, *, is_sidechain: bool = False) -> None:
        self.strands: dict[int, Strand] = {0: Strand(is_sidechain=is_sidechain)}
        self.main = 0
        """The strand outside sidechains that was written last."""
        self.side = -1
        """The sidechain that was written last; -1 before the first."""
        self.clock = 0
        """The greatest seq so far, in microseconds."""
        self._next = 1
        self._spots: dict[str, Spot] = {}
        self._anchors: dict[str, Spot] = {}
        self._awaited: set[str] = set()
        """Anchors whose own line has not come: only a line under it did."""
        self._typed: dict[tuple[int, int], int] = {}

    def has_met(self, uuid: str) -> bool:
        """Has the line `uuid` itself come before, as far as is remembered?"""
        return uuid not in self._awaited and self.spot_of(uuid) is not None

    def spot_of(self, uuid: str) -> Spot | None:
        """The spot after the line `uuid`; None where it is not known (any more)."""
        return self._anchors.get(uuid) or self._spots.get(uuid)

    def root_spot(self) -> Spot | None:
        """The spot before everything, if what came first there was typed."""
        return Spot(0, 0, "") if (0, 0) in self._typed else None

    def tip(self, strand: int) -> Spot:
        """The spot after the last message of a strand."""
        at = self.strands[strand]
        return Spot(strand, at.turn, at.tip)

    def remember(self, uuid: str, spot: Spot) -> None:
        """From now on, a line whose parent is `uuid` stands after `spot`."""
        if not uuid:
            return
        self._awaited.discard(uuid)
        strand = self.strands.get(spot.strand)
        if strand is not None and spot.turn == strand.turn:
            strand.last_line = uuid
        spots = self._spots
        spots.pop(uuid, None)
        spots[uuid] = spot
        if len(spots) > RECENT:
            self._forget(next(iter(spots)))

    def _forget(self, uuid: str) -> None:
        """Let a line go, unless it is the end of a strand that may go on some day."""
        spot = self._spots.pop(uuid)
        strand = self.strands.get(spot.strand)
        if strand is not None and strand.last_line == uuid:
            self._remember_long(uuid, spot)

    def anchor(self, uuid: str, spot: Spot) -> None:
        """Remember for long a line that a person may return to."""
        if self.spot_of(uuid) is None:
            self._awaited.add(uuid)
        self._remember_long(uuid, spot)

    def _remember_long(self, uuid: str, spot: Spot) -> None:
        self._anchors.pop(uuid, None)
        self._anchors[uuid] = spot
        if len(self._anchors) > ANCHORS:
            oldest = next(iter(self._anchors))
            del self._anchors[oldest]
            self._awaited.discard(oldest)

    def strand_for(self, parent: Spot | None, *, typed_at: int | None) -> int:
        """The strand that a message under `parent` goes on. `typed_at`: when a person typed it, if one did.

        A person typed again where the next thing after `parent`, notices aside, was typed too, at another
        time (the same time is a replay). Whatever else hangs on a message in the middle of a strand is a
        result or a call that ran beside others, and goes to its end.
        """
        if parent is None:
            return self.main
        if typed_at is not None:
            earlier = self._typed.get((parent.strand, parent.turn))
            if earlier is not None and earlier != typed_at:
                return self.fork(parent.message_id)
        return parent.strand if parent.strand in self.strands else self.main

    def fork(self, message_id: str, *, is_sidechain: bool = False) -> int:
        """A new strand that hangs on a message ("": a new root)."""
        number = self._next
        self._next += 1
        self.strands[number] = Strand(tip=message_id, is_sidechain=is_sidechain)
        if len(self.strands) > STRANDS:
            oldest = next(one for one in self.strands if one not in (self.main, number))
            del self.strands[oldest]
        return number

    def hang(self, strand: int, message_id: str, seq: int) -> None:
        """Hang a strand that has no message yet on a message of another file."""
        self.strands[strand].tip = message_id
        self.clock = max(self.clock, seq)

    def append(
        self, strand: int, message_id: str, *, at: int | None, is_notice: bool, is_typed: bool
    ) -> Stand:
        """Put a message at the end of a strand. `at`: its own time in microseconds, if it has one."""
        line = self.strands.pop(strand)
        self.strands[strand] = line  # the last written is the last to be forgotten
        if is_typed:
            self._note_typed(strand, line, at)
        parent_id = line.tip or None
        line.branch_id = line.branch_id or message_id
        line.tip = message_id
        line.turn += not is_notice
        if line.is_sidechain:
            self.side = strand
        else:
            self.main = strand
        self.clock = max(self.clock + 1, at or 0)
        return Stand(parent_id, line.branch_id, self.clock, Spot(strand, line.turn, message_id))

    def stand(self, message: Message, *, at: int | None, is_typed: bool) -> Spot:
        """Take in a message that says itself where it stands; the spot after it.

        It goes on with the strand whose end it answers; under any other message it begins one.
        """
        parent = message.parent_id or ""
        number = next((one for one, line in self.strands.items() if self._ends_at(line, message)), None)
        if number is None:
            number = self.fork(parent, is_sidechain=message.is_sidechain)
        line = self.strands.pop(number)
        self.strands[number] = line
        if is_typed:
            self._note_typed(number, line, at)
        line.branch_id = message.branch_id or message.id
        line.tip = message.id
        line.turn += message.kind != NOTICE
        if line.is_sidechain:
            self.side = number
        else:
            self.main = number
        self.clock = max(self.clock, message.order)
        return Spot(number, line.turn, message.id)

    def _ends_at(self, line: Strand, message: Message) -> bool:
        """Is a message's parent the end of this strand?"""
        if line.is_sidechain != message.is_sidechain:
            return False
        return line.tip == (message.parent_id or "") and (line.has_messages or not line.tip)

    def _note_typed(self, strand: int, line: Strand, at: int | None) -> None:
        self._typed[strand, line.turn] = -1 if at is None else at
        if len(self._typed) > ANCHORS:
            del self._typed[next(iter(self._typed))]

    def memory(self) -> Memory:
        """All of it, as plain values."""
        return Memory(
            [
                (number, pack(one.tip), pack(one.branch_id), one.turn, one.is_sidechain, pack(one.last_line))
                for number, one in self.strands.items()
            ],
            _packed(self._spots),
            _packed(self._anchors),
            [(*key, at) for key, at in self._typed.items()],
            self._next,
            self.main,
            self.side,
            self.clock,
            [pack(uuid) for uuid in sorted(self._awaited)],
        )

    def recall(self, memory: Memory) -> None:
        """Become the Tangle that `memory` was made of."""
        self.strands = {
            number: Strand(unpack(tip), unpack(branch_id), turn, is_sidechain, unpack(last_line))
            for number, tip, branch_id, turn, is_sidechain, last_line in memory.strands
        }
        self._spots = _unpacked(memory.spots)
        self._anchors = _unpacked(memory.anchors)
        self._awaited = {unpack(uuid) for uuid in memory.awaited}
        self._typed = {(strand, turn): at for strand, turn, at in memory.typed}
        self._next = memory.next_strand
        self.main, self.side, self.clock = memory.main, memory.side, memory.clock


def _packed(spots: dict[str, Spot]) -> list[tuple[Uuid, int, int, Uuid]]:
    return [(pack(uuid), spot.strand, spot.turn, pack(spot.message_id)) for uuid, spot in spots.items()]


def _unpacked(spots: list[tuple[Uuid, int, int, Uuid]]) -> dict[str, Spot]:
    return {unpack(uuid): Spot(strand, turn, unpack(message_id)) for uuid, strand, turn, message_id in spots}


def pack(uuid: str) -> Uuid:
    """`#` and 16 bytes for a canonical uuid, else `=` and its text."""
    return b"#" + bytes.fromhex(uuid.replace("-", "")) if _CANONICAL.match(uuid) else b"=" + uuid.encode()


def unpack(uuid: Uuid) -> str:
    """What `pack` packed."""
    if uuid.startswith(b"="):
        return uuid[1:].decode()
    text = uuid[1:].hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
