"""Sync of one data folder with its server: the place it works on, one sync at a time, and the state of each thread."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from msgspec import Struct

from raddle.actions.sync.one_thread import Place, pull, push
from raddle.actions.sync.ports import Known, Mark, Note
from raddle.actions.sync.run import Done, Plan, Step, carry_out, make_plan, to_send
from raddle.adapters.local_store.hub_bases import HubBases
from raddle.adapters.local_store.thread_marks import ThreadMarks
from raddle.adapters.locks import LockFiles, LockHeld
from raddle.model.errors import InvalidInput, RaddleError, StorageError
from raddle.model.protocol.hub import Change
from raddle.model.threads.summary import ThreadSummary
from raddle.wiring.import_lock import import_lock
from raddle.wiring.purging import finish_erasures
from raddle.wiring.remote import open_remote, server_of
from raddle.wiring.shared_sources import SharedSources

if TYPE_CHECKING:
    from raddle.actions.sync.ports import Remote
    from raddle.wiring import Stores

_HURRY_SECONDS = 2.0
_AT_ONCE, _WORTH_IT = 4, 4
_FEW = 50
"""So few threads are looked at one by one, and the folder of all of them is not."""

State = Literal["private", "local", "refused", "conflict", "pending", "in_step"]


class ThreadState(Struct, frozen=True, kw_only=True):
    """How a thread stands to the server. `next_attempt_at`: microseconds since 1970, where one is due later."""

    id: str
    state: State
    reason: str = ""
    attempts: int = 0
    next_attempt_at: int | None = None


class Shared(NamedTuple):
    """Who may read a thread now, and under which address the server shows it."""

    visibility: str
    address: str


class Syncing:
    """A data folder and its server. Use as a context manager."""

    def __init__(self, stores: Stores, remote: Remote, server: str) -> None:
        self.stores = stores
        self.server = server
        self.bases = HubBases(stores.paths.hub_bases(server))
        self.place = Place(
            stores.threads,
            ThreadMarks(stores.paths),
            self.bases,
            remote,
            stores.blobs,
            SharedSources(stores),
        )

    def plan(self, *, anyway: bool = False, revive: bool = False) -> Plan:
        """What a sync would do now. `revive`: threads that were purged on this machine alone come back."""
        self.stores.index.refresh()  # first: what an earlier sync brought and no look noted would count as deleted
        alive = self.stores.index.ids()
        purged = self.stores.ledger.purged()
        plan = make_plan(
            self.place,
            self.stores.clock,
            is_deleted=lambda name: name not in alive,
            purged=purged,
            anyway=anyway,
        )
        if not revive:
            return plan
        wanted = tuple(Change(thread_id=name, version=0) for name in sorted(purged))
        return msgspec.structs.replace(plan, pulls=(*plan.pulls, *wanted))

    def to_send(self, plan: Plan) -> int:
        """Of how many threads of `plan` something would be sent; each of them is looked into."""
        return len(to_send(self.place, plan))

    def carry_out(self, plan: Plan, *, progress: Callable[[Step], None] = lambda _: None) -> Done:
        """Do it."""
        done = carry_out(
            self.place, plan, self.stores.clock, random.random, each=_side_by_side, progress=progress
        )
        self._forget_marks_of({change.thread_id for change in plan.pulls})
        finish_erasures(self.stores)
        return done

    def _forget_marks_of(self, pulled: set[str]) -> None:
        """What was purged, wanted again and brought back is purged no more; its file is there before that is said."""
        revived = [
            name
            for name in sorted(pulled & self.stores.ledger.purged())
            if self.stores.paths.thread_file(name).exists()
        ]
        if revived:
            with import_lock(self.stores):
                for name in revived:
                    self.stores.ledger.revive(name)

    def one(self, thread_id: str) -> None:
        """Bring one thread into step, now."""
        pull(self.place, thread_id)
        push(self.place, thread_id)
        finish_erasures(self.stores)

    def share(self, thread_id: str, visibility: str) -> Shared:
        """Say who may read a thread, on top of all that the server knows of it, and tell the server; what came of that.

        InvalidInput where it is private, also where another device made it so.
        """
        pull(self.place, thread_id)
        set_visibility(self.stores, thread_id, visibility)
        self.one(thread_id)
        now = self.stores.threads.load(thread_id).visibility
        return Shared(now, f"{self.server}/api/threads/{thread_id}")


def _side_by_side(work: Callable[[str], int], names: Sequence[str]) -> Iterator[int]:
    """Several threads at once: while one waits for the server, another is read from the disk."""
    if len(names) < _WORTH_IT:
        yield from map(work, names)
        return
    from concurrent.futures import ThreadPoolExecutor, as_completed  # noqa: PLC0415  most syncs are of one thread

    pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="raddle-sync")
    try:
        for done in as_completed([pool.submit(work, name) for name in names]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)


class SyncIsRunning(StorageError):
    """Another sync does not end in time."""

    code = "sync_running"


@contextlib.contextmanager
def no_sync(stores: Stores, *, wait_seconds: float = 30.0) -> Iterator[None]:
    """No (other) sync of this data folder runs in the block; SyncIsRunning where one does not end in time."""
    locks = LockFiles(stores.paths.sync_lock_dir, stripes=1)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locks.held("sync", timeout_seconds=wait_seconds))
        except LockHeld as error:
            raise SyncIsRunning(f"another sync is running: {error.message}", error.hint) from error
        yield


@contextlib.contextmanager
def syncing(
    stores: Stores, *, insecure: bool = False, wait_seconds: float = 30.0, is_hurried: bool = False
) -> Iterator[Syncing]:
    """The sync of this data folder, held against any other for the length of the block."""
    server = server_of(stores)
    with contextlib.ExitStack() as stack:
        remote = stack.enter_context(open_remote(stores, insecure=insecure, is_hurried=is_hurried))
        stack.enter_context(no_sync(stores, wait_seconds=wait_seconds))
        work = Syncing(stores, remote, server)
        stack.callback(work.bases.close)
        yield work


def share(stores: Stores, thread_id: str, visibility: str) -> Shared:
    """Say who may read a thread, and tell the server. What `Syncing.share` raises; NetworkError, NotSignedIn where the
    server is not asked."""
    with syncing(stores) as work:
        return work.share(thread_id, visibility)


def set_visibility(stores: Stores, thread_id: str, visibility: str) -> None:
    """Say so here; the next sync tells the server. InvalidInput where the thread is private."""
    with stores.threads.edit(thread_id) as editor:
        if editor.thread.is_private:
            raise InvalidInput(
                "the thread is private: it does not leave this machine",
                f"`raddle private {thread_id} --off` ends that",
            )
        editor.set_visibility(visibility)


def is_on_server(stores: Stores, thread_id: str) -> bool:
    """Is the server known to hold something of a thread? Asks no network."""
    with _bases_of(stores) as bases:
        known = None if bases is None else bases.known(thread_id)
        return known is not None and known.version > 0


def tell_server(stores: Stores, thread_ids: Collection[str]) -> RaddleError | None:
    """Bring into step, soon or not at all, those of these threads that the server is known to hold.

    Why it was not told, where it was not; None where all is told, and where it knows none of them: then nothing is
    asked of any network.
    """
    try:
        known = [thread_id for thread_id in thread_ids if is_on_server(stores, thread_id)]
        if known:
            with syncing(stores, wait_seconds=_HURRY_SECONDS, is_hurried=True) as work:
                for thread_id in known:
                    work.one(thread_id)
    except RaddleError as error:
        return error
    return None


def put_on_server(stores: Stores, thread_id: str) -> bool:
    """Bring one thread into step, soon or not at all; does the server know it then? A private one it does not get.

    RaddleError, of whatever kind, where it was not brought into step.
    """
    with syncing(stores, wait_seconds=_HURRY_SECONDS, is_hurried=True) as work:
        work.one(thread_id)
        known = work.bases.known(thread_id)
        return known is not None and known.version > 0


def forget_base(stores: Stores, thread_id: str) -> None:
    """What the server holds of a thread that is purged here is not this machine's business any more."""
    with _bases_of(stores) as bases:
        if bases is not None:
            bases.forget(thread_id)


@contextlib.contextmanager
def _bases_of(stores: Stores) -> Iterator[HubBases | None]:
    """The bases of the server; None where there is none, or nothing was ever synced with it."""
    server = server_of(stores, is_needed=False)
    if not server or not stores.paths.hub_bases(server).exists():
        yield None
        return
    bases = HubBases(stores.paths.hub_bases(server))
    try:
        yield bases
    finally:
        bases.close()


def states(stores: Stores, rows: Iterable[ThreadSummary], *, is_of_server: bool = False) -> list[ThreadState]:
    """How each thread stands to the server, asked of no network; the first state of the list that holds.

    `is_of_server`: the server named these threads; one that this machine does not have is `in_step` then.
    """
    server = server_of(stores, is_needed=False)
    if not server:
        return [ThreadState(id=row.id, state="private" if row.is_private else "local") for row in rows]
    wanted = list(rows)
    bases = HubBases(stores.paths.hub_bases(server))
    try:
        if len(wanted) <= _FEW:
            found = {row.id: known for row in wanted if (known := bases.known(row.id)) is not None}
        else:
            found = bases.all_known()
        notes = bases.notes()
    finally:
        bases.close()
    marks = ThreadMarks(stores.paths)
    there = {row.id: marks.mark(row.id) for row in wanted} if len(wanted) <= _FEW else marks.marks()
    return [
        _state(
            row,
            notes.get(row.id),
            is_settled=_is_settled(found.get(row.id), there.get(row.id))
            or (is_of_server and not stores.threads.has(row.id)),
        )
        for row in wanted
    ]


def _is_settled(known: Known | None, mark: Mark | None) -> bool:
    return known is not None and known.version > 0 and known.mark == mark


def pending_count(stores: Stores) -> int:
    """How many threads the server lacks something of; 0 where there is no server. Asks no network, opens no thread."""
    server = server_of(stores, is_needed=False)
    if not server:
        return 0
    bases = HubBases(stores.paths.hub_bases(server))
    try:
        known = bases.all_known()
    finally:
        bases.close()
    count = 0
    for name, mark in ThreadMarks(stores.paths).marks().items():
        one = known.get(name)
        if one is None or one.mark != mark:
            row = stores.index.get(name)
            count += row is not None and not row.is_private
    return count


def _state(row: ThreadSummary, note: Note | None, *, is_settled: bool) -> ThreadState:
    if row.is_private:
        return ThreadState(id=row.id, state="private")
    if note is not None and note.is_final:
        return ThreadState(id=row.id, state="refused", reason=note.reason, attempts=note.attempts)
    if row.has_conflicts:
        return ThreadState(
            id=row.id, state="conflict", reason="several values stand: `raddle conflicts` lists them"
        )
    if note is not None:
        return ThreadState(
            id=row.id,
            state="pending",
            reason=note.reason,
            attempts=note.attempts,
            next_attempt_at=note.next_attempt_at,
        )
    return ThreadState(id=row.id, state="in_step" if is_settled else "pending")


def last_success(stores: Stores) -> int | None:
    """When a whole sync last came to its end, in microseconds since 1970; None where none did."""
    with _bases_of(stores) as bases:
        return None if bases is None else bases.last_success()
