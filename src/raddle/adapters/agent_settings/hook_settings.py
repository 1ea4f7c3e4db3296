"""Which of an agent's settings call raddle as a session goes on: found, put in, taken out.

Nothing is written here: what has to change is given back, so that a person can see it first. Facts about each
agent's settings: `docs/reference/hooks.md`.
"""

from __future__ import annotations

import copy
import functools
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from raddle.adapters.agent_settings import json_edits
from raddle.adapters.agent_settings.settings_file import Change, Edit, SettingsFile, ordinary_bytes
from raddle.adapters.agent_settings.undo_notes import Note, noted, undone
from raddle.model.errors import BrokenFormat, ConflictError, InvalidInput, NotFound

Environment = Callable[[str], str | None]
"""The value of an environment variable that names an agent's home."""

NOTIFY = "notify"
"""Codex's older way: one program, called with the event as its last argument."""

_CODEX, _CODEX_CONFIG = "codex", "config.toml"


class HookedAgent(Struct, frozen=True, kw_only=True):
    """An agent that calls programs. Its settings lie in the folder that `variable` names (`below` it), else `folder`.

    `events`: those that tell that a session went on. `extra`: what an entry holds besides its command.
    """

    agent: str
    label: str
    variable: str
    below: str = ""
    folder: str
    files: tuple[str, ...]
    events: tuple[str, ...]
    extra: dict[str, Any]
    has_comments: bool = False


AGENTS = (
    HookedAgent(
        agent="claude-code",
        label="Claude Code",
        variable="CLAUDE_CONFIG_DIR",
        folder=".claude",
        files=("settings.json",),
        events=("Stop", "SessionEnd"),
        extra={"timeout": 30},
    ),
    HookedAgent(
        agent=_CODEX,
        label="Codex",
        variable="CODEX_HOME",
        folder=".codex",
        files=("hooks.json", _CODEX_CONFIG),
        events=("Stop",),
        extra={"timeout": 30},
    ),
    HookedAgent(
        agent="gemini-cli",
        label="Gemini CLI",
        variable="GEMINI_CLI_HOME",
        below=".gemini",
        folder=".gemini",
        files=("settings.json",),
        events=("AfterAgent", "SessionEnd"),
        extra={"name": "raddle", "timeout": 30_000},
        has_comments=True,
    ),
)


class Entry(NamedTuple):
    """An entry of ours: in which file, at which event (or `NOTIFY`), and what it calls."""

    path: Path
    event: str
    command: str


class _Place(NamedTuple):
    """Where an entry of ours stands: event, which of its groups, place in that."""

    event: str
    group: int
    at: int
    command: str


def folder_of(agent: HookedAgent, environment: Environment, home: Path) -> Path:
    """Where the agent keeps its settings, whether or not it is there."""
    named = environment(agent.variable)
    return Path(named).expanduser().absolute() / agent.below if named else home / agent.folder


def entries(agent: HookedAgent, folder: Path) -> list[Entry]:
    """What of ours is there now. BrokenFormat, naming it, for a file that cannot be read."""
    found = []
    for file in _files(agent, folder):
        found += [Entry(file.path, one.event, one.command) for one in _ours(agent, file)]
        if _is_notified(file):
            found.append(Entry(file.path, NOTIFY, shlex.join(file.plain[NOTIFY])))
    return found


def install(
    agent: HookedAgent, folder: Path, argv: Sequence[str], *, as_notify: bool = False
) -> list[Change]:
    """What has to change so that the agent calls `argv`; nothing where it does. `as_notify`: by Codex's older way.

    NotFound where the agent has no folder, BrokenFormat for a file that cannot be read or changed, ConflictError
    where another program has the one place there is.
    """
    if not folder.is_dir():
        raise NotFound("folder", str(folder), f"start {agent.label} once: it makes it")
    file = _file_for(agent, folder, as_notify=as_notify)
    file.refuse_twice()
    if as_notify:
        _put_notify(file, list(argv))
    else:
        for event in agent.events:
            _put(agent, file, event, shlex.join(argv))
    return file.change()


def remove(agent: HookedAgent, folder: Path, notes: Mapping[str, Note] | None = None) -> list[Change]:
    """What has to change so that no entry of ours is left. `notes`: path -> what the file was before one came.

    A file that nobody touched since then becomes what it was, to the byte; one that was made for our entry goes when
    nothing else is in it.
    """
    changes: list[Change] = []
    for file in _files(agent, folder):
        note = (notes or {}).get(str(file.path))
        if not any(_ours(agent, file)) and not _is_notified(file):
            continue
        before = undone(note, file.data or b"") if note is not None else None
        if note is not None and before is not None:
            changes.append(Change(file.path, file.data, None if note.is_ours else before))
            continue
        changes += _without_ours(agent, file, note)
    return changes


def _without_ours(agent: HookedAgent, file: SettingsFile, note: Note | None) -> list[Change]:
    kept = note.kept if note is not None and not file.is_toml else ()
    for one in reversed(list(_ours(agent, file))):  # so that those before it keep their places
        _take(file, one, kept)
    if _is_notified(file):
        _take_notify(file)
    if note is not None and note.is_ours and file.is_blank:
        return [Change(file.path, file.data, None)]
    return file.change()


def note_of(agent: HookedAgent, change: Change, last: Note | None) -> Note | None:
    """What to note of an install's change; `last`: what was noted of that file before. None where nothing can be."""
    if change.after is None:
        return None
    file = SettingsFile(change.path, change.before, has_comments=agent.has_comments)
    if not any(_ours(agent, file)) and not _is_notified(file):
        hooks = file.plain.get("hooks")
        kept = ("hooks", *hooks) if isinstance(hooks, dict) else ()
        return noted(change.before, change.after, kept)
    if last is None:
        return None  # an entry of ours from before there were notes
    was = undone(last, change.before or b"")
    if was is None:
        return msgspec.structs.replace(last, sha256="", pieces=())
    return msgspec.structs.replace(noted(was, change.after, last.kept), is_ours=last.is_ours)


def notes_on(agent: HookedAgent, folder: Path) -> list[str]:
    """What keeps the agent from calling anybody, or has to be done by the person; one sentence each."""
    notes = []
    for file in _files(agent, folder):
        match file.plain:
            case {"disableAllHooks": True}:
                switch = "disableAllHooks"
            case {"hooksConfig": {"enabled": False}}:
                switch = "hooksConfig.enabled"
            case {"features": {"hooks": False}}:
                switch = "features.hooks"
            case _:
                continue
        notes.append(f"hooks are switched off by {switch} in {file.path}: {agent.label} will not call raddle")
    if agent.agent == _CODEX and any(entry.event != NOTIFY for entry in entries(agent, folder)):
        notes.append(
            "Codex runs a hook once you trust it: it asks at its next start in a terminal (or type /hooks there)"
        )
    return notes


def _files(agent: HookedAgent, folder: Path) -> list[SettingsFile]:
    """The settings files that are there."""
    return [_read(agent, folder / name) for name in agent.files if os.path.lexists(folder / name)]


def _read(agent: HookedAgent, path: Path) -> SettingsFile:
    file = SettingsFile(path, ordinary_bytes(path), has_comments=agent.has_comments)
    hooks = file.plain.get("hooks", {})
    is_read = isinstance(hooks, dict) and all(
        isinstance(hooks.get(event, []), list) for event in agent.events
    )
    groups = [each for event in hooks.values() for each in _listed(event)] if is_read else [None]
    if not all(isinstance(group, dict) for group in groups):
        raise BrokenFormat(
            f"{path} is left as it is: its hooks are not laid out as {agent.label} reads them",
            "mend it by hand, then try again",
        )
    return file


def _file_for(agent: HookedAgent, folder: Path, *, as_notify: bool) -> SettingsFile:
    """Where an entry goes. Codex warns of hooks in both of its files, so what is there already decides."""
    if agent.agent != _CODEX:
        if as_notify:
            raise InvalidInput(f"{agent.label} has no `notify`", "leave --notify out")
        return _read(agent, folder / agent.files[0])
    if not as_notify and os.path.lexists(folder / agent.files[0]):
        file = _read(agent, folder / agent.files[0])
        if file.plain.get("hooks"):
            return file
    return _read(agent, folder / _CODEX_CONFIG)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _ours(agent: HookedAgent, file: SettingsFile) -> Iterator[_Place]:
    for event, groups in file.plain.get("hooks", {}).items():
        for which, group in enumerate(_listed(groups)):
            for at, handler in enumerate(_listed(group.get("hooks"))):
                command = handler.get("command") if isinstance(handler, dict) else None
                if isinstance(command, str) and _calls_us(_split(command), agent.agent):
                    yield _Place(event, which, at, command)


def _split(command: str) -> list[str]:
    """The words of a command that is nothing but words; empty for one that a shell would do more with."""
    try:
        argv = shlex.split(command)
    except ValueError:  # somebody's own line, with a quote left open
        return []
    return argv if shlex.join(argv) == command else []


def _calls_us(argv: Any, agent: str) -> bool:
    """Is it `raddle hooks run AGENT` and nothing else, wherever raddle lay when that was written?"""
    if not isinstance(argv, list) or argv[-3:] != ["hooks", "run", agent]:
        return False
    match argv[:-3]:
        case [str(program)]:
            return program.rpartition("/")[2] == "raddle"
        case [str(), "-P", "-m", "raddle"] | [str(), "-m", "raddle"]:
            return True
        case _:
            return False


def _is_notified(file: SettingsFile) -> bool:
    return file.is_toml and _calls_us(file.plain.get(NOTIFY), _CODEX)


def _put(agent: HookedAgent, file: SettingsFile, event: str, command: str) -> None:
    there = next((one for one in _ours(agent, file) if one.event == event), None)
    if there is not None and there.command == command:
        return
    wanted = copy.deepcopy(file.plain)
    if there is not None:
        wanted["hooks"][event][there.group]["hooks"][there.at]["command"] = command
        file.edit(wanted, [functools.partial(_with_command, file.is_toml, there, command)])
        return
    handler = {"type": "command", "command": command, **agent.extra}
    wanted.setdefault("hooks", {}).setdefault(event, []).append({"hooks": [handler]})
    file.edit(wanted, _ways_in(file, event, handler))


def _with_command(is_toml: bool, there: _Place, command: str, text: str) -> str:
    if is_toml:
        from raddle.adapters.agent_settings import toml_edits  # noqa: PLC0415

        return toml_edits.with_other_command(text, there.event, (there.group, there.at), command)
    place = ("hooks", there.event, there.group, "hooks", there.at, "command")
    return json_edits.with_other_value(text, place, command)


def _ways_in(file: SettingsFile, event: str, handler: dict[str, Any]) -> Iterator[Edit]:
    """How to put a handler in, the neatest way first."""
    hooks = file.plain.get("hooks")
    group = {"hooks": [handler]}
    if file.is_toml:
        from raddle.adapters.agent_settings import toml_edits  # noqa: PLC0415

        if hooks is not None and event in hooks:
            yield lambda text: toml_edits.with_group_beside(text, event, handler)
        yield lambda text: toml_edits.with_group_at_end(text, event, handler)
    elif hooks is None:
        yield lambda text: json_edits.with_value(text, ("hooks",), {event: [group]})
    elif event not in hooks:
        yield lambda text: json_edits.with_value(text, ("hooks", event), [group])
    else:
        yield lambda text: json_edits.with_value(text, ("hooks", event, 0), group)


def _take(file: SettingsFile, one: _Place, kept: Sequence[str]) -> None:
    """Take an entry out, and what it leaves empty: its group, its event, the hooks, but for those that are `kept`."""
    wanted = copy.deepcopy(file.plain)
    path: tuple[str | int, ...] = ("hooks", one.event, one.group, "hooks", one.at)
    for depth in (5, 3, 2, 1):
        path = path[:depth]
        around = _inside(wanted, path[:-1])
        del around[path[-1]]
        if around or (depth in (2, 3) and path[depth - 2] in kept):
            break
    if not file.is_toml:
        file.edit(wanted, [lambda text: json_edits.without(text, path)])
        return
    from raddle.adapters.agent_settings import toml_edits  # noqa: PLC0415

    def by_lines(text: str) -> str:
        return toml_edits.without_lines(text, one.event, one.command)

    try:
        file.edit({"hooks": {}, **wanted}, [by_lines])  # an empty [hooks] of theirs stays
    except BrokenFormat:
        at = (one.group, one.at)
        file.edit(wanted, [by_lines, lambda text: toml_edits.without_handler(text, one.event, at)])


def _inside(plain: Any, path: Sequence[str | int]) -> Any:
    for part in path:
        plain = plain[part]
    return plain


def _put_notify(file: SettingsFile, argv: list[str]) -> None:
    from raddle.adapters.agent_settings import toml_edits  # noqa: PLC0415

    there = file.plain.get(NOTIFY)
    if there and not _calls_us(there, _CODEX):
        raise ConflictError(
            f"{file.path} has another program at `notify`, and there is room for one only",
            "leave --notify out: a hook stands beside others",
        )
    if there != argv:
        file.edit({**file.plain, NOTIFY: argv}, [lambda text: toml_edits.with_notify(text, argv)])


def _take_notify(file: SettingsFile) -> None:
    from raddle.adapters.agent_settings import toml_edits  # noqa: PLC0415

    kept = {key: value for key, value in file.plain.items() if key != NOTIFY}
    file.edit(kept, [toml_edits.without_notify])
