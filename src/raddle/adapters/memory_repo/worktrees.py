"""A store on a branch of its own in the code's repository: the branch found or begun, and checked out beside the code.

Owns the order in which the branch is looked for (here, at the remote, then and only then a new one). Who skipped a
step would make a second, empty branch of a name that exists elsewhere, and the two would never be one again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from raddle.actions.memory.ports import Writer
from raddle.adapters.files import make_folder, storage_error
from raddle.adapters.memory_repo.host_repository import (
    Checkout,
    HostRepository,
    answer_at,
    git_at,
    tracking_ref,
)
from raddle.adapters.memory_repo.making import first_commit, project_at
from raddle.adapters.memory_repo.repository import RESCUE
from raddle.adapters.memory_repo.store_git import complaint
from raddle.model.errors import ConflictError, NetworkError, NotFound, StorageError
from raddle.model.memory.project import Project

_SPARSE = ("core.sparseCheckout", "core.sparseCheckoutCone")

Origin = Literal["here", "remote", "noted", "new"]
"""Where a branch was found: in this clone; at the remote, just now; at the remote, when it was last asked; nowhere."""


class StoreBranch(Struct, frozen=True, kw_only=True):
    """The branch of a store. `commit_id`: what it is at. `project`: what is in it."""

    name: str
    commit_id: str
    origin: Origin
    project: Project


def find_branch(host: HostRepository, branch: str, *, is_offline: bool = False) -> StoreBranch | None:
    """The branch of a store, which is here then; None where neither this clone nor its remote has one of that name.

    NetworkError where the remote cannot be asked and was never heard to have it: nobody may take that for a no.
    ConflictError where the branch is no store's. NewerFormat where it is one of the future.
    """
    here = host.commit_at(f"refs/heads/{branch}")
    if here is not None:
        host.make_whole(here)
        return _store_branch(host, branch, here, "here")
    found = _at_the_remote(host, branch, is_offline=is_offline)
    if found is None:
        return None
    commit_id, origin = found
    host.make_whole(commit_id)
    store = _store_branch(host, branch, commit_id, origin)
    host.hold(branch, commit_id)
    return store


def begin_branch(
    host: HostRepository, branch: str, files: Mapping[str, bytes], project: Project, writer: Writer
) -> StoreBranch:
    """A new branch that shares no commit with the code and holds these files. ConflictError where somebody made one of
    that name just now."""
    commit_id = first_commit(host.root, files, writer)
    if not host.hold(branch, commit_id):
        raise ConflictError(f"the branch {branch} was made by another program just now", "try again")
    return StoreBranch(name=branch, commit_id=commit_id, origin="new", project=project)


def drop_branch(host: HostRepository, branch: str, commit_id: str) -> None:
    """Take back a branch that was begun just now, where it is still at its first commit and in no working tree."""
    if host.holder_of(branch) is None:
        host.git(["update-ref", "-d", f"refs/heads/{branch}", commit_id])


def check_out(host: HostRepository, branch: str, root: Path) -> None:
    """Make `root` a working tree of the branch, as yet without its files. The caller knows that no other working tree
    has the branch, and that `root` is empty or not there."""
    make_folder(root.parent)
    stale = [
        one for one in host.checkouts() if not one.is_there and (one.branch == branch or one.path == root)
    ]
    for one in stale:
        _let_go(host, one)
    force = ["--force"] if stale else []
    added = host.git(["worktree", "add", "--quiet", "--no-checkout", *force, "--", str(root), branch])
    if added.code != 0:
        raise StorageError(
            f"git cannot check {branch} out at {root}: {complaint(added)}",
            "see `git worktree list` in the code's repository",
        )
    take_off_blinkers(root)


def _at_the_remote(host: HostRepository, branch: str, *, is_offline: bool) -> tuple[str, Origin] | None:
    remote = host.remote_for(branch)
    noted = host.commit_at(tracking_ref(remote or "origin", branch))
    if remote is None:
        _refuse_to_choose(host, branch)
        return None if noted is None else (noted, "noted")
    if is_offline and noted is None:
        raise NetworkError(
            f"{remote} may have the branch {branch}, and raddle is set to ask the network for nothing",
            "unset RADDLE_OFFLINE, then try again: a second store of that name would be another one",
        )
    try:
        asked = None if is_offline else host.asked(remote, branch)
    except NetworkError:
        if noted is None:
            raise
        asked = None
    if asked is not None:
        return asked, "remote"
    return None if noted is None else (noted, "noted")


def _refuse_to_choose(host: HostRepository, branch: str) -> None:
    names = host.remotes()
    if names:
        raise NotFound(
            "remote",
            "origin",
            f"there are {', '.join(names)}; say which it is with: git config branch.{branch}.remote NAME",
        )


def _store_branch(host: HostRepository, branch: str, commit_id: str, origin: Origin) -> StoreBranch:
    project = project_at(host.root, commit_id)
    if project is None:
        raise ConflictError(
            f"the branch {branch} is there already, and holds no store", "choose another name with --branch"
        )
    return StoreBranch(name=branch, commit_id=commit_id, origin=origin, project=project)


def _let_go(host: HostRepository, gone: Checkout) -> None:
    """Before git forgets a working tree that is gone: whatever only that one named is kept."""
    if gone.is_locked:
        raise ConflictError(
            f"{gone.branch or gone.path} is checked out at {gone.path}, which is not there now and locked",
            f"bring it back; or, if it is gone for good: git worktree unlock {gone.path}",
        )
    if gone.branch is None and gone.head is not None and host.commit_at(gone.head):
        host.answer(["update-ref", f"{RESCUE}/{gone.head[:16]}", gone.head])


def take_off_blinkers(root: Path) -> None:
    """A store is whole. From 2.36 on git hands a sparse code repository's patterns on to a new working tree."""
    if git_at(root, ["config", "--bool", "extensions.worktreeConfig"]).stdout.strip() == b"true":
        for name in _SPARSE:
            git_at(root, ["config", "--worktree", name, "false"])
    patterns = root / answer_at(root, ["rev-parse", "--git-path", "info/sparse-checkout"])
    try:
        patterns.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, patterns, "remove") from error
