"""Finds the session files of other agents, by what each importer declares of its agent's home.

A file that the ledger knows unchanged is only looked at by `stat`; of any other the first bytes are read, so
that its content says which session it belongs to. What cannot be read is named, never passed over in silence.
"""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from raddle.actions.importing.importer import Home, Place, SourceName
from raddle.actions.importing.run_plan import FileProblem, SourceEntry, SourceFile
from raddle.actions.importing.source_reading import SourceError
from raddle.adapters.agent_homes.collections import (
    COLLECTION_SUFFIXES,
    Listing,
    folder_at,
    is_collection,
    why_nothing,
)
from raddle.adapters.agent_homes.source_bytes import COMPRESSED, first_bytes, first_lines, source_error
from raddle.adapters.agent_homes.walking import Entry, Walk, problem_of
from raddle.model.errors import NotFound, StorageError

_HEAD_BYTES = 1 << 16
_SIDECAR_BYTES = 1 << 16
_COMPANION_BYTES = 1 << 20
_FOLDERS_ABOVE = 5
"""How far above a session's file its companions are looked for."""
_LARGEST_INODE = (1 << 63) - 1
"""Some file systems use the 64th bit too; SQLite has no room for it."""


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

WorkspaceOf = Callable[[str, SourceName, Iterable[bytes]], str]
"""The workspace that a file of that agent names in its first lines; empty where it is not asked for."""

Found = Iterator[SourceFile | FileProblem]


def name_of(agent: Agent, file: SourceFile) -> SourceName:
    """What a reader is told of a file before its first byte; SourceError where what lies beside it is unreadable."""
    if file.collection:
        return SourceName(
            name=file.session, folders=Path(file.collection).parent.relative_to(file.root).parts
        )
    path = Path(file.path)
    beside = path.with_name(path.name.removesuffix(agent.home.suffix) + agent.home.sidecar)
    has_sidecar = bool(agent.home.sidecar) and os.path.lexists(beside)
    sidecar = first_bytes(str(beside), _SIDECAR_BYTES) if has_sidecar else b""
    return replace(_name(path, file.root), sidecar=sidecar, companions=_companions(agent, path))


def _name(path: Path, root: str) -> SourceName:
    return SourceName(name=path.name.removesuffix(COMPRESSED), folders=path.parent.relative_to(root).parts)


def _companions(agent: Agent, path: Path) -> dict[str, bytes]:
    """The small files around a session's: of each name the nearest one."""
    found = {}
    for name in agent.home.companions:
        around = (str(folder / name) for folder in path.parents[:_FOLDERS_ABOVE])
        nearest = next(filter(os.path.lexists, around), None)
        if nearest is not None:
            found[name] = first_bytes(nearest, _COMPANION_BYTES)
    return found


class Discovery:
    """One search of this machine. A file that is met under two names is told once.

    `known`: the ledger's entries. `left_alone`: a folder that is never searched (raddle's own).
    """

    def __init__(
        self,
        known: Mapping[str, SourceEntry],
        *,
        workspace_of: WorkspaceOf | None = None,
        left_alone: Path | None = None,
    ) -> None:
        self._known = known
        self._workspace_of = workspace_of
        self._left_alone = left_alone.stat() if left_alone is not None and left_alone.is_dir() else None
        self._seen: set[tuple[int, int]] = set()
        self._agents: dict[str, Agent] = {}
        self._listings: list[Listing] = []

    def in_homes(self, agents: Iterable[Agent], environment: Environment, user_home: Path) -> Found:
        """Every session file of these agents on this machine."""
        for agent in self._searched(agents):
            for folder in _home_folders(agent.home, environment, user_home):
                if isinstance(folder, FileProblem):
                    yield folder
                    continue
                yield from self._in_home(agent, folder)
            for path in _named_collections(agent.home, environment, user_home):
                yield from self._listed(agent.agent, path, os.path.dirname(path))  # noqa: PTH120

    def changed(
        self, agents: Iterable[Agent], environment: Environment, user_home: Path, paths: Iterable[str]
    ) -> Found:
        """The same of these files alone, where they lie in one of the homes; those that are gone are passed over."""
        paths = tuple(paths)
        for agent in self._searched(agents):
            for whole in _named_collections(agent.home, environment, user_home):
                if any(path.startswith(whole) for path in paths):
                    yield from self._listed(agent.agent, whole, os.path.dirname(whole))  # noqa: PTH120
            for folder in _home_folders(agent.home, environment, user_home):
                if isinstance(folder, FileProblem):
                    continue
                here = [path for path in paths if path.startswith(f"{folder}{os.sep}")]
                for collection in agent.home.collections:
                    whole = str(folder / collection)
                    if any(path.startswith(whole) for path in here):
                        yield from self._listed(agent.agent, whole, str(folder))
                for entry in files_at(here):
                    if _fits(entry.path, folder, agent.home.patterns):
                        yield from self._placed(entry, (agent,), str(folder))

    def homes(self, agents: Iterable[Agent], environment: Environment, user_home: Path) -> list[Path]:
        """The folders of these agents that are there, each once."""
        found: dict[Path, None] = {}
        for agent in agents:
            folders = _home_folders(agent.home, environment, user_home)
            found |= dict.fromkeys(one for one in folders if isinstance(one, Path))
            named = _named_collections(agent.home, environment, user_home)
            found |= dict.fromkeys(Path(path).parent for path in named)
        return list(found)

    def collections(self) -> list[SourceEntry]:
        """What the ledger may note of the collections that were looked at, once their sessions are read."""
        return [entry for listing in self._listings if (entry := listing.as_entry()) is not None]

    def _searched(self, agents: Iterable[Agent]) -> tuple[Agent, ...]:
        """The agents that are searched for now: a file is given to the one of them that wrote it."""
        agents = tuple(agents)
        self._agents = {agent.agent: agent for agent in agents}
        return agents

    def _in_home(self, agent: Agent, folder: Path) -> Found:
        for pattern in agent.home.patterns:
            for one in Walk(left_alone=self._left_alone, is_home=True).find(str(folder), pattern):
                yield from self._placed(one, (agent,), str(folder))
        for name in agent.home.collections:
            if os.path.lexists(folder / name):
                yield from self._listed(agent.agent, str(folder / name), str(folder))

    def _listed(self, agent: str, path: str, root: str) -> Found:
        """The sessions of a collection."""
        listing = Listing(agent, path, root, self._known)
        self._listings.append(listing)
        yield from listing.files()

    def at(self, agents: Iterable[Agent], path: str) -> Found:
        """The session files at a path that a person named: one file, or all below a folder.

        NotFound where there is nothing that can be read.
        """
        root = _absolute(_expanded(path))
        agents = self._searched(agents)
        count = 0
        for agent in agents:
            folder = folder_at(agent.agent, str(root))
            for found in self._listed(agent.agent, folder, "/") if folder else ():
                count += 1
                yield found
            if folder == str(root):
                return
        for one in self._named(root, path, agents):
            count += isinstance(one, Entry) and _key_of(one) in self._seen  # found at another path already
            for found in self._placed(one, agents, "/"):
                count += 1
                yield found
        if not count:
            yield why_nothing(root, {suffix for agent in agents for suffix in agent.home.suffixes})

    def _named(self, root: Path, path: str, agents: Iterable[Agent]) -> Iterator[Entry | FileProblem]:
        try:
            status = root.stat()
            if modes.S_ISDIR(status.st_mode):
                os.scandir(root).close()
            else:
                first_bytes(str(root), 1)
        except OSError as error:
            raise _unreadable(path, source_error(error, str(root))) from error
        except SourceError as error:
            raise _unreadable(path, error) from error
        if not modes.S_ISDIR(status.st_mode):
            yield Entry(str(root), status)
            return
        suffixes = [suffix for agent in agents for suffix in agent.home.suffixes]
        for suffix in dict.fromkeys(
            (*suffixes, *(each + COMPRESSED for each in suffixes), *COLLECTION_SUFFIXES)
        ):
            walk = Walk(left_alone=self._left_alone)
            yield from walk.find(str(root), f"**/*{suffix}")

    def _placed(self, one: Entry | FileProblem, agents: Iterable[Agent], root: str) -> Found:
        """The file as the first of `agents` that knows it places it; nothing where none does."""
        if isinstance(one, FileProblem):
            yield one
            return
        key = _key_of(one)
        if key in self._seen:
            return
        holder = self._holder(one, agents)
        if holder:
            self._seen.add(key)
            yield from self._listed(holder, one.path, root)
            return
        for agent in agents:
            if not one.path.removesuffix(COMPRESSED).endswith(agent.home.suffixes):
                continue
            try:
                found: SourceFile | FileProblem | None = self._place(agent, one, root)
            except SourceError as error:
                found = error.problem_of(one.path)
            if found is not None:
                self._seen.add(key)
                yield found
                return

    def _holder(self, entry: Entry, agents: Iterable[Agent]) -> str:
        """The agent that the file is a collection of; empty where it is none."""
        before = self._known.get(entry.path)
        if before is not None and before.session:
            return ""
        try:
            return next((agent.agent for agent in agents if is_collection(agent.agent, entry.path)), "")
        except SourceError:
            return ""  # what is wrong with it is told when it is placed

    def _place(self, agent: Agent, entry: Entry, root: str) -> SourceFile | None:
        stat, before = entry.stat, self._known.get(entry.path)
        stamp = stat.st_size, stat.st_mtime_ns, stat.st_ino & _LARGEST_INODE
        if before is not None and stamp == (before.size, before.mtime_ns, before.inode):
            place, owner, workspace = (
                Place(session=before.session, is_part=not before.is_main),
                before.agent,
                "",
            )
        else:
            path = Path(entry.path)
            name = _name(path, root)
            head = first_bytes(entry.path, _HEAD_BYTES)
            reader = self._agents.get(before.agent) if before is not None and before.thread_id else None
            found = self._owner(reader, name, head) if reader is not None else None
            found = found or self._owner(agent, name, head)
            if found is None:
                return None
            agent, place = found
            owner, asks, workspace = agent.agent, self._workspace_of, ""
            if asks is not None:
                name = replace(name, companions=_companions(agent, path))
                workspace = asks(owner, name, first_lines(entry.path))
        return SourceFile(
            path=entry.path,
            agent=owner,
            session=place.session,
            size=stamp[0],
            mtime_ns=stamp[1],
            inode=stamp[2],
            is_main=not place.is_part,
            root=root,
            workspace=workspace,
            base=place.base,
        )

    def _owner(self, agent: Agent, name: SourceName, head: bytes) -> tuple[Agent, Place] | None:
        """The agent whose file it is, and its place there: another one's file may lie in the folder of this one."""
        found = agent.place(name, head)
        if found is None:
            return None
        other = self._agents.get(found.other_agent)
        elsewhere = other.place(name, head) if other is not None else None
        return (agent, found) if other is None or elsewhere is None else (other, elsewhere)


def _key_of(entry: Entry) -> tuple[int, int]:
    return entry.stat.st_dev, entry.stat.st_ino


def _unreadable(path: str, error: SourceError) -> NotFound:
    return NotFound("readable file or folder", path, f"{error.reason}: {error.hint}")


def _absolute(path: Path) -> Path:
    """The same from the root; StorageError where it starts in a current folder that is gone."""
    try:
        return path.absolute()
    except OSError as error:
        raise StorageError("the current folder is gone", "go to one that is there, then try again") from error


def files_at(paths: Iterable[str]) -> Iterator[Entry]:
    """Those of the paths that are files, and all files in those that are folders: what was written into a new
    folder before anybody watched it is told by nobody."""
    for path in paths:
        names = [path]
        if os.path.isdir(path):  # noqa: PTH112
            names = [os.path.join(top, name) for top, _, files in os.walk(path) for name in files]  # noqa: PTH118
        for name in names:
            try:
                status = os.stat(name)  # noqa: PTH116
            except OSError:
                continue  # it went away again
            if modes.S_ISREG(status.st_mode):
                yield Entry(name, status)


def _fits(path: str, folder: Path, patterns: Iterable[str]) -> bool:
    """Would a search of `folder` have met the file?"""
    parts = list(Path(path).relative_to(folder).parts)
    return any(_matches(parts, pattern.split("/")) for pattern in patterns)


def _matches(parts: list[str], pattern: list[str]) -> bool:
    if not pattern or not parts:
        return not pattern and not parts
    if pattern[0] == "**":
        return _matches(parts, pattern[1:]) or (len(parts) > 1 and _matches(parts[1:], pattern))
    return fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def _expanded(path: str) -> Path:
    """`Path.expanduser` raises for a person who is not known; here the path then names nothing."""
    return Path(os.path.expanduser(path))  # noqa: PTH111


def _named_collections(home: Home, environment: Environment, user_home: Path) -> list[str]:
    """The collections that variables name, those that are there and in none of the usual places."""
    values = [value for name in home.collection_variables if (value := environment(name))]
    if not values:
        return []
    folders = [one for one in _home_folders(home, environment, user_home) if isinstance(one, Path)]
    usual = {os.path.realpath(folder / name) for folder in folders for name in home.collections}
    found: dict[str, str] = {}
    for value in values:
        named = _expanded(value)
        for path in [named] if named.is_absolute() else [folder / named for folder in folders]:
            real = os.path.realpath(path)
            if real not in usual and os.path.lexists(path):
                found.setdefault(real, str(path))
    return list(found.values())


def _home_folders(home: Home, environment: Environment, user_home: Path) -> Iterator[Path | FileProblem]:
    """The folders where this agent's sessions lie on this machine, those that are there, each once."""
    named = [
        _expanded(value) / below for variable, below in home.variables if (value := environment(variable))
    ]
    usual = [
        user_home / folder.removeprefix("~/") if folder.startswith("~/") else Path(folder)
        for folder in home.folders
    ]
    seen: set[str] = set()
    for folder in map(_absolute, named or usual):
        real = os.path.realpath(folder)
        if real in seen:
            continue
        seen.add(real)
        try:
            if modes.S_ISDIR(folder.stat().st_mode):
                yield folder
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            yield problem_of(error, str(folder))
