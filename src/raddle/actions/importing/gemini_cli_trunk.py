"""Where the messages of one Gemini CLI file stand, when, and what an answer used.

Owns the line that a conversation is here: each message stands under the one before it, but for a step back, after
which the next one stands beside what was taken back.
"""

from __future__ import annotations

from msgspec import Struct

from raddle.actions.importing.gemini_cli_lines import Record, TokenCount
from raddle.actions.importing.gemini_cli_memory import Spot
from raddle.actions.importing.importer import Anchor
from raddle.model.clock import parse_time
from raddle.model.threads.message import Usage


class Trunk(Struct, array_like=True):
    """The end of the conversation: `tip` is its last message ("": nothing is said yet), `clock` the greatest seq.

    `forks`: what comes next stands beside what came after the tip. `has_turn`: was anything said that is no notice?
    """

    tip: str = ""
    branch_id: str = ""
    clock: int = 0
    forks: bool = False
    has_turn: bool = False

    def place(self, message_id: str, at: int) -> Spot:
        """The place of a new message, written at `at` (microseconds; 0: nobody knows), which is the tip from now on."""
        self.clock = max(self.clock + 1, at)
        self.branch_id = message_id if self.forks or not self.tip else self.branch_id
        spot = Spot(message_id, self.tip or None, self.branch_id, self.clock, 0)
        self.tip, self.forks = message_id, False
        return spot

    def step_back(self, before: str) -> None:
        """What comes next stands under `before` ("": at the root)."""
        if before != self.tip:
            self.tip, self.forks = before, True

    def hang(self, starter: Anchor) -> None:
        """What comes next, a sub-agent's first message, stands under a message of another file."""
        self.tip, self.clock, self.forks = starter.message_id, starter.seq, True


def time_of(record: Record) -> int:
    """When a record was written, in microseconds; 0 where it does not say."""
    if record.timestamp or record.ts is None:
        return parse_time(record.timestamp) or 0
    return int(record.ts * 1_000_000) if 0 < record.ts < 1e11 else int(record.ts * 1000)


def usage_of(count: TokenCount | None) -> Usage | None:
    """The tokens of one answer. All that the model wrote is its output, thoughts too; a count of nothing is none."""
    if count is None or not any((count.input, count.output, count.cached, count.thoughts, count.tool)):
        return None
    cached = count.cached or 0
    return Usage(
        input_tokens=None if count.input is None else max(count.input - cached, 0) + (count.tool or 0),
        output_tokens=None if count.output is None else count.output + (count.thoughts or 0),
        cache_read_tokens=count.cached,
    )
