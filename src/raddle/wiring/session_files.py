"""The source files of a thread's session: which of them it is itself, and which generation of each is meant.

Owns the choice between copies: a session may lie in its agent's home, in a backup, and in an export that was brought in
again, and only one of them is what the agent goes on with.
"""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import NamedTuple

from raddle.actions.importing.registry import importer_of
from raddle.actions.importing.run_plan import Segment, SourceEntry
from raddle.wiring import Stores
from raddle.wiring.source_names import home_of, name_beside
from raddle.wiring.source_segments import generations_in
from raddle.wiring.source_worth import homes_of, newest_readable, source_name, turns_read

_HEAD_BYTES = 1 << 16


class SessionFile(NamedTuple):
    """A source file of the thread: its name below its session's folder, its generations. `newest`: the last of them in
    which something can be read."""

    path: str
    is_main: bool
    mtime_ns: int
    newest: int
    generations: dict[int, list[Segment]]
    name: str = ""


def session_files(stores: Stores, thread_id: str, agent: str) -> list[SessionFile]:
    """The session's files, its main one first, of each name one; none where no main one is kept."""
    found = generations_in(stores.ledger.segments_of(thread_id))
    entries = stores.ledger.entries()
    kept: list[SessionFile] = []
    for path, generations in found.items():
        entry = entries.get(path)
        is_main = _is_main(stores, agent, path, entry, generations)
        if is_main is not None:
            newest = newest_readable(stores, agent, path, generations)
            mtime_ns = entry.mtime_ns if entry is not None else 0
            kept.append(SessionFile(path, is_main, mtime_ns, newest, generations))
    mains = [file.path for file in kept if file.is_main]
    if not mains:
        return []
    best = _best(stores, agent, [file for file in kept if file.is_main])
    files = [file._replace(name=name_beside(file.path, home_of(file.path, mains, best))) for file in kept]
    ordered = sorted(files, key=_rank, reverse=True)
    ordered.sort(key=lambda file: (file.path != best, home_of(file.path, mains, best) != best))
    named: dict[str, SessionFile] = {}
    for file in ordered:
        named.setdefault(file.name, file)
    return list(named.values())


def _best(stores: Stores, agent: str, mains: list[SessionFile]) -> str:
    """The path of the copy that is the session. They are read only where there are several."""
    if len(mains) == 1:
        return mains[0].path
    homes = homes_of(stores, agent)
    return max(_worth(stores, agent, homes, file) for file in mains).path


def _is_main(
    stores: Stores,
    agent: str,
    path: str,
    entry: SourceEntry | None,
    generations: dict[int, list[Segment]],
) -> bool | None:
    """Is it a session's own file, and not a sub-agent's? None: it is no file of this agent."""
    if entry is not None:
        return entry.is_main if entry.agent == agent else None
    newest = generations[max(generations)]
    head = b""
    if stores.blobs.size(newest[0].sha256) is not None:
        head = next(stores.blobs.chunks(newest[0].sha256), b"")[:_HEAD_BYTES]
    place = importer_of(agent).place(source_name(path), head)
    return None if place is None or place.other_agent else not place.is_part


class _Worth(NamedTuple):
    """Sorts copies of one session: the file that its agent has now before all others, then the one that says most of
    what the agent wrote, then the larger one, then the one that changed last."""

    is_readable: bool
    is_own: bool
    turns: int
    size: int
    mtime_ns: int
    path: str


def _worth(stores: Stores, agent: str, homes: list[Path], kept: SessionFile) -> _Worth:
    segments = kept.generations[kept.newest]
    turns = len(set(turns_read(stores, agent, kept.path, segments)))
    is_own = any(PurePath(kept.path).is_relative_to(home) for home in homes) and Path(kept.path).is_file()
    return _rank(kept, is_own=is_own, turns=turns)


def _rank(kept: SessionFile, *, is_own: bool = False, turns: int = 0) -> _Worth:
    size = max(segment.end for segment in kept.generations[kept.newest])
    return _Worth(turns > 0, is_own, turns, size, kept.mtime_ns, kept.path)
