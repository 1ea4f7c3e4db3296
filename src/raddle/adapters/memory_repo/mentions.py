"""Which blobs a store's pointers name, in any commit that is still to be had and in every folder it is checked out in.

Owns what counts as named. It errs to one side only: an index that cannot be read, one of a newer format, one on a
rescue ref or on a branch that nobody merged names what it names, by any 64 hex digits that stand in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from raddle.adapters.files import find_bytes
from raddle.adapters.memory_repo.store_git import answer_of
from raddle.model.errors import BrokenFormat

_INDEX_FILES = ":(top,glob)runs/*/artifacts.index.json*"
_SHA256 = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_CHANGE = re.compile(rb":([0-7]{6}) ([0-7]{6}) ([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [A-Z]")
_FILE_MODES = (b"100644", b"100755", b"100664", b"120000")
_AT_ONCE_BYTES = 32 << 20


def named_blobs(root: Path) -> frozenset[str]:
    """The SHA-256 of every blob that the store at `root` names, now or in what git still holds of it.

    StorageError or BrokenFormat where git cannot tell: then nobody knows, and nothing may be taken away.
    """
    found: set[bytes] = set()
    for data in _everywhere(root):
        found.update(_SHA256.findall(data))
    return frozenset(sha256.decode() for sha256 in found)


def named_in_files(root: Path) -> frozenset[str]:
    """The SHA-256 of every blob that the files in the store's folder name now, whatever has become of its git."""
    found: set[bytes] = set()
    for data in _in_folder(root):
        found.update(_SHA256.findall(data))
    return frozenset(sha256.decode() for sha256 in found)


def _everywhere(root: Path) -> Iterator[bytes]:
    for folder in {root, *_folders(root)}:
        yield from _in_folder(folder)
    ids = _ids_in_history(root)
    for some in _in_portions(root, ids):
        yield answer_of(root, ["cat-file", "--batch"], input="".join(f"{one}\n" for one in some).encode())


def _in_folder(folder: Path) -> Iterator[bytes]:
    for file in folder.glob("runs/*/artifacts.index.json*"):
        yield find_bytes(file) or b""


def _folders(root: Path) -> list[Path]:
    """Where else the repository is checked out."""
    answer = answer_of(root, ["worktree", "list", "--porcelain"])
    return [
        Path(os.fsdecode(line.removeprefix(b"worktree ")))
        for line in answer.splitlines()
        if line.startswith(b"worktree ")
    ]


def _ids_in_history(root: Path) -> list[str]:
    """The contents of every index file that a ref, a HEAD or a reflog still leads to."""
    # Without --full-history git walks past a side branch of which a merge kept nothing.
    commits = answer_of(root, ["rev-list", "--all", "--reflog", "--full-history", "--", _INDEX_FILES])
    changes = answer_of(
        root,
        ["diff-tree", "--stdin", "--root", "-m", "-r", "-z", "--no-renames", "--", _INDEX_FILES],
        input=commits,
    )
    sides = (side for found in _CHANGE.finditer(changes) for side in (found.group(1, 3), found.group(2, 4)))
    return list(dict.fromkeys(one.decode() for mode, one in sides if mode in _FILE_MODES))


def _in_portions(root: Path, ids: list[str]) -> Iterator[list[str]]:
    """The ids, so many at once as have a bearable size together."""
    if not ids:
        return
    answer = answer_of(
        root,
        ["cat-file", "--batch-check=%(objectname) %(objectsize)"],
        input="".join(f"{one}\n" for one in ids).encode(),
    )
    portion: list[str] = []
    size = 0
    for line in answer.decode().splitlines():
        one, _, text = line.partition(" ")
        if not text.isdigit():
            raise BrokenFormat(
                f"git no longer has the content {one[:40]} of {root}",
                "see `git fsck` in the store; nothing was removed",
            )
        if portion and size + int(text) > _AT_ONCE_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(one)
        size += int(text)
    yield portion
