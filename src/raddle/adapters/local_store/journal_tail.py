"""A thread seen through the end of its journal: enough for the next turn, and an alarm for everything else.

A turn under the tip needs the clock, the tip and the handful of registers that a turn rewrites. `TailThread`
holds those and nothing more, so that an `Editor` runs on it at a cost that does not grow with the thread.
Every question that it cannot answer raises `NeedsWhole`; the store then asks again with the whole thread.
A reading that guessed instead would stamp an edit as if it had seen what it had not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import msgspec

from raddle.adapters.local_store.journal import Footer, Tip
from raddle.model.threads.edits import Author
from raddle.model.threads.message import Message
from raddle.model.threads.register import Register
from raddle.model.threads.thread import Thread
from raddle.model.threads.tree import Branch, MessageTree

_STEP_PATHS = (
    "updated_at",
    "last_activity_at",
    "agent_state",
    "model",
    "git",
    "git_initial",
    "git_remote_url",
)
"""The registers that a step of a session may write; a footer holds each of them, or the thread has none."""


class NeedsWhole(Exception):
    """The end of the journal does not tell; the whole thread does."""


def footer_of(thread: Thread, device: str) -> Footer | None:
    """What the line after the next one needs; None where only the whole thread will do.

    That is so while it is deleted, and where its tip was answered by a message that sorts before it.
    """
    if isinstance(thread, TailThread):
        return thread.footer()
    tip = thread.tree.tip()
    if thread.is_deleted or (tip is not None and not thread.tree.is_leaf(tip.id)):
        return None
    paths = (*_STEP_PATHS, f"draft/{device}", *_head_path(thread))
    return Footer(
        device=device,
        version=thread.version,
        clock=thread.clock,
        tip=_tip(thread.tree),
        registers={path: thread.registers[path] for path in paths if path in thread.registers},
    )


def _head_path(thread: Thread) -> tuple[str, ...]:
    """The register that says the current commit was seen."""
    head = thread.plain("git_current_commit_sha")
    return (f"commit/{head}",) if isinstance(head, str) else ()


def _tip(tree: MessageTree) -> Tip | None:
    tip = tree.tip()
    if tip is None:
        return None
    return Tip(id=tip.id, branch_id=tip.branch_id, role=tip.role, order=tip.order)


class TailThread(Thread):
    """The thread that a footer tells of. An old tip says its id, branch, role and order only."""

    __slots__ = ("_alarm", "_device")

    def __init__(self, thread_id: str, footer: Footer) -> None:
        super().__init__(thread_id)
        self._device = footer.device
        self._alarm = _Alarm()
        self.version = footer.version
        self.clock = footer.clock
        known = {*_STEP_PATHS, f"draft/{footer.device}"}
        self.registers = _TailRegisters(footer.registers, known, self._alarm)
        self.tree = _TailTree(footer.tip, self._alarm)

    @property
    def fell_short(self) -> bool:
        """Was anything asked that it could not answer, even if who asked went on?"""
        return self._alarm.was_raised

    def author(self, author: Author) -> Author:
        """`author`, whose fresh ids this thread then knows to be in no message."""
        tree = self.tree

        def new_id() -> str:
            message_id = author.new_id()
            if isinstance(tree, _TailTree):
                tree.fresh.add(message_id)
            return message_id

        return msgspec.structs.replace(author, new_id=new_id)

    def footer(self) -> Footer:
        """What the line after the next one needs."""
        held = self.registers.held() if isinstance(self.registers, _TailRegisters) else self.registers
        paths = (*_STEP_PATHS, f"draft/{self._device}", *_head_path(self))
        return Footer(
            device=self._device,
            version=self.version,
            clock=self.clock,
            tip=_tip(self.tree),
            registers={path: held[path] for path in paths if path in held},
        )

    @property
    def is_deleted(self) -> bool:
        """No: a footer is written only for a thread that is not."""
        return False

    @property
    def deleted_at(self) -> str | None:
        """None, for the same reason."""
        return None

    @property
    def drafts(self) -> dict[str, dict[str, str]]:
        """This device's drafts; those of others are not known and not needed for a turn."""
        shown = self.shows(f"draft/{self._device}")
        return {self._device: shown} if shown else {}


class _Alarm:
    def __init__(self) -> None:
        self.was_raised = False

    def __call__(self) -> NoReturn:
        self.was_raised = True
        raise NeedsWhole


class _TailRegisters(dict[str, Register]):
    """Registers of which only some are known; to ask for another, or for all, is to need the whole thread."""

    def __init__(self, held: dict[str, Register], known: set[str], alarm: _Alarm) -> None:
        super().__init__(held)
        self._known = known
        self._alarm = alarm

    def held(self) -> dict[str, Register]:
        """Those that have a value here."""
        return {path: dict.__getitem__(self, path) for path in dict.keys(self)}

    def _check(self, path: object) -> None:
        if path not in self._known and not super().__contains__(path):
            self._alarm()

    def get(self, path: str, default: Any = None, /) -> Any:
        self._check(path)
        return super().get(path, default)

    def __getitem__(self, path: str) -> Register:
        self._check(path)
        return super().__getitem__(path)

    def __contains__(self, path: object) -> bool:
        self._check(path)
        return super().__contains__(path)

    def __iter__(self) -> Iterator[str]:
        self._alarm()

    def __len__(self) -> int:  # noqa: PLE0303
        self._alarm()

    def items(self) -> NoReturn:
        self._alarm()

    def keys(self) -> NoReturn:
        self._alarm()

    def values(self) -> NoReturn:
        self._alarm()


class _TailTree(MessageTree):
    """A tree of which the tip and what was added since are known."""

    def __init__(self, tip: Tip | None, alarm: _Alarm) -> None:
        super().__init__()
        self.fresh: set[str] = set()
        """Ids made here and now, which no message of the thread can have."""
        self._alarm = alarm
        if tip is not None:
            self.put(Message(id=tip.id, branch_id=tip.branch_id, role=tip.role, seq=tip.order))

    def _check(self, message_id: object) -> None:
        if message_id not in self._messages and message_id not in self.fresh:
            self._alarm()

    def __contains__(self, message_id: object) -> bool:
        self._check(message_id)
        return super().__contains__(message_id)

    def get(self, message_id: str) -> Message | None:
        self._check(message_id)
        return super().get(message_id)

    def is_leaf(self, message_id: str) -> bool:
        self._check(message_id)
        return super().is_leaf(message_id)

    def is_removed(self, message_id: str) -> bool:
        self._check(message_id)
        return super().is_removed(message_id)

    def __iter__(self) -> Iterator[Message]:
        self._alarm()

    def __len__(self) -> int:  # noqa: PLE0303
        self._alarm()

    def set_gone(self, gone: Iterable[str]) -> None:
        self._alarm()

    def shown(self) -> Iterator[Message]:
        self._alarm()

    def children(self, parent_id: str | None, *, removed: bool = False) -> list[Message]:
        self._alarm()

    def heads(self) -> list[Message]:
        self._alarm()

    def path_to_root(self, message_id: str | None) -> list[Message]:
        self._alarm()

    def below(self, message_id: str) -> list[Message]:
        self._alarm()

    def lost(self) -> list[Message]:
        self._alarm()

    def branch_of(self, message_id: str) -> str:
        self._alarm()

    def fork_depth(self, message_id: str) -> int:
        self._alarm()

    def branches(self) -> list[Branch]:
        self._alarm()

    def continuation(self, message_id: str) -> Message | None:
        self._alarm()
