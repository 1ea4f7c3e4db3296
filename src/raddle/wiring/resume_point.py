"""Where a conversation was left and where the person stands now, read once for whoever goes on with it."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from raddle.actions.answering.drift import drift
from raddle.model.errors import NotFound
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


def newest_thread(stores: Stores) -> str:
    """The thread that was active last in this workspace, else anywhere. NotFound where there is none."""
    root = stores.place().workspace_root
    rows = [row for row in stores.index.list() if not row.is_archived]
    rows.sort(key=lambda row: row.last_activity_at, reverse=True)
    here = [row for row in rows if row.workspace_root == root]
    for row in (*here, *rows):
        return row.id
    raise NotFound(
        "thread", "to resume", "`raddle new TEXT` starts one, `raddle import` brings in what agents have"
    )


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
