"""A machine with two repositories and threads in them, and an agent in the first: for tests of the tools of threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from raddle.actions.threads import start_thread
from raddle.apps.mcp_server.session import Access, Session
from raddle.model.threads.git_facts import GitSnapshot
from tests.mcp_sessions import call, session_in
from tests.memory_clones import git

KILN, LOOM = "example.org/dev/kiln", "example.org/dev/loom"
EVERYTHING = Access(all_repositories=True, include_private=True)


class Place:
    """A machine with two repositories on it; an agent works in the first."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.kiln, self.loom = folder / "kiln", folder / "loom"
        for root, remote in ((self.kiln, KILN), (self.loom, LOOM)):
            root.mkdir()
            git("init", "--quiet", ".", cwd=root)
            with (root / ".git" / "config").open("a") as config:
                config.write(f'[remote "origin"]\n\turl = https://{remote}.git\n')
        self.agent = self.session()

    def session(self, workspace: Path | None = None, access: Access | None = None) -> Session:
        return session_in(workspace or self.kiln, self.home, access=access, env={"RADDLE_OFFLINE": "1"})

    def start(
        self,
        text: str,
        *,
        remote: str | None = KILN,
        root: Path | None = None,
        is_private: bool = False,
        title: str = "",
    ) -> str:
        """A thread that a person began; its id."""
        with self.agent.stores() as stores:
            return start_thread(
                stores.threads,
                text,
                title=title,
                workspace_root=str(root or self.kiln),
                git=None if remote is None else GitSnapshot(remote=remote),
                is_private=is_private,
            )[0]

    def say(self, thread_id: str, role: str, text: str, **fields: Any) -> str:
        """One more turn; its id."""
        with self.agent.stores() as stores:
            return stores.threads.append(thread_id, role, text, **fields).id


def found(session: Session, query: str, **arguments: Any) -> set[str]:
    """The threads that a search finds."""
    return {hit["thread_id"] for hit in call(session, "thread_search", query=query, **arguments)["hits"]}


def said(told: dict[str, Any]) -> list[str]:
    """What the messages of an answer say."""
    return [one["text"] for one in told["messages"]]
