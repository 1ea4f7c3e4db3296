"""The hooks of other agents that call raddle: which there are, and changes of their settings, shown before made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from raddle.adapters.agent_settings import hook_settings
from raddle.adapters.agent_settings.hook_settings import HookedAgent, note_of
from raddle.adapters.agent_settings.settings_file import Change, as_diff, write_change
from raddle.adapters.agent_settings.undo_notes import Note, read_notes, write_notes
from raddle.config import Config
from raddle.model.errors import BrokenFormat, RaddleError, StorageError

NAMES = tuple(agent.agent for agent in hook_settings.AGENTS)


class HookState(Struct, frozen=True, kw_only=True):
    """One agent: its settings' folder, the entries of raddle in there, and what a person should know of it.

    `is_there`: has the agent been used here? `problem`: why its settings cannot be read.
    """

    agent: str
    folder: str
    is_there: bool
    is_installed: bool
    events: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    command: str = ""
    notes: tuple[str, ...] = ()
    problem: str = ""


class Plan(Struct, frozen=True, kw_only=True):
    """What would be written: `diff` as `diff -u` shows it; empty where nothing has to change.

    `notes`: path -> what is to be noted of that file from then on.
    """

    agent: str
    changes: tuple[Change, ...]
    diff: str
    files: tuple[str, ...]
    notes: dict[str, Note] = {}
    notes_file: Path


def states(config: Config) -> list[HookState]:
    """Every agent whose hooks raddle knows."""
    return [_state(agent, config) for agent in hook_settings.AGENTS]


def _state(agent: HookedAgent, config: Config) -> HookState:
    folder = _folder(agent, config)
    try:
        entries, notes = hook_settings.entries(agent, folder), hook_settings.notes_on(agent, folder)
    except (BrokenFormat, StorageError) as error:
        entries, notes, problem = [], [], error.message
    else:
        problem = ""
    return HookState(
        agent=agent.agent,
        folder=str(folder),
        is_there=folder.is_dir(),
        is_installed=bool(entries),
        events=tuple(entry.event for entry in entries),
        files=tuple(dict.fromkeys(str(entry.path) for entry in entries)),
        command=entries[0].command if entries else "",
        notes=tuple(notes) if entries else (),
        problem=problem,
    )


def plan_install(config: Config, name: str, argv: Sequence[str], *, as_notify: bool = False) -> Plan:
    """What to write so that the agent of that name calls `argv`."""
    agent = _named(name)
    changes = hook_settings.install(agent, _folder(agent, config), argv, as_notify=as_notify)
    last = read_notes(config.paths.hook_notes)
    notes = {str(change.path): note_of(agent, change, last.get(str(change.path))) for change in changes}
    return _plan(agent, config, changes, {path: note for path, note in notes.items() if note is not None})


def plan_removal(config: Config, name: str) -> Plan:
    """What to write so that the agent calls raddle no more."""
    agent = _named(name)
    changes = hook_settings.remove(agent, _folder(agent, config), read_notes(config.paths.hook_notes))
    return _plan(agent, config, changes, {})


def carry_out(plan: Plan) -> None:
    """Write it; ConflictError where a file has changed since the plan was made."""
    if not plan.changes:
        return
    last = read_notes(plan.notes_file)
    kept = {path: note for path, note in last.items() if path not in plan.files}
    write_notes(plan.notes_file, kept | plan.notes)
    try:
        for change in plan.changes:
            write_change(change)
    except RaddleError:
        write_notes(plan.notes_file, last)
        raise


def _plan(agent: HookedAgent, config: Config, changes: Sequence[Change], notes: dict[str, Note]) -> Plan:
    return Plan(
        agent=agent.agent,
        changes=tuple(changes),
        diff="".join(map(as_diff, changes)),
        files=tuple(str(change.path) for change in changes),
        notes=notes,
        notes_file=config.paths.hook_notes,
    )


def _named(name: str) -> HookedAgent:
    return next(agent for agent in hook_settings.AGENTS if agent.agent == name)


def _folder(agent: HookedAgent, config: Config) -> Path:
    home = Path(config.environment("HOME") or "~").expanduser()
    return hook_settings.folder_of(agent, config.environment, home)
