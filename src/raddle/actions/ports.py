"""What actions ask of the outside world, as small protocols; adapters satisfy them by shape.

Every protocol that more than one room needs stands here and nowhere else, so that one contract suite proves
each adapter and each fake (`tests/contract/`). A port that only one room needs lives in that room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct

if TYPE_CHECKING:  # whoever only tells of a Finding needs none of these
    from raddle.model.threads.delta import Delta
    from raddle.model.threads.edits import Editor
    from raddle.model.threads.message import Message
    from raddle.model.threads.search_answer import SearchAnswer
    from raddle.model.threads.summary import ThreadSummary
    from raddle.model.threads.thread import Thread

T = TypeVar("T")


class Finding(Struct, frozen=True, kw_only=True):
    """Something that is not as it should be: where, what, and what was done about it (empty: nothing yet).

    `failed`: why it could not be put right, where somebody tried.
    """

    path: str
    what: str
    done: str = ""
    failed: str = ""


class Placed(NamedTuple):
    """What an import did to one thread: `is_new`: it was not there; `has_news`: it holds more than before.

    `erased`: the blobs that words named which were erased elsewhere, and with this here; None where none were.
    """

    thread_id: str
    is_new: bool
    has_news: bool
    erased: frozenset[str] | None = None


class ThreadReader(Protocol):
    """Threads as they stand. Ids are whole ones; `resolve` makes one of what a person types."""

    def load(self, thread_id: str) -> Thread:
        """The thread; NotFound where there is none, FormatError where nothing of it can be read."""

    def ids(self) -> list[str]:
        """Every id, oldest first."""

    def resolve(self, prefix: str) -> str:
        """The one id that starts with `prefix` (`T-` may be left out); NotFound, Ambiguous, InvalidInput."""


class ThreadStore(ThreadReader, Protocol):
    """Threads that can be changed, each on its newest state, under its lock; durable when the call returns.

    A thread that `is_empty` is never written.
    """

    def create(self, thread_id: str | None = None) -> AbstractContextManager[Editor]:
        """A new thread (None: under a new id), kept at the end of the block; ConflictError if it is there."""

    def edit(self, thread_id: str) -> AbstractContextManager[Editor]:
        """Change the thread; kept at the end of the block, nothing where the block raises."""

    def apply(self, thread_id: str, change: Callable[[Editor], T]) -> T:
        """Change the thread by `change`; what that answers.

        The cost does not grow with the thread where `change` only adds turns under the tip and notes state,
        model, git or drafts. It may be called twice; the first call then left nothing.
        """

    def append(self, thread_id: str, role: str, content: str, **fields: Any) -> Message:
        """A turn under the tip, at a cost that does not grow; `fields` as in `Editor.reply`."""

    def join(self, thread_id: str, delta: Delta) -> bool:
        """Take in a Delta of any machine; was there anything new? Makes the thread where there is none.

        Words that were erased elsewhere are erased here: no byte of them is left in any file of the thread.
        """

    def save(self, thread: Thread) -> bool:
        """Take in a whole thread: it joins what is there, overwrites nothing. Was there anything new?"""

    def delete_files(self, thread_id: str) -> bool:
        """Remove every byte of it from this machine (`purge`); was there anything?"""


class ThreadShelf(Protocol):
    """What imports and the ends of sessions ask of the store besides."""

    def import_many(self, files: Iterable[tuple[str, bytes | str]]) -> list[Placed]:
        """Put whole thread files in their places, with one wait for the disk for many; in their order.

        A thread that is there is joined. A `str` is the path of a temporary file beside the thread files.
        """

    def fold(self, thread_id: str) -> bool:
        """Write what was appended into the readable file; was there anything to write?"""

    def scrub(self, thread_id: str) -> None:
        """Leave no byte of what the thread held earlier: the end of every purge of words."""


class ThreadIndex(Protocol):
    """What is found without opening a thread; derived, and may be rebuilt at any time."""

    def put_thread(self, thread: Thread) -> None:
        """Make the index hold the thread as it is."""

    def remove(self, thread_id: str) -> None:
        """Take a thread out; nothing happens where it is not in."""

    def get(self, thread_id: str) -> ThreadSummary | None:
        """What a list shows of it; None where it is not in the index."""

    def ids(self) -> set[str]:
        """Every thread in the index."""

    def search(self, query: str, *, limit: int = 20, cursor: str = "") -> SearchAnswer:
        """The next `limit` threads with a hit, best first; `cursor` as the page before gave it."""


class BlobStore(Protocol):
    """Bytes by the SHA-256 (64 hex) of what they are, whatever they look like on the disk."""

    def put(self, content: bytes | Iterable[bytes], *, compress: bool = False) -> str:
        """Keep `content`; its SHA-256. Putting it twice keeps it once."""

    def read(self, sha256: str) -> bytes:
        """All of it, checked; NotFound, or BrokenFormat where the bytes are not what their name says."""

    def chunks(self, sha256: str) -> Iterator[bytes]:
        """The same in pieces; the last piece comes only after the check."""

    def size(self, sha256: str) -> int | None:
        """How many bytes it is; None where it is not here."""

    def delete(self, sha256: str) -> bool:
        """Remove it; was it here?"""

    def ids(self) -> Iterator[str]:
        """Every SHA-256 that is here, in no particular order."""


def is_empty(thread: Thread) -> bool:
    """Has nobody said, asked or begun to write anything in it? Such a thread is never written to a disk."""
    return not len(thread.tree) and not thread.drafts and not thread.pending_jobs
