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

from raddle.actions.recording.recorder import GitNews, Opening, stamp_of
from raddle.config import load_config
from raddle.model.errors import NotFound, RaddleError
from raddle.model.ids import MonotonicIds
from raddle.model.threads.message import Attachment, Message
from raddle.wiring import Place, Stores

if TYPE_CHECKING:
    from raddle.actions.ports import Finding
    from raddle.model.threads.edits import Editor
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
            git=self._news(place.git, last if isinstance(last, str) else None),
        )
        if thread is None:
            return opening
        return msgspec.structs.replace(
            opening, head=self._head(thread, parent), state=thread.agent_state, stamp=stamp_of(thread)
        )

    def _head(self, thread: Thread, parent: str | None) -> str | None:
        from raddle.actions.threads import find_message  # noqa: PLC0415  most sessions are new threads

        if parent is not None:
            return None if parent == ROOT else find_message(thread, parent).id
        tip = thread.tree.tip()
        return self.stores.active_leaf(thread) or (tip.id if tip is not None else None)

    def git_news(self, since: str | None, *, timeout_seconds: float = 10.0) -> GitNews | None:
        """What git says now, with the commits since the commit `since`; None where it says nothing.

        A repository that a rule calls private makes the thread so first. Where that cannot be saved, nothing is
        said of git, and asked again the next time: no thread may name such a repository and not be private.
        """
        from raddle.adapters.git import read_git  # noqa: PLC0415

        snapshot = read_git(self.folder, timeout=timeout_seconds)
        if snapshot is not None and not self._is_kept_private(snapshot.remote):
            return None
        return self._news(snapshot, since)

    def _is_kept_private(self, remote: str | None) -> bool:
        """Is the thread private, where a rule wants that of a repository it was not yet asked about?"""
        if remote != self._remote and self.stores.rules.makes_private(None, remote):
            try:
                self.stores.threads.apply(self.thread_id, _make_private)
            except (
                RaddleError
            ):  # not there yet, or no room: the session's own next step meets that, and says it
                return False
        self._remote = remote
        return True

    def _news(self, snapshot: GitSnapshot | None, since: str | None) -> GitNews | None:
        from raddle.adapters.git import commits_between  # noqa: PLC0415

        if snapshot is None:
            return None
        commits: tuple[str, ...] = ()
        if snapshot.head is not None and since is not None and since != snapshot.head:
            commits = commits_between(self.folder, since, snapshot.head)
        return GitNews(snapshot=snapshot, commits=commits)

    def keep_body(self, text: str) -> tuple[str, tuple[Attachment, ...]]:
        """`text` as a message holds it; one that is too long for that is kept whole as a blob."""
        from raddle.actions.importing.bodies import without_long_body  # noqa: PLC0415

        try:
            message, blob = without_long_body(Message(id="body", role="tool", content=text))
        except UnicodeEncodeError:  # half a character somewhere: the store would mend it in the message
            whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            message, blob = without_long_body(Message(id="body", role="tool", content=whole))
        if blob is None:
            return text, ()
        self.stores.blobs.put(blob.body, compress=True)
        return message.content, message.attachments


def _make_private(editor: Editor) -> None:
    if not editor.thread.is_private:
        editor.set_private(True)


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
