"""A store that another program made, or that was left in the middle of something, taken over: shown first, then done.

Owns what an adoption changes, and in which order: git is mended before anything reads the store, and the code's files
are changed last, so that an adoption that dies can be made again.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from raddle.model.errors import BrokenFormat, InvalidInput, NotFound
from raddle.model.memory.marker import check_branch
from raddle.model.memory.repo_layout import ATTRIBUTES, ATTRIBUTES_FILE, MARKER_FILE, PROJECT_FILE
from raddle.wiring import Stores
from raddle.wiring.memory_homes import Home, bring_home, home_of
from raddle.wiring.memory_places import find_store, is_store, marked_place, named_folder, note_store
from raddle.wiring.memory_sites import STORE_BRANCH, marker_folder, place_said, store_writer

if TYPE_CHECKING:
    from raddle.adapters.agent_settings.settings_file import Change
    from raddle.adapters.memory_repo.markers import FoundMarker
    from raddle.adapters.memory_repo.mending import Trouble

REGISTRATION_FILE = ".mcp.json"


class Adoption(Struct, frozen=True, kw_only=True):
    """What would be done. `home`: where the store belongs; `trouble`: what is wrong with its git, in words; `diff`:
    what would change in the code's files, as `diff -u` shows it."""

    root: Path
    host: Path | None
    home: Home
    trouble: tuple[str, ...] = ()
    diff: str = ""
    changes: tuple[Change, ...] = ()
    marked: FoundMarker | None = None

    @property
    def is_needed(self) -> bool:
        """Is there anything to do?"""
        return bool(self.trouble or self.changes)


class Adopted(Struct, frozen=True, kw_only=True):
    """What was done. `rescued`: git's names of commits that are kept; `aside`: file -> where its other version stands;
    `with_markers`: files that hold the markers of a conflict, for a person to look at; `put_aside`: where a repository
    is that stood in the place of the store's own."""

    root: Path
    project_id: str
    rescued: tuple[str, ...] = ()
    aside: dict[str, str] = {}
    is_merged: bool = False
    with_markers: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    put_aside: Path | None = None


def plan_adoption(
    stores: Stores,
    path: str | None = None,
    *,
    host_repo: str | None = None,
    branch: str | None = None,
    with_server: bool = True,
) -> Adoption:
    """What adopting the store at `path` (the store's folder, or the code's that has its marker; else the nearest) would
    come to; nothing is changed. `branch`: of the code at `host_repo`, that a store which lost its repository is to be
    on. `with_server`: raddle can be registered as the server of agents in the peer's place."""
    from raddle.adapters.memory_repo.markers import read_marker  # noqa: PLC0415

    root, found = _store_and_marker(stores, path, host_repo)
    host = found.folder if found is not None else named_folder(host_repo) if host_repo else None
    changes = _changes(found, host, with_server=with_server)
    home = home_of(root, found, host, None if branch is None else check_branch(branch))
    if found is None and host is not None and read_marker(marker_folder(host)) is None:
        changes.insert(0, _new_marker(marker_folder(host), root, home))
    return Adoption(
        root=root,
        host=host,
        home=home,
        trouble=_trouble_told(root, found, home),
        diff="".join(map(_diff, changes)),
        changes=tuple(changes),
        marked=found,
    )


def adopt(stores: Stores, plan: Adoption) -> Adopted:
    """Do it. ConflictError where a file has changed since the plan was made, or a git is at work in the store."""
    from raddle.adapters.agent_settings.settings_file import write_change  # noqa: PLC0415
    from raddle.adapters.memory_repo.making import opened, write_out  # noqa: PLC0415
    from raddle.adapters.memory_repo.mending import files_with_markers, mend  # noqa: PLC0415

    writer = store_writer(stores)
    put_aside = bring_home(stores, plan.root, plan.home, may_begin=True)
    mended = mend(plan.root, _trouble(plan.root, plan.marked), writer)
    folder, _ = opened(plan.root)
    if not (plan.root / PROJECT_FILE).exists():
        write_out(plan.root)
    folder.change(ATTRIBUTES_FILE, lambda old: ATTRIBUTES if old is None else old)
    from raddle.wiring.memory import read_project  # noqa: PLC0415

    markers = files_with_markers(folder)
    project_id = "" if PROJECT_FILE in markers else read_project(plan.root).project_id
    for change in plan.changes:
        write_change(change)
    note_store(stores.paths, plan.root, plan.host)
    return Adopted(
        root=plan.root,
        project_id=project_id,
        rescued=mended.rescued,
        aside=mended.aside,
        is_merged=mended.is_merged,
        with_markers=markers,
        files=tuple(str(change.path) for change in plan.changes),
        put_aside=put_aside,
    )


def _store_and_marker(
    stores: Stores, path: str | None, host_repo: str | None
) -> tuple[Path, FoundMarker | None]:
    from raddle.adapters.memory_repo.markers import marker_above, place_outside, read_marker  # noqa: PLC0415

    given = named_folder(path) if path else find_store(stores.config, None).root
    if not given.is_dir():
        raise NotFound("folder", str(given), "check the path")
    if not is_store(given) and not (given / PROJECT_FILE).exists():
        found = read_marker(given)
        if found is not None:
            return marked_place(found, stores.paths), found
        if not _may_be_cut_short(given):
            raise NotFound(
                "store", str(given), "name the folder of the store, or of the code whose marker names it"
            )
    said = read_marker(named_folder(host_repo)) if host_repo else None
    found = said or marker_above(given.parent)
    if found is not None and place_outside(found) != given:
        if host_repo:
            raise InvalidInput(
                f"{found.file} names another store: {place_outside(found)}",
                f"name the code whose store it is; or move {given} there, if that is where it belongs",
            )
        found = None
    if found is not None and host_repo and found.folder != marker_folder(named_folder(host_repo)):
        raise InvalidInput(
            f"{found.file} says that {given} belongs to {found.folder}",
            "leave --host-repo out; or remove that marker first",
        )
    return given, found


def _may_be_cut_short(root: Path) -> bool:
    """Is it a repository whose branch holds a store, though its files are not there?"""
    from raddle.adapters.memory_repo.links import git_folder_of  # noqa: PLC0415
    from raddle.adapters.memory_repo.making import project_at  # noqa: PLC0415

    return git_folder_of(root) is not None and project_at(root, "HEAD") is not None


def _trouble_told(root: Path, found: FoundMarker | None, home: Home) -> tuple[str, ...]:
    if home.kind != "whole":
        return (home.why,)
    missing = () if (root / PROJECT_FILE).exists() else (f"its {PROJECT_FILE} is missing",)
    return (*_trouble(root, found).told, *missing)


def _trouble(root: Path, found: FoundMarker | None) -> Trouble:
    from raddle.adapters.memory_repo.mending import look_for_trouble  # noqa: PLC0415

    return look_for_trouble(root, found.store.branch if found is not None else None)


def _changes(found: FoundMarker | None, host: Path | None, *, with_server: bool) -> list[Change]:
    """The marker of ours beside the peer's, and the registration of the server."""
    from raddle.adapters.agent_settings.peer_registration import registered_as_ours  # noqa: PLC0415
    from raddle.adapters.agent_settings.settings_file import Change, ordinary_bytes  # noqa: PLC0415
    from raddle.model.memory.marker import encode_marker  # noqa: PLC0415

    changes = []
    if found is not None and found.is_peers:
        marker = replace(found.marker)
        changes.append(Change(found.folder / MARKER_FILE, None, encode_marker(marker, found.data)))
    file = host / REGISTRATION_FILE if host is not None and with_server else None
    data = None if file is None or _leads_out(file) else ordinary_bytes(file)
    if file is not None and data is not None:
        text = data.decode("utf-8", "surrogateescape")
        try:
            after = registered_as_ours(text).encode("utf-8", "surrogateescape")
        except BrokenFormat as error:
            raise BrokenFormat(f"{file}: {error.message}", error.hint) from error
        if after != data:
            changes.append(Change(file, data, after))
    return changes


def _leads_out(file: Path) -> bool:
    """Is it a link to somewhere else? A committed one does not choose which file of a person's is changed."""
    return file.is_symlink() and not Path(os.path.realpath(file)).is_relative_to(
        os.path.realpath(file.parent)
    )


def _new_marker(folder: Path, root: Path, home: Home) -> Change:
    """Of a store that a person says belongs to code without one; it says what the store is once it is at `home`."""
    from raddle.adapters.agent_settings.settings_file import Change  # noqa: PLC0415
    from raddle.adapters.memory_repo.host_repository import git_at  # noqa: PLC0415
    from raddle.model.memory.marker import Marker, StorePlace, encode_marker  # noqa: PLC0415

    place = StorePlace(mode="repo", path="./x")
    if home.kind == "branch":
        place = StorePlace(mode="worktree", path="./x", branch=home.branch)
    elif home.kind == "whole" and (root / ".git").is_file():
        on = git_at(root, ["symbolic-ref", "--quiet", "--short", "HEAD"]).stdout.decode(errors="replace")
        place = StorePlace(mode="worktree", path="./x", branch=on.strip() or STORE_BRANCH)
    said = place_said(folder, root, place)
    return Change(folder / MARKER_FILE, None, encode_marker(Marker(store=said)))


def _diff(change: Change) -> str:
    before, after = (
        (data or b"").decode("utf-8", "replace").splitlines(keepends=True)
        for data in (change.before, change.after)
    )
    name = str(change.path)
    lines = difflib.unified_diff(before, after, name if change.before is not None else "/dev/null", name)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
