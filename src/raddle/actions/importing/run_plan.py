"""What an import has to do, decided before the first byte is read: new, grown, rewritten or unchanged files.

Pure: facts of the files (a `stat`) against what the ledger remembers. Whether a changed file only grew is a
question to its bytes (`head` and `tail` below), so the plan says *maybe grown* and the reading decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

HEAD_BYTES = 4096
"""How much of a file's beginning, and of what stands before the offset, is hashed to know it again."""


class SourceFile(Struct, frozen=True, kw_only=True):
    """A file of another agent as `stat` shows it. `session`: files of one key become one thread."""

    path: str
    agent: str
    session: str
    size: int
    mtime_ns: int
    inode: int
    is_main: bool = True
    """False for a sub-agent's file, which is read after its session's main file."""


class SourceEntry(Struct, frozen=True, kw_only=True):
    """A row of the ledger: what was read of one source file, and to where."""

    path: str
    agent: str
    session: str
    thread_id: str
    size: int
    mtime_ns: int
    inode: int
    read_to: int
    """Bytes read: up to the end of the last whole record."""
    lines: int
    head: str
    """Hash of the first HEAD_BYTES (or of all that was read, if less)."""
    tail: str
    """Hash of the HEAD_BYTES before `read_to`."""
    generation: int
    """Counts how often the file was found rewritten."""
    problems: int = 0
    left_out: str = ""
    """Why nothing of it was imported (a rule of the config), or empty."""


class Segment(Struct, frozen=True, kw_only=True):
    """Bytes `start` to `end` of one generation of a source file, kept as the blob `sha256`."""

    generation: int
    start: int
    end: int
    sha256: str
    thread_id: str


class SessionPlan(Struct, frozen=True, kw_only=True):
    """The files of one session that have to be read, the main one first; `is_new`: none was ever read."""

    agent: str
    session: str
    files: tuple[SourceFile, ...]
    is_new: bool
    size: int
    """Bytes that may have to be read."""


class Plan(Struct, frozen=True, kw_only=True):
    """Sessions to read, the largest first, and how many have nothing new."""

    sessions: tuple[SessionPlan, ...]
    unchanged: Mapping[str, int]
    """Agent -> sessions with nothing new."""


def plan_import(found: Iterable[SourceFile], known: Mapping[str, SourceEntry]) -> Plan:
    """What to read. A file whose size, time and inode are as remembered is not opened."""
    sessions: dict[tuple[str, str], list[SourceFile]] = {}
    for file in found:
        sessions.setdefault((file.agent, file.session), []).append(file)
    plans: list[SessionPlan] = []
    unchanged: dict[str, int] = {}
    for (agent, session), files in sessions.items():
        changed = [file for file in files if not _is_unchanged(file, known.get(file.path))]
        if not changed:
            unchanged[agent] = unchanged.get(agent, 0) + 1
            continue
        is_new = not any(file.path in known for file in files)
        changed.sort(key=lambda file: (not file.is_main, file.path))
        plans.append(
            SessionPlan(
                agent=agent,
                session=session,
                files=tuple(changed),
                is_new=is_new,
                size=sum(_left(file, known.get(file.path)) for file in changed),
            )
        )
    plans.sort(key=lambda plan: (-plan.size, plan.agent, plan.session))
    return Plan(sessions=tuple(plans), unchanged=unchanged)


def _is_unchanged(file: SourceFile, entry: SourceEntry | None) -> bool:
    return entry is not None and (file.size, file.mtime_ns, file.inode) == (
        entry.size,
        entry.mtime_ns,
        entry.inode,
    )


def _left(file: SourceFile, entry: SourceEntry | None) -> int:
    if entry is None or file.size < entry.read_to:
        return file.size
    return file.size - entry.read_to
