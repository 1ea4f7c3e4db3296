"""Commits written into a store's repository: the trees they change are read, made anew, packed, and named by a ref.

Three git processes, and none of them looks at more than the folders that a commit touches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from raddle.adapters.memory_repo.git_objects import (
    Changes,
    commit_of,
    folders_of,
    has_folder,
    hash_name_of,
    objects_of,
    pack_of,
)
from raddle.adapters.memory_repo.store_git import answer_of, object_format, run_store_git
from raddle.adapters.memory_repo.upkeep import may_leave_a_pack
from raddle.adapters.programs import Completed
from raddle.model.errors import BrokenFormat
from raddle.model.memory.names import shown

_ANSWER = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64}) (commit|tree|blob|tag) (\d+)")


class Ground(NamedTuple):
    """What a commit rests on: a commit (None: on none), and git's bytes of its folders that are asked for."""

    commit_id: str | None
    trees: dict[str, bytes]


def read_ground(root: Path, commit: str, paths: Iterable[str]) -> Ground:
    """What a change of `paths` on `commit` (an id or a ref) rests on."""
    folders = folders_of(paths)
    asked = [f"{commit}^{{commit}}", *(f"{commit}:{folder}" for folder in folders)]
    asked = [_as_id(root, spec) if "\n" in spec else spec for spec in asked]
    lines = "".join(f"{spec}\n" for spec in asked).encode(errors="surrogateescape")
    answer = answer_of(root, ["cat-file", "--batch"], input=lines)
    found: list[tuple[str, bytes, bytes]] = []
    at = 0
    for _ in asked:
        end = answer.index(b"\n", at)
        head = _ANSWER.fullmatch(answer, at, end)
        at = end + 1
        size = int(head[3]) if head else -1
        found.append((head[1].decode(), head[2], answer[at : at + size]) if head else ("", b"", b""))
        at += size + 1
    commit_id, *_ = found[0]
    trees = {
        folder: data for folder, (_, kind, data) in zip(folders, found[1:], strict=True) if kind == b"tree"
    }
    if commit_id:
        _check_whole(folders, trees, hash_name_of(commit_id))
    return Ground(commit_id or None, trees)


def _check_whole(folders: Iterable[str], trees: Mapping[str, bytes], hash_name: str) -> None:
    """BrokenFormat where git lacks a folder that there is: taken for an empty one, a commit would remove all in it."""
    for folder in folders:
        if folder in trees:
            continue
        above, _, name = folder.rpartition("/")
        if not folder or has_folder(trees.get(above, b""), name, hash_name):
            raise BrokenFormat(
                f"git no longer has the folder {shown(folder)}",
                "see `git fsck` in the store; another clone may have it",
            )


def write_commit(root: Path, ground: Ground, changes: Changes, *, who: str, message: str) -> str:
    """A commit with these changes on that ground, which no ref names yet; its id."""
    hash_name = hash_name_of(ground.commit_id) if ground.commit_id else object_format(root / ".git")
    objects = objects_of(changes, ground.trees, hash_name)
    commit = commit_of(objects[-1], ground.commit_id, who=who, message=message, hash_name=hash_name)
    pack = pack_of([*objects, commit], hash_name)
    is_kept = may_leave_a_pack(root, len(objects) + 1)
    verb = ["index-pack", "--stdin"] if is_kept else ["unpack-objects", "-q"]
    answer_of(root, ["-c", "pack.threads=1", *verb], input=pack)
    return commit.name.hex()


def name_commit(
    root: Path, ref: str, commit_id: str, *, was: str | None, note: str, drops: str = ""
) -> Completed:
    """Have `ref` at a commit, where it `was` at that one (None: at none; empty: wherever it was). `drops`: another ref
    that goes."""
    old = "" if was == "" else f" {was or '0' * len(commit_id)}"
    words = f"start\nupdate {ref} {commit_id}{old}\n{f'delete {drops}' if drops else ''}\nprepare\ncommit\n"
    return run_store_git(
        root,
        ["update-ref", "-m", f"raddle: {note}", "--stdin"],
        input=words.replace("\n\n", "\n").encode(errors="surrogateescape"),
    )


def _as_id(root: Path, spec: str) -> str:
    """What a name with a line break in it stands for; itself without them, and so nothing, where it is none."""
    found = (
        run_store_git(root, ["rev-parse", "--quiet", "--verify", "--end-of-options", spec])
        .stdout.decode()
        .strip()
    )
    return found or spec.replace("\n", " ")
