"""A folder in which an agent works, joined to the store that its session is recorded into.

Owns how a session learns where it is: which folder counts, what git says of it, whether a rule keeps it on
this machine. A second way would let a session start that the rules call private and that is not.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from raddle.actions.recording.recorder import GitNews, Opening
from raddle.actions.recording.sharing import told_in
from raddle.config import load_config
from raddle.model.errors import NotFound
from raddle.model.ids import MonotonicIds
from raddle.model.threads.message import Attachment
from raddle.wiring import Place, Stores
from raddle.wiring.bodies import keep_body

if TYPE_CHECKING:
    from raddle.actions.ports import Finding
    from raddle.model.threads.git_facts import GitSnapshot
    from raddle.model.threads.thread import Thread

ROOT = "root"


class Workplace:
    """Where a session is recorded. Use `close` when it ends; several threads of a process may share one."""

    def __init__(
        self, stores: Stores, folder: Path, place: Place, thread_id: str, thread: Thread | None
    ) -> None:
        self.stores = stores
        self.folder = folder
        self.place = place
        self.thread_id = thread_id
        self.thread = thread
        """The thread that goes on; None where one begins."""
        self._remote = place.git.remote if place.git is not None else None
        """The repository that the rules were last asked about."""
        self._revision = ""
        """The repository's settings when they were last read for it."""

    def close(self) -> None:
        """Let go of what was opened."""
        self.stores.close()

    def opening(self, *, parent: str | None, is_private: bool, title: str) -> Opening:
        """What goes into the thread with its first step. `parent`: a message of it (its id, the start or end
        of that), or `root`; None: where this device goes on with it."""
        place, thread = self.place, self.thread
        last = thread.plain("git_current_commit_sha") if thread is not None else None
        opening = Opening(
            is_new=thread is None,
            workspace_root=place.workspace_root,
            cwd=place.cwd,
            client_version=place.client_version,
            is_private=is_private or place.is_private,
            title=title,
            git=self._news(place.git, last if isinstance(last, str) else None, ""),
        )
        if thread is None:
            return opening
        return msgspec.structs.replace(
            opening, head=self._head(thread, parent), state=thread.agent_state, told=told_in(thread)
        )

    def _head(self, thread: Thread, parent: str | None) -> str | None:
        from raddle.actions.threads import find_message  # noqa: PLC0415  most sessions are new threads

        if parent is not None:
            return None if parent == ROOT else find_message(thread, parent).id
        tip = thread.tree.tip()
        return self.stores.active_leaf(thread) or (tip.id if tip is not None else None)

    def git_news(self, last: GitNews | None, *, timeout_seconds: float = 10.0) -> GitNews | None:
        """What git says now, with the commits since it said `last`; None where it says nothing."""
        from raddle.adapters.git import read_git  # noqa: PLC0415

        since, log_end = (last.snapshot.head, last.log_end) if last is not None else (None, "")
        return self._news(read_git(self.folder, timeout=timeout_seconds), since, log_end)

    def becomes_private(self, news: GitNews | None) -> bool:
        """Is the folder's repository one by now that a rule calls private, of which this was not answered before?

        To be asked before each step, and its answer to be written with it; `news` is what the step says of git.
        Without `news` git itself is asked only where the repository's settings changed.
        """
        if not self.stores.config.private_remotes:
            return False
        if news is not None:
            return self._is_a_new_secret(news.snapshot.remote)
        from raddle.adapters.git import read_remote, settings_revision  # noqa: PLC0415

        revision = settings_revision(self.folder)
        if revision == self._revision:
            return False
        self._revision = revision
        return self._is_a_new_secret(read_remote(self.folder))

    def _is_a_new_secret(self, remote: str | None) -> bool:
        """What a person said of a repository that is known, stands."""
        is_new, self._remote = remote != self._remote, remote
        return is_new and self.stores.rules.makes_private(None, remote)

    def _news(self, snapshot: GitSnapshot | None, since: str | None, log_end: str) -> GitNews | None:
        """Those on branches that were left again come first: they are no part of the way to this head."""
        from raddle.adapters import git_head_log  # noqa: PLC0415
        from raddle.adapters.git import commits_between  # noqa: PLC0415

        if snapshot is None:
            return None
        end = git_head_log.log_end(self.folder)
        commits: tuple[str, ...] = ()
        if snapshot.head is not None and since is not None and since != snapshot.head:
            commits = commits_between(self.folder, since, snapshot.head)
        moves = git_head_log.moves_since(self.folder, log_end) if log_end else []
        known = {*commits, snapshot.head or "", since or ""}
        aside = git_head_log.commits_made(self.folder, moves, known=known)
        commits = (*(sha for sha in aside if sha not in known), *commits)
        return GitNews(snapshot=snapshot, commits=commits, log_end=end)

    def keep_body(self, text: str) -> tuple[str, tuple[Attachment, ...]]:
        """`text` as a message holds it; one that is too long for that is kept whole as a blob."""
        return keep_body(self.stores, text)


def open_workplace(
    workspace: str | os.PathLike[str] | None,
    *,
    thread: str | None = None,
    report: Callable[[Finding], None],
) -> Workplace:
    """The workplace of a session. InvalidInput for settings that do not read, NotFound for a folder or thread
    that is not there.

    `workspace`: the folder that counts, as given; None: what the settings say, the folder that the thread
    that goes on was in, else the repository around the current folder. `thread`: the one that goes on.
    """
    config, new_id = load_config(), MonotonicIds()
    if workspace is not None:
        folder = Path(workspace).expanduser().absolute()
        if not folder.is_dir():
            raise NotFound("folder", str(folder), "name the folder that the agent works in")
        config = msgspec.structs.replace(config, workspace=folder)
    stores = Stores(config, new_id=new_id, report=report)
    if thread is None:
        place = stores.place()
        return Workplace(stores, config.workspace or Path.cwd(), place, f"T-{new_id()}", None)
    loaded = stores.threads.load(stores.resolve(thread))
    root = loaded.plain("workspace_root")
    if (
        config.workspace is None
        and isinstance(root, str)
        and Path(root).is_absolute()
        and Path(root).is_dir()
    ):
        config = msgspec.structs.replace(config, workspace=Path(root))
        stores = Stores(config, new_id=new_id, report=report)
    place = stores.place()
    return Workplace(stores, config.workspace or Path.cwd(), place, loaded.id, loaded)
