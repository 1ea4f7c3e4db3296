"""The versions of one file of a store, as its git history has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from raddle.adapters.memory_repo.repository import NODE_TRAILER
from raddle.adapters.memory_repo.store_git import answer_of, git_failed, run_store_git
from raddle.model.errors import Ambiguous, InvalidInput, NotFound
from raddle.model.memory.names import shown

_FORMAT = f"%x01%H%x00%ct%x00%an%x00%(trailers:key={NODE_TRAILER},valueonly,separator=%x2C)%x00"
_PLAIN = ("--no-show-signature", "--no-decorate", "--no-renames", "--no-ext-diff", "--no-textconv")
_COMMIT = re.compile(r"[0-9a-fA-F]{4,64}\Z", re.ASCII)
_COMMITS = re.compile(rb"\x01(?=[0-9a-f]{40,64}\x00)")
_ABSENT = re.compile(r"0+\Z")


class _Change(NamedTuple):
    """What one commit did to the file; `blob` is empty where it took it out."""

    commit: str
    at: int
    author: str
    node_id: str
    blob: str


class FileVersion(Struct, frozen=True, kw_only=True):
    """What a commit made of a file. `at`: microseconds since 1970. `size`: bytes; None: the file was taken out.

    `node_id`: of the machine that committed, `author`: the person; empty where the commit does not say.
    """

    commit: str
    at: int
    node_id: str
    author: str
    size: int | None


def versions_of(root: Path, path: str, *, limit: int | None = None) -> list[FileVersion]:
    """The versions of the file at `path` (of the store, whose folder is `root`), the newest first; none where no
    commit had it."""
    changes = _changes(root, path, limit)
    sizes = _sizes(root, [change.blob for change in changes if change.blob])
    return [
        FileVersion(
            commit=change.commit,
            at=change.at,
            node_id=change.node_id,
            author=change.author,
            size=sizes.get(change.blob) if change.blob else None,
        )
        for change in changes
    ]


def contents_of(root: Path, path: str) -> Iterator[bytes]:
    """All bytes of each of its versions, the newest first."""
    for change in _changes(root, path, None):
        if change.blob:
            answer = run_store_git(root, ["cat-file", "blob", change.blob])
            if answer.code == 0:
                yield answer.stdout


def _changes(root: Path, path: str, limit: int | None) -> list[_Change]:
    most = [f"--max-count={limit}"] if limit is not None else []
    asked = ["--literal-pathspecs", "log", *most, f"--format={_FORMAT}", *_PLAIN, "--raw", "--no-abbrev"]
    answer = run_store_git(root, [*asked, "--first-parent", "-m", "--root", "-z", "HEAD", "--", path])
    if answer.code != 0:
        if not _has_commit(root):
            return []
        raise git_failed(root, "log", answer)
    return [_parsed(part) for part in _COMMITS.split(answer.stdout)[1:]]


def version_at(root: Path, path: str, commit: str) -> bytes:
    """All bytes of the file at `path` as a commit (its id, or the start of it) has it; NotFound."""
    if _COMMIT.match(commit) is None:
        raise InvalidInput(
            f"{shown(commit)} is not a commit", "`raddle memory history` lists those of a memory"
        )
    answer = run_store_git(root, ["cat-file", "blob", f"{commit}:{path}"])
    if answer.code != 0:
        why = answer.stderr.decode(errors="replace")
        if "ambiguous" in why:
            raise Ambiguous("commit", commit, ())
        raise NotFound("version of it at", commit, "`raddle memory history` lists them")
    return answer.stdout


def committed(root: Path, path: str) -> bytes | None:
    """All bytes of the file as the newest commit has it; None where it has none."""
    answer = run_store_git(root, ["cat-file", "blob", f"HEAD:{path}"])
    return answer.stdout if answer.code == 0 else None


def _has_commit(root: Path) -> bool:
    return run_store_git(root, ["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]).code == 0


def _parsed(part: bytes) -> _Change:
    fields = part.split(b"\0")
    commit, seconds, author, node = (field.decode(errors="replace").strip() for field in fields[:4])
    changed = next((field for field in fields[4:] if field.lstrip(b"\n").startswith(b":")), b"")
    blob = changed.split()[3].decode() if changed else ""
    is_absent = _ABSENT.match(blob) is not None
    return _Change(commit, int(seconds) * 1_000_000, author, node, "" if is_absent else blob)


def _sizes(root: Path, blobs: list[str]) -> dict[str, int]:
    if not blobs:
        return {}
    told = answer_of(root, ["cat-file", "--batch-check"], input="".join(f"{one}\n" for one in blobs).encode())
    lines = [line.split(" ") for line in told.decode(errors="replace").splitlines()]
    return {line[0]: int(line[2]) for line in lines if len(line) == 3 and line[2].isdigit()}
