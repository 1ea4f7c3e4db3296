"""What is remembered of a Gemini CLI file while it is read, and from one reading to the next.

Owns the bounds of it. A session is repeated in its own file again and again (each time a message grows, at each
resume and each compaction), so whether something was said before is asked of nearly every record.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct, field

from raddle.actions.importing.bounded import keep_last
from raddle.actions.importing.replays import Replays, Told, digest_of

RECENT, TURNS, CALLS, HEARD = 64, 256, 192, 1024
"""Records whose messages may still grow; prompts a person may go back to; calls; words that may be copied."""

_TOLD = 2048


class Spot(NamedTuple):
    """Where a message stands, and how much it says there."""

    message_id: str
    parent_id: str | None
    branch_id: str
    seq: int
    rev: int


class Known(Struct, array_like=True):
    """A record that was read: what the ids of its messages are made of, the tip it found ("" for the root), its
    messages by their key. `agent_id`: of the sub-agent that it is the first record of. `is_copy`: it says again what
    another one said."""

    named: list[str]
    before: str
    agent_id: str = ""
    is_copy: bool = False
    spots: dict[str, Spot] = field(default_factory=dict)


class Asked(Struct, array_like=True):
    """A call that was made: by which record, of which tool; was it answered?"""

    record: str
    tool_name: str
    is_answered: bool = False


class Kept(Struct, array_like=True):
    """A `Memory` as plain values, for a state."""

    recent: dict[str, Known] = field(default_factory=dict)
    turns: dict[str, str] = field(default_factory=dict)
    calls: dict[str, Asked] = field(default_factory=dict)
    heard: list[int] = field(default_factory=list)
    told: list[tuple[int, int]] = field(default_factory=list)
    horizon: int = 0


class Memory:
    """Everything a file has said, as far as it may matter again."""

    def __init__(self) -> None:
        self.recent: dict[str, Known] = {}
        self.turns: dict[str, str] = {}
        """A prompt's record -> the tip it was typed under."""
        self.calls: dict[str, Asked] = {}
        self.replays = Replays(_TOLD)
        self._heard: dict[int, None] = {}

    def is_told(self, record: str, at: int) -> bool:
        """Was a record of this id read before? From now on it was. `at`: when it was written, in microseconds."""
        return self.replays.is_copy(digest_of(record), at)

    def begin(self, record: str, known: Known) -> None:
        """Its messages may still grow."""
        keep_last(self.recent, record, known, RECENT)

    def turn(self, record: str, before: str) -> None:
        """A person typed this, and may come back to before it."""
        keep_last(self.turns, record, before, TURNS)

    def ask(self, call_id: str, asked: Asked) -> None:
        """A call was made; one of the same id, made by another record, is over."""
        before = self.calls.get(call_id)
        if before is None or before.record != asked.record:
            keep_last(self.calls, call_id, asked, CALLS)

    def before(self, record: str) -> str | None:
        """The tip that a record found; None where it is not known (any more)."""
        known = self.recent.get(record)
        return self.turns.get(record) if known is None else known.before

    def hear(self, role: str, content: str) -> None:
        """These words were said."""
        keep_last(self._heard, digest_of(f"{role} {content}"), None, HEARD)

    def is_heard(self, role: str, content: str) -> bool:
        """Were these very words said lately?"""
        return digest_of(f"{role} {content}") in self._heard

    def kept(self) -> Kept:
        """What a later reading needs."""
        told = self.replays.memory()
        return Kept(
            self.recent,
            self.turns,
            self.calls,
            list(self._heard),
            told.recent,
            told.horizon,
        )

    def recall(self, kept: Kept) -> None:
        """Go on where `kept` was taken."""
        self.recent, self.turns, self.calls = dict(kept.recent), dict(kept.turns), dict(kept.calls)
        self._heard = dict.fromkeys(kept.heard)
        self.replays.recall(Told(kept.told, kept.horizon))
