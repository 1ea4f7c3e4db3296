"""Which repository a store belongs to, where its own `.git` no longer says it, and how it comes back there.

Owns the order in which that is asked: the store's own `.git`, the marker, what the code's repository has noted, a
branch of it with this project. A repository that shares nothing with any of them is begun where none of these knows an
answer: who began one sooner would have a memory that nobody else ever hears of again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from raddle.model.errors import BrokenFormat, FormatError, InvalidInput, NetworkError, NotFound
from raddle.model.memory.repo_layout import PROJECT_FILE
from raddle.wiring import Stores
from raddle.wiring.memory import read_project
from raddle.wiring.memory_sites import STORE_BRANCH, full_address, store_writer, strangers_address

if TYPE_CHECKING:
    from raddle.adapters.memory_repo.host_repository import HostRepository
    from raddle.adapters.memory_repo.markers import FoundMarker


class Home(Struct, frozen=True, kw_only=True):
    """`kind`: whole: its own `.git` leads to its repository · branch: it is a working tree of `branch` of `host`, and
    not linked to it · remote: it is a repository of its own, which is at `url` · own: of its own, and nobody else has
    it. `why`: what is wrong and what would be done, in words; empty where nothing is."""

    kind: Literal["whole", "branch", "remote", "own"] = "whole"
    host: HostRepository | None = None
    branch: str = ""
    url: str = ""
    why: str = ""


def home_of(
    root: Path, found: FoundMarker | None, near: Path | None = None, branch: str | None = None
) -> Home:
    """Where the store at `root` belongs; nothing is changed, and no network asked. `found`: the marker that names it;
    `near`: a folder of the code, where there is no marker; `branch`: of that code, where a person says which.

    NotFound where the marker or a person says that it is a branch of the code, and that is in no repository;
    BrokenFormat where its `.git` names a repository that is there and does not know it, and nothing says more.
    """
    from raddle.adapters.memory_repo.links import git_folder_of  # noqa: PLC0415

    if found is not None and found.store.mode == "worktree":
        return _of_marked_branch(root, found)
    if git_folder_of(root) is not None:
        return Home()
    if (root / ".git" / "objects").is_dir():
        return Home(
            kind="own",
            why="its repository is damaged: HEAD, settings or refs are missing, and are made again",
        )
    if found is not None and found.store.url:
        url = full_address(found.store.url, found.folder)
        return Home(
            kind="remote",
            url=url,
            why=f"it is in no git repository: {found.file.name} says that it is from {url}, and it is joined to that",
        )
    return _guessed(root, near, branch) if found is None else _on_its_own()


def apart_from_marker(root: Path, found: FoundMarker | None) -> str:
    """In which way the store on the disk is not what the marker says, in words; empty where it is."""
    try:
        home = home_of(root, found) if found is not None else Home()
    except NotFound as error:
        return f"{error.message}; the marker says that the memory is a branch of it"
    return home.why


def bring_home(stores: Stores, root: Path, home: Home, *, may_begin: bool) -> Path | None:
    """Have the store at `root` in the repository that it belongs to; no file of it changes. Where a repository is that
    stood in the way, put aside. `may_begin`: a person agreed to what begins anew.

    NotFound where its branch is nowhere and may not begin anew; NetworkError where the remote cannot be asked.
    """
    from raddle.adapters.memory_repo.rejoining import begin_own, rejoin_remote  # noqa: PLC0415

    if home.kind == "branch":
        return _join_branch(stores, root, home, may_begin=may_begin)
    if home.kind == "remote":
        if stores.config.is_offline:
            raise NetworkError(
                f"{root} would have to be joined to {home.url}, and raddle is set to ask the network for nothing",
                "unset RADDLE_OFFLINE",
            )
        rejoin_remote(root, home.url, _project_id(root))
    if home.kind == "own":
        if not may_begin and not (root / ".git" / "objects").is_dir():
            raise BrokenFormat(
                f"{root} is in no git repository, and nothing says which one it was in",
                "`raddle store adopt` makes one, once you say so",
            )
        begin_own(root)
    return None


def brought_home(stores: Stores, found: FoundMarker, root: Path, *, allow_clone: bool) -> bool:
    """Have the store's git and its project file where they were; was there anything to do? What begins anything anew,
    or puts anything aside, is left to an adoption, which asks."""
    from raddle.adapters.memory_repo.links import git_folder_of  # noqa: PLC0415
    from raddle.adapters.memory_repo.making import write_out  # noqa: PLC0415

    is_lost = git_folder_of(root) is None
    if is_lost:
        home = home_of(root, found)
        if home.kind == "remote" and not allow_clone:
            raise strangers_address(found)
        bring_home(stores, root, home, may_begin=False)
    is_cut = not (root / PROJECT_FILE).exists()
    if is_cut:
        write_out(root)
    return is_lost or is_cut


def _of_marked_branch(root: Path, found: FoundMarker) -> Home:
    from raddle.adapters.memory_repo.host_repository import open_host  # noqa: PLC0415
    from raddle.adapters.memory_repo.links import (  # noqa: PLC0415
        branch_of,
        git_folder_of,
        is_used_elsewhere,
        place_of,
        shared_by,
    )

    git_folder, branch = git_folder_of(root), found.store.branch or STORE_BRANCH
    if git_folder is None:
        return _lost_branch(
            open_host(found.folder), branch, "it and its repository no longer know where the other is"
        )
    if (root / ".git").is_dir():
        if _has_remote(root):  # somebody made it so, and it is somewhere else too: not ours to undo
            return Home(
                why=f"{found.file.name} says that it is the branch {branch} of the code's repository, and it is a "
                "repository of its own, with a remote: correct the one that is wrong"
            )
        why = f"it is a repository of its own, and {found.file.name} says that it is a branch of the code's"
        return _lost_branch(open_host(found.folder), branch, why)
    place, shared = place_of(git_folder), shared_by(git_folder)
    if place == root:
        on = branch_of(git_folder)
        if on in (None, branch):
            return Home()
        return Home(why=f"it is on the branch {on}, and {found.file.name} says that it belongs on {branch}")
    host, is_copy = open_host(found.folder), is_used_elsewhere(git_folder, root)
    if is_copy and host.shared == shared:
        return Home(
            why=f"it is a copy of {place}, and has one branch and one git with it: move one of them away"
        )
    if is_copy or host.shared == shared:
        why = f"its git is that of {place}" if is_copy else f"git takes it to be at {place or 'no place'}"
        return _lost_branch(host, branch, why)
    return Home()


def _lost_branch(host: HostRepository, branch: str, why: str) -> Home:
    what = f"it is joined to the branch {branch} of {host.root} again"
    if host.commit_at(f"refs/heads/{branch}") is None:
        remote = host.remote_for(branch)
        asked = (
            f"it is fetched from {remote}, and begun anew where that has none" if remote else "it begins anew"
        )
        what = f"{host.root} has no branch {branch}: {asked}"
    return Home(kind="branch", host=host, branch=branch, why=f"{why}; {what}")


def _guessed(root: Path, near: Path | None, branch: str | None) -> Home:
    """Of a store that no marker names: what the repositories say that it may have been in; else what its `.git` says
    that it was, in the code that a person names, or on its own where that repository is gone."""
    from raddle.adapters.memory_repo.host_repository import host_around, open_host  # noqa: PLC0415
    from raddle.adapters.memory_repo.links import pointed_to, registered_at  # noqa: PLC0415

    named = pointed_to(root / ".git")
    former = None if named is None else named.parent.parent
    places = [near, root.parent, None if former is None else former.parent]
    hosts = [host for place in places if place and place.is_dir() and (host := host_around(place))]
    lost = "it and its repository no longer know where the other is"
    wanted = branch or STORE_BRANCH
    for host, its_branch in (
        *(
            (host, one.branch)
            for host in hosts
            if (one := registered_at(host.shared, root, None)) and one.branch
        ),
        *((host, wanted) for host in hosts if _holds_free(host, wanted, _project_id(root))),
    ):
        _refuse_another(root, host, its_branch, near, branch)
        return _lost_branch(host, its_branch, lost)
    if near is not None and (former is not None or branch is not None):
        return _lost_branch(open_host(near), wanted, _was_of(former) if former is not None else lost)
    if former is not None and os.path.lexists(former):
        raise BrokenFormat(
            f"{root} was a working tree of the repository at {former}, which does not know it any more",
            f"`raddle store adopt {root} --host-repo {former.parent}` has it be one again (--branch names the branch); "
            f"for a repository of its own, remove {root / '.git'} first",
        )
    return _on_its_own() if former is None else _on_its_own(_was_of(former))


def _refuse_another(
    root: Path, host: HostRepository, branch: str, near: Path | None, asked: str | None
) -> None:
    """A person names one repository or branch, and its history is in another: InvalidInput, for to begin anew would
    fork it."""
    from raddle.adapters.memory_repo.host_repository import host_around  # noqa: PLC0415

    named = host_around(near) if near is not None else None
    if near is not None and (named is None or named.shared != host.shared):
        raise InvalidInput(
            f"{root} is the branch {branch} of the repository at {host.root}, and not of {near}",
            "leave --host-repo out, and it is joined to that one again",
        )
    if asked not in (None, branch):
        raise InvalidInput(
            f"{root} is the branch {branch} of the repository at {host.root}, and not {asked}",
            "leave --branch out, and it is joined to that one again",
        )


def _was_of(former: Path) -> str:
    there = "which does not know it any more" if os.path.lexists(former) else "which is not there any more"
    return f"it was a working tree of the repository at {former}, {there}"


def _on_its_own(why: str = "") -> Home:
    told = why or (
        "it is in no git repository, and neither a marker nor a repository around it says which one it was in"
    )
    other = " (--host-repo CODE: a branch of that code instead)" if why else ""
    return Home(
        kind="own",
        why=f"{told}: a new one of its own is made with these files, which shares no history with any other{other}",
    )


def _holds_free(host: HostRepository, branch: str, project_id: str | None) -> bool:
    """Is the memory of that project on the branch, which no working tree has?"""
    from raddle.adapters.memory_repo.making import project_at  # noqa: PLC0415

    commit_id = host.commit_at(f"refs/heads/{branch}")
    try:
        project = project_at(host.root, commit_id) if commit_id is not None else None
    except FormatError:
        return False
    is_same = project is not None and project_id in (None, project.project_id)
    return is_same and host.holder_of(branch) is None


def _has_remote(root: Path) -> bool:
    from raddle.adapters.memory_repo.host_repository import host_around  # noqa: PLC0415

    own = host_around(root)
    return own is not None and bool(own.remotes())


def _join_branch(stores: Stores, root: Path, home: Home, *, may_begin: bool) -> Path | None:
    from raddle.adapters.files import find_bytes  # noqa: PLC0415
    from raddle.adapters.memory_repo.links import link_again  # noqa: PLC0415
    from raddle.adapters.memory_repo.rejoining import step_back  # noqa: PLC0415
    from raddle.adapters.memory_repo.worktrees import (  # noqa: PLC0415
        begin_branch,
        find_branch,
        take_off_blinkers,
    )

    host, branch = home.host, home.branch
    assert host is not None
    writer = store_writer(stores)
    store = find_branch(host, branch, is_offline=stores.config.is_offline)
    project_id = _project_id(root)
    if store is not None and project_id not in (None, store.project.project_id):
        raise InvalidInput(
            f"the branch {branch} holds the memory of {store.project.project_id}, and {root} that of {project_id}",
            "say another one with --branch, correct the marker, or move that folder aside and `raddle store attach`",
        )
    if store is None:
        if not may_begin:
            raise NotFound(
                "branch",
                branch,
                f"neither {host.root} nor its remote has it; `raddle store adopt` begins it anew with these files",
            )
        project = read_project(root)
        store = begin_branch(
            host, branch, {PROJECT_FILE: find_bytes(root / PROJECT_FILE) or b""}, project, writer
        )
    aside = link_again(host, root, branch, writer.now())
    take_off_blinkers(root)
    if store.origin in ("remote", "noted"):
        step_back(host, root, branch)
    return aside


def _project_id(root: Path) -> str | None:
    """Whose memory it is; None where its project file is gone or cannot be read."""
    try:
        return read_project(root).project_id
    except (NotFound, FormatError):
        return None
