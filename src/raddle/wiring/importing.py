"""An import with everything it needs: finds the files, plans, has them read and stored, and says what it did."""

from __future__ import annotations

import contextlib
import difflib
import functools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from raddle.actions.importing.agent_names import SHORT_FOR
from raddle.actions.importing.importer import SourceName
from raddle.actions.importing.known_sources import KnownSources
from raddle.actions.importing.registry import agents as importable
from raddle.actions.importing.registry import importer_of
from raddle.actions.importing.run import ImportReport, Progress, nothing_new, run_import
from raddle.actions.importing.run_plan import (
    FileProblem,
    LeftOut,
    Plan,
    SourceEntry,
    SourceFile,
    plan_import,
    unread,
)
from raddle.actions.importing.thread_files import THREAD_FILES
from raddle.actions.ports import Finding
from raddle.adapters.agent_homes.discovery import Agent, Discovery, files_at
from raddle.adapters.agent_homes.read_only_sqlite import keep_copies_in
from raddle.adapters.files import make_folder
from raddle.adapters.temporaries import sweep_temporaries
from raddle.model.clock import Clock
from raddle.model.errors import BrokenFormat, InvalidInput, NotFound
from raddle.model.threads.query_times import parse_moment
from raddle.wiring import Stores
from raddle.wiring.import_lock import import_lock
from raddle.wiring.purging import finish_purge, unfinished_purges

_LOGS = frozenset(importable())


class PlannedAgent(Struct, frozen=True, kw_only=True):
    """What an import would read of one agent."""

    agent: str
    sessions: int
    size: int


class Preview(Struct, frozen=True, kw_only=True):
    """What an import would read, what it could not, and what it would leave out. `unread`: paths that a person named
    and from which nothing can be read."""

    agents: list[PlannedAgent]
    problems: tuple[FileProblem, ...]
    left_out: tuple[LeftOut, ...]
    unread: tuple[str, ...] = ()


def _untold(_done: int, _total: int, _messages: int) -> None:
    """Progress that nobody watches."""


def dry_run(stores: Stores, what: Sequence[str], *, since: str | None) -> Preview:
    """What an import would read now, and what it would not, and why."""
    try:
        known, purged = _known(stores, revive=False), stores.ledger.purged()
    except BrokenFormat as error:
        path = str(stores.paths.import_ledger)
        reason = error.message.removeprefix(f"the import ledger {path} ")
        stores.report(Finding(path=path, what=f"it {reason}", done=error.hint))
        known, purged = KnownSources({}), set()
    finder = Finder(stores, what, known)
    known |= finder.named_in_vain(known)
    plan = _plan(stores, finder.everything(), known, since=since, purged=purged)
    from raddle.wiring.import_preview import look_into  # noqa: PLC0415

    look = look_into(finder.named, plan, known, stores.clock)
    sessions = [session for session in plan.sessions if session.key not in look.in_vain]
    rows = [
        PlannedAgent(
            agent=agent,
            sessions=sum(session.agent == agent for session in sessions),
            size=sum(session.size for session in sessions if session.agent == agent),
        )
        for agent in sorted({session.agent for session in sessions})
    ]
    return Preview(
        agents=rows,
        problems=(*plan.problems, *look.problems),
        left_out=plan.left_out,
        unread=tuple(look.unread),
    )


def import_sessions(
    stores: Stores,
    what: Sequence[str],
    *,
    since: str | None = None,
    revive: bool = False,
    progress: Progress = _untold,
    changed: Collection[str] | None = None,
) -> ImportReport:
    """Find what is new of the agents or paths named in `what` (all agents where it is empty), and store it.

    `revive`: threads that were purged may come back. `changed`: only these files are looked at, where they are
    among those. StorageError while another import is running.
    """
    with import_lock(stores):
        _clear_away(stores)
        _tell_of_lost_marks(stores)
        known = _known(stores, revive=revive)
        purged = set() if revive else stores.ledger.purged()
        finder = Finder(stores, what, known)
        if changed is None:
            known |= finder.named_in_vain(known)
        found = finder.everything() if changed is None else finder.changed(changed)
        plan = _plan(stores, found, known, since=since, purged=purged)
        make_folder(stores.paths.threads_dir)
        with contextlib.ExitStack() as stack:
            if plan.sessions:
                from raddle.wiring.import_desk import ImportDesk  # a fifth of an import of nothing  # noqa: PLC0415

                desk = ImportDesk(stores, stack, known, agents=finder.wanted, revive=revive)
                stack.callback(desk.tidy)  # also where the run breaks off: what must not stay does not
                stack.push(functools.partial(_clear_broken_off, stores))
                report = run_import(plan, stores.ledger, desk, progress)
            else:
                report = nothing_new(plan)
            if since is None:
                _note_collections(stores, finder.discovery.collections(), report)
            entries = stores.ledger.entries() if finder.named else {}
            report.unread, more = finder.unread(report, KnownSources(entries), stores.clock)
            report.problems += more
            return report


def _clear_broken_off(stores: Stores, kind: type[BaseException] | None, *_: object) -> None:
    """What a run that broke off, or its workers, had prepared, and nobody will put in its place."""
    if kind is not None:
        _sweep(stores)


def _sweep(stores: Stores) -> None:
    """Whatever its age: what is half-made and held by nobody is an import's, and no other one is running."""
    for folder in (stores.paths.threads_dir, stores.paths.blobs_dir, stores.paths.cache_dir):
        sweep_temporaries(folder, older_than_seconds=0)


def _clear_away(stores: Stores) -> None:
    """What processes that were killed left half-made or half-erased."""
    sweep_temporaries(stores.paths.data_dir)
    _sweep(stores)
    for thread_id in unfinished_purges(stores):
        finish_purge(stores, thread_id)
    stores.ledger.hide_purged()


def _tell_of_lost_marks(stores: Stores) -> None:
    count = stores.ledger.unreadable_marks()
    if count:
        what = f"{count} lines of it cannot be read: what they kept away may come back"
        stores.report(Finding(path=str(stores.paths.purge_marks), what=what))


def _known(stores: Stores, *, revive: bool) -> KnownSources:
    """The ledger's entries. What was read into a thread that is not there any more counts as unread, unless the
    thread was purged and is to stay away."""
    entries = stores.ledger.entries()
    if not entries:
        return KnownSources({})
    kept = set(stores.threads.ids()) | (set() if revive else stores.ledger.purged())
    return KnownSources(
        {
            path: entry if not entry.thread_id or entry.thread_id in kept else unread(entry)
            for path, entry in entries.items()
        }
    )


def _plan(
    stores: Stores,
    found: Iterable[SourceFile | FileProblem],
    known: dict[str, SourceEntry],
    *,
    since: str | None,
    purged: set[str],
) -> Plan:
    moment = None
    if since is not None:
        moment = parse_moment(since, stores.clock())
        if moment is None:
            raise InvalidInput(f"{since!r} is not a time", "for example 2026-11-30, 7d or 12h")
    return plan_import(found, known, stores.rules, purged=purged, since=moment)


def _note_collections(stores: Stores, noted: Iterable[SourceEntry], report: ImportReport) -> None:
    """Those of which everything was read: they need not be opened again before they change."""
    missed = [problem.path for problem in report.problems] + [left.path for left in report.left_out]
    whole = [entry for entry in noted if not any(path.startswith(entry.path) for path in missed)]
    stores.ledger.record(((entry, None) for entry in whole), ())


def _agents(names: Collection[str]) -> list[Agent]:
    """Those of these names, in the order in which they are tried and told."""
    logs: list[Agent] = [importer_of(agent) for agent in importable() if agent in names]
    return [*logs, *(agent for agent in THREAD_FILES if agent.agent in names)]


class Finder:
    """Finds the files of the agents and paths named in `what` (of all agents where it is empty)."""

    def __init__(self, stores: Stores, what: Sequence[str], known: dict[str, SourceEntry]) -> None:
        self._environment = stores.config.environment
        self._home = Path(self._environment("HOME") or "~").expanduser()
        names = {*importable(), *(agent.agent for agent in THREAD_FILES)}
        what = [one if os.path.lexists(one) else SHORT_FOR.get(one, one) for one in what]
        self._paths = [one for one in what if one not in names]
        self.named: dict[str, list[SourceFile | FileProblem]] = {}
        """What was found at each path that a person named, of `everything`."""
        self._chosen = _agents(what) if what else _agents(names)
        for agent in self._chosen if what else ():
            if not agent.home.folders:
                raise InvalidInput(
                    f"{agent.agent} keeps nothing on this machine",
                    "name its export: raddle import PATH (a .json or .zip file, or a folder that holds it)",
                )
        for path in self._paths:
            if os.path.sep not in path and not os.path.lexists(path):
                near = difflib.get_close_matches(path.lower(), sorted(names | SHORT_FOR.keys()), n=1)
                meant = f"did you mean {near[0]}? " if near else ""
                raise NotFound(
                    "agent or path",
                    path,
                    f"{meant}agents: {', '.join(sorted(names))}; a path names a file or folder",
                )
        keep_copies_in(stores.paths.cache_dir)
        self.wanted = names if self._paths else {agent.agent for agent in self._chosen}
        """The agents whose sessions are brought in, in whatever folder they lie: at a path, those of all."""
        self.discovery = Discovery(
            known,
            workspace_of=_workspace_of if stores.rules.exclude else None,
            left_alone=stores.paths.data_dir,
        )

    def everything(self) -> Iterator[SourceFile | FileProblem]:
        """All of them."""
        for path in self._paths:
            at_path = self.named.setdefault(path, [])
            for one in self.discovery.at(_agents(self.wanted), path):
                at_path.append(one)
                yield one
        if self._chosen:
            yield from self.discovery.in_homes(self._chosen, self._environment, self._home)

    def named_in_vain(self, known: Mapping[str, SourceEntry]) -> dict[str, SourceEntry]:
        """What lies at the paths that a person named and came to nothing: read again, so that they hear why."""
        return {
            path: unread(entry)
            for path, entry in known.items()
            if entry.problems and not entry.thread_id and any(_lies_in(path, one) for one in self._paths)
        }

    def unread(
        self, report: ImportReport, entries: Mapping[str, SourceEntry], clock: Clock
    ) -> tuple[list[str], list[FileProblem]]:
        """(the paths that a person named and from which nothing came, though nothing kept it away; what is wrong there
        besides that which the report tells)."""
        if not self.named:
            return [], []
        from raddle.wiring.import_preview import Judged, nothing_said  # noqa: PLC0415

        troubled = {problem.path for problem in report.problems}
        left_out = {left.path for left in report.left_out}
        unread: list[str] = []
        problems: list[FileProblem] = []
        for path, found in self.named.items():
            files = [one for one in found if isinstance(one, SourceFile)]
            judged = Judged(files, entries, left_out, clock)
            if judged.is_there:
                continue
            problems += (one for one in judged.problems if one.path not in troubled)
            is_troubled = bool(judged.problems) or any(one.path in troubled for one in found)
            if judged.in_vain and not is_troubled:
                problems.append(nothing_said(judged.in_vain))
            if judged.in_vain or is_troubled:
                unread.append(path)
        return unread, problems

    def changed(self, paths: Iterable[str]) -> Iterator[SourceFile | FileProblem]:
        """Those of these files that are among them, and still there."""
        paths = sorted(paths)
        yield from self.discovery.changed(self._chosen, self._environment, self._home, paths)
        named = [path for path in paths if any(_lies_in(path, one) for one in self._paths)]
        for entry in files_at(named):
            found = self.discovery.at(_agents(self.wanted), entry.path)
            yield from (one for one in found if isinstance(one, SourceFile))

    def folders(self) -> list[Path]:
        """The folders that are there now, and in which all of them lie."""
        homes = self.discovery.homes(self._chosen, self._environment, self._home)
        named = [Path(path).absolute() for path in self._paths]
        return [*homes, *(path if path.is_dir() else path.parent for path in named)]


def _lies_in(path: str, named: str) -> bool:
    whole = str(Path(named).absolute())
    return path == whole or path.startswith(f"{whole}{os.sep}")


def _workspace_of(agent: str, source: SourceName, lines: Iterable[bytes]) -> str:
    """Of a log; a whole thread file says it anywhere, and is asked when it is read."""
    if agent not in _LOGS:
        return ""
    from raddle.wiring.import_worker import workspace_of  # noqa: PLC0415

    return workspace_of(importer_of(agent), source, lines)
