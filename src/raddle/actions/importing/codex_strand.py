"""Where a message of a Codex session stands: which one it answers, on which branch, in which order.

Owns the one thing that makes a tree of a rollout, which is a list: a person who goes back. A rollback drops so
many turns, and what comes next hangs on the message before them; a thread that was reverted goes on in another
file, which names the record it goes on from. What was dropped stays where it was.

A decision rests on lines already read. What is remembered is bounded (`TURNS`): who goes further back than
that goes back to the oldest turn that is remembered.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct, field

from raddle.actions.importing.importer import Anchor
from raddle.model.threads.message import NOTICE, Message

TURNS = 256
"""Turns a person may return to that are remembered."""

_MARKS = 256
END = 1 << 53
"""The ordinal after all others."""


class Stand(NamedTuple):
    """Where a message stands."""

    parent_id: str | None
    branch_id: str
    seq: int


class Turn(Struct, array_like=True):
    """What stood before a turn, and the ordinal of the turn's first message (-1: it has none)."""

    before: str
    seq: int
    ordinal: int


class Strand(Struct, array_like=True):
    """Messages one under the other; plain values, so that a state can hold it. `tip`: "" at the root.

    `said`: the last message that was no notice. `marks`: as `turns`, those that a rollback dropped too.
    """

    tip: str = ""
    branch_id: str = ""
    clock: int = 0
    said: str = ""
    said_seq: int = 0
    turns: list[Turn] = field(default_factory=list)
    marks: list[Turn] = field(default_factory=list)
    replied: bool = False
    """Was the tip answered before, on another branch?"""


def append(
    strand: Strand, message_id: str, *, at: int | None, is_notice: bool, is_typed: bool, ordinal: int
) -> Stand:
    """Put a message at the end. `at`: its own time in microseconds, if it has one."""
    if is_typed:
        _begin_turn(strand, ordinal)
    parent_id = strand.tip or None
    if strand.replied or not strand.branch_id:
        strand.branch_id = message_id
    strand.replied = False
    strand.clock = max(strand.clock + 1, at or 0)
    strand.tip = message_id
    if not is_notice:
        strand.said, strand.said_seq = message_id, strand.clock
    return Stand(parent_id, strand.branch_id, strand.clock)


def take_place(strand: Strand, message: Message, *, is_typed: bool) -> None:
    """A message that says itself where it stands; what comes next goes on from it."""
    if is_typed:
        turn = Turn(message.parent_id or "", strand.said_seq or strand.clock, -1)
        strand.turns = [*strand.turns[1 - TURNS :], turn]
    strand.tip, strand.branch_id = message.id, message.branch_id or message.id
    strand.replied = False
    strand.clock = max(strand.clock, message.order)
    if message.kind != NOTICE:
        strand.said, strand.said_seq = message.id, strand.clock


def _begin_turn(strand: Strand, ordinal: int) -> None:
    turn = Turn(strand.said or strand.tip, strand.said_seq or strand.clock, ordinal)
    strand.turns = [*strand.turns[1 - TURNS :], turn]
    if ordinal >= 0:
        strand.marks = [*strand.marks[1 - _MARKS :], turn]


def roll_back(strand: Strand, turns: int) -> None:
    """A person drops the last `turns` turns: what comes next stands where they stood."""
    if turns <= 0 or not strand.turns:
        return
    first = strand.turns[-min(turns, len(strand.turns))]
    strand.turns = strand.turns[: -min(turns, len(strand.turns))]
    if first.before != strand.tip:
        strand.tip, strand.replied = first.before, True
        strand.said, strand.said_seq = first.before, first.seq


def hang(strand: Strand, anchor: Anchor) -> None:
    """Hang a strand that has no message yet on one of another file."""
    strand.tip, strand.replied = anchor.message_id, True
    strand.said, strand.said_seq = anchor.message_id, anchor.seq
    strand.clock = max(strand.clock, anchor.seq)


def anchors(strand: Strand, rollout: str) -> dict[str, Anchor]:
    """What a file may hang on that goes on from this one, the rollout of that id, by its ordinals."""
    if not strand.marks or not strand.said:
        return {}
    found = {mark_of(rollout, one.ordinal): Anchor(one.before, one.seq) for one in strand.marks if one.before}
    found[mark_of(rollout, END)] = Anchor(strand.said, strand.said_seq)
    return found


def mark_of(rollout: str, ordinal: int) -> str:
    """The key of an anchor in `Links.calls`: no call has such an id."""
    return f"{rollout} before {ordinal}"


def anchor_at(calls: dict[str, Anchor], rollout: str, end: int) -> Anchor | None:
    """The last message of a rollout below the ordinal `end`, where a turn began at it or later."""
    start = f"{rollout} before "
    known = [(int(key.removeprefix(start)), one) for key, one in calls.items() if key.startswith(start)]
    later = [(ordinal, one) for ordinal, one in known if ordinal >= end]
    return min(later, key=lambda one: one[0])[1] if later else None
