"""What the config says of sessions before their first byte is stored: left out, or private from the start."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from msgspec import Struct


class Rules(Struct, frozen=True, kw_only=True):
    """`exclude`: globs over a source file's path or its workspace. `private_workspaces`: globs over the workspace;
    `private_remotes`: slugs of the repository (`github.com/me/secret`), globs too."""

    exclude: Sequence[str] = ()
    private_workspaces: Sequence[str] = ()
    private_remotes: Sequence[str] = ()

    def leaves_out(self, path: str, workspace: str | None = None) -> str:
        """The rule that leaves this file out, in words; empty where none does."""
        for glob in self.exclude:
            if _matches(path, glob) or (workspace and _matches(workspace, glob)):
                return f"[import] exclude {glob!r}"
        return ""

    def makes_private(self, workspace: str | None, remote: str | None) -> bool:
        """Does a rule make threads of this workspace or repository private?"""
        return any(_matches(workspace, glob) for glob in self.private_workspaces if workspace) or any(
            _matches(remote, glob) for glob in self.private_remotes if remote
        )

    @property
    def ask_for_remote(self) -> bool:
        """Does any rule depend on the repository?"""
        return bool(self.private_remotes)


def _matches(name: str | None, glob: str) -> bool:
    """A glob names a folder and all that lies below it; `*` also crosses slashes."""
    if name is None:
        return False
    pattern = glob.rstrip("/")
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern + "/*")
