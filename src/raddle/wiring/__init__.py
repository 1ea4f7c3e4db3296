"""The one place that picks adapters: what an app asks for, joined to what does it.

Everything here is made when it is first asked for, so that `raddle list` opens an index and nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import os
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from raddle import __version__
from raddle.config import Config, load_config
from raddle.model.clock import Clock, system_clock
from raddle.model.ids import MonotonicIds, NewId
from raddle.model.threads.git_facts import GitSnapshot

if TYPE_CHECKING:
    from raddle.actions.importing.rules import Rules
    from raddle.actions.ports import Finding
    from raddle.adapters.blobs.directory import BlobDirectory
    from raddle.adapters.local_store.active_branches import ActiveBranches
    from raddle.adapters.local_store.import_ledger import ImportLedger
    from raddle.adapters.local_store.search_index import SearchIndex
    from raddle.adapters.local_store.thread_files import ThreadFiles
    from raddle.adapters.locks import LockFiles
    from raddle.model.threads.edits import Author
    from raddle.model.threads.search_answer import SearchAnswer
    from raddle.model.threads.summary import ThreadSummary
    from raddle.model.threads.thread import Thread


_SHORT = 10
_MANY = 200
"""Building an index of fewer threads is done before anybody has read that it is being done."""
_REWRITES = frozenset({"loom", "quorum"})
"""Programs that write their whole file anew for each turn: that is no sign of anything."""


class Place(Struct, frozen=True, kw_only=True):
    """Where a thread is started: facts for its first registers."""

    cwd: str
    workspace_root: str
    client_version: str
    git: GitSnapshot | None
    is_private: bool


def _nothing(_: Finding) -> None:
    """What becomes of findings until somebody listens."""


class Stores:
    """What the apps work with, of one data folder. Use as a context manager.

    `report` is told what was found damaged and mended on the way, and when the index has to be built anew.
    """

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock = system_clock,
        new_id: NewId | None = None,
        report: Callable[[Finding], None] = _nothing,
    ) -> None:
        self.config = config
        self.clock = clock
        self.report = report
        self.paths = config.paths
        self._new_id = new_id
        self.erased: dict[str, frozenset[str]] = {}
        """Thread -> blobs that erased words named: for `wiring.purging.finish_erasures`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what was opened."""
        for name in ("index", "ledger"):
            opened = self.__dict__.pop(name, None)
            if opened is not None:
                opened.close()

    @functools.cached_property
    def author(self) -> Author:
        """Who writes here: this device."""
        from raddle.adapters.device import this_device  # noqa: PLC0415
        from raddle.model.threads.edits import Author  # noqa: PLC0415

        return Author(
            device=this_device(self.paths).id,
            now=self.clock,
            new_id=self._new_id or MonotonicIds(self.clock),
            name=self.config.author_name or "",
        )

    @functools.cached_property
    def locks(self) -> LockFiles:
        """The locks of this data folder."""
        from raddle.adapters.locks import LockFiles  # noqa: PLC0415

        return LockFiles(self.paths.locks_dir)

    @functools.cached_property
    def threads(self) -> ThreadFiles:
        """The thread files; every write notes its thread for the index."""
        from raddle.adapters.local_store.thread_files import ThreadFiles  # noqa: PLC0415

        return ThreadFiles(
            self.paths,
            self.locks,
            self.author,
            changing=self.mark_dirty,
            changed=self.mark_dirty,
            erased=self.note_erased,
            report=self.report,
        )

    @functools.cached_property
    def index(self) -> SearchIndex:
        """The search index, which takes in what was written since it was last read."""
        from raddle.adapters.local_store.search_index import SearchIndex  # noqa: PLC0415

        index = SearchIndex(
            self.paths.search_index,
            dirty_list=self.paths.dirty_list,
            threads_dir=self.paths.threads_dir,
            load=lambda thread_id: self.threads.load(thread_id),  # noqa: PLW0108  made when it is needed
            clock=self.clock,
            report=self.report,
        )
        reason = index.stale()
        if reason:
            self._fill(index, reason)
        return index

    def _fill(self, index: SearchIndex, reason: str) -> None:
        from raddle.actions.ports import Finding  # noqa: PLC0415
        from raddle.wiring.care import fill_index  # noqa: PLC0415

        count = len(self.threads.ids())
        if count >= _MANY:
            done = f"building it from {count:,} threads"
            self.report(Finding(path=str(self.paths.search_index), what=reason, done=done))
        fill_index(index, self.threads)

    @functools.cached_property
    def blobs(self) -> BlobDirectory:
        """Attachments and source segments."""
        from raddle.adapters.blobs.directory import BlobDirectory  # noqa: PLC0415

        return BlobDirectory(self.paths.blobs_dir)

    @functools.cached_property
    def ledger(self) -> ImportLedger:
        """What was read of which source file, and what was purged."""
        from raddle.adapters.local_store.import_ledger import ImportLedger  # noqa: PLC0415
        from raddle.adapters.local_store.purge_marks import PurgeMarks  # noqa: PLC0415

        return ImportLedger(self.paths, PurgeMarks(self.paths.purge_marks, self.locks))

    @functools.cached_property
    def active(self) -> ActiveBranches:
        """Which branch of a thread this device reads and goes on with."""
        from raddle.adapters.local_store.active_branches import ActiveBranches  # noqa: PLC0415

        return ActiveBranches(self.paths.active_branches, self.locks)

    @property
    def rules(self) -> Rules:
        """What the config leaves out or makes private."""
        from raddle.actions.importing.rules import Rules  # noqa: PLC0415
        from raddle.adapters.path_names import PathNames, glob_names  # noqa: PLC0415

        return Rules(
            exclude=glob_names(self.config.import_exclude),
            private_workspaces=glob_names(self.config.private_workspaces),
            private_remotes=self.config.private_remotes,
            names_of=PathNames(),
        )

    def mark_dirty(self, thread_id: str) -> None:
        """Note a written thread for the index."""
        from raddle.adapters.local_store.search_dirty import mark_dirty  # noqa: PLC0415

        mark_dirty(self.paths.dirty_list, thread_id)

    def note_erased(self, thread_id: str, blobs: frozenset[str]) -> None:
        """Words of a thread were erased elsewhere, and here with that: what else holds them is to go too."""
        from raddle.model.errors import FormatError  # noqa: PLC0415

        self.erased[thread_id] = self.erased.get(thread_id, frozenset()) | blobs
        with contextlib.suppress(FormatError):  # a damaged ledger is mended where the rest is let go
            self.ledger.note_purged(thread_id, is_whole=False)

    def resolve(self, prefix: str) -> str:
        """The whole id of the thread that `prefix` begins; NotFound, or Ambiguous with the candidates."""
        from raddle.model.ids import is_thread_id  # noqa: PLC0415

        if is_thread_id(prefix) and self.paths.thread_file(prefix).exists():
            return prefix  # what programs give: no look through the whole folder
        return self.threads.resolve(prefix)

    def forget_words(self) -> None:
        """Leave no word of what was purged in the index: the end of every purge. It rewrites the whole index."""
        self.index.refresh()
        self.index.optimize()

    def find(self, query: str, *, limit: int, cursor: str = "", as_you_type: bool = False) -> SearchAnswer:
        """What a query as typed finds here; `as_you_type`: its last word may go on."""
        return self.index.search(query, limit=limit, cursor=cursor, as_you_type=as_you_type)

    def listed(
        self, query: str = "", *, limit: int | None, with_archived: bool = False
    ) -> list[ThreadSummary]:
        """Summaries for a list, pins first, newest activity first."""
        return self.index.list(query or None, limit=limit, include_archived=with_archived)

    def deleted(self) -> list[ThreadSummary]:
        """Deleted threads, which no index holds; the newest activity first. What cannot be read is reported."""
        from raddle.actions.ports import Finding  # noqa: PLC0415
        from raddle.model.errors import FormatError, NotFound  # noqa: PLC0415

        self.index.refresh()
        rows = []
        for thread_id in set(self.threads.ids()) - self.index.ids():
            try:
                thread = self.threads.load(thread_id)
            except (FormatError, NotFound) as error:
                self.report(Finding(path=str(self.paths.thread_file(thread_id)), what=error.message))
                continue
            if thread.is_deleted:
                rows.append(thread.summary())
        return sorted(rows, key=lambda row: (row.last_activity_at, row.id), reverse=True)

    def starting_with(self, prefix: str, *, limit: int = 40) -> list[ThreadSummary]:
        """Threads whose id starts with `prefix`; the newest where it is empty."""
        if not prefix.strip("Tt-"):
            return self.listed(limit=limit)
        found = (self.index.get(thread_id) for thread_id in self.index.resolve_prefix(prefix, most=limit))
        return [summary for summary in found if summary is not None]

    def notes_on(self, thread: Thread) -> list[str]:
        """What a reader of this thread should know besides: that its source changed, that values clash."""
        notes: list[str] = []
        if thread.source is not None and thread.source.agent not in _REWRITES:
            notes.extend(self._notes_on_source(thread.id))
        for conflict in thread.conflicts:
            values = ", ".join(str(value) for value in conflict.values)
            notes.append(
                f"{conflict.path} was set to several values at once ({values}); set it again to settle it"
            )
        return notes

    def _notes_on_source(self, thread_id: str) -> Iterator[str]:
        from raddle.model.errors import BrokenFormat  # noqa: PLC0415

        try:
            rewritten = {path for path, kept in self.ledger.segments_of(thread_id) if kept.generation}
            entries = self.ledger.entries() if rewritten else {}
        except BrokenFormat as error:  # a reader is not kept from reading by what an import mends
            yield f"{error.message}; {error.hint}"
            return
        if any(path not in entries or entries[path].agent not in _REWRITES for path in rewritten):
            yield "its source was rewritten since it was first imported; what it said before is kept here"

    def active_leaf(self, thread: Thread) -> str:
        """The newest message of the branch that this device switched to; empty where it did not."""
        from raddle.actions.threads import leaf_of  # noqa: PLC0415

        chosen = self.active.get(thread.id)
        return leaf_of(thread, chosen) if chosen in thread.tree else ""

    def short_ids(self, thread_ids: Iterable[str]) -> dict[str, str]:
        """For each id its shortest start, of at least ten characters, that names only that thread."""
        wanted = list(thread_ids)
        starts = {thread_id[:_SHORT] for thread_id in wanted}
        near = _ids_in(self.paths.threads_dir, starts)
        short = {}
        for thread_id in wanted:
            at = bisect_left(near, thread_id)
            around = [other for other in near[max(at - 1, 0) : at + 2] if other != thread_id]
            shared = max((_shared(thread_id, other) for other in around), default=0)
            short[thread_id] = thread_id[: max(_SHORT, shared + 1)]
        return short

    def short_id(self, thread_id: str) -> str:
        """The same for one."""
        return self.short_ids([thread_id])[thread_id]

    def makes_private(self, thread: Thread) -> bool:
        """Do the config's rules make a thread private that is where this one is?"""
        return self.rules.makes_private(thread.plain("workspace_root"), thread.plain("git_remote_url"))

    def place(self) -> Place:
        """The workspace that the process stands in, with its git facts and the rules that hold there."""
        from raddle.adapters.git import read_git  # noqa: PLC0415
        from raddle.adapters.path_names import without_detours  # noqa: PLC0415

        cwd, named = _current_folder(), self.config.workspace
        git = read_git(named or cwd)
        repository = git.root if git is not None else None
        root = without_detours(str(named)) if named is not None else repository or str(cwd)
        rules, places = self.rules, (str(named or cwd), root, repository, str(cwd))
        return Place(
            cwd=_as_text(str(cwd)),
            workspace_root=_as_text(root),
            client_version=__version__,
            git=git,
            is_private=rules.makes_private(None, git.remote if git is not None else None)
            or any(rules.makes_private(place, None) for place in dict.fromkeys(places)),
        )


def _ids_in(threads_dir: Path, starts: Container[str]) -> list[str]:
    """The ids that begin with one of `starts`, in order, by the names of files alone.

    `Stores.threads` answers the same, and costs a list of 10,000 threads a quarter of its time.
    """
    try:
        names = os.listdir(threads_dir)
    except OSError:  # not there yet, or nobody may look: then no id is near another
        return []
    return sorted(name[:-5] for name in names if name[:_SHORT] in starts and name.endswith(".json"))


def _shared(one: str, other: str) -> int:
    """How many characters two ids begin with together."""
    return next(
        (at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), len(one)
    )


def _current_folder() -> Path:
    from raddle.model.errors import StorageError  # noqa: PLC0415

    try:
        return Path.cwd()
    except OSError as error:
        raise StorageError("the current folder is gone", "go to one that is there, then try again") from error


def _as_text(path: str) -> str:
    """A path as a thread can hold it: a thread file is UTF-8, the name of a folder need not be."""
    return os.fsencode(path).decode("utf-8", "replace")


def has_server(stores: Stores) -> bool:
    """Was any server set, or ever signed in to? For who shows nothing of one where there is none."""
    return bool(stores.config.server) or stores.paths.credentials_file.exists()


def open_stores(config: Config | None = None, *, report: Callable[[Finding], None] = _nothing) -> Stores:
    """The stores of the configured data folder."""
    return Stores(load_config() if config is None else config, report=report)


def write_file(path: Path, data: bytes) -> None:
    """Write a file that a person asked for: whole or not at all, and through a link into what it leads to.

    What is no file (a terminal, a pipe, /dev/null) is written to and stays what it is.
    """
    write_pieces(path, (data,))


def write_pieces(path: Path, pieces: Iterable[bytes]) -> int:
    """The same for bytes that come in pieces; how many they were."""
    from raddle.adapters.files import NewFile, storage_error  # noqa: PLC0415
    from raddle.model.errors import InvalidInput  # noqa: PLC0415

    try:
        target = path.expanduser().absolute().resolve()
        if target.exists() and not target.is_file() and not target.is_dir():
            with target.open("wb") as device:
                return sum(device.write(piece) for piece in pieces)
    except OSError as error:
        raise storage_error(error, path, "write") from error
    except (RuntimeError, ValueError) as error:  # links in a circle, no home folder, a NUL
        raise InvalidInput(f"{path} is no path to write to: {error}", "name another") from error
    size = 0
    with NewFile(target.parent) as new:
        for piece in pieces:
            new.write(piece)
            size += len(piece)
        new.publish(target)
    return size
