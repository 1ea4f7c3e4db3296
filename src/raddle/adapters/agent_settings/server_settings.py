"""Which of a client's settings register raddle as a server of its agents: found, put in, taken out.

Nothing is written here: what has to change is given back, so that a person can see it first. Facts about each
client's settings: `docs/how-to/give-agents-a-memory.md`.
"""

from __future__ import annotations

import copy
import functools
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from raddle.adapters.agent_settings import json_edits
from raddle.adapters.agent_settings.settings_file import Change, Edit, SettingsFile, ordinary_bytes
from raddle.adapters.agent_settings.undo_notes import Note, noted, undone
from raddle.model.errors import BrokenFormat, ConflictError, NotFound

NAME, VERB = "raddle", "mcp-serve"
_US = re.compile(rf"(?:.*/)?{NAME}(?:\[[\w,-]*\])?(?:(?:@|[=<>~!]=).*)?\Z", re.DOTALL)

Scope = Literal["user", "project"]
Entry: TypeAlias = dict[str, Any]


class Client(Struct, frozen=True, kw_only=True):
    """A program whose agents take servers.

    `project`, `user`: its files below the project and below the user's own folder, the first of each that is there
    counts. That folder is what `variable` names (`below` it), else `folder` below the home. `servers`: the keys that
    lead to them. `is_typed`: an entry says that its server is started; `is_one_list`: with a command in one piece.
    `usual`: where it goes when nobody says.
    """

    name: str
    label: str
    project: tuple[str, ...]
    user: tuple[str, ...]
    variable: str = ""
    below: str = ""
    folder: str
    servers: tuple[str, ...] = ("mcpServers",)
    type_said: str = ""
    is_one_list: bool = False
    is_lenient: bool = False
    """Its JSON may hold comments, and a comma behind a last value."""
    usual: Scope = "project"
    passes: tuple[str, ...] = ()
    """Variables that a server gets of it only where the entry names them."""
    note: str = ""
    """What a person has to know, once it is registered for a project."""


_STEERING = (
    *(
        f"RADDLE_{what}"
        for what in "DATA_DIR CONFIG_DIR STATE_DIR CACHE_DIR STORE SERVER TOKEN OFFLINE".split()
    ),
    *(f"XDG_{what}_HOME" for what in ("CONFIG", "DATA", "STATE", "CACHE")),
    "SSH_AUTH_SOCK",
)
"""What says where raddle's files are, and how git reaches a remote."""


CLIENTS = (
    Client(
        name="claude-code",
        label="Claude Code",
        project=(".mcp.json",),
        user=(".claude.json",),
        variable="CLAUDE_CONFIG_DIR",
        folder="",
        type_said="stdio",
        note="Claude Code asks each person once whether the project's server may start",
    ),
    Client(
        name="codex",
        label="Codex",
        project=(".codex/config.toml",),
        user=("config.toml",),
        variable="CODEX_HOME",
        folder=".codex",
        servers=("mcp_servers",),
        usual="user",
        passes=_STEERING,
        note="Codex reads a project's settings once the project is trusted",
    ),
    Client(
        name="gemini",
        label="Gemini CLI",
        project=(".gemini/settings.json",),
        user=("settings.json",),
        variable="GEMINI_CLI_HOME",
        below=".gemini",
        folder=".gemini",
        is_lenient=True,
        note="Gemini CLI starts a project's server once the folder is trusted",
    ),
    Client(
        name="opencode",
        label="opencode",
        project=("opencode.jsonc", "opencode.json"),
        user=("opencode.jsonc", "opencode.json"),
        variable="XDG_CONFIG_HOME",
        below="opencode",
        folder=".config/opencode",
        servers=("mcp",),
        type_said="local",
        is_one_list=True,
        is_lenient=True,
    ),
    Client(
        name="cursor",
        label="Cursor",
        project=(".cursor/mcp.json",),
        user=("mcp.json",),
        folder=".cursor",
        type_said="stdio",
        is_lenient=True,
        note="Cursor lists it under its MCP settings, where it is switched on",
    ),
    Client(
        name="vscode",
        label="VS Code",
        project=(".vscode/mcp.json",),
        user=("mcp.json",),
        variable="XDG_CONFIG_HOME",
        below="Code/User",
        folder=".config/Code/User",
        servers=("servers",),
        type_said="stdio",
        is_lenient=True,
        note="VS Code asks whether a server may start the first time",
    ),
)


class Place(NamedTuple):
    """A file of a client that may register servers. `root`: the folder that is there in any case."""

    client: Client
    scope: Scope
    root: Path
    path: Path


def place_in_project(client: Client, project: Path) -> Place:
    """The client's file of that project."""
    return Place(client, "project", project, _first_there(project, client.project))


def place_of_user(
    client: Client, environment: Callable[[str], str | None], home: Path, *, is_mac: bool
) -> Place:
    """The client's file of this user. NotFound where the client was never started here."""
    named = environment(client.variable) if client.variable else None
    if is_mac and client.below == "Code/User":
        folder = home / "Library/Application Support" / client.below
    else:
        folder = Path(named).expanduser().absolute() / client.below if named else home / client.folder
    if not folder.is_dir():
        raise NotFound(
            "folder", str(folder), f"start {client.label} once: it makes it; or say --scope project"
        )
    return Place(client, "user", folder, _first_there(folder, client.user))


def _first_there(folder: Path, names: Sequence[str]) -> Path:
    paths = [folder / name for name in names]
    return next((path for path in paths if os.path.lexists(path)), paths[-1])


def other_name(place: Place) -> str:
    """By which other name the client starts raddle's server, as after `raddle store adopt`; empty where by none.
    BrokenFormat for a file that cannot be read."""
    servers = _registered(_read(place), place.client)
    return next((name for name, entry in servers.items() if name != NAME and _starts_us(entry)), "")


def install(place: Place, argv: Sequence[str], *, force: bool = False) -> list[Change]:
    """What has to change so that the client starts `argv`; nothing where it does, by whatever name.

    BrokenFormat for a file that cannot be read or changed; ConflictError where another program goes by that name, but
    for `force`.
    """
    file = _read(place)
    file.refuse_twice()
    there = _entry(file, place.client)
    if there is not None and not _is_ours(there) and not force:
        raise ConflictError(
            f"{place.path} has another server that is called {NAME}", "look at it; --force takes its place"
        )
    if there is None and other_name(place):
        return []
    if there is None:
        _put(file, place.client, _made(place.client, argv))
    elif not _is_ours(there):
        _take(file, place.client, kept=file.plain)
        _put(file, place.client, _made(place.client, argv))
    elif _argv(there)[: len(argv)] != list(argv):
        _put_other_program(file, place.client, there, argv)
    return file.change()


def remove(place: Place, note: Note | None = None) -> list[Change]:
    """What has to change so that raddle is no server there. `note`: what the file was before it was one.

    A file that nobody touched since then becomes what it was, to the byte; one that was made for it goes when nothing
    else is in it.
    """
    if not os.path.lexists(place.path):
        return []
    file = _read(place)
    if not _is_ours(_entry(file, place.client)):
        return []
    before = None if note is None else undone(note, file.data or b"")
    if note is not None and before is not None:
        return [Change(place.path, file.data, None if note.is_ours else before)]
    kept = dict.fromkeys(note.kept) if note is not None else {}
    _take(file, place.client, kept=kept)
    if note is not None and note.is_ours and file.is_blank:
        return [Change(place.path, file.data, None)]
    return file.change()


def note_of(place: Place, change: Change, last: Note | None) -> Note | None:
    """What to note of an install's change; `last`: what was noted of that file before. None where nothing can be."""
    if change.after is None:
        return None
    file = _read(place)
    if not _is_ours(_entry(file, place.client)):
        made = noted(change.before, change.after, tuple(file.plain))
        return msgspec.structs.replace(made, is_folder_ours=not place.path.parent.is_dir())
    if last is None:
        return None
    was = undone(last, change.before or b"")
    if was is None:
        return msgspec.structs.replace(last, sha256="", pieces=())
    made = noted(was, change.after, last.kept)
    return msgspec.structs.replace(made, is_ours=last.is_ours, is_folder_ours=last.is_folder_ours)


def _read(place: Place) -> SettingsFile:
    client = place.client
    file = SettingsFile(
        place.path,
        ordinary_bytes(place.path),
        has_comments=client.is_lenient,
        has_trailing_commas=client.is_lenient,
        by_hand=f"add a server {NAME} that starts `{NAME} {VERB}` by hand",
    )
    around: Any = file.plain
    for key in _servers(file, client):
        around = around.get(key, {})
        if not isinstance(around, dict):
            raise BrokenFormat(
                f"{place.path} is left as it is: its servers are not laid out as {client.label} reads them",
                "mend it by hand, then try again",
            )
    return file


def _servers(file: SettingsFile, client: Client) -> tuple[str, ...]:
    """The keys that lead to the servers. opencode's second version has them one level deeper."""
    match file.plain.get(client.servers[0]):
        case {"servers": dict(inner)} if client.is_one_list and "type" not in inner:
            return (*client.servers, "servers")
        case _:
            return client.servers


def _registered(file: SettingsFile, client: Client) -> dict[str, Any]:
    around: Any = file.plain
    for key in _servers(file, client):
        around = around.get(key, {})
    assert isinstance(around, dict)  # it was read
    return around


def _entry(file: SettingsFile, client: Client) -> Any:
    return _registered(file, client).get(NAME)


def _argv(entry: Any) -> list[Any]:
    command, args = entry.get("command"), entry.get("args", [])
    if isinstance(command, list):
        return command
    return [command, *args] if isinstance(args, list) else [command]


def _is_ours(entry: Any) -> bool:
    """Is it `raddle mcp-serve`, whatever follows, wherever raddle lay when that was written?"""
    if not isinstance(entry, dict):
        return False
    match _argv(entry):
        case [str(program), verb, *_] if verb == VERB:
            return program.rpartition("/")[2] == NAME
        case [str(), "-P", "-m", name, verb, *_]:
            return bool(name == NAME and verb == VERB)
        case _:
            return False


def _starts_us(entry: Any) -> bool:
    """Does it come to `raddle mcp-serve`, also by way of a program that fetches raddle first?"""
    if not isinstance(entry, dict):
        return False
    argv = _argv(entry)
    before = argv[: argv.index(VERB)] if VERB in argv else []
    return any(isinstance(word, str) and _US.match(word) for word in before)


def _made(client: Client, argv: Sequence[str]) -> Entry:
    said = {"type": client.type_said} if client.type_said else {}
    if client.is_one_list:
        return {**said, "command": list(argv)}
    passed = {"env_vars": list(client.passes)} if client.passes else {}
    return {**said, "command": argv[0], "args": list(argv[1:]), **passed}


def _put(file: SettingsFile, client: Client, entry: Entry) -> None:
    keys = _servers(file, client)
    wanted = copy.deepcopy(file.plain)
    around = wanted
    for key in keys:
        around = around.setdefault(key, {})
    around[NAME] = entry
    file.edit(wanted, _ways_in(file, keys, entry))


def _ways_in(file: SettingsFile, keys: tuple[str, ...], entry: Entry) -> Iterable[Edit]:
    if file.is_toml:
        from raddle.adapters.agent_settings import toml_edits  # noqa: PLC0415

        name = (keys[0], NAME)
        yield lambda text: toml_edits.with_table_at_end(text, name, entry)
        yield lambda text: toml_edits.with_table_inside(text, name, entry)
    elif keys[0] in file.plain:
        yield lambda text: json_edits.with_value(text, (*keys, NAME), entry)
    else:
        yield lambda text: json_edits.with_value(text, keys, {NAME: entry})


def _put_other_program(file: SettingsFile, client: Client, there: Entry, argv: Sequence[str]) -> None:
    """For when raddle lies elsewhere now: what a person added to the entry stays."""
    old = _argv(there)
    program = 1 if old[0].rpartition("/")[2] == NAME and old[1] == VERB else 4
    other = _made(client, [*argv, *old[program + 1 :]])
    values: Entry = {key: other[key] for key in ("command", "args") if key in other}
    keys = _servers(file, client)
    wanted = copy.deepcopy(file.plain)
    around = functools.reduce(lambda inside, key: inside[key], keys, wanted)
    around[NAME].update(values)
    if file.is_toml:
        from raddle.adapters.agent_settings import toml_edits  # noqa: PLC0415

        file.edit(wanted, [lambda text: toml_edits.with_values(text, (keys[0], NAME), values)])
        return

    def changed(text: str) -> str:
        for key, value in values.items():
            text = json_edits.with_other_value(text, (*keys, NAME, key), value)
        return text

    file.edit(wanted, [changed])


def _take(file: SettingsFile, client: Client, *, kept: Entry) -> None:
    """Take the entry out, and what it leaves empty, but for what is `kept`."""
    keys = _servers(file, client)
    wanted = copy.deepcopy(file.plain)
    path: tuple[str, ...] = (*keys, NAME)
    while True:
        around = functools.reduce(lambda inside, key: inside[key], path[:-1], wanted)
        del around[path[-1]]
        if around or len(path) == 1 or path[0] in kept:
            break
        path = path[:-1]
    if not file.is_toml:
        file.edit(wanted, [lambda text: json_edits.without(text, path)])
        return
    from raddle.adapters.agent_settings import toml_edits  # noqa: PLC0415

    name = (keys[0], NAME)
    ways: list[Edit] = [
        lambda text: toml_edits.without_table_lines(text, name),
        lambda text: toml_edits.without_table(text, name),
        lambda text: toml_edits.without_table(text, name, is_around_kept=True),
    ]
    try:
        file.edit(wanted, ways)
    except BrokenFormat:
        file.edit({keys[0]: {}, **wanted}, ways)  # an empty table of theirs stays
