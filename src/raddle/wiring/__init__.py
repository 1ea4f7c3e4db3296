"""The one place that picks adapters: what an app asks for, joined to what does it.

Everything here is made when it is first asked for, so that `raddle list` opens an index and nothing else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct

from raddle import __version__
from raddle.adapters.paths import Paths
from raddle.config import Config, load_config
from raddle.model.clock import Clock, system_clock
from raddle.model.ids import MonotonicIds, NewId
from raddle.model.threads.git_facts import GitSnapshot

if TYPE_CHECKING:
    from raddle.actions.importing.rules import Rules
    from raddle.adapters.blobs.directory import BlobDirectory
    from raddle.adapters.local_store.active_branches import ActiveBranches
    from raddle.adapters.local_store.import_ledger import ImportLedger
    from raddle.adapters.local_store.search_index import SearchIndex
    from raddle.adapters.local_store.thread_files import ThreadFiles
    from raddle.adapters.locks import LockFiles
    from raddle.model.threads.edits import Author
    from raddle.model.threads.search_answer import SearchAnswer


class Place(Struct, frozen=True, kw_only=True):
    """Where a thread is started: facts for its first registers."""

    cwd: str
    workspace_root: str
    client_version: str
    git: GitSnapshot | None
    is_private: bool


class Stores:
    """What the apps work with, of one data folder. Use as a context manager."""

    def __init__(self, config: Config, *, clock: Clock = system_clock, new_id: NewId | None = None) -> None:
        self.config = config
        self.clock = clock
        self.paths = Paths(
            data_dir=config.data_dir,
            config_dir=config.config_dir,
            state_dir=config.state_dir,
            cache_dir=config.cache_dir,
        )
        self._new_id = new_id

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

        return ThreadFiles(self.paths, self.locks, self.author, changed=self.mark_dirty)

    @functools.cached_property
    def index(self) -> SearchIndex:
        """The search index, which takes in what was written since it was last read."""
        from raddle.adapters.local_store.search_index import SearchIndex  # noqa: PLC0415

        return SearchIndex(self.paths.search_index, dirty_list=self.paths.dirty_list, load=self.threads.load)

    @functools.cached_property
    def blobs(self) -> BlobDirectory:
        """Attachments and source segments."""
        from raddle.adapters.blobs.directory import BlobDirectory  # noqa: PLC0415

        return BlobDirectory(self.paths.blobs_dir)

    @functools.cached_property
    def ledger(self) -> ImportLedger:
        """What was read of which source file."""
        from raddle.adapters.local_store.active_branches import ActiveBranches
    from raddle.adapters.local_store.import_ledger import ImportLedger  # noqa: PLC0415

        return ImportLedger(self.paths.import_ledger)

    @functools.cached_property
    def active(self) -> ActiveBranches:
        """Which branch of a thread this device reads and goes on with."""
        from raddle.adapters.local_store.active_branches import ActiveBranches  # noqa: PLC0415

        return ActiveBranches(self.paths.active_branches)

    @property
    def rules(self) -> Rules:
        """What the config leaves out or makes private."""
        from raddle.actions.importing.rules import Rules  # noqa: PLC0415

        return Rules(
            exclude=self.config.import_exclude,
            private_workspaces=self.config.private_workspaces,
            private_remotes=self.config.private_remotes,
        )

    def mark_dirty(self, thread_id: str) -> None:
        """Note a written thread for the index."""
        from raddle.adapters.local_store.search_dirty import mark_dirty  # noqa: PLC0415

        mark_dirty(self.paths.dirty_list, thread_id)

    def resolve(self, prefix: str) -> str:
        """The whole id of the thread that `prefix` begins; NotFound, or Ambiguous with the candidates."""
        return self.threads.resolve(prefix)

    def find(self, query: str, *, limit: int, cursor: str = "") -> SearchAnswer:
        """What a query as typed finds here."""
        from raddle.model.threads.query import parse  # noqa: PLC0415

        return self.index.search(parse(query, now=self.clock()), limit=limit, cursor=cursor)

    def short_id(self, thread_id: str) -> str:
        """The shortest start of an id that names only that thread, and is long enough to stay so for a while."""
        return self.index.short_id(thread_id)

    def place(self) -> Place:
        """The workspace that the process stands in, with its git facts and the rules that hold there."""
        from raddle.adapters.git import read_git  # noqa: PLC0415

        cwd = Path.cwd()
        workspace = self.config.workspace or cwd
        git = read_git(workspace)
        root = git.root if git is not None and git.root and self.config.workspace is None else str(workspace)
        return Place(
            cwd=str(cwd),
            workspace_root=root,
            client_version=__version__,
            git=git,
            is_private=self.rules.makes_private(root, git.remote if git is not None else None),
        )


def open_stores(config: Config | None = None) -> Stores:
    """The stores of the configured data folder."""
    return Stores(load_config() if config is None else config)


def write_file(path: Path, data: bytes) -> None:
    """Put a file that a person asked for in its place, whole or not at all."""
    from raddle.adapters.files import write_atomic  # noqa: PLC0415

    write_atomic(path.expanduser().absolute(), data)


def with_stores(command: Callable[..., Any]) -> Callable[..., Any]:
    """Hand a command the stores as its first argument, and close them after it."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        with open_stores() as stores:
            return command(stores, *args, **kwargs)

    return run
