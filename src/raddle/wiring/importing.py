"""An import with everything it needs: finds the files, plans, has them read and stored, and says what it did."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from raddle.actions.importing.registry import IMPORTERS
from raddle.actions.importing.rules import workspace_in
from raddle.actions.importing.run import ImportReport, Progress, run_import
from raddle.actions.importing.run_plan import (
    FileProblem,
    Plan,
    SourceEntry,
    SourceFile,
    plan_import,
    unread,
)
from raddle.actions.importing.thread_files import THREAD_FILES
from raddle.adapters.agent_homes.discovery import Agent, Discovery
from raddle.adapters.files import make_folder, sweep_temporaries
from raddle.model.errors import InvalidInput, NotFound
from raddle.model.threads.query_times import parse_moment
from raddle.wiring import Stores
from raddle.wiring.import_desk import ImportDesk
from raddle.wiring.import_lock import import_lock
from raddle.wiring.purging import finish_purge, unfinished_purges

_LOGS = frozenset(importer.agent for importer in IMPORTERS)


class PlannedAgent(Struct, frozen=True, kw_only=True):
    """What an import would read of one agent."""

    agent: str
    sessions: int
    size: int


def dry_run(stores: Stores, what: Sequence[str], *, since: str | None) -> list[PlannedAgent]:
    """What an import would read now."""
    plan = _plan(stores, what, _known(stores, revive=False), since=since, revive=False)
    agents = dict.fromkeys(session.agent for session in plan.sessions)
    return [
        PlannedAgent(
            agent=agent,
            sessions=sum(session.agent == agent for session in plan.sessions),
            size=sum(session.size for session in plan.sessions if session.agent == agent),
        )
        for agent in agents
    ]


def import_sessions(
    stores: Stores, what: Sequence[str], *, since: str | None, revive: bool, progress: Progress
) -> ImportReport:
    """Find what is new of the agents or paths named in `what` (all agents where it is empty), and store it.

    `revive`: threads that were purged may come back. StorageError while another import is running.
    """
    with import_lock(stores):
        _clear_away(stores)
        known = _known(stores, revive=revive)
        plan = _plan(stores, what, known, since=since, revive=revive)
        make_folder(stores.paths.threads_dir)
        with contextlib.ExitStack() as stack:
            desk = ImportDesk(stores, stack, known, revive=revive)
            stack.callback(desk.tidy)  # also where the run breaks off: what must not stay does not
            return run_import(plan, stores.ledger, desk, progress)


def _clear_away(stores: Stores) -> None:
    """What processes that were killed left half-made or half-erased."""
    stores.blobs.sweep()
    for folder in (stores.paths.data_dir, stores.paths.threads_dir):
        sweep_temporaries(folder)
    for thread_id in unfinished_purges(stores):
        finish_purge(stores, thread_id)


def _known(stores: Stores, *, revive: bool) -> dict[str, SourceEntry]:
    """The ledger's entries. What was read into a thread that is not there any more counts as unread, unless the
    thread was purged and is to stay away."""
    entries = stores.ledger.entries()
    if not entries:
        return {}
    kept = set(stores.threads.ids()) | (set() if revive else stores.ledger.purged())
    return {
        path: entry if not entry.thread_id or entry.thread_id in kept else unread(entry)
        for path, entry in entries.items()
    }


def _plan(
    stores: Stores, what: Sequence[str], known: dict[str, SourceEntry], *, since: str | None, revive: bool
) -> Plan:
    moment = None
    if since is not None:
        moment = parse_moment(since, stores.clock())
        if moment is None:
            raise InvalidInput(f"{since!r} is not a time", "for example 2026-11-30, 7d or 12h")
    purged = set() if revive else stores.ledger.purged()
    return plan_import(_find(stores, what, known), known, stores.rules, purged=purged, since=moment)


def _find(
    stores: Stores, what: Sequence[str], known: dict[str, SourceEntry]
) -> Iterator[SourceFile | FileProblem]:
    agents: tuple[Agent, ...] = (*IMPORTERS, *THREAD_FILES)
    names = {agent.agent for agent in agents}
    discovery = Discovery(
        known,
        workspace_of=_workspace_of if stores.rules.exclude else None,
        left_alone=stores.paths.data_dir,
    )
    for path in what:
        if path not in names:
            if os.path.sep not in path and not os.path.lexists(path):
                raise NotFound(
                    "agent or path",
                    path,
                    f"agents: {', '.join(sorted(names))}; a path names a file or folder",
                )
            yield from discovery.at(agents, path)
    chosen = [agent for agent in agents if agent.agent in what]
    if chosen or not what:
        home = Path(stores.config.environment("HOME") or "~").expanduser()
        yield from discovery.in_homes(chosen or agents, stores.config.environment, home)


def _workspace_of(agent: str, lines: Iterable[bytes]) -> str:
    """Of a log; a whole thread file says it anywhere, and is asked when it is read."""
    return workspace_in(lines) if agent in _LOGS else ""
