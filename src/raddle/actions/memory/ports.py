"""What the verbs of the memory ask of the outside world: a folder of small files, and what git makes of it.

Writers need the folder alone. Who needs git (sync, history) asks for it by its own protocol, so that no write
ever waits for a process or a network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct

from raddle.model.clock import Clock
from raddle.model.errors import ConflictError
from raddle.model.ids import NewId
from raddle.model.memory.entry import Provenance
from raddle.model.memory.merge_trees import DiskStep

Change = Callable[[bytes | None], bytes | None]
"""What a file holds (None: there is none) -> what it is to hold (None: it is to go)."""


def _nothing() -> None:
    return None


class Writer(Struct, frozen=True, kw_only=True):
    """Who writes here, and with which clock. `host`: None where it is not to be told. `author`: the person's name.

    `git_sha`: the commit that the code is at, asked when it is needed.
    """

    node_id: str
    now: Clock
    new_id: NewId
    host: str | None = None
    agent: str | None = None
    author: str = ""
    git_sha: Callable[[], str | None] = _nothing

    def provenance(self, *, thread_id: str | None = None, message_id: str | None = None) -> Provenance:
        """Where what is written now comes from."""
        return Provenance(
            node_id=self.node_id,
            host=self.host,
            agent=self.agent,
            project_git_sha=self.git_sha(),
            thread_id=thread_id,
            message_id=message_id,
        )


class StoreFiles(Protocol):
    """The folder of a store. Paths are those of `repo_layout`: relative, with `/`.

    Every write is whole or not at all, and durable when the call returns. A link is never followed: to all of
    these it is a file that is not there. InvalidInput for a path that may not reach a disk.
    """

    def read(self, path: str) -> bytes | None:
        """All bytes of a file; None where there is none."""

    def names(self, folder: str) -> list[str]:
        """The names of the files right in a folder, sorted; none where there is no such folder."""

    def folders(self, folder: str) -> list[str]:
        """The names of the folders right in a folder, sorted."""

    def paths(self, folder: str = "") -> list[str]:
        """The paths of all files below a folder, sorted; nothing of git's, nothing half-made, nothing dangerous."""

    def add(self, files: Mapping[str, bytes]) -> None:
        """Put new files there, with one wait for the disk for all. ConflictError where one is there already;
        then none of them was written. Needs no lock: for files whose names nobody else comes upon."""

    def change(self, path: str, change: Change) -> bytes | None:
        """Read, change, write, under the store's lock; what the file holds now. Where `change` raises, or answers
        what is there, nothing is written."""

    def locked(self) -> AbstractContextManager[None]:
        """Hold the store's lock over several of these: no other writer of ours is in between, and no sync."""


class Scan(Struct, frozen=True, kw_only=True):
    """What a store's folder holds: path -> git's id of the content. `blocked`: path -> why it cannot be taken in
    (a link, no file, larger than git should hold, not readable)."""

    files: dict[str, str]
    blocked: dict[str, str] = {}


class StoreDisk(StoreFiles, Protocol):
    """The same for a sync."""

    def id_of(self, data: bytes) -> str:
        """The id that git has for a content."""

    def scan(self) -> Scan:
        """All of it as it is now; contents whose file has not changed are not read again."""

    def read_many(self, wanted: Mapping[str, str]) -> dict[str, bytes]:
        """Path -> id of content, as `scan` told; path -> bytes for those that still hold it, or did when the newest
        `scan` read them."""

    def carry_out(self, steps: Iterable[DiskStep], contents: Mapping[str, bytes]) -> tuple[DiskStep, ...]:
        """Bring the files to what the steps say (id -> bytes in `contents`), with one wait for the disk; the steps
        whose file no longer holds what was expected, left as they are. The caller holds the lock."""


class CommittedMeanwhile(ConflictError):
    """Somebody else committed to the store's branch between a look and a write."""

    def __init__(self) -> None:
        super().__init__("somebody else committed to the store meanwhile", "try again")


class Commit(Struct, frozen=True, kw_only=True):
    """`at`: when it was committed, in microseconds since 1970. `node_id`: the node that made it. `parent`: the commit
    that it rests on; empty where it rests on none."""

    id: str
    at: int
    node_id: str
    parent: str = ""


class StoreHistory(Protocol):
    """What git holds of a store: its branch, and the contents of its commits."""

    def head(self) -> Commit | None:
        """The newest commit of the store's branch; None: nothing was committed yet."""

    def begin_head(self) -> Callable[[], Commit | None]:
        """Begin to read the newest commit, and go on; what is given waits for it."""

    def tree(self, commit_id: str) -> dict[str, str]:
        """Path -> id, for every entry of a commit; as `merge_trees` has them."""

    def learn_tree(self, commit_id: str, tree: Mapping[str, str]) -> None:
        """Take it that a commit, which was just made of it, has this tree: it need not be read."""

    def contents(self, ids: Iterable[str]) -> dict[str, bytes]:
        """Id -> bytes."""

    def commit(
        self,
        changes: Mapping[str, str | bytes | None],
        *,
        parent: str | None,
        message: str,
        writer: Writer,
        moves: bool,
    ) -> Commit:
        """A commit on `parent` with these changes (path -> id, new bytes, or None: it goes).

        `moves`: the branch, which is at `parent`, goes to it; CommittedMeanwhile where it is there no longer.
        Else nothing names it until `move` does.
        """

    def commit_files(
        self,
        files: Mapping[str, bytes | None],
        *,
        message: Callable[[Iterable[str]], str],
        writer: Writer,
    ) -> tuple[str, ...]:
        """Commit these contents (path -> bytes, or None: it goes) on the branch's newest commit; the paths of those
        that it did not have, of which `message` speaks. None, where nothing was ever committed."""

    def move(self, to: str, *, expects: str | None) -> None:
        """Have the branch at the commit `to`; CommittedMeanwhile where it was no longer at `expects`."""

    def base_of(self, one: str, other: str) -> str | None:
        """The newest commit that both rest on; None where they share none."""


class Asked(Struct, frozen=True, kw_only=True):
    """`theirs`: the commit that the remote's branch is at, which is here then; None: it has no such branch. `known`:
    what it was at when it was asked the last time before."""

    known: str | None
    theirs: Commit | None


class StoreRemote(Protocol):
    """The git remote that clones of a store meet at. NetworkError where it cannot be reached, with why."""

    def url(self) -> str | None:
        """Where it is, without a password; None: there is none."""

    def is_agreed(self) -> bool:
        """Did a person say that this store goes to this remote, or did it come from there?"""

    def agree(self) -> None:
        """Note that it may go there."""

    def known(self) -> str | None:
        """The commit that the remote's branch was at when it was last asked; None: never asked, or it had none."""

    def begin_asking(self) -> Callable[[], Asked]:
        """Begin to ask the remote, and go on; what is given waits for the answer, and fetches what is new."""

    def push(self, commit_id: str) -> bool:
        """Have the remote's branch at a commit; False where it moved meanwhile, and nothing was changed there."""

    def keep_for_rescue(self, commit_id: str) -> str:
        """Keep a commit that the remote no longer rests on under a name of its own, which no sync touches."""
