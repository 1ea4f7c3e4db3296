"""raddle registered as the server of other programs' agents: where that is, and changes of it, shown before made."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from raddle.adapters.agent_settings import server_settings
from raddle.adapters.agent_settings.server_settings import Client, Place, Scope
from raddle.adapters.agent_settings.settings_file import Change, as_diff, write_change
from raddle.adapters.agent_settings.undo_notes import Note, read_notes, write_notes
from raddle.adapters.files import storage_error
from raddle.config import Config
from raddle.model.errors import InvalidInput, NotFound, RaddleError
from raddle.wiring.memory_places import workspace_of

NAMES = tuple(client.name for client in server_settings.CLIENTS)
_PROJECT_ARGV = (server_settings.NAME, server_settings.VERB)
"""In a file that others get too: each has a raddle of its own on the PATH."""
_PROJECT_MODE = 0o644


class Plan(Struct, frozen=True, kw_only=True):
    """What would be written: `diff` as `diff -u` shows it; empty where nothing has to change. `hints`: what a person
    has to know besides."""

    client: str
    label: str
    places: tuple[Place, ...]
    changes: tuple[Change, ...]
    diff: str
    files: tuple[str, ...]
    notes: dict[str, Note] = {}
    notes_file: Path
    hints: tuple[str, ...] = ()


def plan_install(
    config: Config, name: str, program: Sequence[str], *, scope: Scope | None = None, force: bool = False
) -> Plan:
    """What to write so that the client of that name starts raddle's server. `program`: this raddle, for a file that is
    this machine's alone."""
    client = _named(name)
    place = _place(config, client, scope or client.usual)
    argv = _PROJECT_ARGV if place.scope == "project" else (*program, server_settings.VERB)
    changes = server_settings.install(place, argv, force=force)
    last = read_notes(config.paths.registration_notes).get(str(place.path))
    made = {str(one.path): server_settings.note_of(place, one, last) for one in changes}
    return _plan(
        config,
        client,
        places=[place],
        changes=changes,
        notes={path: note for path, note in made.items() if note is not None},
        hints=_hints(place),
    )


def _hints(place: Place) -> tuple[str, ...]:
    name = server_settings.other_name(place)
    named = (f"it is registered there by the name {name!r}",) if name else ()
    return (*named, *([place.client.note] if place.client.note and place.scope == "project" else []))


def plan_removal(config: Config, name: str, *, scope: Scope | None = None) -> Plan:
    """What to write so that it starts it no more, in that scope or wherever it is registered."""
    client = _named(name)
    places = []
    scopes: tuple[Scope, ...] = ("project", "user") if scope is None else (scope,)
    for each in scopes:
        try:
            places.append(_place(config, client, each))
        except (NotFound, InvalidInput):
            if scope is not None:
                raise
    last = read_notes(config.paths.registration_notes)
    changes = [
        change for place in places for change in server_settings.remove(place, last.get(str(place.path)))
    ]
    return _plan(config, client, places=places, changes=changes)


def carry_out(plan: Plan) -> None:
    """Write it; ConflictError where a file has changed since the plan was made."""
    if not plan.changes:
        return
    last = read_notes(plan.notes_file)
    kept = {path: note for path, note in last.items() if path not in plan.files}
    write_notes(plan.notes_file, kept | plan.notes)
    scopes = {place.path: place.scope for place in plan.places}
    try:
        for change in plan.changes:
            if scopes[change.path] == "project":
                _write_in_project(change, last.get(str(change.path)))
            else:
                write_change(change)
    except RaddleError:
        write_notes(plan.notes_file, last)
        raise


def _write_in_project(change: Change, last: Note | None) -> None:
    folder = change.path.parent
    try:
        folder.mkdir(exist_ok=True)
        write_change(change, new_mode=_PROJECT_MODE)
        if change.after is None and last is not None and last.is_folder_ours and not any(folder.iterdir()):
            folder.rmdir()
    except OSError as error:
        raise storage_error(error, folder, "make the folder") from error


def _named(name: str) -> Client:
    return next(client for client in server_settings.CLIENTS if client.name == name)


def _place(config: Config, client: Client, scope: Scope) -> Place:
    home = Path(config.environment("HOME") or "~").expanduser()
    if scope == "user":
        return server_settings.place_of_user(
            client, config.environment, home, is_mac=sys.platform == "darwin"
        )
    project = _project_of(config)
    if os.path.realpath(home) == os.path.realpath(project):
        raise InvalidInput(
            f"{project} is your home and no project",
            "go to the project, or register it for yourself: --scope user",
        )
    return server_settings.place_in_project(client, project)


def _project_of(config: Config) -> Path:
    """The top of the repository around the workspace, else the workspace."""
    from raddle.adapters.git import find_root  # noqa: PLC0415

    workspace = workspace_of(config)
    return find_root(workspace) or workspace


def _plan(
    config: Config,
    client: Client,
    *,
    places: Sequence[Place],
    changes: Sequence[Change],
    notes: dict[str, Note] | None = None,
    hints: tuple[str, ...] = (),
) -> Plan:
    return Plan(
        client=client.name,
        label=client.label,
        places=tuple(places),
        changes=tuple(changes),
        diff="".join(map(as_diff, changes)),
        files=tuple(str(change.path) for change in changes),
        notes=notes or {},
        notes_file=config.paths.registration_notes,
        hints=hints,
    )
