"""Finds the session files of other agents, by what each importer declares of its agent's home.

A file that the ledger knows unchanged is only looked at by `stat`; of any other the first bytes are read, so
that its content says which session it belongs to.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from raddle.actions.importing.importer import Home, Place, SourceName
from raddle.actions.importing.run_plan import SourceEntry, SourceFile
from raddle.adapters.files import storage_error
from raddle.model.errors import NotFound

_HEAD_BYTES = 1 << 16
_SIDECAR_BYTES = 1 << 16


class Agent(Protocol):
    """What has to be known of an agent to find its files."""

    @property
    def agent(self) -> str:
        """Its name in ids and on the command line."""

    @property
    def home(self) -> Home:
        """Where it keeps its sessions."""

    def place(self, source: SourceName, head: bytes) -> Place | None:
        """Which session a file belongs to; None: to none."""


Environment = Callable[[str], str | None]
"""The value of an environment variable that names an agent's home."""


def home_folders(home: Home, environment: Environment, user_home: Path) -> list[Path]:
    """The folders where this agent's sessions lie on this machine; only those that are there."""
    named = [
        Path(value).expanduser() / below
        for variable, below in home.variables
        if (value := environment(variable))
    ]
    usual = [
        user_home / folder.removeprefix("~/") if folder.startswith("~/") else Path(folder)
        for folder in home.folders
    ]
    folders = named or usual
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def find_in_homes(
    agents: Iterable[Agent], environment: Environment, user_home: Path, known: Mapping[str, SourceEntry]
) -> Iterator[SourceFile]:
    """Every session file of these agents on this machine."""
    for agent in agents:
        for folder in home_folders(agent.home, environment, user_home):
            for entry in _matching(folder, agent.home.patterns):
                file = _placed(agent, folder, entry, known)
                if file is not None:
                    yield file


def find_at(agents: Iterable[Agent], path: str, known: Mapping[str, SourceEntry]) -> list[SourceFile]:
    """The session files at a path that a person named: one file, or all below a folder. NotFound where it is not there."""
    root = Path(path).expanduser().absolute()
    if not root.exists():
        raise NotFound("file or folder", path, "check the path")
    agents = list(agents)
    if root.is_file():
        paths: Iterable[Path] = [root]
        folder = root.parent
    else:
        paths, folder = (Path(entry.path) for entry in _below(root)), root
    found = []
    for at in paths:
        for agent in agents:
            if at.name.endswith(agent.home.suffix):
                file = _placed(agent, folder, _entry(at), known)
                if file is not None:
                    found.append(file)
                    break
    return found


def name_of(agent: Agent, file: SourceFile, folder: Path | None = None) -> SourceName:
    """What a reader is told of a file before its first byte."""
    path = Path(file.path)
    sidecar = b""
    if agent.home.sidecar:
        beside = path.with_name(path.name.removesuffix(agent.home.suffix) + agent.home.sidecar)
        sidecar = _first_bytes(beside, _SIDECAR_BYTES) if beside.is_file() else b""
    folders = path.parent.parts[1:] if folder is None else path.parent.relative_to(folder).parts
    return SourceName(name=path.name, folders=tuple(folders), sidecar=sidecar)


class _Stat:
    """A file's path and `stat`, as `os.DirEntry` gives them."""

    __slots__ = ("path", "stat")

    def __init__(self, path: str, stat: os.stat_result) -> None:
        self.path = path
        self.stat = stat


def _entry(path: Path) -> _Stat:
    return _Stat(str(path), path.stat())


def _placed(agent: Agent, folder: Path, entry: _Stat, known: Mapping[str, SourceEntry]) -> SourceFile | None:
    stat, before = entry.stat, known.get(entry.path)
    if before is not None and (stat.st_size, stat.st_mtime_ns, stat.st_ino) == (
        before.size,
        before.mtime_ns,
        before.inode,
    ):
        return _source_file(entry, agent.agent, before.session, is_main=True)
    path = Path(entry.path)
    name = SourceName(name=path.name, folders=tuple(path.parent.relative_to(folder).parts))
    place = agent.place(name, _first_bytes(path, _HEAD_BYTES))
    if place is None:
        return None
    return _source_file(entry, agent.agent, place.session, is_main=not place.is_part)


def _source_file(entry: _Stat, agent: str, session: str, *, is_main: bool) -> SourceFile:
    return SourceFile(
        path=entry.path,
        agent=agent,
        session=session,
        size=entry.stat.st_size,
        mtime_ns=entry.stat.st_mtime_ns,
        inode=entry.stat.st_ino,
        is_main=is_main,
    )


def _first_bytes(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise storage_error(error, path, "read") from error


def _matching(folder: Path, patterns: Iterable[str]) -> Iterator[_Stat]:
    """Files below `folder` that a pattern names (`*` within a name, `**` for any folders), each once."""
    seen: set[str] = set()
    for pattern in patterns:
        for entry in _walk(str(folder), pattern.split("/")):
            if entry.path not in seen:
                seen.add(entry.path)
                yield entry


def _walk(folder: str, parts: list[str]) -> Iterator[_Stat]:
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _walk(folder, rest)
    for entry in _scan(folder):
        if part == "**":
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path, parts)
        elif fnmatchcase(entry.name, part):
            if rest and entry.is_dir():
                yield from _walk(entry.path, rest)
            elif not rest and entry.is_file():
                yield _Stat(entry.path, entry.stat())


def _below(folder: Path) -> Iterator[_Stat]:
    return _walk(str(folder), ["**", "*"])


def _scan(folder: str) -> list[os.DirEntry[str]]:
    """The entries of a folder by name; none of one that may not be read or went away meanwhile."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except (PermissionError, FileNotFoundError, NotADirectoryError):
        return []
