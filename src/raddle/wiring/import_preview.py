"""What a path that a person named comes to, found out without storing anything: for `raddle import --dry-run`.

Owns the look into a session before it is imported. It ends at the first message, so it costs little where there is
something, and a reading where there is nothing: only a whole reading can tell that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
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
    look = Look(set(), [], [])
    left_out = {left.path for left in plan.left_out}
    for path, found in named.items():
        files = {one.path: one for one in found if isinstance(one, SourceFile)}
        judged = Judged(files.values(), known, left_out, clock)
        look.problems.extend(judged.problems)
        is_there, in_vain = judged.is_there, list(judged.in_vain)
        for session in plan.sessions:
            if is_there or files.keys().isdisjoint(file.path for file in session.files):
                continue
            is_grown_part = not session.is_new and not session.files[0].is_main
            problems = None if is_grown_part else problems_in_vain(session, nobody(clock))
            is_there = problems is None
            if problems is not None:
                look.in_vain.add(session.key)
                look.problems.extend(problems)
                in_vain += session.files
        if is_there:
            continue
        troubled = {problem.path for problem in (*plan.problems, *look.problems)}
        is_troubled = any(one.path in troubled for one in found)
        if in_vain and not is_troubled:
            look.problems.append(nothing_said(in_vain))
        if in_vain or is_troubled:
            look.unread.append(path)
    return look


class Judged:
    """What became of the files at a path that a person named: `is_there` says that something of them is in a thread, or
    was kept away, `in_vain` are those that were read as they are and came to nothing, `problems` what is wrong with
    those that were read into a thread once and say nothing any more."""

    def __init__(
        self,
        files: Iterable[SourceFile],
        entries: Mapping[str, SourceEntry],
        left_out: AbstractSet[str],
        clock: Clock,
    ) -> None:
        self.is_there = False
        self.in_vain: list[SourceFile] = []
        self.problems: list[FileProblem] = []
        for file in files:
            entry = entries.get(file.path)
            if file.path in left_out:
                self.is_there = True
            elif entry is not None and _is_as_it_was(file, entry):
                told = _told_in_vain(file, entry, clock)
                self.is_there |= told is None
                self.problems += told or ()
                self.in_vain += [file] if told is not None else []


def nothing_said(files: Sequence[SourceFile]) -> FileProblem:
    """Of files in which nothing is wrong, either."""
    what = "it is empty" if not files[0].size else "nobody says anything in it"
    more = f", nor in {len(files) - 1:,} more here" if len(files) > 1 else ""
    return FileProblem(path=files[0].path, reason=f"{what}{more}")


def nobody(clock: Clock) -> Author:
    """Who a look reads for: it makes no device."""
    return Author(device="0" * 8, now=clock, new_id=MonotonicIds(clock))


def _told_in_vain(file: SourceFile, entry: SourceEntry, clock: Clock) -> list[FileProblem] | None:
    """What is wrong with a file that was read as it is and says nothing; None where it says something."""
    if not entry.thread_id:
        return []
    if not entry.problems or not file.is_main:
        return None
    plan = SessionPlan(
        agent=file.agent, session=file.session, files=(file,), is_new=True, size=file.size, base=file.base
    )
    return problems_in_vain(plan, nobody(clock))


def _is_as_it_was(file: SourceFile, entry: SourceEntry) -> bool:
    return (entry.size, entry.mtime_ns, entry.inode) == (file.size, file.mtime_ns, file.inode)


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
