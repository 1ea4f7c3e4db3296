"""What a path that a person named comes to, found out without storing anything: for `raddle import --dry-run`.

Owns the look into a session before it is imported. It ends at the first message, so it costs little where there is
something, and a reading where there is nothing: only a whole reading can tell that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from raddle.actions.importing.importer import Taken
from raddle.actions.importing.registry import agents, importer_of
from raddle.actions.importing.run import mistake
from raddle.actions.importing.run_plan import FileProblem, Plan, SessionPlan, SourceEntry, SourceFile
from raddle.actions.importing.session import SessionRead, read_session
from raddle.actions.importing.source_reading import KeepBytes, SourceError, Sources
from raddle.actions.importing.thread_files import THREAD_FILES
from raddle.adapters.agent_homes.collections import open_source
from raddle.adapters.agent_homes.discovery import name_of
from raddle.adapters.agent_homes.source_bytes import read_whole
from raddle.model.clock import Clock
from raddle.model.errors import FormatError
from raddle.model.ids import MonotonicIds
from raddle.model.threads.edits import Author
from raddle.wiring.import_worker import converted_of, given_over

_THREAD_FILES = {one.agent: one for one in THREAD_FILES}


class Look(NamedTuple):
    """What a look into the sessions at named paths found: keys of those that say nothing, what is wrong with them,
    and the paths from which nothing can be read."""

    in_vain: set[str]
    problems: list[FileProblem]
    unread: list[str]


def look_into(
    named: Mapping[str, Sequence[SourceFile | FileProblem]],
    plan: Plan,
    known: Mapping[str, SourceEntry],
    clock: Clock,
) -> Look:
    """`named`: path -> what was found there. By the same rule as `Finder.unread` of an import."""
    nobody = Author(device="0" * 8, now=clock, new_id=MonotonicIds(clock))  # a look makes no device
    look = Look(set(), [], [])
    troubled = {problem.path for problem in plan.problems}
    left_out = {left.path for left in plan.left_out}
    for path, found in named.items():
        files = {one.path: one for one in found if isinstance(one, SourceFile)}
        is_there = any(one in left_out or is_read(file, known.get(one)) for one, file in files.items())
        for session in plan.sessions:
            if is_there or files.keys().isdisjoint(file.path for file in session.files):
                continue
            problems = problems_in_vain(session, nobody) if session.is_new else None
            is_there = problems is None
            if problems is not None:
                look.in_vain.add(session.key)
                look.problems.extend(problems)
        troubled.update(problem.path for problem in look.problems)
        if not is_there and any(one.path in troubled for one in found):
            look.unread.append(path)
    return look


def is_read(file: SourceFile, entry: SourceEntry | None) -> bool:
    """Is it in a thread, as it is now?"""
    return (
        entry is not None
        and bool(entry.thread_id)
        and (entry.size, entry.mtime_ns, entry.inode) == (file.size, file.mtime_ns, file.inode)
    )


class _Said(Exception):
    """Enough is known: it says something."""


class _Listener:
    """A `Sink` that keeps nothing, and hears no more than the first message."""

    def take(self, taken: Taken, *, anew: bool = False) -> None:
        """Stop at a message."""
        if taken.messages:
            raise _Said

    def begin_segment(self) -> KeepBytes:
        """Source bytes go nowhere."""
        return _nowhere

    def end_segment(self) -> str:
        """No name: nothing was kept."""
        return ""

    def drop_segment(self) -> None:
        """There is nothing to drop."""


def problems_in_vain(plan: SessionPlan, author: Author) -> list[FileProblem] | None:
    """What is wrong with a session that was never read and says nothing; None where it says something."""
    path = plan.files[0].path
    try:
        if plan.agent in _THREAD_FILES:
            _THREAD_FILES[plan.agent].read(read_whole(path), lambda _: None, author)
            return None
        return _problems(plan)
    except _Said:
        return None
    except SourceError as error:
        return [error.problem_of(path)]
    except FormatError as error:
        return [FileProblem(path=path, reason=error.message)]
    except Exception as error:  # noqa: BLE001
        return [mistake(path, error)]


def _problems(plan: SessionPlan) -> list[FileProblem]:
    read = _read(plan)
    other = given_over(plan, read, frozenset(agents()))
    if other is not None:
        _read(other)
    converted = converted_of(importer_of(plan.agent), plan, read)
    of_files = [
        FileProblem(path=file.entry.path, line=problem.line or None, reason=problem.reason)
        for file in converted.files
        for problem in file.problems
    ]
    return [*of_files, *converted.problems]


def _read(plan: SessionPlan) -> SessionRead:
    """Read it from its start; _Said where it says something."""
    importer = importer_of(plan.agent)
    sources = Sources(name_of=lambda file: name_of(importer, file), open=open_source, known=lambda _: None)
    return read_session(importer, plan, sources, _Listener(), links=None, lookup=lambda _: None)


def _nowhere(_: bytes) -> None:
    """Where bytes go that nobody keeps."""
