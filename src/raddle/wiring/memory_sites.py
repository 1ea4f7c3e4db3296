"""The ground that a store is made on: which folder, beside which marker, and whether anything stands there already.

Owns every reason not to make a store at a place. A second judge would let one be made over somebody's files.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from raddle.model.errors import ConflictError, FormatError, InvalidInput, NotFound
from raddle.model.memory.marker import StorePlace, check_url
from raddle.model.memory.names import is_dangerous
from raddle.wiring import Stores
from raddle.wiring.memory import host_name, read_project
from raddle.wiring.memory_places import is_store, named_folder, store_around, workspace_of

if TYPE_CHECKING:
    from raddle.actions.memory.ports import Writer
    from raddle.adapters.memory_repo.host_repository import HostRepository
    from raddle.adapters.memory_repo.markers import FoundMarker

STORE_FOLDER = "raddle-store"
STORE_BRANCH = "raddle-store"

_UNUSUAL = re.compile(r"[\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""What may not be in a name of a store, and may well be in that of a folder around it."""


def chosen_folder(stores: Stores, given: str | None) -> Path:
    """Where a store is to be: where a person says, else RADDLE_STORE, else `raddle-store` in the workspace."""
    named = given or stores.config.store
    if named:
        return named_folder(named)
    return workspace_of(stores.config) / STORE_FOLDER


def existing_folder(text: str) -> Path:
    """The folder that a person named; NotFound where there is none."""
    folder = named_folder(text)
    if not folder.is_dir():
        raise NotFound("folder", str(folder), "check the path")
    return folder


def marker_folder(given: Path) -> Path:
    """Where the marker belongs: beside the nearest AGENTS.md or marker from `given` up to the top of its repository,
    else at that top."""
    from raddle.adapters.memory_repo.host_repository import host_around  # noqa: PLC0415
    from raddle.adapters.memory_repo.markers import read_marker  # noqa: PLC0415

    host = host_around(given)
    top = given if host is None or host.is_bare else host.root
    for folder in (given, *given.parents):
        if (folder / "AGENTS.md").exists() or read_marker(folder) is not None or folder == top:
            return folder
    return top


def place_said(folder: Path, root: Path, place: StorePlace) -> StorePlace:
    """`place` with the path as the marker in `folder` will say it: checked before anything is made."""
    from raddle.adapters.memory_repo.markers import path_from, read_marker  # noqa: PLC0415
    from raddle.model.memory.marker import Marker, checked_marker  # noqa: PLC0415

    if root == folder:
        raise InvalidInput(
            f"{root} is the code's own folder", "a store has a folder of its own: choose another with --store"
        )
    said = replace(place, path=path_from(folder, root))
    checked_marker(Marker(store=said))
    before = read_marker(folder)
    if before is not None and (
        before.store.url or (before.store.mode, before.store.branch) != (said.mode, said.branch)
    ):
        raise ConflictError(
            f"{before.file} names another store already: {_told(before.store)}",
            "`raddle store attach` fetches that one; to begin anew all the same, remove the marker first",
        )
    return said


def _told(place: StorePlace) -> str:
    return f"the branch {place.branch}" if place.mode == "worktree" else place.url or place.path


def free_place(root: Path, host: HostRepository | None = None) -> Path:
    """`root` where a store can be made: nothing is there, or an empty folder. ConflictError where something is."""
    from raddle.adapters.memory_repo.host_repository import is_vacant  # noqa: PLC0415

    names = [_UNUSUAL.sub("_", part) for part in root.parts[1:]]
    if any(map(is_dangerous, names)) or (host is not None and root.is_relative_to(host.shared)):
        raise InvalidInput(f"{root} lies in git's own folder", "choose another with --store")
    outer = store_around(root)
    if outer is not None:
        raise InvalidInput(
            f"{root} lies in the store {outer}, which would sync its files as its own",
            "choose another with --store",
        )
    if is_store(root):
        try:
            whose = f"the memory of {read_project(root).project_id}"
        except FormatError as error:
            whose = f"a store ({error.message})"
        raise ConflictError(
            f"{root} holds {whose} already",
            "it is left as it is; `raddle store status` tells of it, --store names another",
        )
    if not is_vacant(root):
        raise ConflictError(
            f"{root} is not empty",
            "a store has a folder of its own: choose another with --store; nothing was written",
        )
    return root


def refuse_second_checkout(host: HostRepository, branch: str) -> None:
    """ConflictError where a working tree has the branch: two of one branch would undo each other's work."""
    holder = host.holder_of(branch)
    if holder is not None:
        hint = (
            "go back to the code's branch there: git switch -"
            if holder.path == host.root
            else "it is used from every working tree of this code; `raddle store status` tells of it"
        )
        raise ConflictError(f"the branch {branch} is checked out at {holder.path} already", hint)


def strangers_address(found: FoundMarker) -> InvalidInput:
    """What to say of an address that only a marker names, where no person said that it is trusted."""
    return InvalidInput(
        f"{found.file} names a store at {found.store.url}, and whoever can push there can write what agents read",
        "if you trust it: raddle store attach --allow-clone",
    )


def full_address(url: str, start: Path) -> str:
    """`url` as git can be given it wherever it runs: a path in full, seen from `start`."""
    check_url(url)
    is_path = "://" not in url and ":" not in url.partition("/")[0]
    return os.path.normpath(start / os.path.expanduser(url)) if is_path else url  # noqa: PTH111  no Path yet


def store_writer(stores: Stores) -> Writer:
    """Who writes what a making writes: this device, for the person."""
    from raddle.actions.memory.ports import Writer  # noqa: PLC0415

    author = stores.author
    return Writer(
        node_id=author.device,
        now=author.now,
        new_id=author.new_id,
        host=host_name(stores.config),
        author=author.name,
    )
