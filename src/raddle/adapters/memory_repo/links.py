"""Where a store's git is: read from its own `.git`, and written anew where that, or what it leads to, is damaged.

The one place that decides whether a store has a repository. git itself walks up from a folder without one, and would
take the code's repository around a store for the store's own.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from raddle.adapters.files import find_bytes, make_folder, new_temporary_folder, storage_error
from raddle.adapters.memory_repo.host_repository import HostRepository, git_at, write_readable
from raddle.adapters.memory_repo.store_git import complaint
from raddle.model.errors import ConflictError, StorageError

_LONGEST_PATH = 8 * 1024
_HEAD = re.compile(rb"ref: *refs/|[0-9a-f]{40}")
_LINK = b"gitdir:"


class Registration(Struct, frozen=True, kw_only=True):
    """A working tree as its repository has it noted. `folder`: git's own for it; `place`: where it is said to be;
    `branch`: None where HEAD is on none, or cannot be read."""

    folder: Path
    place: Path | None
    branch: str | None


def git_folder_of(root: Path) -> Path | None:
    """Git's own folder of the store at `root`; None where its `.git` is missing, or leads to no repository."""
    at = root / ".git"
    folder = at if at.is_dir() else pointed_to(at, _LINK)
    return folder if folder is not None and _is_repository(folder) else None


def shared_by(git_folder: Path) -> Path:
    """Git's folder of the repository that a working tree belongs to: of its branches and settings."""
    return Path(os.path.realpath(pointed_to(git_folder / "commondir", b"") or git_folder))


def pointed_to(file: Path, before: bytes = _LINK) -> Path | None:
    """The path that a file of git's holds behind `before`, seen from the file's folder; None where it is no such
    file."""
    if not file.is_file():
        return None
    text = (find_bytes(file) or b"")[:_LONGEST_PATH].rstrip(b"\r\n")
    path = text.removeprefix(before).lstrip(b" ")
    return file.parent / os.fsdecode(path) if text.startswith(before) and path and b"\0" not in path else None


def registered_at(shared: Path, root: Path, branch: str | None) -> Registration | None:
    """What the repository has noted of the working tree at `root`: by its place; by what the store's own `.git` says;
    by `branch`, where that is nowhere else."""
    known = list(_registrations(shared))
    at, named = root / ".git", pointed_to(root / ".git")
    by_place = [one for one in known if one.place == root]
    by_name = [
        one for one in known if named is not None and one.folder.name == named.name and not at.is_dir()
    ]
    by_branch = [one for one in known if branch is not None and one.branch == branch]
    chosen = [
        *by_place,
        *(one for one in by_name if one.branch in (branch, None) or branch is None),
        *by_branch,
    ]
    return next((one for one in chosen if not is_used_elsewhere(one.folder, root)), None)


def place_of(git_folder: Path) -> Path | None:
    """The working tree that a registration names; None where it names none."""
    named = pointed_to(git_folder / "gitdir", b"")
    return Path(os.path.realpath(named.parent)) if named is not None else None


def branch_of(git_folder: Path) -> str | None:
    """The branch that HEAD is on; None where it is on none, or cannot be read."""
    head = find_bytes(git_folder / "HEAD") or b""
    on = os.fsdecode(head.removeprefix(b"ref:").strip()) if head.startswith(b"ref:") else ""
    return on.removeprefix("refs/heads/") if on.startswith("refs/heads/") else None


def is_used_elsewhere(git_folder: Path, root: Path) -> bool:
    """Does the registration of a working tree name another folder than `root`, and does that one use it?"""
    place = place_of(git_folder)
    return place is not None and place != root and _is_used_by(git_folder, place)


def link_again(host: HostRepository, root: Path, branch: str, now: int) -> Path | None:
    """Have `root`, whose files stay as they are, be the working tree of `branch` again, which is there.

    A repository of its own that stands in the way is put aside: where it is then. ConflictError where another folder
    has the branch.
    """
    found = registered_at(host.shared, root, branch)
    if found is None:
        _refuse_another(host, branch)
        found = _registered_anew(host, root, branch)
    elif found.place not in (None, root) and (found.folder / "locked").exists():
        raise ConflictError(
            f"the branch {branch} is checked out at {found.place}, which is not there now and locked",
            f"bring it back; or, if it is gone for good: git worktree unlock {found.place}",
        )
    if find_bytes(found.folder / "commondir") is None:
        write_readable(found.folder / "commondir", b"../..\n")
    if not _HEAD.match(find_bytes(found.folder / "HEAD") or b""):
        write_readable(found.folder / "HEAD", b"ref: refs/heads/" + os.fsencode(branch) + b"\n")
    if found.place != root:
        write_readable(found.folder / "gitdir", os.fsencode(root / ".git") + b"\n")
    aside = _cleared(root / ".git", found.folder / "raddle" / "left-behind" / str(now) / "git")
    write_readable(root / ".git", _LINK + b" " + os.fsencode(found.folder) + b"\n")
    if not (found.folder / "index").exists() or aside is not None:
        read_index(root)
    return aside


def put_in(git_folder: Path, root: Path) -> None:
    """Have a repository that was made elsewhere as the store's own. ConflictError where it has one by now."""
    _cleared(root / ".git", None)
    try:
        git_folder.rename(root / ".git")
    except OSError as error:
        raise storage_error(error, root / ".git", "write") from error


def put_head_away(root: Path) -> None:
    """Before a repository of the store's own is begun again: a HEAD that git would stumble over goes."""
    if (root / ".git").is_file():  # it leads to a repository that is gone
        _cleared(root / ".git", None)
        return
    head = root / ".git" / "HEAD"
    data = find_bytes(head)
    if data is not None and not _HEAD.match(data):
        try:
            head.rename(head.with_name("HEAD.damaged"))
        except OSError as error:
            raise storage_error(error, head, "move") from error


def read_index(root: Path) -> None:
    """Have git's index say what the branch says, whatever state it is in."""
    git_at(root, ["read-tree", "HEAD"])
    git_at(root, ["update-index", "-q", "--refresh"])


def _is_repository(folder: Path) -> bool:
    """As git judges it; and with settings, or nobody knows how it names its contents."""
    head = folder / "HEAD"
    shared = shared_by(folder)
    is_on = head.is_symlink() or (head.is_file() and _HEAD.match(find_bytes(head) or b"") is not None)
    has_settings = shared != Path(os.path.realpath(folder)) or (shared / "config").is_file()
    return is_on and has_settings and (shared / "objects").is_dir() and (shared / "refs").is_dir()


def _registrations(shared: Path) -> Iterator[Registration]:
    try:
        folders = sorted(one for one in (shared / "worktrees").iterdir() if one.is_dir())
    except OSError:  # it has no other working tree
        return
    for folder in folders:
        yield Registration(folder=folder, place=place_of(folder), branch=branch_of(folder))


def _is_used_by(folder: Path, place: Path) -> bool:
    named = pointed_to(place / ".git")
    return named is not None and os.path.realpath(named) == os.path.realpath(folder)


def _refuse_another(host: HostRepository, branch: str) -> None:
    holder = host.holder_of(branch)
    if holder is not None:
        raise ConflictError(
            f"the branch {branch} is checked out at {holder.path} already",
            "that one is the store of this code; copy what it lacks into it, or take it away first",
        )


def _registered_anew(host: HostRepository, root: Path, branch: str) -> Registration:
    """Have git note a working tree in an empty folder beside the store; it is given the store's place by the caller."""
    folder, held = new_temporary_folder(root.parent)
    try:
        place = folder / root.name
        added = host.git(["worktree", "add", "--quiet", "--no-checkout", "--force", "--", str(place), branch])
        found = next((one for one in _registrations(host.shared) if one.place == place), None)
        if added.code != 0 or found is None:
            raise StorageError(
                f"git cannot join {root} to the branch {branch} of {host.root}: {complaint(added)}",
                "see `git worktree list` in the code's repository",
            )
        (found.folder / "index").unlink(missing_ok=True)
        return found
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _cleared(at: Path, aside: Path | None) -> Path | None:
    """Have nothing at a store's `.git`. A repository that is there goes to `aside`, if that is given; the place."""
    try:
        if not at.is_dir() or at.is_symlink():
            at.unlink(missing_ok=True)
            return None
        if not any(at.iterdir()):
            at.rmdir()
            return None
        if aside is None:
            raise ConflictError(f"{at} was made by another program just now", "see what is there")
        make_folder(aside.parent)
        at.rename(aside)
    except OSError as error:
        raise storage_error(error, at, "move") from error
    return aside
