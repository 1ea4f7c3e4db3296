"""How a store comes to be: made, attached by a marker, cloned from an address that a person names.

Each of these looks at everything it needs before it makes anything, so that what is refused leaves nothing behind.
The one place that writes a marker, so that the code and the store never disagree about where the other is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, Literal, ParamSpec

from msgspec import Struct
from msgspec.structs import replace

from raddle.model.errors import ConflictError, InvalidInput, NetworkError, NotFound, RaddleError
from raddle.model.memory.marker import StorePlace, check_branch, check_url
from raddle.model.memory.project import Project, encode_project
from raddle.model.memory.repo_layout import (
    ATTRIBUTES,
    ATTRIBUTES_FILE,
    KEPT_FOLDERS,
    PROJECT_FILE,
    check_phases,
    check_project_id,
)
from raddle.wiring import Stores
from raddle.wiring.memory import ProjectMemory, read_project
from raddle.wiring.memory_homes import apart_from_marker, brought_home
from raddle.wiring.memory_places import (
    checked_out_elsewhere,
    is_cut_short,
    is_store,
    marked_place,
    named_folder,
    note_store,
    workspace_of,
)
from raddle.wiring.memory_sites import (
    STORE_BRANCH,
    STORE_FOLDER,
    chosen_folder,
    existing_folder,
    free_place,
    full_address,
    marker_folder,
    place_said,
    refuse_second_checkout,
    store_writer,
    strangers_address,
)

if TYPE_CHECKING:
    from raddle.adapters.memory_repo.host_repository import HostRepository
    from raddle.adapters.memory_repo.markers import FoundMarker

PHASES = ("build", "test", "present")

_UNMARKED = (
    "no marker names it: name it with --store or RADDLE_STORE, or work in its folder; `raddle store adopt PATH "
    "--host-repo CODE` has the code name it"
)

_MAKING_SECONDS = 600.0
"""So long another making is waited for: a clone may take its time."""

P = ParamSpec("P")
Done = Literal["made", "attached", "cloned", "there"]


class StoreMade(Struct, frozen=True, kw_only=True):
    """What became of it. `done`: a new store; a branch that was there, checked out; a clone; it was there already.

    `marker`: the file that names it, and whether it was written just now. `excluded`: the list by which the code's
    repository takes no notice of it, where it was put there just now. `notes`: what a person should know.
    """

    root: Path
    done: Done
    project: Project
    mode: Literal["worktree", "repo"]
    branch: str | None = None
    host: Path | None = None
    marker: Path | None = None
    is_marker_new: bool = False
    excluded: Path | None = None
    notes: tuple[str, ...] = ()


def _one_at_a_time(
    make: Callable[Concatenate[Stores, P], StoreMade],
) -> Callable[Concatenate[Stores, P], StoreMade]:
    """Two programs that come at once (an agent's server and a person) do not make one store twice: the second finds it
    made."""

    @functools.wraps(make)
    def run(stores: Stores, /, *args: P.args, **kwargs: P.kwargs) -> StoreMade:
        from raddle.adapters.locks import LockFiles  # noqa: PLC0415

        locks = LockFiles(stores.paths.state_dir / "memory-making-locks", stripes=1)
        with locks.held("making", timeout_seconds=_MAKING_SECONDS):
            return make(stores, *args, **kwargs)

    return run


@_one_at_a_time
def init_store(
    stores: Stores,
    project_id: str,
    *,
    phases: Sequence[str] = PHASES,
    name: str | None = None,
    store: str | None = None,
    host_repo: str | None = None,
) -> StoreMade:
    """A store in a repository of its own, at `store` (else `./raddle-store`). `host_repo`: the code whose marker is to
    name it; else, where nobody said a place, the one around the workspace: or no command there would find it.

    ConflictError where something is there already: nothing is written over.
    """
    from raddle.adapters.memory_repo.making import FIRST_BRANCH, make_repository  # noqa: PLC0415

    project = _new_project(stores, project_id, phases, name)
    root = free_place(chosen_folder(stores, store))
    is_beside = host_repo is None and not (store or stores.config.store)
    named = workspace_of(stores.config) if is_beside else existing_folder(host_repo) if host_repo else None
    host = None if named is None else marker_folder(named)
    place = None if host is None else place_said(host, root, StorePlace(mode="repo", path="./x"))
    make_repository(root, new_files(project), store_writer(stores))
    made = StoreMade(root=root, done="made", project=project, mode="repo", branch=FIRST_BRANCH, host=host)
    return _settled(stores, made if host is not None else replace(made, notes=(_UNMARKED,)), place)


@_one_at_a_time
def init_worktree(
    stores: Stores,
    project_id: str,
    *,
    worktree_repo: str,
    phases: Sequence[str] = PHASES,
    name: str | None = None,
    store: str | None = None,
    branch: str | None = None,
) -> StoreMade:
    """A store on a branch of its own in the code's repository, checked out at `store` (else `raddle-store` beside the
    marker). A branch of that name that holds this project's store is taken, wherever it was made.

    NetworkError where the remote cannot be asked for it; ConflictError where something else is there already.
    """
    from raddle.adapters.memory_repo.host_repository import open_host  # noqa: PLC0415
    from raddle.adapters.memory_repo.worktrees import begin_branch, drop_branch, find_branch  # noqa: PLC0415

    project = _new_project(stores, project_id, phases, name)
    branch = check_branch(branch or STORE_BRANCH)
    given = existing_folder(worktree_repo)
    host = open_host(given)
    folder = None if host.is_bare else marker_folder(given)
    named = store or (str(folder / STORE_FOLDER) if folder is not None else None)
    root = free_place(chosen_folder(stores, named), host)
    place = (
        None
        if folder is None
        else place_said(folder, root, StorePlace(mode="worktree", path="./x", branch=branch))
    )
    refuse_second_checkout(host, branch)
    found = find_branch(host, branch, is_offline=stores.config.is_offline)
    if found is not None and found.project.project_id != project_id:
        raise ConflictError(
            f"the branch {branch} holds the memory of {found.project.project_id} already",
            "take it as it is with `raddle store attach`, or choose another name with --branch",
        )
    if found is None:
        found = begin_branch(host, branch, new_files(project), project, store_writer(stores))
    try:
        made = _checked_out(host, root, found.name, found.project, is_new=found.origin == "new")
    except RaddleError:
        if found.origin == "new":
            drop_branch(host, branch, found.commit_id)
        raise
    return _settled(stores, replace(made, host=folder), place)


@_one_at_a_time
def attach_store(
    stores: Stores, *, host_repo: str | None = None, store: str | None = None, allow_clone: bool = False
) -> StoreMade:
    """The store that the marker of `host_repo` (else the nearest one) names, here then.

    In worktree mode without more; a clone only with `allow_clone`, for anybody may have committed its address. Never a
    new store: NotFound where neither this clone of the code nor its remote has the branch. `store`: where it is to be,
    which a person has to say where the marker leads out of its folder.
    """
    from raddle.adapters.memory_repo.markers import needed_marker  # noqa: PLC0415

    found = needed_marker(existing_folder(host_repo) if host_repo else workspace_of(stores.config))
    root = named_folder(store) if store else marked_place(found, stores.paths)
    if not is_store(root) and (elsewhere := checked_out_elsewhere(found)) is not None:
        if store:
            raise ConflictError(
                f"the store is checked out at {elsewhere} already",
                "one is enough for all working trees: leave --store out",
            )
        root = elsewhere
    if is_store(root) or is_cut_short(root):
        return _attached_already(stores, found, root, allow_clone=allow_clone)
    if found.store.mode == "worktree":
        made = _attach_worktree(stores, found, root)
    else:
        made = _attach_clone(stores, found, root, allow_clone=allow_clone)
    return _settled(stores, made, None)


@_one_at_a_time
def clone_store(stores: Stores, url: str, *, store: str | None = None) -> StoreMade:
    """A clone of the store at an address that a person gave, at `store` (else `./raddle-store`)."""
    return _settled(
        stores,
        _cloned(
            stores, free_place(chosen_folder(stores, store)), full_address(url, workspace_of(stores.config))
        ),
        None,
    )


@_one_at_a_time
def attach_branch(
    stores: Stores, *, worktree_repo: str, branch: str | None = None, store: str | None = None
) -> StoreMade:
    """The store on a branch of the code's repository that a person names, with or without a marker."""
    from raddle.adapters.memory_repo.host_repository import open_host  # noqa: PLC0415

    given = existing_folder(worktree_repo)
    host = open_host(given)
    folder = None if host.is_bare else marker_folder(given)
    branch = check_branch(branch or STORE_BRANCH)
    holder = host.holder_of(branch)
    if holder is not None and is_store(holder.path):
        return _settled(stores, _there(holder.path, folder), None)
    named = store or (str(folder / STORE_FOLDER) if folder is not None else None)
    return _settled(
        stores, replace(_on_branch(stores, host, branch, chosen_folder(stores, named)), host=folder), None
    )


def new_files(project: Project) -> dict[str, bytes]:
    """What a new store holds: path -> bytes."""
    return {
        PROJECT_FILE: encode_project(project),
        ATTRIBUTES_FILE: ATTRIBUTES,
        **dict.fromkeys(KEPT_FOLDERS, b""),
    }


def _new_project(stores: Stores, project_id: str, phases: Sequence[str], name: str | None) -> Project:
    from raddle.model.clock import format_time  # noqa: PLC0415

    return Project(
        project_id=check_project_id(project_id),
        name=name or None,
        phases=check_phases(phases),
        created_ts=format_time(stores.clock()),
    )


def _attached_already(stores: Stores, found: FoundMarker, root: Path, *, allow_clone: bool) -> StoreMade:
    """It is there: what links it to its repository is mended, if that is damaged, and the marker learns where the store
    came from, if nobody knew when it was written."""
    was_mended = brought_home(stores, found, root, allow_clone=allow_clone)
    made = _there(root, found.folder)
    if was_mended:
        made = replace(made, done="attached")
    url = None if found.store.mode == "worktree" else ProjectMemory(stores, root).repository.url()
    apart = apart_from_marker(root, found)
    notes: tuple[str, ...] = (apart,) if apart else ()
    place = None
    if url and found.store.url is None:
        try:
            place = replace(found.store, url=check_url(url))
        except InvalidInput as error:
            notes = (
                *notes,
                f"the marker names no address, and the store's own cannot stand in it: {error.message}",
            )
    elif url and found.store.url != url:
        notes = (*notes, f"the marker says that the store is at {found.store.url}; this one is from {url}")
    return _settled(stores, replace(made, notes=notes), place)


def _attach_worktree(stores: Stores, found: FoundMarker, root: Path) -> StoreMade:
    from raddle.adapters.memory_repo.host_repository import open_host  # noqa: PLC0415

    host = open_host(found.folder)
    made = _on_branch(stores, host, check_branch(found.store.branch or STORE_BRANCH), root)
    return replace(made, host=found.folder)


def _on_branch(stores: Stores, host: HostRepository, branch: str, root: Path) -> StoreMade:
    """The branch, which must be somewhere, checked out at `root`."""
    from raddle.adapters.memory_repo.worktrees import find_branch  # noqa: PLC0415

    if not _is_half_made(root, host, branch):
        free_place(root, host)
        refuse_second_checkout(host, branch)
    store = find_branch(host, branch, is_offline=stores.config.is_offline)
    if store is None:
        remote = host.remote_for(branch)
        asked = f"nor does {remote}" if remote else "and it has no remote to ask"
        raise NotFound(
            "branch",
            branch,
            f"{host.root} has none, {asked}: push it from where it was made (`raddle store sync`), or make a new store "
            "with `raddle store init PROJECT --worktree-repo .`",
        )
    return _checked_out(host, root, branch, store.project, is_new=False)


def _checked_out(
    host: HostRepository, root: Path, branch: str, project: Project, *, is_new: bool
) -> StoreMade:
    from raddle.adapters.memory_repo.making import write_out  # noqa: PLC0415
    from raddle.adapters.memory_repo.worktrees import check_out  # noqa: PLC0415

    if not _is_half_made(root, host, branch):
        check_out(host, branch, root)
    write_out(root)
    done: Done = "made" if is_new else "attached"
    return StoreMade(root=root, done=done, project=project, mode="worktree", branch=branch)


def _is_half_made(root: Path, host: HostRepository, branch: str) -> bool:
    """Did an attach die after git knew of the working tree, and before its files were there?"""
    holder = host.holder_of(branch)
    return holder is not None and holder.path == root and not (root / PROJECT_FILE).exists()


def _attach_clone(stores: Stores, found: FoundMarker, root: Path, *, allow_clone: bool) -> StoreMade:
    url = found.store.url
    if url is None:
        raise NotFound(
            "address in",
            str(found.file),
            "where the store is: `git remote add origin URL` in it, then `raddle store attach`; commit the marker",
        )
    if not allow_clone:
        raise strangers_address(found)
    made = _cloned(stores, free_place(root), full_address(url, found.folder))
    return replace(made, host=found.folder)


def _cloned(stores: Stores, root: Path, url: str) -> StoreMade:
    from raddle.adapters.memory_repo.making import clone_repository, opened  # noqa: PLC0415

    if stores.config.is_offline:
        raise NetworkError(
            "the store would have to be fetched, and raddle is set to ask the network for nothing",
            "unset RADDLE_OFFLINE",
        )
    project = clone_repository(root, url)
    return StoreMade(root=root, done="cloned", project=project, mode="repo", branch=opened(root)[1].branch())


def _there(root: Path, host: Path | None) -> StoreMade:
    from raddle.adapters.memory_repo.making import opened  # noqa: PLC0415

    project = read_project(root)
    return StoreMade(
        root=root,
        done="there",
        project=project,
        mode="worktree" if (root / ".git").is_file() else "repo",
        branch=opened(root)[1].branch(),
        host=host,
    )


def _settled(stores: Stores, made: StoreMade, place: StorePlace | None) -> StoreMade:
    """What follows every making: the code takes no notice of the folder, the marker is written, the store is noted."""
    from raddle.adapters.memory_repo.host_repository import host_around  # noqa: PLC0415
    from raddle.adapters.memory_repo.markers import read_marker, write_marker  # noqa: PLC0415

    notes = list(made.notes)
    around = host_around(made.root.parent)
    excluded = around.exclude(made.root) if around is not None else None
    if around is not None and around.notices(made.root):
        notes.append(
            f"a .gitignore in {around.root} has git take {made.root.name} in all the same: `git add` would add it"
        )
    marker, is_new = None, False
    if made.host is not None:
        before = read_marker(made.host)
        marker = before.file if before is not None else None
        if place is not None:
            marker = write_marker(made.host, place)
            now = read_marker(made.host)
            is_new = before is None or now is None or (now.file, now.data) != (before.file, before.data)
    note_store(stores.paths, made.root, made.host)
    return replace(made, excluded=excluded, marker=marker, is_marker_new=is_new, notes=tuple(notes))
