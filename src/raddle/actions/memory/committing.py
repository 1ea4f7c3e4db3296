"""What a store's folder holds, as a commit: what people and programs wrote there since the last one.

The one place that decides what a missing file means. Entries, runs and the project are never removed by anybody who
means it, so where they are gone (a folder emptied, a checkout cut short) they come back, and no clone loses them.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Literal

from msgspec import Struct

from raddle.actions.memory.ports import Commit, Scan, StoreDisk, StoreHistory, Writer
from raddle.model.errors import ConflictError, FormatError, RaddleError
from raddle.model.memory.merge_trees import DiskStep, is_regular, withheld
from raddle.model.memory.names import shown
from raddle.model.memory.project import decode_project
from raddle.model.memory.repo_layout import KEPT_FOLDERS, PROJECT_FILE, Kind, place_of

_MAY_GO: frozenset[Kind] = frozenset({"memory", "conflict", "summary", "handoff", "artifact", "other"})
_TEXTS = _MAY_GO - {"other"}
_FEW = 5
_LONGEST_PLACE = 200
_WELCOME = frozenset({*KEPT_FOLDERS, ".gitignore", "README.md"})
"""No part of a store, but files that people keep in a repository."""
_WORDS: dict[Kind, tuple[str, str]] = {
    "entry": ("entry", "entries"),
    "memory": ("memory", "memories"),
    "run": ("run", "runs"),
    "index": ("list of artifacts", "lists of artifacts"),
    "artifact": ("artifact", "artifacts"),
    "summary": ("summary", "summaries"),
    "handoff": ("handoff", "handoffs"),
    "project": ("project", "projects"),
    "conflict": ("conflict", "conflicts"),
}


Removals = Literal["few", "all", "none"]
"""Of files that people remove: commit them where they are few; all of them, for a person said so; or bring all back."""


class ManyRemoved(ConflictError):
    """More than half of what people keep in the store is gone from its folder: somebody has to say that it is meant."""

    code = "many_removed"


class Committed(Struct, frozen=True, kw_only=True):
    """`head`: the newest commit now; None where there was nothing to commit, ever. `project`: the id of its project
    file. `changed`: paths that this commit changed. `restored`: files that were gone and are back. `blocked`: path ->
    why it is not taken in."""

    head: Commit | None
    project: str | None = None
    changed: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    blocked: dict[str, str] = {}


def commit_changes(
    disk: StoreDisk, history: StoreHistory, writer: Writer, *, removals: Removals = "few"
) -> Committed:
    """Commit what changed in the folder since the branch's newest commit, and bring back what nobody removes.

    ManyRemoved, and nothing is committed, where more is gone than a person takes out one by one.
    """
    with disk.locked():
        newest = history.begin_head()
        scan = disk.scan()
        head = newest()
        before = history.tree(head.id) if head is not None else {}
        hidden = withheld(before)
        lost = _lost(scan, before, hidden, brings_all_back=removals == "none")
        strays = _strays(scan.files, before)
        held = {path: content_id for path, content_id in scan.files.items() if path not in strays}
        after = {**hidden, **held, **lost}
        if removals == "few":
            _check_removals(before, after, scan)
        changes = _changes(disk, before, after)
        tree = dict(before)
        for path, content in changes.items():
            if content is None:
                del tree[path]
            else:
                tree[path] = after[path]
        if changes:
            parent = None if head is None else head.id
            head = history.commit(
                changes, parent=parent, message=_message(changes), writer=writer, moves=True
            )
            history.learn_tree(head.id, tree)
        restored = restore(disk, history, lost)
    return Committed(
        head=head,
        project=tree.get(PROJECT_FILE),
        changed=tuple(sorted(changes)),
        restored=restored,
        blocked=dict(sorted({**scan.blocked, **strays}.items())),
    )


def commit_paths(
    disk: StoreDisk, history: StoreHistory, writer: Writer, paths: Iterable[str]
) -> tuple[str, ...]:
    """Commit these files alone, as they are now, without a look at all the others; those that were not committed.

    For who has just written them: what it costs does not grow with the store. A store without a commit is not begun
    this way.
    """
    wanted = sorted(set(paths))
    with disk.locked():
        held = {path: disk.read(path) for path in wanted}
        return history.commit_files(held, message=_message, writer=writer)


@contextmanager
def every_version_kept(
    disk: StoreDisk, history: StoreHistory, writer: Writer, paths: Iterable[str] | None = None
) -> Iterator[None]:
    """Around a write of these files (None: of any): what they held before is committed, then what they hold after.

    Under one lock, or of two writers at once the first one's words would be in no commit. Where git will not, the write
    is a write all the same, and the next sync says what is wrong.
    """
    wanted = None if paths is None else list(paths)

    def commit() -> None:
        with suppress(RaddleError):
            if wanted is None:
                commit_changes(disk, history, writer)
            else:
                commit_paths(disk, history, writer, wanted)

    with disk.locked():
        commit()
        yield
        commit()


def pending_changes(disk: StoreDisk, history: StoreHistory) -> tuple[str, ...]:
    """The paths that the next commit would change."""
    scan = disk.scan()
    head = history.head()
    before = history.tree(head.id) if head is not None else {}
    hidden = withheld(before)
    strays = _strays(scan.files, before)
    held = {path: content_id for path, content_id in scan.files.items() if path not in strays}
    after = {**hidden, **held, **_lost(scan, before, hidden, brings_all_back=False)}
    return tuple(sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path)))


def restore(disk: StoreDisk, history: StoreHistory, lost: Mapping[str, str]) -> tuple[str, ...]:
    """Put files back that are gone from the folder; those that could be."""
    if not lost:
        return ()
    contents = history.contents(lost.values())
    steps = [DiskStep(path=path, expects=None, becomes=content_id) for path, content_id in lost.items()]
    left = {step.path for step in disk.carry_out(steps, contents)}
    return tuple(sorted(lost.keys() - left))


def _strays(files: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Files that somebody laid into the folder and that are no part of a store: `.env` is not pushed by the way.

    What a commit has already is carried on: a newer program may know what it is.
    """
    return {
        path: "it is no part of a store"
        for path in files.keys() - before.keys()
        if place_of(path).kind == "other" and path not in _WELCOME
    }


def _check_removals(before: Mapping[str, str], after: Mapping[str, str], scan: Scan) -> None:
    """A person takes out a few; a folder that is gone with the empty file that keeps it was taken out whole."""
    gone = sum(place_of(path).kind in _TEXTS for path in before.keys() - after.keys())
    is_folder_gone = any(path in before and path not in scan.files for path in KEPT_FOLDERS)
    if not gone or not (gone > _FEW or is_folder_gone):
        return  # before ten thousand files are asked what they are
    kept = sum(place_of(path).kind in _TEXTS for path in before)
    if is_folder_gone or gone * 2 > kept:
        raise ManyRemoved(
            f"{gone:,} of {kept:,} memories and other texts are gone from the folder: a sync would take them from "
            "everybody",
            "`raddle store sync --restore` brings them back; if it is meant: `raddle store sync --remove`",
        )


def _lost(
    scan: Scan, before: Mapping[str, str], hidden: Mapping[str, str], *, brings_all_back: bool
) -> dict[str, str]:
    """What of the last commit is not in the folder, and was removed by nobody who means it."""
    is_whole = PROJECT_FILE in scan.files
    not_here = before.keys() - scan.files.keys() - hidden.keys()
    return {
        path: before[path]
        for path in not_here
        if brings_all_back
        or not is_whole
        or path in KEPT_FOLDERS
        or place_of(path).kind not in _MAY_GO
        or _is_blocked(path, scan.blocked)
    }


def _is_blocked(path: str, blocked: Mapping[str, str]) -> bool:
    """Is something in its place, or in the place of a folder above it, that cannot be taken in?"""
    parts = path.split("/")
    return any("/".join(parts[:depth]) in blocked for depth in range(1, len(parts) + 1))


def _changes(
    disk: StoreDisk, before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, str | bytes | None]:
    wanted = {
        path: content_id
        for path, content_id in after.items()
        if before.get(path) != content_id and is_regular(content_id)
    }
    if after.keys() != before.keys() or wanted:
        _check_not_from_the_future(disk, wanted)
    found = disk.read_many(wanted)  # what changed while we looked is the next commit's
    removed: dict[str, str | bytes | None] = dict.fromkeys(before.keys() - after.keys())
    return {**removed, **found}


def _check_not_from_the_future(disk: StoreDisk, changed: Mapping[str, str]) -> None:
    """NewerFormat where somebody upgraded the store while this raddle was at work; damage is told by `verify`."""
    data = disk.read(PROJECT_FILE) if PROJECT_FILE in changed else None
    if data is not None:
        try:
            decode_project(data)
        except FormatError as error:
            if error.code == "newer_format":
                raise


def _message(changes: Iterable[str]) -> str:
    """One line on what a commit holds, and where: `3 entries: runs/01M8…/phases/build/entries`.

    Where it is makes neighbouring commits alike, and git keeps of each but what is its own: 100 bytes for 162.
    """
    paths = sorted(changes)
    counts = Counter(place_of(path).kind for path in paths)
    told = [f"{count} {_WORDS[kind][count != 1]}" for kind, count in sorted(counts.items()) if kind in _WORDS]
    other = sum(count for kind, count in counts.items() if kind not in _WORDS)
    said = ", ".join([*told, *([f"{other} other file{'s' * (other != 1)}"] if other else [])])
    one = paths[0] if len(paths) == 1 and not counts["entry"] else ""
    where = one or posixpath.commonpath([posixpath.dirname(path) for path in paths])
    if not where:
        return said
    return f"{said}: {where if where.isprintable() and len(where) <= _LONGEST_PLACE else shown(where)}"
