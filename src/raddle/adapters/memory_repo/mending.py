"""A store that was left in the middle of something: git brought back to the branch, and nothing lost on the way.

Another program may have left a rebase or a merge half done, HEAD on no branch, a lock behind. No command of git's own
is asked to abort it: that would write over what was noted since. Every commit that could be lost stays under a name of
its own, what HEAD held is merged by record, and a file is only touched where it holds what git put there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from raddle.actions.memory.ports import Commit, Writer
from raddle.adapters.files import find_bytes, make_folder, storage_error
from raddle.adapters.memory_repo.folder import StoreFolder
from raddle.adapters.memory_repo.host_repository import answer_at, git_at
from raddle.adapters.memory_repo.links import git_folder_of, read_index
from raddle.adapters.memory_repo.making import opened
from raddle.adapters.memory_repo.repository import RESCUE, StoreRepository, noted_branch
from raddle.model.errors import BrokenFormat, ConflictError
from raddle.model.memory.merge import merge_contents
from raddle.model.memory.merge_sides import Side, Sides
from raddle.model.memory.merge_trees import DiskStep, is_regular, plan_merge
from raddle.model.memory.repo_layout import conflict_path, is_safe, parse_conflict
from raddle.model.memory.ulids import derived_ulid

SETTLED_SECONDS = 60
"""A lock file older than this is nobody's: git holds one for as long as it writes a few files."""

_HALF_DONE = (
    "rebase-merge rebase-apply MERGE_HEAD MERGE_MSG MERGE_MODE MERGE_RR AUTO_MERGE CHERRY_PICK_HEAD REVERT_HEAD "
    "REBASE_HEAD sequencer BISECT_START BISECT_LOG BISECT_NAMES BISECT_TERMS BISECT_EXPECTED_REV SQUASH_MSG"
).split()
_HEADS = (
    "MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD REBASE_HEAD rebase-merge/orig-head rebase-merge/autostash "
    "rebase-merge/stopped-sha rebase-apply/orig-head rebase-apply/autostash"
).split()
_OTHER_SIDES = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD", "rebase-merge/stopped-sha")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_MARKERS = re.compile(rb"^<<<<<<< .*?^=======\r?$.*?^>>>>>>> ", re.MULTILINE | re.DOTALL)


class Trouble(Struct, frozen=True, kw_only=True):
    """What is not as it should be. `branch`: the one that HEAD belongs on; `head`: the commit that it is at;
    `strays_on`: the branch that HEAD is on instead."""

    branch: str
    head: str | None
    is_detached: bool
    strays_on: str = ""
    half_done: tuple[str, ...]
    locks: tuple[Path, ...]

    @property
    def told(self) -> tuple[str, ...]:
        """In words, one a thing; empty where nothing is wrong."""
        of_git = {"rebase-merge": "a rebase", "rebase-apply": "a rebase", "MERGE_HEAD": "a merge"}
        of_git |= {
            "CHERRY_PICK_HEAD": "a cherry-pick",
            "REVERT_HEAD": "a revert",
            "BISECT_START": "a bisection",
        }
        return (
            *(f"{of_git[name]} was left half done" for name in self.half_done if name in of_git),
            *((f"HEAD is on no branch (it belongs on {self.branch})",) if self.is_detached else ()),
            *(
                (f"HEAD is on the branch {self.strays_on} (it belongs on {self.branch})",)
                if self.strays_on
                else ()
            ),
            *(f"a lock was left behind: {lock.name}" for lock in self.locks),
        )


class Mended(Struct, frozen=True, kw_only=True):
    """What was done. `rescued`: refs of commits that are kept; `aside`: files whose other version stands beside them
    now, path -> where; `merged`: HEAD held commits that the branch did not, and does now."""

    rescued: tuple[str, ...] = ()
    aside: dict[str, str] = {}
    is_merged: bool = False


def look_for_trouble(root: Path, branch: str | None = None) -> Trouble:
    """What state the store's git is in; nothing is changed. `branch`: where the marker says that it belongs, which
    counts where it was not noted what the memory has been on here.

    BrokenFormat where it has no repository, or no branch can be found for it.
    """
    git_folder = _git_folder(root)
    noted = noted_branch(git_folder / "raddle")
    branch = noted if noted and _commit(root, f"refs/heads/{noted}") is not None else branch
    on = git_at(root, ["symbolic-ref", "--quiet", "HEAD"]).stdout.decode(errors="surrogateescape").strip()
    head = _commit(root, "HEAD")
    strays_on = on.removeprefix("refs/heads/") if _strays(root, on, branch) else ""
    named = (
        (branch if strays_on else on.removeprefix("refs/heads/"))
        or _named_by_rebase(git_folder)
        or _guessed(root, branch, head)
    )
    if named is None:
        raise BrokenFormat(
            f"{root} is on no branch, and which one it belongs on is not said",
            "see `git branch` in it, then: git symbolic-ref HEAD refs/heads/NAME",
        )
    half_done = tuple(name for name in _HALF_DONE if os.path.lexists(git_folder / name))
    return Trouble(
        branch=named,
        head=head,
        is_detached=not on,
        strays_on=strays_on,
        half_done=half_done,
        locks=tuple(_locks(git_folder, named)),
    )


def mend(root: Path, trouble: Trouble, writer: Writer) -> Mended:
    """Bring the store out of `trouble`. ConflictError where a lock is so young that somebody may be at work."""
    _clear_locks(trouble.locks, writer.now())
    if not trouble.half_done and not trouble.is_detached and not trouble.strays_on:
        return Mended()
    folder, repository = opened(root)
    with folder.locked():
        git_folder = _git_folder(root)
        heads = _heads(root, git_folder, trouble)
        rescued = [_kept(root, commit_id) for commit_id in dict.fromkeys(heads.values())]
        index = _index(root)
        was_rebase = any(name.startswith("rebase") for name in trouble.half_done)
        _put_away(git_folder, trouble.half_done, writer.now())
        if trouble.is_detached or trouble.strays_on:
            _onto_branch(root, trouble)
        before = repository.head()
        merged = _with_what_head_held(root, repository, trouble.head, writer)
        sides = [trouble.head, *(heads[name] for name in _OTHER_SIDES if name in heads)]
        trees = [repository.tree(side) for side in dict.fromkeys(sides) if side]
        aside = _settle_files(folder, repository, _Seen(trees, index, was_rebase), writer) if merged else {}
        read_index(root)
    return Mended(
        rescued=tuple(dict.fromkeys(rescued)),
        aside=aside,
        is_merged=merged is not None and before is not None and merged.id != before.id,
    )


def files_with_markers(folder: StoreFolder) -> tuple[str, ...]:
    """The files that hold the markers of a conflict, which somebody has to look at; those that are kept as the other
    side of one are listed as such."""
    found = []
    for path in folder.paths():
        data = folder.read(path) if parse_conflict(path) is None else None
        if data is not None and b"<<<<<<<" in data and _MARKERS.search(data):
            found.append(path)
    return tuple(found)


class _Seen:
    """What git had put into the folder. `trees`: of the commits that took part; `index`: path -> id, `unmerged`."""

    def __init__(
        self, trees: list[dict[str, str]], index: tuple[dict[str, str], set[str]], was_rebase: bool
    ) -> None:
        self.trees = trees
        self.index, self.unmerged = index
        self.was_rebase = was_rebase

    def is_committed(self, path: str, content_id: str) -> bool:
        """Is it what one of the commits holds there?"""
        return any(tree.get(path) == content_id for tree in self.trees)

    def is_gits_own(self, path: str, content_id: str) -> bool:
        """May it be git's own making: a text with markers, or two versions joined in the middle of a rebase?"""
        return path in self.unmerged or (self.was_rebase and self.index.get(path) == content_id)


def _settle_files(
    folder: StoreFolder, repository: StoreRepository, seen: _Seen, writer: Writer
) -> dict[str, str]:
    """Bring the folder from what git left in it to what the branch holds. What a person or a program wrote stays, and
    what may be git's own making goes beside it."""
    head = repository.head()
    becomes = repository.tree(head.id) if head is not None else {}
    files = folder.scan().files
    steps: list[DiskStep] = []
    aside: dict[str, str] = {}
    for path in sorted({path for path in becomes.keys() | files.keys() if is_safe(path)}):
        there, wanted = files.get(path), becomes.get(path)
        if there == wanted or (wanted is not None and not is_regular(wanted)):
            continue
        if there is None or seen.is_committed(path, there):
            if wanted is not None or seen.trees[0].get(path) == there:
                steps.append(DiskStep(path=path, expects=there, becomes=wanted))
        elif seen.is_gits_own(path, there) and wanted is not None:
            data = folder.read(path) or b""
            other = conflict_path(
                path, writer.node_id, derived_ulid(writer.now(), path.encode(errors="replace"), data)
            )
            folder.change(other, lambda old, data=data: data if old is None else old)  # type: ignore[misc]
            aside[path] = other
            steps.append(DiskStep(path=path, expects=there, becomes=wanted))
    folder.carry_out(steps, repository.contents(step.becomes for step in steps if step.becomes))
    return aside


def _with_what_head_held(
    root: Path, repository: StoreRepository, head: str | None, writer: Writer
) -> Commit | None:
    """Have the branch hold what HEAD held as well; its newest commit then."""
    mine = repository.head()
    if head is None or mine is None or head == mine.id:
        return mine
    base = repository.base_of(mine.id, head)
    if base == head:
        return mine
    if base == mine.id:
        repository.move(head, expects=mine.id)
        return repository.head()
    before = repository.tree(base) if base is not None else {}
    ours, held = repository.tree(mine.id), repository.tree(head)
    theirs = _unmarked(repository, before, ours, held)
    plan = plan_merge(before, ours, theirs)
    at = _committed_at(root, head)
    sides = Sides(local=Side(node_id=mine.node_id, at=mine.at), remote=Side(node_id=writer.node_id, at=at))
    merged = merge_contents(plan, repository.contents(plan.wanted), sides)
    changes: dict[str, str | bytes | None] = dict.fromkeys(
        ours.keys() - merged.entries.keys() - merged.written.keys()
    )
    changes |= {path: entry for path, entry in merged.entries.items() if ours.get(path) != entry}
    changes |= merged.written
    changes |= _marked_aside(repository, held, theirs, writer.node_id, at)
    if not changes:
        return mine
    return repository.commit(
        changes, parent=mine.id, message="mended: what HEAD held beside the branch", writer=writer, moves=True
    )


def _unmarked(
    repository: StoreRepository, before: Mapping[str, str], ours: Mapping[str, str], tree: Mapping[str, str]
) -> dict[str, str]:
    """The tree without the texts with markers that somebody committed: there what was before. What stands nowhere else
    stays as it is."""
    marked = _marked(repository, before, tree) & (before.keys() | ours.keys())
    kept = {path: entry for path, entry in tree.items() if path not in marked}
    return kept | {path: before[path] for path in marked if path in before}


def _marked_aside(
    repository: StoreRepository, tree: Mapping[str, str], without: Mapping[str, str], node_id: str, at: int
) -> dict[str, str | bytes | None]:
    """The texts with markers that were left out, each under the name of a conflict."""
    left_out = {path: entry for path, entry in tree.items() if without.get(path) != entry}
    contents = repository.contents(left_out.values())
    return {
        conflict_path(
            path, node_id, derived_ulid(at, path.encode(errors="replace"), contents[entry])
        ): contents[entry]
        for path, entry in left_out.items()
    }


def _marked(repository: StoreRepository, before: Mapping[str, str], tree: Mapping[str, str]) -> set[str]:
    changed = {path: entry for path, entry in tree.items() if before.get(path) != entry and is_regular(entry)}
    contents = repository.contents(changed.values())
    return {path for path, entry in changed.items() if is_safe(path) and _MARKERS.search(contents[entry])}


def _git_folder(root: Path) -> Path:
    found = git_folder_of(root)
    if found is None:
        raise BrokenFormat(f"{root} is in no git repository", "check the path")
    return found


def _commit(root: Path, ref: str) -> str | None:
    answer = git_at(root, ["rev-parse", "--quiet", "--verify", f"{ref}^{{commit}}"])
    return answer.stdout.decode().strip() or None if answer.code == 0 else None


def _committed_at(root: Path, commit_id: str) -> int:
    """When it was committed, in microseconds since 1970."""
    text = answer_at(root, ["log", "-1", "--no-show-signature", "--format=%ct", commit_id, "--"])
    return int(text.strip() or 0) * 1_000_000


def _named_by_rebase(git_folder: Path) -> str | None:
    for place in ("rebase-merge/head-name", "rebase-apply/head-name"):
        text = os.fsdecode(find_bytes(git_folder / place) or b"").strip()
        if text.startswith("refs/heads/"):
            return text.removeprefix("refs/heads/")
    return None


def _strays(root: Path, on: str, said: str | None) -> bool:
    """Is HEAD on another branch than the one that the marker names, which is there?"""
    ref = f"refs/heads/{said}"
    return said is not None and on not in ("", ref) and _commit(root, ref) is not None


def _guessed(root: Path, said: str | None, head: str | None) -> str | None:
    """The branch that a detached HEAD belongs on: the one said, else `main`, else the only one; else one below HEAD."""
    listed = answer_at(root, ["for-each-ref", "--format=%(refname)", "refs/heads/"]).splitlines()
    names = [name.removeprefix("refs/heads/") for name in listed]
    for name in (said, "main"):
        if name in names:
            return name
    if len(names) == 1:
        return names[0]
    below = [
        name
        for name in names
        if head and git_at(root, ["merge-base", "--is-ancestor", f"refs/heads/{name}", head]).code == 0
    ]
    return below[0] if len(below) == 1 else None if names or head is None else said or "main"


def _locks(git_folder: Path, branch: str) -> Iterable[Path]:
    shared = git_folder
    if (git_folder / "commondir").is_file():
        shared = git_folder / os.fsdecode((git_folder / "commondir").read_bytes()).strip()
    places = [git_folder / "index.lock", git_folder / "HEAD.lock", shared / f"refs/heads/{branch}.lock"]
    if shared == git_folder:
        places += [git_folder / "config.lock", git_folder / "packed-refs.lock"]
    return [place for place in places if place.exists()]


def _clear_locks(locks: Iterable[Path], now: int) -> None:
    for lock in locks:
        try:
            age = now // 1_000_000 - lock.stat().st_mtime
            if age < SETTLED_SECONDS:
                raise ConflictError(
                    f"{lock} is {max(int(age), 0)} s old: a git may be at work in the store",
                    f"wait until it is done; what is older than {SETTLED_SECONDS} s is taken for left behind",
                )
            lock.unlink()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise storage_error(error, lock, "remove") from error


def _heads(root: Path, git_folder: Path, trouble: Trouble) -> dict[str, str]:
    """The commits that only what was half done names: by where."""
    is_off = trouble.is_detached or trouble.strays_on
    found = {"HEAD": trouble.head} if trouble.head is not None and is_off else {}
    for name in _HEADS:
        for line in os.fsdecode(find_bytes(git_folder / name) or b"").split():
            if _COMMIT.match(line) and _commit(root, line):
                found[name if name not in found else f"{name} {line}"] = line
    return found


def _kept(root: Path, commit_id: str) -> str:
    ref = f"{RESCUE}/{commit_id[:16]}"
    answer_at(root, ["update-ref", ref, commit_id])
    return ref


def _index(root: Path) -> tuple[dict[str, str], set[str]]:
    """Path -> id of what git's index holds, and the paths that are in it in several versions."""
    staged: dict[str, str] = {}
    unmerged: set[str] = set()
    for entry in git_at(root, ["ls-files", "-s", "-z"]).stdout.split(b"\0"):
        facts, _, path = entry.partition(b"\t")
        parts = facts.decode().split(" ")
        if len(parts) == 3 and parts[2] == "0":
            staged[os.fsdecode(path)] = parts[1]
        elif len(parts) == 3:
            unmerged.add(os.fsdecode(path))
    return staged, unmerged


def _put_away(git_folder: Path, names: Iterable[str], now: int) -> None:
    """What git had noted of it goes into our own folder: nobody needs it, and it is not ours to delete."""
    place = git_folder / "raddle" / "left-behind" / str(now)
    for name in names:
        make_folder(place)
        try:
            (git_folder / name).rename(place / name)
        except OSError as error:
            raise storage_error(error, git_folder / name, "move") from error


def _onto_branch(root: Path, trouble: Trouble) -> None:
    ref = f"refs/heads/{trouble.branch}"
    if _commit(root, ref) is None and trouble.head is not None:
        answer_at(root, ["update-ref", ref, trouble.head])
    answer_at(root, ["symbolic-ref", "-m", "raddle: mended", "HEAD", ref])
