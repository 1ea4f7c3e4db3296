"""The names of one folder or file: as given, without its `..`, and with its links followed.

Owns under which names a rule of the config looks for a path. Were one way in to ask by fewer, a folder that is kept
private would not be where it is reached by a link.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

_WILD = "*?["


def normalised(path: str) -> str:
    """An absolute path without `.`, `..` and doubled slashes; any other as it is. Links are not looked at."""
    if not path.startswith("/"):
        return path
    return "/" + os.path.normpath(path).lstrip("/")


class PathNames:
    """Gives the names of a path: as given, normalised and resolved, each once. One that is relative, or of another
    system, has the name that it is given by alone.

    Each folder is resolved once: use one for the files of one search, and no longer, since links change.
    """

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def __call__(self, path: str) -> tuple[str, ...]:
        """The names of `path`."""
        if not path.startswith("/"):
            return (path,)
        names = dict.fromkeys((path, normalised(path)))
        return tuple(names | dict.fromkeys(map(self._resolved, names)))

    def _resolved(self, path: str) -> str:
        folder, _, name = path.rpartition("/")
        is_link = name in {"", ".", ".."} or os.path.islink(path)  # noqa: PTH114  # a Path is ten times as slow
        if is_link or not folder:
            return _resolved(path)
        if folder not in self._folders:
            self._folders[folder] = _resolved(folder)
        return f"{self._folders[folder].rstrip('/')}/{name}"


def without_detours(path: str) -> str:
    """The path as it is to be kept: normalised; resolved where a link before a `..` makes that another folder."""
    plain, real = normalised(path), _resolved(path)
    return plain if _resolved(plain) == real else real


def _resolved(path: str) -> str:
    """With its links followed, as far as it is there."""
    try:
        return normalised(os.path.realpath(path))
    except (OSError, ValueError):  # a NUL in it, or what is no name in this file system
        return path


def glob_names(globs: Iterable[str]) -> tuple[str, ...]:
    """The globs, and what each is with the folders before its first wildcard normalised and resolved: a process is told
    its real folder only."""
    found: dict[str, None] = {}
    names_of = PathNames()
    for glob in globs:
        plain = glob[: min((at for at in map(glob.find, _WILD) if at >= 0), default=len(glob))]
        folder = plain[: plain.rfind("/")] if len(plain) < len(glob) else plain
        names = names_of(folder) if folder.startswith("/") else (folder,)
        found |= dict.fromkeys((glob, *(name + glob[len(folder) :] for name in names), normalised(glob)))
    return tuple(found)
