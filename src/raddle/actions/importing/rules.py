"""What the config says of sessions before their first byte is stored: left out, or private from the start.

Owns how a rule is matched, and how the workspace of a session is learned from its first lines, before anybody
reads it in earnest: a second way of either would store what a person asked to leave out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec
from msgspec import Struct

_NAMED = re.compile(rb'"cwd"\s*:\s*("(?:[^"\\]|\\.)*")')


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
        return bool(
            (workspace and any(_matches(workspace, glob) for glob in self.private_workspaces))
            or (remote and any(_matches(remote, glob) for glob in self.private_remotes))
        )


class _Payload(Struct):
    cwd: str | None = None


class _Line(Struct):
    cwd: str | None = None
    payload: _Payload | None = None


_decode = msgspec.json.Decoder(_Line).decode


def workspace_in(lines: Iterable[bytes]) -> str:
    """The workspace that the first lines of a session name: a record's own `cwd`, never one inside a message.

    A line that cannot be read is searched for the first `cwd` in it. Empty where no line names one.
    """
    for line in lines:
        if b'"cwd"' not in line:
            continue
        try:
            found = _decode(line)
        except (msgspec.DecodeError, RecursionError):
            named = _NAMED.search(line)
            workspace = _text(named.group(1)) if named is not None else ""
        else:
            workspace = found.cwd or (found.payload.cwd if found.payload is not None else "") or ""
        if workspace:
            return workspace
    return ""


def _text(literal: bytes) -> str:
    try:
        return msgspec.json.decode(literal, type=str)
    except msgspec.DecodeError:
        return ""


def _matches(name: str, glob: str) -> bool:
    """A glob names a folder and all that lies below it, with or without `/**`; `*` also crosses slashes."""
    pattern = glob.rstrip("/").removesuffix("/**") or "/"
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.rstrip("/") + "/*")
