"""Stores that come to be: the first commit of a new one, a repository of its own, a clone; and the files written out.

git checks nothing out here, ever. What a remote holds is written by the store's own folder, which follows no link and
writes no `.git`; a checkout by git would run filters, make links, and take a hostile tree at its word.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from raddle.actions.memory.ports import Writer
from raddle.adapters.files import make_folder, new_temporary_folder, storage_error
from raddle.adapters.locks import LockFiles
from raddle.adapters.memory_repo.folder import StoreFolder
from raddle.adapters.memory_repo.host_repository import (
    answer_at,
    commit_of,
    git_at,
    tracking_ref,
)
from raddle.adapters.memory_repo.links import git_folder_of, read_index
from raddle.adapters.memory_repo.repository import NODE_TRAILER, StoreRepository
from raddle.adapters.memory_repo.store_git import (
    NETWORK_SECONDS,
    complaint,
    network_environment,
    object_format,
)
from raddle.model.errors import BrokenFormat, ConflictError, NetworkError, NotFound, StorageError
from raddle.model.memory.merge_trees import disk_steps
from raddle.model.memory.project import Project, decode_project
from raddle.model.memory.repo_layout import PROJECT_FILE

FIRST_BRANCH = "main"
_MOST_PROJECT_BYTES = 1 << 20


def first_commit(place: Path, files: Mapping[str, bytes], writer: Writer) -> str:
    """A commit without a parent that holds these files (paths one folder deep at most), in the repository around
    `place`; no branch is at it yet. Its id."""
    folders: dict[str, list[str]] = {"": []}
    for path, data in files.items():
        folder, _, name = path.rpartition("/")
        content_id = answer_at(place, ["hash-object", "-w", "--stdin", "--no-filters"], input=data)
        folders.setdefault(folder, []).append(f"100644 blob {content_id}\t{name}\0")
    for folder, entries in folders.items():
        if folder:
            folders[""].append(f"040000 tree {_tree(place, entries)}\t{folder}\0")
    message = f"new store\n\n{NODE_TRAILER}: {writer.node_id}\n"
    tree_id = _tree(place, folders[""])
    return answer_at(place, ["commit-tree", tree_id], input=message.encode(), env=_identity(place, writer))


def _tree(place: Path, entries: list[str]) -> str:
    return answer_at(place, ["mktree", "-z"], input="".join(entries).encode())


def make_repository(root: Path, files: Mapping[str, bytes], writer: Writer) -> None:
    """A repository of its own at `root`, which is empty or not there, with these files. ConflictError where it is not
    empty any more."""
    with _in_the_making(root) as folder:
        begin_repository(folder, FIRST_BRANCH)
        commit_id = first_commit(folder, files, writer)
        answer_at(folder, ["update-ref", "-m", "raddle: store", f"refs/heads/{FIRST_BRANCH}", commit_id])
        write_out(folder)


def clone_repository(root: Path, url: str) -> Project:
    """A clone of the store at `url`, which the model has checked, at `root`, which is empty or not there; what it is
    about.

    NetworkError where it cannot be reached; NotFound where it holds no store, a FormatError where that cannot be read;
    ConflictError where `root` is not empty any more. In all of these cases nothing is left behind.
    """
    make_folder(root.parent)
    with _in_the_making(root) as folder:
        store = fetch_store(folder, url)
        answer_at(
            folder, ["update-ref", "-m", "raddle: store", f"refs/heads/{store.branch}", store.commit_id]
        )
        write_out(folder)
        return store.project


class FetchedStore(Struct, frozen=True, kw_only=True):
    """What a remote has: on which branch, its newest commit there, what it is about."""

    branch: str
    commit_id: str
    project: Project


def fetch_store(folder: Path, url: str) -> FetchedStore:
    """A repository in `folder`, which is empty, that has fetched the store at `url`, and is on its branch; there is
    nothing on that yet. NetworkError, NotFound and FormatErrors as for a clone."""
    listing = _listing(folder.parent, url)
    branch, commit_id = _chosen(listing, url)
    begin_repository(folder, branch, "sha256" if len(commit_id) == 64 else "sha1")
    answer_at(folder, ["remote", "add", "--", "origin", url])
    answer_at(folder, ["config", f"branch.{branch}.remote", "origin"])
    answer_at(folder, ["config", f"branch.{branch}.merge", f"refs/heads/{branch}"])
    tracking = tracking_ref("origin", branch)
    wanted = ["fetch", "--quiet", "--no-tags", "--", "origin", f"+refs/heads/{branch}:{tracking}"]
    fetched = git_at(folder, wanted, env=_network(folder), timeout=NETWORK_SECONDS)
    if fetched.code != 0:
        raise NetworkError(f"the store cannot be fetched: {complaint(fetched)}", "try again")
    project = project_at(folder, tracking)
    if project is None:
        raise NotFound("store in", url, f"its branch {branch} has no {PROJECT_FILE}; check the address")
    newest = answer_at(folder, ["rev-parse", "--verify", tracking])
    return FetchedStore(branch=branch, commit_id=newest, project=project)


def project_at(place: Path, commit: str) -> Project | None:
    """The project in a commit of the repository around `place`; None where it holds no `project.yaml`.

    A FormatError where that cannot be read.
    """
    entry = git_at(place, ["ls-tree", "-l", "--full-tree", commit, "--", PROJECT_FILE]).stdout.split()
    if len(entry) < 4 or entry[1] != b"blob" or entry[0] == b"120000":
        return None
    if int(entry[3]) > _MOST_PROJECT_BYTES:
        raise BrokenFormat(f"{PROJECT_FILE} in {commit[:40]} is larger than 1 MiB")
    answer = git_at(place, ["cat-file", "blob", entry[2].decode()])
    if answer.code != 0:
        raise BrokenFormat(f"git no longer has the {PROJECT_FILE} of {commit[:40]}: {complaint(answer)}")
    return decode_project(answer.stdout)


def write_out(root: Path) -> None:
    """Write the files of the branch into the folder of a new store: those that are not there, and over nothing.

    `project.yaml` comes last: who finds none takes the folder for no store, and does not miss the others in it.
    """
    folder, repository = opened(root)
    head = repository.head()
    if head is None:
        return
    steps = disk_steps({}, repository.tree(head.id))
    with folder.locked():
        for group in (
            [step for step in steps if step.path != PROJECT_FILE],
            [step for step in steps if step.path == PROJECT_FILE],
        ):
            contents = repository.contents(step.becomes for step in group if step.becomes)
            folder.carry_out(group, contents)
    read_index(root)


def opened(root: Path) -> tuple[StoreFolder, StoreRepository]:
    """The folder and the repository of the store at `root`, whatever state it is in; BrokenFormat where there is no
    repository."""
    git_folder = git_folder_of(root)
    if git_folder is None:
        raise BrokenFormat(f"{root} is in no git repository", "mend it with `raddle store adopt`")
    own = git_folder / "raddle"
    locks = LockFiles(own / "locks", stripes=1)
    return StoreFolder(root, locks, hash_name=object_format(git_folder)), StoreRepository(root, own)


@contextlib.contextmanager
def _in_the_making(root: Path) -> Iterator[Path]:
    """A folder to work in, which is at `root` when all went well; else nothing is left of it."""
    if root.is_dir():  # an empty one, perhaps a mounted disk: nothing could be put in its place
        try:
            yield root
        except BaseException:
            for left in root.iterdir():
                shutil.rmtree(left, ignore_errors=True)
                left.unlink(missing_ok=True)
            raise
        return
    make_folder(root.parent)
    folder, held = new_temporary_folder(root.parent)
    try:
        yield folder
        try:
            folder.rename(root)
        except FileExistsError as error:
            raise _is_taken(root) from error
        except OSError as error:
            raise (
                _is_taken(root) if root.exists() else storage_error(error, root, "make the folder")
            ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _is_taken(root: Path) -> ConflictError:
    return ConflictError(f"{root} was made by another program just now", "see what is there")


def begin_repository(folder: Path, branch: str, hash_name: str = "") -> None:
    """An empty repository in `folder`, HEAD on `branch`."""
    chosen = [f"--object-format={hash_name}"] if hash_name else []
    begun = git_at(
        folder.parent,
        ["init", "--quiet", "--template=", f"--initial-branch={branch}", *chosen, "--", str(folder)],
    )
    if begun.code != 0:
        raise StorageError(f"git cannot make a repository: {complaint(begun)}", "see what git says about it")


def _listing(place: Path, url: str) -> bytes:
    answer = git_at(
        place,
        ["ls-remote", "--quiet", "--symref", "--", url, "HEAD", "refs/heads/*"],
        env=_network(place),
        timeout=NETWORK_SECONDS,
    )
    if answer.code != 0:
        raise NetworkError(
            f"the store cannot be reached: {complaint(answer)}", "check the address, then try again"
        )
    return answer.stdout


def _chosen(listing: bytes, url: str) -> tuple[str, str]:
    """The branch that a remote puts first, else `main`, else its only one; and the commit that it is at."""
    branches = {
        os.fsdecode(line.partition(b"\t")[2]).removeprefix("refs/heads/"): line
        for line in listing.splitlines()
        if b"\trefs/heads/" in line and not line.startswith(b"ref:")
    }
    first = next((line for line in listing.splitlines() if line.startswith(b"ref: refs/heads/")), b"")
    named = os.fsdecode(first.partition(b"\t")[0]).removeprefix("ref: refs/heads/")
    candidates = [named, FIRST_BRANCH, *(branches if len(branches) == 1 else ())]
    branch = next((name for name in candidates if name in branches), None)
    commit_id = commit_of(listing, f"refs/heads/{branch}")
    if branch is None or commit_id is None:
        raise NotFound(
            "store in",
            url,
            "it has no branch yet: `raddle store init PROJECT`, then `git remote add origin` in it"
            if not branches
            else "which of its branches holds one is not said: it has neither a default one nor `main`",
        )
    return branch, commit_id


def _network(place: Path) -> dict[str, str]:
    asked = git_at(place, ["config", "--get", "core.sshCommand"])
    return network_environment(os.fsdecode(asked.stdout).strip() or None)


def _identity(place: Path, writer: Writer) -> dict[str, str]:
    """Who commits: the person as git knows them, else as raddle does."""
    known = {
        name: os.fsdecode(git_at(place, ["config", "--get", f"user.{name}"]).stdout).strip()
        for name in ("name", "email")
    }
    name = known["name"] or writer.author or "raddle"
    email = known["email"] or f"{writer.node_id}@raddle.invalid"
    at = f"{writer.now() // 1_000_000} +0000"
    return {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", name), ("EMAIL", email), ("DATE", f"@{at}"))
    }
