"""Where a conversation was left and where the person stands now, read once for whoever goes on with it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from raddle.actions.answering.drift import drift
from raddle.adapters.locks import LockFiles
from raddle.model.errors import NotFound, StorageError
from raddle.model.threads.edits import ROOT
from raddle.model.threads.git_facts import GitSnapshot
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores


class ResumePoint(Struct, frozen=True, kw_only=True):
    """A thread to go on with. `leaf`: the message under which it goes on (None: nothing was said). `folder`: where to
    work: the thread's own workspace where it is on this machine, else where the person stands."""

    thread: Thread
    leaf: str | None
    git: GitSnapshot | None
    folder: Path
    warnings: tuple[str, ...]


def newest_thread(stores: Stores) -> tuple[str, str | None]:
    """The thread that was active last in this workspace, else anywhere: its id, and the workspace that it is of where
    it is another one (empty: of none), else None. NotFound where there is no thread."""
    root = stores.place().workspace_root
    rows = [row for row in stores.index.list() if not row.is_archived]
    rows.sort(key=lambda row: row.last_activity_at, reverse=True)
    for row in rows:
        if row.workspace_root == root:
            return row.id, None
    for row in rows:
        return row.id, row.workspace_root or ""
    raise NotFound(
        "thread", "to resume", "`raddle new TEXT` starts one, `raddle import` brings in what agents have"
    )


@contextlib.contextmanager
def sitting_here(stores: Stores, *, wants_private: bool | None) -> Iterator[str]:
    """While a person talks in this workspace: the thread with nothing in it but what this device typed and did not
    send, the newest; empty where there is none, or somebody else sits here, who may be typing it now.

    `wants_private`: only one that is so; None: none is looked for.
    """
    root = stores.place().workspace_root
    locks = LockFiles(stores.paths.locks_dir / "talks")
    found = ""
    if wants_private is not None:
        with contextlib.suppress(StorageError), locks.held(root, timeout_seconds=0):
            found = _typed_only(stores, root, wants_private=wants_private)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(StorageError):  # then nobody is told that somebody sits here
            stack.enter_context(locks.held(root, shared=True, timeout_seconds=0))
        yield found


def _typed_only(stores: Stores, root: str, *, wants_private: bool) -> str:
    rows = [row for row in stores.index.list() if not row.message_count and row.workspace_root == root]
    for row in sorted(rows, key=lambda row: (row.last_activity_at or row.created_at, row.id), reverse=True):
        thread = stores.threads.load(row.id)
        is_typed = bool(thread.drafts.get(stores.author.device, {}).get(ROOT))
        if is_typed and thread.tree.tip() is None and (thread.is_private or not wants_private):
            return row.id
    return ""


def resume_point(stores: Stores, thread_id: str, *, leaf: str | None = None) -> ResumePoint:
    """Read it. `leaf`: a message of the branch to go on with; None: where this device goes on."""
    from raddle.actions.threads import find_message, leaf_of  # noqa: PLC0415
    from raddle.adapters.git import commits_ahead, read_git  # noqa: PLC0415

    thread = stores.threads.load(thread_id)
    tip = thread.tree.tip()
    at = stores.active_leaf(thread) or (tip.id if tip is not None else None)
    if leaf is not None:
        at = leaf_of(thread, find_message(thread, leaf).id)
    place = stores.place()
    root = thread.plain("workspace_root")
    is_here = isinstance(root, str) and Path(root).is_absolute() and Path(root).is_dir()
    folder = Path(str(root)) if is_here and root != place.workspace_root else Path(place.workspace_root)
    git = place.git if folder == Path(place.workspace_root) else read_git(folder)
    before = thread.plain("git_current_commit_sha")
    commits = None
    if git is not None and git.head is not None and isinstance(before, str):
        commits = commits_ahead(folder, before, git.head)
    return ResumePoint(
        thread=thread,
        leaf=at,
        git=git,
        folder=folder,
        warnings=tuple(drift(thread, git, str(folder), commits)),
    )
