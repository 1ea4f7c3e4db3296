"""What git's settings say of a store: whose it is, and where its remote is.

The one place that picks a remote. A second one would ask one for what is pushed to another.
"""

from __future__ import annotations

import re
from pathlib import Path

from raddle.actions.memory.ports import Writer
from raddle.adapters.git import place_of_relative_remotes
from raddle.adapters.memory_repo.store_git import run_store_git
from raddle.model.errors import StorageError

_READ = r"^(remote\..*\.(url|pushurl)|branch\..*\.remote|user\.(name|email)|core\.sshcommand)$"


class StoreSettings:
    """Those of the store at `root`, read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, str] = {}

    def push_url(self, branch: str) -> str | None:
        """Where a push of the branch goes; None: it has no remote. Another address than the one that is asked, where
        the person's git says so."""
        remote = self._remote(branch)
        return self._read().get(f"remote.{remote}.pushurl") or self._url(branch)

    def address(self, branch: str) -> str:
        """What git is told to ask: the remote's name; where that is at a relative path, the whole one. git takes it
        from the folder of the worktree that it stands in, and another worktree's is another place."""
        remote, url = self._remote(branch), self._url(branch)
        if remote is None or url is None:
            raise StorageError("the store has no remote", "give it one: git remote add origin URL")
        if not _is_path(url) or url.startswith(("/", "~")):
            return remote
        return str(place_of_relative_remotes(self._root) / url)

    def is_on_this_machine(self, branch: str) -> bool:
        """Does a push of the branch go to a path?"""
        url = self.push_url(branch) or ""
        return url.startswith("file://") or _is_path(url)

    def tracking(self, branch: str) -> str:
        """The ref that says where the remote's branch was when it was asked the last time."""
        return f"refs/remotes/{self._remote(branch) or 'origin'}/{branch}"

    def identity(self, writer: Writer) -> str:
        """Name and address of who commits, as git writes them."""
        name = self._read().get("user.name") or writer.author or "raddle"
        email = self._read().get("user.email") or f"{writer.node_id}@raddle.invalid"
        return f"{_plain(name) or 'raddle'} <{_plain(email)}>"

    def ssh_command(self) -> str | None:
        """The person's own, for git."""
        return self._read().get("core.sshcommand")

    def _remote(self, branch: str) -> str | None:
        """The branch's remote, else `origin`, else the only one there is."""
        settings = self._read()
        names = [
            name[len("remote.") : -len(".url")]
            for name in settings
            if name.startswith("remote.") and name.endswith(".url")
        ]
        chosen = settings.get(f"branch.{branch}.remote", "")
        if chosen in names:
            return chosen
        return "origin" if "origin" in names else names[0] if len(names) == 1 else None

    def _url(self, branch: str) -> str | None:
        remote = self._remote(branch)
        return None if remote is None else self._read()[f"remote.{remote}.url"]

    def _read(self) -> dict[str, str]:
        if not self._known:
            answer = run_store_git(self._root, ["config", "-z", "--get-regexp", _READ])
            pairs = [entry.partition(b"\n") for entry in answer.stdout.split(b"\0") if entry]
            self._known = {"": ""} | {
                name.decode(errors="surrogateescape"): value.decode(errors="surrogateescape")
                for name, _, value in pairs
            }
        return self._known


def _is_path(url: str) -> bool:
    return bool(url) and "://" not in url and ":" not in url.partition("/")[0]


def _plain(text: str) -> str:
    return re.sub(r"[<>\x00-\x1f\x7f]", "", text).strip()
