"""Which messages of a session its person took back, in OpenCode's own undo.

Owns the registers `gone/…` of an imported session. OpenCode marks where what was taken back begins (`revert`) and
deletes it only when somebody types again; until then it can be brought back. Here it is marked as removed, so that it
is not shown as if it stood, and stays: that is so even when OpenCode has deleted it.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from raddle.actions.importing.importer import Write
from raddle.actions.importing.opencode_facts import microseconds
from raddle.actions.importing.opencode_lines import Line
from raddle.actions.importing.opencode_tree import Strand

_REMEMBERED = 1000
"""Ids that a state remembers: more of them stay marked, should all be brought back."""


class Undone(Struct, array_like=True):
    """What is taken back. Plain values, so that a state can hold it.

    `since`: the record from which on, "" where nothing is; `is_within`: it stays itself, and only its last parts go;
    `before`: the record before it. `marked`: ids that are taken back as far as earlier readings know. `n`:
    microseconds.
    """

    since: str = ""
    is_within: bool = False
    before: str = ""
    is_in_tail: bool = False
    n: int = 0
    marked: dict[str, None] = field(default_factory=dict)
    met: dict[str, None] = field(default_factory=dict)
    """Ids that this reading met where it is taken back."""
    settled: dict[str, None] = field(default_factory=dict)
    """Ids over which somebody typed: OpenCode has deleted them."""
    told: dict[str, None] = field(default_factory=dict)
    """Ids whose registers say so."""
    is_anew: bool = False
    """Did this reading meet a header that says otherwise than the one before?"""

    def rested(self) -> Undone:
        """What of it a state holds."""
        kept = dict(list(self.marked.items())[:_REMEMBERED])
        return replace(self, marked=kept, met={}, settled={}, told=kept, is_anew=False)

    def see_header(self, line: Line) -> None:
        """The header of the session says from where on it is taken back."""
        since = line.revert.message_id if line.revert is not None else ""
        if since != self.since:
            self.is_anew = True
            self.marked, self.met = self.marked | self.met, {}
        if since or self.marked:
            self.n = max(self.n, microseconds(line.time.updated if line.time else None))
        self.since, self.is_in_tail = since, False
        self.is_within = line.revert is not None and bool(line.revert.part_id)

    def see(self, line: Line, strand: Strand, ids: Iterable[str], *, is_typed: bool) -> None:
        """A message was read, which became the messages `ids`."""
        if strand.is_side:
            gone = self.met if self.is_anew else self.marked | self.met
            if strand.start.message_id in gone:
                self.met.update(dict.fromkeys(ids))
            return
        if not self.since:
            if is_typed and self.marked and (line.after or "") == self.before:
                self.settled, self.marked = self.settled | self.marked, {}
            return
        is_first = line.id == self.since
        if is_first:
            self.is_in_tail, self.before = True, line.after or ""
        if self.is_in_tail and not (is_first and self.is_within):
            self.met.update(dict.fromkeys(ids))

    def writes(self) -> list[Write]:
        """The registers that follow."""
        now = self.met if self.is_anew else self.marked | self.met
        gone = now | self.settled
        writes: list[Write] = [(f"gone/{one}", self.n, True) for one in gone if one not in self.told]
        writes += [(f"gone/{one}", self.n, False) for one in self.told if one not in gone]
        self.marked = self.told = dict(now)
        self.settled = {}
        return writes
