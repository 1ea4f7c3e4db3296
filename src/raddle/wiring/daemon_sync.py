"""A sync as the daemon does it: by itself, asking nobody, and with a look first at whether there is anything to do."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, Self

from msgspec import Struct

from raddle.actions.sync.ports import Mark
from raddle.adapters.local_store.hub_bases import HubBases
from raddle.adapters.local_store.thread_marks import ThreadMarks
from raddle.model.errors import ConflictError
from raddle.model.protocol.hub import GONE, Changes
from raddle.wiring import Stores
from raddle.wiring.remote import open_remote, server_of
from raddle.wiring.syncing import syncing

if TYPE_CHECKING:
    from raddle.actions.sync.run import Step

_PATIENCE_SECONDS = 1.0
"""Another sync does the same work: it is waited for elsewhere."""
_TYPING_SECONDS = 30.0
"""A thread in which somebody only types is sent no more often than that."""
_OF_TYPING = ("draft/", "updated_at")


class Alarming(ConflictError):
    """A sync would delete more than half of what either side has: somebody has to look first."""

    code = "alarming_sync"


class Interrupted(Exception):
    """The daemon is told to end, between two threads: what was done stands."""


class Look(Struct, frozen=True, kw_only=True):
    """What is to be done as far as this machine knows. `pending`: threads of which the server lacks something.

    `is_due`: may some of them be sent now? `again_in`: seconds until a thread that failed is tried again.
    `cursor`: how far the feed was taken in.
    """

    pending: int
    is_due: bool
    again_in: float | None
    cursor: str


class Synced(Struct, frozen=True, kw_only=True):
    """What a sync did. `trouble`: code -> number of threads that are not in step for that reason."""

    pulled: int
    pushed: int
    trouble: dict[str, int]


class LiveFeed(Protocol):
    """Pages of a server's feed as they come."""

    def __iter__(self) -> Self: ...

    def __next__(self) -> Changes: ...

    def close(self) -> None:
        """End it, also while another thread waits for the next page."""


class DaemonSync:
    """The syncs of a data folder with the server that is set; for one thread of control, but for `feed`."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._typing: dict[str, int] = {}
        """Threads in which somebody types -> since when, as far as the server does not know of it."""
        self.server = server_of(stores)

    def sync(self, is_over: Callable[[], bool]) -> Synced:
        """All that is due. Interrupted once `is_over`; Alarming where a person has to say that it is meant.

        Else what `actions.sync.run` raises, and SyncIsRunning.
        """

        def go_on(_: Step | None = None) -> None:
            if is_over():
                raise Interrupted

        with syncing(self._stores, wait_seconds=_PATIENCE_SECONDS) as work:
            plan = work.plan(anyway=False)
            if plan.is_alarming:
                raise Alarming(
                    f"a sync would delete {plan.deletes_here:,} threads here and {plan.deletes_there:,} on the server",
                    "look with `raddle list --deleted`; if it is meant: `raddle sync --force`",
                )
            go_on()
            done = work.carry_out(plan, progress=go_on)
        trouble: dict[str, int] = {}
        for note in done.trouble.values():
            trouble[note.code] = trouble.get(note.code, 0) + 1
        return Synced(pulled=done.pulled, pushed=done.pushed, trouble=trouble)

    def look(self) -> Look:
        """What is pending; nothing is asked of the server, and no thread is read."""
        threads = ThreadMarks(self._stores.paths)
        marks = threads.marks()
        with self._bases() as bases:
            known, notes, cursor = bases.all_known(), bases.notes(), bases.cursor()
        now = self._stores.clock()
        unsettled = {name for name, mark in marks.items() if name not in known or known[name].mark != mark}
        typed_in = {
            name for name in unsettled if name in known and _is_only_typed_in(threads, name, known[name].mark)
        }
        self._typing = {name: self._typing.get(name, now) for name in typed_in}
        final = {name for name, note in notes.items() if note.is_final}
        ready = {name: since + int(_TYPING_SECONDS * 1_000_000) for name, since in self._typing.items()}
        waiting = [note.next_attempt_at - now for note in notes.values() if not note.is_final]
        waiting += [at - now for at in ready.values()]
        resting = {name for name, note in notes.items() if note.is_final or note.next_attempt_at > now}
        resting |= {name for name, at in ready.items() if at > now}
        return Look(
            pending=len(unsettled - final),
            is_due=bool(unsettled - resting),
            again_in=max(min(waiting), 0) / 1_000_000 if waiting else None,
            cursor=cursor,
        )

    def is_news(self, page: Changes) -> bool:
        """Does it tell of anything but what this device sent or took in itself?"""
        with self._bases() as bases:
            for change in page.changes:
                known = bases.known(change.thread_id)
                if known is None or change.kind == GONE or known.hub_epoch != page.hub_epoch:
                    return True
                if known.version != change.version:
                    return True
        return False

    @contextlib.contextmanager
    def feed(self, cursor: str) -> Iterator[LiveFeed]:
        """What the server tells after `cursor`, as it happens. May be used by another thread."""
        with open_remote(self._stores) as remote:
            yield remote.events(cursor)

    @contextlib.contextmanager
    def _bases(self) -> Iterator[HubBases]:
        bases = HubBases(self._stores.paths.hub_bases(self.server))
        try:
            yield bases
        finally:
            bases.close()


def _is_only_typed_in(threads: ThreadMarks, name: str, mark: Mark | None) -> bool:
    """Is all that was written since `mark` what somebody types and has not sent?"""
    tail = None if mark is None else threads.tail(name, mark)
    if tail is None or tail.delta.messages or not tail.delta.registers:
        return False
    return all(path.startswith(_OF_TYPING) for path in tail.delta.registers)
