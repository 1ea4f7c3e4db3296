"""A folder with a store's files and a repository that it belongs to, brought together, where the folder's own has gone.

Owns which commit such a folder is taken to have been at. Who took the newest one would commit, as if it were meant, the
undoing of all that others did since.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from raddle.adapters.files import new_temporary_folder
from raddle.adapters.memory_repo.host_repository import HostRepository, answer_at, git_at
from raddle.adapters.memory_repo.links import put_head_away, put_in, read_index
from raddle.adapters.memory_repo.making import FIRST_BRANCH, begin_repository, fetch_store, opened
from raddle.model.errors import ConflictError

_MOST_LOOKED_AT = 100


def rejoin_remote(root: Path, url: str, project_id: str | None) -> None:
    """A repository for the files at `root`, on the branch of the store at `url`, and at the commit that they were at.

    ConflictError where that is another project's than `project_id`; NetworkError, NotFound and FormatErrors as for a
    clone. In all of these cases `root` is as it was.
    """
    folder, held = new_temporary_folder(root.parent)
    try:
        store = fetch_store(folder, url)
        if project_id is not None and store.project.project_id != project_id:
            raise ConflictError(
                f"{url} holds the memory of {store.project.project_id}, and {root} that of {project_id}",
                "name the one that it belongs to in the marker",
            )
        put_in(folder / ".git", root)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)
    at = nearest_commit(root, store.commit_id)
    answer_at(root, ["update-ref", "-m", "raddle: joined again", f"refs/heads/{store.branch}", at])
    read_index(root)


def begin_own(root: Path) -> None:
    """A repository of its own at `root`; where parts of one are there, HEAD is on a branch of it again."""
    put_head_away(root)
    begin_repository(root, FIRST_BRANCH)
    if git_at(root, ["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]).code != 0:
        branches = answer_at(root, ["for-each-ref", "--format=%(refname)", "refs/heads/"]).splitlines()
        if len(branches) == 1:
            answer_at(root, ["symbolic-ref", "-m", "raddle: mended", "HEAD", branches[0]])
            read_index(root)


def step_back(host: HostRepository, root: Path, branch: str) -> None:
    """Have a branch that was just fetched at the commit that the files at `root` were at, for a sync to go on from."""
    newest = answer_at(root, ["rev-parse", "--verify", f"refs/heads/{branch}"])
    at = nearest_commit(root, newest)
    if at != newest:
        host.answer(["update-ref", "-m", "raddle: joined again", f"refs/heads/{branch}", at, newest])
    read_index(root)


def nearest_commit(root: Path, newest: str) -> str:
    """The one of the newest commits that the files at `root` differ least from."""
    folder, repository = opened(root)
    files = folder.scan().files
    nearest, fewest = newest, -1
    for commit_id in answer_at(root, ["rev-list", f"--max-count={_MOST_LOOKED_AT}", newest]).split():
        tree = repository.tree(commit_id)
        differing = sum(files.get(path) != tree.get(path) for path in files.keys() | tree.keys())
        if fewest < 0 or differing < fewest:
            nearest, fewest = commit_id, differing
        if not differing:
            break
    return nearest
