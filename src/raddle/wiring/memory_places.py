"""Where a project's memory is: found by walking up to a store or to the marker that names one.

A marker is a committed file, and what it says is taken with distrust: a store below its own folder, or one that a
person named before. The stores that this machine was told of are noted here too, so that the daemon finds them.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from raddle.config import Config
from raddle.model.errors import FormatError, InvalidInput, NewerFormat, NotFound, StorageError

if TYPE_CHECKING:
    from raddle.adapters.memory_repo.markers import FoundMarker
    from raddle.adapters.paths import Paths

_MOST_NOTED = 1_000
_INIT = "`raddle store init PROJECT` makes one, `raddle store attach` fetches one that others have; or name it: --store"


class StorePlaceOnDisk(Struct, frozen=True, kw_only=True):
    """The folder of a store. `host`: the folder whose marker names it; None where none led there."""

    root: Path
    host: Path | None = None


def find_store(config: Config, given: str | None) -> StorePlaceOnDisk:
    """The store that is meant: `given` (`--store`), else RADDLE_STORE, else the nearest one at or above the workspace,
    or that the nearest marker names.

    NotFound where there is none, or where a marker names one that is not here yet; InvalidInput where a marker may not
    be followed.
    """
    from raddle.model.memory.repo_layout import PROJECT_FILE  # noqa: PLC0415

    named = given or config.store
    if named:
        return StorePlaceOnDisk(root=named_folder(named))
    start = workspace_of(config)
    for folder in (start, *start.parents):
        if is_store(folder) or is_cut_short(folder):
            _refuse_a_strangers(folder, _first_there(folder / PROJECT_FILE, folder).lstat().st_uid, start)
            return StorePlaceOnDisk(root=folder, host=host_of(folder, config.paths))
        place = _marked(folder, start, config.paths)
        if place is not None:
            return place
    raise NotFound("project memory at or above", str(start), _INIT)


def workspace_of(config: Config) -> Path:
    """The folder that is worked in; NotFound where it is gone."""
    try:
        start = Path(os.path.realpath(config.workspace or Path.cwd(), strict=True))
    except OSError as error:
        raise NotFound("folder", str(config.workspace or "."), "go to one that is there") from error
    return start


def named_folder(text: str) -> Path:
    """The folder that a person named, wherever links of theirs lead."""
    if "\0" in text:
        raise InvalidInput("a path holds a NUL character", "take it out")
    try:
        folder = Path(os.path.realpath(os.path.expanduser(text)))  # noqa: PTH111  no Path yet
    except OSError as error:  # a relative one, and the current folder is gone
        raise NotFound("folder", text, "give the whole path, from / on") from error
    try:
        folder.lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InvalidInput("a path is longer than the system takes", "choose a shorter one") from error
    return folder


def is_store(folder: Path) -> bool:
    """Does `folder` hold a store, as far as its names say? One whose folders are gone is known by what raddle keeps in
    its git, or by the attributes beside a project of ours."""
    from raddle.model.memory.repo_layout import MEMORY_FOLDER, PROJECT_FILE, RUNS_FOLDER  # noqa: PLC0415

    try:
        if not os.path.lexists(folder / PROJECT_FILE):
            return False
        has_folders = any((folder / inner).is_dir() for inner in (RUNS_FOLDER, MEMORY_FOLDER))
        return has_folders or _is_kept_by_us(folder) or _has_our_attributes(folder)
    except (OSError, StorageError):  # a folder above that we may not look into
        return False


def is_cut_short(folder: Path) -> bool:
    """Is it a store whose project file is gone, and in its newest commit?"""
    from raddle.adapters.memory_repo.making import project_at  # noqa: PLC0415
    from raddle.model.memory.repo_layout import PROJECT_FILE  # noqa: PLC0415

    try:
        if os.path.lexists(folder / PROJECT_FILE) or not _is_kept_by_us(folder):
            return False
        return project_at(folder, "HEAD") is not None
    except NewerFormat:
        return True
    except (OSError, StorageError, FormatError):
        return False


def store_around(folder: Path) -> Path | None:
    """The store that `folder` lies in, which would take its files for its own; None where it lies in none."""
    return next((one for one in folder.parents if _is_kept_by_us(one) and is_store(one)), None)


def _is_kept_by_us(folder: Path) -> bool:
    """Has its git a folder of raddle's own? That of code has none."""
    from raddle.adapters.memory_repo.links import git_folder_of  # noqa: PLC0415

    git_folder = git_folder_of(folder)
    return git_folder is not None and (git_folder / "raddle").is_dir()


def _has_our_attributes(folder: Path) -> bool:
    from raddle.adapters.files import find_bytes  # noqa: PLC0415
    from raddle.model.memory.project import decode_project  # noqa: PLC0415
    from raddle.model.memory.repo_layout import ATTRIBUTES, ATTRIBUTES_FILE, PROJECT_FILE  # noqa: PLC0415

    if ATTRIBUTES.strip() not in (find_bytes(folder / ATTRIBUTES_FILE) or b"").splitlines():
        return False
    try:
        decode_project(find_bytes(folder / PROJECT_FILE) or b"")
    except NewerFormat:
        return True
    except FormatError:
        return False
    return True


def marked_place(found: FoundMarker, paths: Paths) -> Path:
    """The folder that a marker names; InvalidInput where it leads out of its own, and nobody said that it is there."""
    from raddle.adapters.memory_repo.markers import leads_outside, place_below, place_outside  # noqa: PLC0415

    place = place_below(found)
    if place is not None:
        return place
    place = place_outside(found)
    if str(found.folder) not in _noted(paths).get(str(place), []):
        raise leads_outside(found)
    return place


def checked_out_elsewhere(found: FoundMarker) -> Path | None:
    """Where the marker's branch is checked out, when it is not where the marker says: beside another working tree of
    the same code; None where it is nowhere. A store is checked out once, for all of them."""
    from raddle.adapters.memory_repo.host_repository import host_around  # noqa: PLC0415

    if found.store.mode != "worktree" or not found.store.branch:
        return None
    host = host_around(found.folder)
    holder = host.holder_of(found.store.branch) if host is not None else None
    return holder.path if holder is not None and is_store(holder.path) else None


def known_stores(paths: Paths) -> list[Path]:
    """The stores of this machine that were made, attached or adopted, and are still there; the newest last."""
    return [root for root in noted_stores(paths) if is_store(root)]


def noted_stores(paths: Paths) -> list[Path]:
    """The same, and those that are not there now."""
    return [Path(root) for root in _noted(paths)]


def note_store(paths: Paths, root: Path, host: Path | None = None) -> None:
    """Note a store, and the folder whose marker names it: a person said that it belongs there."""
    from raddle.adapters.files import make_folder  # noqa: PLC0415
    from raddle.adapters.locks import LockFiles  # noqa: PLC0415

    make_folder(paths.state_dir)
    with LockFiles(paths.state_dir / "memory-locks", stripes=1).held("stores"):
        noted = _noted(paths)
        hosts = noted.pop(str(root), [])
        if host is not None and str(host) not in hosts:
            hosts = [*hosts, str(host)]
        _write_noted(paths, {**noted, str(root): hosts})


def forget_stores(paths: Paths, roots: Collection[Path]) -> None:
    """Note these no more: they are gone for good."""
    from raddle.adapters.locks import LockFiles  # noqa: PLC0415

    gone = {str(root) for root in roots}
    if not gone & _noted(paths).keys():
        return
    with LockFiles(paths.state_dir / "memory-locks", stripes=1).held("stores"):
        _write_noted(paths, {root: hosts for root, hosts in _noted(paths).items() if root not in gone})


def _write_noted(paths: Paths, noted: dict[str, list[str]]) -> None:
    from raddle.adapters.files import write_atomic  # noqa: PLC0415

    stores = [{"root": root, "hosts": hosts} for root, hosts in list(noted.items())[-_MOST_NOTED:]]
    write_atomic(_list_of(paths), json.dumps({"schema_version": 1, "stores": stores}, indent=2).encode())


def _marked(folder: Path, start: Path, paths: Paths) -> StorePlaceOnDisk | None:
    from raddle.adapters.memory_repo.markers import read_marker  # noqa: PLC0415

    found = read_marker(folder)
    if found is None:
        return None
    _refuse_a_strangers(found.file, found.owner, start)
    place = marked_place(found, paths)
    if not is_store(place) and not is_cut_short(place):
        elsewhere = checked_out_elsewhere(found)
        if elsewhere is None:
            raise NotFound("store yet at", str(place), f"{found.file} names it: `raddle store attach`")
        place = elsewhere
    return StorePlaceOnDisk(root=place, host=found.folder)


def _first_there(*places: Path) -> Path:
    return next((place for place in places if os.path.lexists(place)), places[-1])


def _refuse_a_strangers(place: Path, owner: int, start: Path) -> None:
    """Above the folder that is worked in, anybody may have put a marker or a store: into `/tmp`, say."""
    if owner not in (0, os.geteuid(), start.stat().st_uid):
        raise InvalidInput(
            f"{place} belongs to another user of this machine", "name the store with --store if you trust it"
        )


def host_of(root: Path, paths: Paths) -> Path | None:
    """The code around a store, or that it was attached from, by its marker; None where that is not said."""
    from raddle.adapters.memory_repo.markers import marker_above, place_outside  # noqa: PLC0415
    from raddle.model.errors import RaddleError  # noqa: PLC0415

    try:
        found = marker_above(root.parent)
    except RaddleError:  # the store is found; a marker that cannot be read says nothing of it
        found = None
    if found is not None and place_outside(found) == root:
        return found.folder
    hosts = [Path(host) for host in _noted(paths).get(str(root), [])]
    return next((host for host in reversed(hosts) if host.is_dir()), None)


def _list_of(paths: Paths) -> Path:
    return paths.state_dir / f"stores-{paths.mark}.json"


def _noted(paths: Paths) -> dict[str, list[str]]:
    """Root -> hosts. A list that cannot be read is an empty one: every attach notes its store again."""
    from raddle.adapters.files import find_bytes  # noqa: PLC0415

    try:
        plain: Any = json.loads(find_bytes(_list_of(paths)) or b"{}")
        stores = plain.get("stores", [])
        return {str(one["root"]): [str(host) for host in one.get("hosts", [])] for one in stores}
    except (ValueError, AttributeError, TypeError, KeyError):
        return {}
