"""What the config says of sessions before their first byte is stored: left out, or private from the start.

Owns how a rule is matched, and how the workspace of a session is learned from its first lines, before anybody
reads it in earnest: a second way of either would store what a person asked to leave out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

import msgspec
from msgspec import Struct

NamesOf = Callable[[str], Sequence[str]]
"""Every name that a path has: as given, without its `..`, with its links followed."""

_NAMED = re.compile(rb'"cwd"\s*:\s*("(?:[^"\\]|\\.)*")')


def _as_given(path: str) -> Sequence[str]:
    return (path,)


class Rules(Struct, frozen=True, kw_only=True):
    """`exclude`: globs over a source file's path or its workspace. `private_workspaces`: globs over the workspace;
    `private_remotes`: slugs of the repository (`github.com/me/secret`), globs too, in letters of any case.

    A path is asked about under every name that `names_of` knows it by: were one not looked at, `..` or a link would
    lead around the rule.
    """

    exclude: Sequence[str] = ()
    private_workspaces: Sequence[str] = ()
    private_remotes: Sequence[str] = ()
    names_of: NamesOf = _as_given

    def leaves_out(self, path: str, workspace: str | None = None) -> str:
        """The rule that leaves this file out, in words; empty where none does."""
        names = self._names(self.exclude, path, workspace)
        glob = next((glob for glob in self.exclude if _any_matches(names, glob)), "")
        return f"[import] exclude {glob!r}" if glob else ""

    def makes_private(self, workspace: str | None, remote: str | None) -> bool:
        """Does a rule make threads of this workspace or repository private?"""
        names = self._names(self.private_workspaces, workspace)
        if any(_any_matches(names, glob) for glob in self.private_workspaces):
            return True
        slug = (remote or "").casefold()
        return bool(slug) and any(_matches(slug, glob.casefold()) for glob in self.private_remotes)

    def _names(self, globs: Sequence[str], *paths: str | None) -> list[str]:
        """Nothing where no rule asks: to follow links costs a look at the disk."""
        return [name for path in paths if path for name in self.names_of(path)] if globs else []


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


def _any_matches(names: Iterable[str], glob: str) -> bool:
    return any(_matches(name, glob) for name in names)


def _matches(name: str, glob: str) -> bool:
    """A glob names a folder and all that lies below it, with or without `/**`; `*` also crosses slashes."""
    pattern = glob.rstrip("/").removesuffix("/**") or "/"
    return fnmatchcase(name, pattern) or fnmatchcase(name, pattern.rstrip("/") + "/*")
