"""What sync asks of the outside world: a hub, what that hub is known to hold, and marks of the thread files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from raddle.model.protocol.hub import Answer, Changes, Pushed
from raddle.model.protocol.sources import DeviceSources, SourceSegment
from raddle.model.threads.base import Base
from raddle.model.threads.delta import Delta


class Remote(Protocol):
    """A hub. Each call may raise NetworkError (it does not answer; trying again is right), NotSignedIn, Forbidden,
    Purged, InvalidInput, TooLarge (it answers no, and will again) or TooManyRequests."""

    def push(self, thread_id: str, delta: Delta, hub_epoch: str) -> Pushed:
        """Offer a delta, made on a base of that epoch."""

    def since(self, thread_id: str, version: int, hub_epoch: str) -> Answer:
        """What changed in a thread; one page of it."""

    def changes(self, cursor: str) -> Changes:
        """A page of the feed after `cursor`; empty: from the start."""

    def has_blob(self, sha256: str) -> bool:
        """Has the caller put these bytes there?"""

    def put_blob(self, sha256: str, pieces: Iterable[bytes], size: int) -> None:
        """Give it the bytes, in pieces."""

    def blob(self, sha256: str) -> Iterator[bytes]:
        """The bytes, in pieces; NotFound where there are none for the caller."""

    def put_sources(
        self, thread_id: str, device: str, segments: Sequence[SourceSegment], version: int
    ) -> tuple[str, ...]:
        """Replace what a device keeps of a thread's sources; those of the blobs that the caller has not given yet.

        ConflictError where the hub's thread is not at `version`; InvalidInput where it is private; NotFound.
        """

    def sources(self, thread_id: str) -> tuple[DeviceSources, ...]:
        """What each of the caller's devices keeps of a thread's sources; NotFound where the thread is not there."""

    def purge(self, thread_id: str) -> None:
        """Erase the thread for good: from then on it is Purged to everybody. NotFound where it is not there."""


class Mark(NamedTuple):
    """A state of a thread's files, for equality: two equal marks are of one state. `after`: bytes of journal."""

    file: str
    after: int


class Tail(Struct, frozen=True, kw_only=True):
    """What was written to a thread since a mark, read without the rest of it."""

    delta: Delta
    mark: Mark


class ThreadMarks(Protocol):
    """States of thread files told apart, and read from a state on, at no cost that grows with the threads."""

    def mark(self, thread_id: str) -> Mark | None:
        """The state of its files now; None where there is no such thread, or it cannot be told by its files alone."""

    def marks(self) -> dict[str, Mark]:
        """The same of all threads, by one look at the folder, oldest thread first."""

    def tail(self, thread_id: str, mark: Mark) -> Tail | None:
        """What was written since `mark`; None where that cannot be told from the end of the files alone."""


class Note(Struct, frozen=True, kw_only=True):
    """Why a thread is not in step. `is_final`: trying again does nothing until somebody acts."""

    code: str
    reason: str
    attempts: int = 0
    next_attempt_at: int = 0
    """Microseconds since 1970."""
    is_final: bool = False


class Known(NamedTuple):
    """What is kept of a thread besides what its hub holds: the state of its files in which nothing was pending."""

    version: int
    hub_epoch: str
    mark: Mark | None = None
    is_private: bool = False
    sources: str = ""
    """A digest of this device's sources of it as the hub was told them last; empty where it was not."""


class Bases(Protocol):
    """What one hub is known to hold of each thread; every call is durable when it returns.

    Losing all of it is no loss: then all is pending, and a merge follows.
    """

    def base(self, thread_id: str) -> Base:
        """All of it; an empty base where nothing is known."""

    def known(self, thread_id: str) -> Known | None:
        """The same without the digests; None where nothing is known."""

    def all_known(self) -> dict[str, Known]:
        """Of every thread."""

    def digests(self, thread_id: str, delta: Delta) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """What the hub is known to hold of the messages and of the registers that `delta` names."""

    def replace(self, thread_id: str, delta: Delta, hub_epoch: str) -> None:
        """The hub holds `delta` at its version, and nothing else. Takes the mark away."""

    def add(self, thread_id: str, delta: Delta, version: int, hub_epoch: str) -> None:
        """The hub holds `delta` besides what it is known to hold, at the cost of the delta."""

    def settle(self, thread_id: str, mark: Mark | None, *, is_private: bool) -> None:
        """Nothing was pending in this state of the files (None: nobody knows)."""

    def forget(self, thread_id: str) -> None:
        """Nothing is known of it any more."""

    def note(self, thread_id: str, note: Note | None) -> None:
        """Why it is not in step; None: it is, or nothing stands in the way."""

    def notes(self) -> dict[str, Note]:
        """All notes."""

    def cursor(self) -> str:
        """How far the feed was taken in."""

    def set_cursor(self, cursor: str) -> None:
        """The feed was taken in so far."""

    def succeeded(self, at: int) -> None:
        """A whole sync came to its end, at that time (microseconds since 1970)."""

    def last_success(self) -> int | None:
        """When the last one did."""

    def sent_blobs(self, names: Iterable[str]) -> set[str]:
        """Those of these blobs that the hub is known to have."""

    def note_blob(self, sha256: str) -> None:
        """The hub has it."""

    def note_sources(self, thread_id: str, digest: str) -> None:
        """The hub was told this device's sources of a thread, whose digest that is."""


class SourceShelf(Protocol):
    """What this device keeps of the agents' own files that threads came from, as it may be told to a hub."""

    device: str

    def digests(self) -> dict[str, str]:
        """Thread -> a digest of what is kept of its sources; of all that have any, at the cost of one look."""

    def segments(self, thread_id: str) -> Sequence[SourceSegment]:
        """What is kept of a thread's sources, and is here."""

    def sharing(self, thread_id: str) -> Mapping[str, frozenset[str]]:
        """Blob of the thread's sources -> the other threads whose sources hold the same bytes, where there are any."""
