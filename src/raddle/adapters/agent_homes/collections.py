"""Sessions of files that hold many: how they stand beside sessions that are files of their own.

Owns the list of such stores, and how a session in one is named, found and opened; the rest of an import takes it
for a file with a curious path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from importlib import import_module
from pathlib import Path

from raddle.actions.importing.collection import SEPARATOR, Collection, Member, Stat
from raddle.actions.importing.run_plan import FileProblem, SourceEntry, SourceFile
from raddle.actions.importing.source_reading import OpenSource, SourceError
from raddle.adapters.agent_homes.source_bytes import COMPRESSED, first_bytes, open_file

_ROOM = "raddle.adapters.agent_homes"
_OPENERS = {"chatgpt": f"{_ROOM}.chatgpt_export", "opencode": f"{_ROOM}.opencode_store"}
"""Agent -> the module whose `open_collection` opens its collections: most imports need none of them."""
_SUFFIXES = {"chatgpt": (".json", ".zip"), "opencode": (".db",)}
_FOLDERS = frozenset(("opencode",))
"""Agents that have collections which are folders."""
COLLECTION_SUFFIXES = (".db", ".zip")
"""How the names of files end that can be nothing but collections."""
_HEAD_BYTES = 4096


def is_collection(agent: str, path: str) -> bool:
    """Is the file a collection of that agent, by its name and its first bytes?"""
    if not path.endswith(_SUFFIXES.get(agent, ())):
        return False
    recognises: Callable[[str, bytes], bool] = import_module(_OPENERS[agent]).is_export
    return recognises(path, first_bytes(path, _HEAD_BYTES))


def why_nothing(path: Path, suffixes: AbstractSet[str]) -> FileProblem:
    """Why nothing was found at a path that is there. `suffixes`: how the names of sessions' own files end."""
    reason = "no session of an agent that is known was found here"
    ends = tuple(sorted({*suffixes, *COLLECTION_SUFFIXES, COMPRESSED}))
    if not path.is_dir() and not path.name.endswith(ends):
        reason += f": the name of one ends in {', '.join(ends)}"
    return _trouble_at(str(path)) or FileProblem(path=str(path), reason=reason)


def _trouble_at(path: str) -> FileProblem | None:
    """What keeps anybody from saying whose a file is whose name only a collection has; None where nothing does."""
    for agent, suffixes in _SUFFIXES.items():
        if path.endswith(tuple(suffix for suffix in suffixes if suffix in COLLECTION_SUFFIXES)):
            check: Callable[[str], None] = import_module(_OPENERS[agent]).check_readable
            try:
                check(path)
            except SourceError as error:
                return error.problem_of(path)
    return None


def folder_at(agent: str, path: str) -> str:
    """The folder at a path that a person named which is a collection of that agent; empty where none is."""
    if agent not in _FOLDERS:
        return ""
    found: Callable[[str], str] = import_module(_OPENERS[agent]).folder_at
    return found(path)


def open_source(file: SourceFile) -> OpenSource:
    """The lines of a session, wherever they lie."""
    if not file.collection:
        return open_file(file.path)
    member = Member(
        session=file.session,
        size=file.size,
        changed_ns=file.mtime_ns,
        workspace=file.workspace,
        where=file.where,
    )
    return open_collection(file.agent, file.collection).open(member)


def open_collection(agent: str, path: str) -> Collection:
    """The collection of that agent at `path`."""
    opened: Callable[[str], Collection] = import_module(_OPENERS[agent]).open_collection
    return opened(path)


class Listing:
    """The sessions of one collection. `stat`: how it looked before they were listed; None where it is unreadable."""

    def __init__(self, agent: str, path: str, root: str, known: Mapping[str, SourceEntry]) -> None:
        self._agent = agent
        self._path = path
        self._root = root
        self._known = known
        self.stat: Stat | None = None

    def files(self) -> Iterator[SourceFile | FileProblem]:
        """Each session as a file; of a collection that did not change, as it was read, without a look inside."""
        try:
            collection = open_collection(self._agent, self._path)
            self.stat = collection.stat()
            before = self._unchanged()
            if before is not None:
                yield from map(self._as_read, before)
                return
            for member in collection.members():
                yield member if isinstance(member, FileProblem) else self._as_file(member)
        except SourceError as error:
            self.stat = None
            yield error.problem_of(self._path)

    def as_entry(self) -> SourceEntry | None:
        """What the ledger notes of the collection itself, once all its sessions are read."""
        if self.stat is None:
            return None
        return SourceEntry(
            path=self._path,
            agent=self._agent,
            session="",
            is_main=False,
            thread_id="",
            size=self.stat.size,
            mtime_ns=self.stat.mtime_ns,
            inode=self.stat.inode,
            read_to=0,
            lines=0,
            head="",
            tail="",
            generation=0,
        )

    def _unchanged(self) -> list[SourceEntry] | None:
        """What was read of it, where it looks as it did then, and all of that is still there."""
        noted = self._known.get(self._path)
        if noted is None or self.stat != Stat(size=noted.size, mtime_ns=noted.mtime_ns, inode=noted.inode):
            return None
        start = self._path + SEPARATOR
        entries = [entry for path, entry in self._known.items() if path.startswith(start)]
        return None if any(entry.size < 0 for entry in entries) else entries

    def _as_read(self, entry: SourceEntry) -> SourceFile:
        return SourceFile(
            path=entry.path,
            agent=entry.agent,
            session=entry.session,
            size=entry.size,
            mtime_ns=entry.mtime_ns,
            inode=entry.inode,
            is_main=entry.is_main,
            root=self._root,
            collection=self._path,
        )

    def _as_file(self, member: Member) -> SourceFile:
        return SourceFile(
            path=f"{self._path}{SEPARATOR}{member.session}",
            agent=self._agent,
            session=member.session,
            size=member.size,
            mtime_ns=member.changed_ns,
            inode=0,
            root=self._root,
            workspace=member.workspace,
            collection=self._path,
            where=member.where,
        )
