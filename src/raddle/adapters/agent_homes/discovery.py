"""Finds the session files of other agents, by what each importer declares of its agent's home.

A file that the ledger knows unchanged is only looked at by `stat`; of any other the first bytes are read, so
that its content says which session it belongs to. What cannot be read is named, never passed over in silence.
"""

from __future__ import annotations

import os
import stat as modes
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from raddle.actions.importing.importer import Home, Place, SourceName
from raddle.actions.importing.run_plan import FileProblem, SourceEntry, SourceFile
from raddle.actions.importing.source_reading import SourceError
from raddle.adapters.agent_homes.source_bytes import first_bytes, first_lines, source_error
from raddle.adapters.agent_homes.walking import Entry, Walk, problem_of
from raddle.model.errors import NotFound

_HEAD_BYTES = 1 << 16
_SIDECAR_BYTES = 1 << 16
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

WorkspaceOf = Callable[[str, Iterable[bytes]], str]
"""The workspace that a file of that agent names in its first lines; empty where it is not asked for."""

Found = Iterator[SourceFile | FileProblem]


def name_of(agent: Agent, file: SourceFile) -> SourceName:
    """What a reader is told of a file before its first byte; SourceError where what lies beside it is unreadable."""
    path = Path(file.path)
    beside = path.with_name(path.name.removesuffix(agent.home.suffix) + agent.home.sidecar)
    has_sidecar = bool(agent.home.sidecar) and os.path.lexists(beside)
    return _name(path, file.root, first_bytes(str(beside), _SIDECAR_BYTES) if has_sidecar else b"")


def _name(path: Path, root: str, sidecar: bytes = b"") -> SourceName:
    return SourceName(name=path.name, folders=path.parent.relative_to(root).parts, sidecar=sidecar)


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

    def in_homes(self, agents: Iterable[Agent], environment: Environment, user_home: Path) -> Found:
        """Every session file of these agents on this machine."""
        for agent in agents:
            for folder in _home_folders(agent.home, environment, user_home):
                if isinstance(folder, FileProblem):
                    yield folder
                    continue
                for pattern in agent.home.patterns:
                    for one in Walk(left_alone=self._left_alone).find(str(folder), pattern):
                        yield from self._placed(one, (agent,), str(folder))

    def at(self, agents: Iterable[Agent], path: str) -> Found:
        """The session files at a path that a person named: one file, or all below a folder.

        NotFound where there is nothing that can be read.
        """
        root = _expanded(path).absolute()
        agents = tuple(agents)
        count = 0
        for one in self._named(root, path, agents):
            for found in self._placed(one, agents, "/"):
                count += 1
                yield found
        if not count:
            yield FileProblem(path=str(root), reason="no session of an agent that is known was found here")

    def _named(self, root: Path, path: str, agents: Iterable[Agent]) -> Iterator[Entry | FileProblem]:
        try:
            status = root.stat()
            if modes.S_ISDIR(status.st_mode):
                os.scandir(root).close()
            else:
                first_bytes(str(root), 1)
        except OSError as error:
            told = source_error(error, str(root))
            raise NotFound("readable file or folder", path, told.message) from error
        except SourceError as error:
            raise NotFound("readable file or folder", path, error.message) from error
        if not modes.S_ISDIR(status.st_mode):
            yield Entry(str(root), status)
            return
        for suffix in dict.fromkeys(agent.home.suffix for agent in agents):
            walk = Walk(left_alone=self._left_alone, follows=False)
            yield from walk.find(str(root), f"**/*{suffix}")

    def _placed(self, one: Entry | FileProblem, agents: Iterable[Agent], root: str) -> Found:
        """The file as the first of `agents` that knows it places it; nothing where none does."""
        if isinstance(one, FileProblem):
            yield one
            return
        key = (one.stat.st_dev, one.stat.st_ino)
        if key in self._seen:
            return
        for agent in agents:
            if not one.path.endswith(agent.home.suffix):
                continue
            try:
                found: SourceFile | FileProblem | None = self._place(agent, one, root)
            except SourceError as error:
                found = FileProblem(path=one.path, reason=error.message)
            if found is not None:
                self._seen.add(key)
                yield found
                return

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
            found = agent.place(_name(Path(entry.path), root), first_bytes(entry.path, _HEAD_BYTES))
            if found is None:
                return None
            place, owner = found, agent.agent
            asks = self._workspace_of
            workspace = "" if asks is None else asks(agent.agent, first_lines(entry.path))
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
        )


def _expanded(path: str) -> Path:
    """`Path.expanduser` raises for a person who is not known; here the path then names nothing."""
    return Path(os.path.expanduser(path))  # noqa: PTH111


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
    for folder in named or usual:
        real = os.path.realpath(folder)
        if real in seen:
            continue
        seen.add(real)
        try:
            if modes.S_ISDIR(folder.stat().st_mode):
                yield folder.absolute()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            yield problem_of(error, str(folder))
