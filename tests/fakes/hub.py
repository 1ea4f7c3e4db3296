"""A hub in memory: what a sync server does with threads (`merge.md`, rules 10 to 13), and nothing else.

It takes a push by compare-and-set, answers "since v" from rows that carry the version of their last change,
erases a thread that is withdrawn, and can be put back to an old backup. Each rule stands in a method of its
own, so that a test can take one away and see what breaks.
"""

from __future__ import annotations

from collections.abc import Mapping

from raddle.model.protocol.hub import Answer, Pushed
from raddle.model.threads.delta import Delta
from raddle.model.threads.message import Message
from raddle.model.threads.register import Register
from raddle.model.threads.thread import Thread


class Holding:
    """One thread as the hub holds it. `changed`: row -> version of its last change."""

    def __init__(self, thread_id: str) -> None:
        self.thread = Thread(thread_id)
        self.version = 0
        self.erased_at = 0
        self.changed: dict[tuple[str, str], int] = {}

    def copy(self) -> Holding:
        """A holding of equal state that shares no part that can change."""
        other = Holding(self.thread.id)
        other.thread = self.thread.copy()
        other.version, other.erased_at, other.changed = self.version, self.erased_at, dict(self.changed)
        return other


class Hub:
    """All threads of one hub. `epoch` is another one after each restore from a backup."""

    def __init__(self, name: str = "hub") -> None:
        self.name = name
        self.restores = 0
        self._holdings: dict[str, Holding] = {}

    @property
    def epoch(self) -> str:
        """Tells the states before a restore from those after it."""
        return f"{self.name}/{self.restores}"

    def holding(self, thread_id: str) -> Holding:
        """What the hub holds of a thread; an empty holding of version 0 where it knows none."""
        return self._holdings.setdefault(thread_id, Holding(thread_id))

    def push(self, thread_id: str, delta: Delta, hub_epoch: str) -> Pushed:
        """Take `delta` where it was made on the newest version; else say what its maker lacks (a 409)."""
        holding = self.holding(thread_id)
        if not self.is_current(holding, delta, hub_epoch):
            lacking = self.since(thread_id, delta.base_version, hub_epoch)
            return Pushed(version=holding.version, hub_epoch=self.epoch, answer=lacking)
        before = _rows(holding.thread)
        holding.version = self.next_version(holding, delta)
        holding.thread.join(delta)
        for row, value in _rows(holding.thread).items():
            if before.get(row) is not value:
                holding.changed[row] = holding.version
        if holding.thread.is_private:
            self.erase(holding)
        return Pushed(version=holding.version, hub_epoch=self.epoch)

    def since(self, thread_id: str, version: int, hub_epoch: str) -> Answer:
        """The rows that changed after `version`; the whole state where that alone is sure to be right."""
        holding = self.holding(thread_id)
        is_whole = self.must_answer_whole(holding, version, hub_epoch)
        base_version = 0 if is_whole else version
        rows = {row for row, changed in holding.changed.items() if is_whole or changed > version}
        thread = holding.thread
        delta = Delta(
            base_version=base_version,
            version=holding.version,
            messages=tuple(message for message in thread.tree if ("message", message.id) in rows),
            registers={path: r for path, r in thread.registers.items() if ("register", path) in rows},
        )
        return Answer(delta=delta, hub_epoch=self.epoch)

    def is_current(self, holding: Holding, delta: Delta, hub_epoch: str) -> bool:
        """Compare and set: was the push made on exactly what the hub holds?"""
        return delta.base_version == holding.version and (holding.version == 0 or hub_epoch == self.epoch)

    def next_version(self, holding: Holding, delta: Delta) -> int:
        """Grows by every push and is never less than the pusher's own."""
        return max(holding.version + 1, delta.version)

    def must_answer_whole(self, holding: Holding, version: int, hub_epoch: str) -> bool:
        """Nothing known, a version of another life of this hub, or one from before the last erasure."""
        return (
            version == 0
            or version > holding.version
            or hub_epoch != self.epoch
            or version < holding.erased_at
        )

    def erase(self, holding: Holding) -> None:
        """Keep of a withdrawn thread nothing but the register that withdrew it."""
        kept = holding.thread.registers["is_private"]
        row = ("register", "is_private")
        if set(holding.changed) == {row}:
            return
        holding.thread = Thread(holding.thread.id)
        holding.thread.join(Delta(registers={"is_private": kept}, version=holding.version))
        holding.changed = {row: holding.version}
        holding.erased_at = holding.version

    def backup(self) -> Mapping[str, Holding]:
        """All of it, for `restore`."""
        return {thread_id: holding.copy() for thread_id, holding in self._holdings.items()}

    def restore(self, backup: Mapping[str, Holding]) -> None:
        """Go back to a backup, as the same hub in a new epoch."""
        self._holdings = {thread_id: holding.copy() for thread_id, holding in backup.items()}
        self.restores += 1


def _rows(thread: Thread) -> dict[tuple[str, str], Message | Register]:
    rows: dict[tuple[str, str], Message | Register] = {
        ("message", message.id): message for message in thread.tree
    }
    rows.update({("register", path): register for path, register in thread.registers.items()})
    return rows
