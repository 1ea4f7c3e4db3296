"""A project's memory, opened: the one place that joins the verbs of the memory to a folder, to git and to a clock.

Which folder that is, `memory_places` finds out.
"""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from raddle.config import Config
from raddle.model.errors import BrokenFormat, InvalidInput
from raddle.wiring import Stores

if TYPE_CHECKING:
    from raddle.actions.memory.ports import Writer
    from raddle.adapters.memory_repo.folder import StoreFolder
    from raddle.adapters.memory_repo.repository import StoreRepository
    from raddle.model.memory.project import Project


class ProjectMemory:
    """One store. `host`: the code repository whose marker led here; None where none did.

    NewerFormat, BrokenFormat or NotFound where the folder is no store that this raddle may touch. `may_be_broken`: for
    who mends it, also where what it says of itself cannot be read.
    """

    def __init__(
        self, stores: Stores, root: Path, *, host: Path | None = None, may_be_broken: bool = False
    ) -> None:
        self.stores = stores
        self.root = Path(os.path.realpath(root))
        self.host = host
        with contextlib.suppress(*((BrokenFormat,) if may_be_broken else ())):
            self.project  # noqa: B018  a store from the future is refused before anything else is looked at

    @functools.cached_property
    def own_folder(self) -> Path:
        """What raddle keeps of this store on this machine alone: in git's own folder, which no commit sees."""
        from raddle.adapters.memory_repo.links import git_folder_of  # noqa: PLC0415

        folder = git_folder_of(self.root)
        if folder is None:
            raise BrokenFormat(
                f"{self.root} is in no git repository", f"`raddle store adopt {self.root}` mends it"
            )
        return folder / "raddle"

    @functools.cached_property
    def files(self) -> StoreFolder:
        """Its files."""
        from raddle.adapters.locks import LockFiles  # noqa: PLC0415
        from raddle.adapters.memory_repo.folder import StoreFolder  # noqa: PLC0415
        from raddle.adapters.memory_repo.scan_cache import ScanCache  # noqa: PLC0415
        from raddle.adapters.memory_repo.store_git import object_format  # noqa: PLC0415

        return StoreFolder(
            self.root,
            LockFiles(self.own_folder / "locks", stripes=1),
            hash_name=object_format(self.own_folder.parent),
            cache=ScanCache(self.own_folder / "scan.msgpack"),
        )

    @functools.cached_property
    def project(self) -> Project:
        """What the store is about, as it was when the store was opened."""
        return read_project(self.root)

    @functools.cached_property
    def repository(self) -> StoreRepository:
        """Its git repository."""
        from raddle.adapters.memory_repo.repository import StoreRepository  # noqa: PLC0415

        return StoreRepository(self.root, self.own_folder)

    def writer(self, *, agent: str | None = None) -> Writer:
        """Who writes here. `agent`: on whose behalf, where an agent is at work."""
        from raddle.actions.memory.ports import Writer  # noqa: PLC0415

        author = self.stores.author
        return Writer(
            node_id=author.device,
            now=author.now,
            new_id=author.new_id,
            host=host_name(self.stores.config),
            agent=agent,
            author=author.name,
            git_sha=functools.cache(self._code_head),
        )

    def _code_head(self) -> str | None:
        """The commit that the code is at: of the marker's repository, else of the one around the current folder."""
        from raddle.adapters.git import read_head  # noqa: PLC0415

        try:
            place = self.host or self.stores.config.workspace or Path.cwd()
        except OSError:  # the current folder is gone
            return None
        return None if place.is_relative_to(self.root) else read_head(place)


def read_project(root: Path) -> Project:
    """The project of the store at `root`; NotFound where that is no store, a FormatError where it cannot be read."""
    from raddle.adapters.files import find_bytes  # noqa: PLC0415
    from raddle.model.errors import NotFound  # noqa: PLC0415
    from raddle.model.memory.project import decode_project  # noqa: PLC0415
    from raddle.model.memory.repo_layout import PROJECT_FILE  # noqa: PLC0415
    from raddle.wiring.memory_places import is_cut_short  # noqa: PLC0415

    file = root / PROJECT_FILE
    if file.is_symlink():
        raise InvalidInput(
            f"{file} is a link", "a store's files are never links; check where the store came from"
        )
    data = find_bytes(file)
    if data is None and is_cut_short(root):
        raise BrokenFormat(
            f"{file} is gone",
            "`raddle store adopt` brings it back from the newest commit, and what else is gone",
        )
    if data is None:
        raise NotFound("store", str(root), "make one with `raddle store init`, or name one with --store")
    try:
        return decode_project(data)
    except BrokenFormat as error:
        error.hint = error.hint or "`raddle store verify --fix` brings its last whole version back"
        raise


def host_name(config: Config) -> str | None:
    """This machine's name, to be told in what is written; None where the person does not want it told."""
    import socket  # noqa: PLC0415

    return None if config.memory_hide_host else socket.gethostname() or None


def open_memory(stores: Stores, given: str | None = None, *, may_be_broken: bool = False) -> ProjectMemory:
    """The store that `given` (`--store`), RADDLE_STORE or the workspace's marker names."""
    from raddle.wiring.memory_places import find_store  # noqa: PLC0415

    place = find_store(stores.config, given)
    return ProjectMemory(stores, place.root, host=place.host, may_be_broken=may_be_broken)
