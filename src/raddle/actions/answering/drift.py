"""What changed around a conversation since it was left: one line for each thing that whoever goes on should know."""

from __future__ import annotations

from collections.abc import Iterator

from raddle.model.threads.git_facts import GitSnapshot
from raddle.model.threads.thread import Thread

_SHORT = 7


def drift(thread: Thread, here: GitSnapshot | None, workspace: str, commits: int | None) -> Iterator[str]:
    """The differences between where the thread was left and `here`, in `workspace`.

    `commits`: how many HEAD has that the thread's last one has not; None where nobody can tell.
    """
    root = thread.plain("workspace_root")
    if isinstance(root, str) and root and root != workspace:
        yield f"another workspace: it was in {root}, this is {workspace}"
    if here is None:
        if thread.plain("git_current_commit_sha"):
            yield "no git here: it was in a repository"
        return
    remote = thread.plain("git_remote_url")
    if remote and here.remote and remote != here.remote:
        yield f"another repository: it was {remote}, this is {here.remote}"
    branch = thread.plain("git_branch")
    if branch and branch != here.branch:
        yield f"another branch: it was {branch}, this is {here.branch or 'no branch (HEAD is detached)'}"
    yield from _moved(thread.plain("git_current_commit_sha"), here.head, commits)
    if thread.plain("git_end_dirty") is False and here.is_dirty:
        yield "the working tree was clean, and has changes now"


def _moved(before: object, now: str | None, commits: int | None) -> Iterator[str]:
    if not isinstance(before, str) or not before or now is None or before == now:
        return
    if commits:
        far = f", {commits} commit{'s' if commits > 1 else ''} on"
    else:
        far = ", an earlier commit" if commits == 0 else ""
    yield f"HEAD moved: it was {before[:_SHORT]}, this is {now[:_SHORT]}{far}"
