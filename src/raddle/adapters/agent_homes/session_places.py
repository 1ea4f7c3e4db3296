"""Where an agent on this machine looks for a session: the place of one that is there, and of one that is new.

Owns what each agent makes of a folder's path when it looks. Nothing of an agent's is changed here: a new file gets a
name that nothing has, and the one small file besides (`.project_root`, by which Gemini CLI knows a project's folder)
is made only where there is none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
from msgspec import Struct

from raddle.actions.importing.gemini_cli_facts import PROJECT_ROOT, PROJECTS, Projects
from raddle.actions.importing.importer import Home
from raddle.actions.importing.source_reading import SourceError
from raddle.actions.resuming.gemini_cli import project_hash
from raddle.adapters.agent_homes.opencode_database import DatabaseRows
from raddle.adapters.files import NewFile, make_folder
from raddle.model.clock import format_time

_HEAD_BYTES = 1 << 14
_ROLLOUT = re.compile(r"rollout-(\d{4})-(\d\d)-(\d\d)T.*\.jsonl\Z")
_COMPRESSED = ".zst"

Environment = Callable[[str], str | None]


class Present(NamedTuple):
    """A session that is there. `workspace`: the folder that it is known to belong to, as far as its place tells."""

    path: Path
    workspace: str = ""


class Places(Protocol):
    """Where one agent looks. `session_id`: with no `/` in it, and not empty."""

    def find(self, session_id: str) -> Present | None:
        """The session of that id, wherever the agent has it."""

    def is_found_from(self, path: Path, workspace: str) -> bool:
        """Does the agent find the session at `path` when it is started in that folder?"""

    def place(self, session_id: str, workspace: str, began: int, name: str = "") -> Path:
        """Where a new one of that workspace belongs; its folder is made. `began`: microseconds; `name`: what its file
        was called elsewhere."""

    def beside(self, main: Path, name: str) -> Path | None:
        """Where another file of the session at `main` belongs, which is called `name` beside it; None: nowhere."""


def home_folder(home: Home, environment: Environment, user_home: Path) -> Path:
    """The folder where an agent keeps its sessions on this machine, whether it is there or not."""
    for variable, below in home.variables:
        if value := environment(variable):
            return Path(os.path.abspath(Path(value).expanduser())) / below  # noqa: PTH100  links stay as they are
    folders = [
        user_home / folder.removeprefix("~/") if folder.startswith("~/") else Path(folder)
        for folder in home.folders
    ]
    return next((folder for folder in folders if folder.is_dir()), folders[0])


class ClaudeCodePlaces:
    """`projects`: a folder for each working folder, named for its path."""

    def __init__(self, home: Path) -> None:
        self._projects = home

    def find(self, session_id: str) -> Present | None:
        """A file of that name in any project's folder."""
        found = sorted(self._projects.glob(f"*/{_plain(session_id)}.jsonl"))
        return Present(found[0]) if found else None

    def is_found_from(self, path: Path, workspace: str) -> bool:
        """In the folder of that path alone."""
        return path.parent.name == project_name(workspace)

    def place(self, session_id: str, workspace: str, began: int, name: str = "") -> Path:
        """In the folder of that path."""
        folder = self._projects / project_name(workspace)
        make_folder(folder)
        return folder / f"{session_id}.jsonl"

    def beside(self, main: Path, name: str) -> Path | None:
        """A sub-agent's file, in the folder that is named for the session."""
        _, _, inside = name.partition("/")
        if not inside:
            return None
        path = main.with_suffix("") / inside
        make_folder(path.parent)
        return path


def project_name(workspace: str) -> str:
    """How Claude Code names the folder of a path."""
    return re.sub(r"[^A-Za-z0-9]", "-", workspace)


class CodexPlaces:
    """`sessions/YYYY/MM/DD`; what was archived is in a folder of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def find(self, session_id: str) -> Present | None:
        """A rollout of that id."""
        for folder in ("sessions", "archived_sessions"):
            for suffix in (".jsonl", f".jsonl{_COMPRESSED}"):
                pattern = f"{folder}/**/rollout-*-{_plain(session_id)}{suffix}"
                if found := sorted(self._home.glob(pattern)):
                    return Present(found[0])
        return None

    def is_found_from(self, path: Path, workspace: str) -> bool:
        """From any folder, but not in the archive."""
        return path.is_relative_to(self._home / "sessions") and path.suffix != _COMPRESSED

    def place(self, session_id: str, workspace: str, began: int, name: str = "") -> Path:
        """In the folder of its day."""
        name = name.removesuffix(_COMPRESSED)
        if _ROLLOUT.match(name) and name.endswith(f"-{session_id}.jsonl"):
            return self._dated(name)
        stamp = format_time(began)[:19].replace(":", "-")
        return self._dated(f"rollout-{stamp}-{session_id}.jsonl")

    def beside(self, main: Path, name: str) -> Path | None:
        """Another rollout, in the folder of its own day."""
        return self._dated(Path(name).name.removesuffix(_COMPRESSED))

    def _dated(self, name: str) -> Path:
        found = _ROLLOUT.match(name)
        folder = self._home.joinpath("sessions", *(found.groups() if found is not None else ()))
        make_folder(folder)
        return folder / name


class GeminiCliPlaces:
    """`tmp`: a folder for each project, which `.project_root` says the path of; older ones are named for its hash."""

    def __init__(self, home: Path) -> None:
        self._tmp = home

    def find(self, session_id: str) -> Present | None:
        """A session file whose header names that id."""
        wanted = session_id.encode()
        for path in sorted(self._tmp.glob(f"*/chats/session-*-{_plain(session_id[:8])}.json*")):
            with path.open("rb") as file:
                if wanted in file.read(_HEAD_BYTES):
                    return Present(path, _text_of(path.parent.parent / PROJECT_ROOT))
        return None

    def is_found_from(self, path: Path, workspace: str) -> bool:
        """From the project's own folder."""
        project = path.parent.parent
        return _text_of(project / PROJECT_ROOT) == workspace or project.name == project_hash(workspace)

    def place(self, session_id: str, workspace: str, began: int, name: str = "") -> Path:
        """In the project's folder."""
        chats = self._project(workspace) / "chats"
        make_folder(chats)
        ending = f"-{session_id[:8]}{'.json' if name.endswith('.json') else '.jsonl'}"
        if name.startswith("session-") and name.endswith(ending):
            return chats / name
        stamp = format_time(began)[:16].replace(":", "-")
        return chats / f"session-{stamp}{ending}"

    def beside(self, main: Path, name: str) -> Path | None:
        """A sub-agent's file, below the session's folder. What lies beside the session are others of the same id, of
        which the program would take one that says less."""
        if "/" not in name:
            return None
        path = main.parent / name
        make_folder(path.parent)
        return path

    def _project(self, workspace: str) -> Path:
        """The folder in which Gemini CLI looks when it is started in `workspace`."""
        noted = self._noted()
        named = self._tmp / noted[workspace] if workspace in noted else None
        if named is not None and _text_of(named / PROJECT_ROOT) in ("", workspace):
            return named
        for marker in sorted(self._tmp.glob(f"*/{PROJECT_ROOT}")):
            if _text_of(marker) == workspace:
                return marker.parent
        by_hash = self._tmp / project_hash(workspace)
        # What an older version kept there is taken over at the next start, but only into a folder that is new.
        return by_hash if by_hash.is_dir() else self._claimed(workspace, noted.values())

    def _claimed(self, workspace: str, taken: Iterable[str]) -> Path:
        """A new folder for the project, named and marked as the program does it."""
        base = re.sub(r"-+", "-", re.sub(r"[^a-z0-9]", "-", Path(workspace).name.lower())).strip("-")
        names = set(taken)
        for number in count():
            name = f"{base or 'project'}-{number}" if number else base or "project"
            folder, history = self._tmp / name, self._tmp.parent / "history" / name
            if name in names or folder.exists() or history.exists():
                continue
            make_folder(folder)
            with NewFile(folder) as new:
                new.write(workspace.encode("utf-8", "surrogateescape"))
                if new.publish_new(folder / PROJECT_ROOT):
                    return folder
        raise AssertionError  # it counts without end

    def _noted(self) -> dict[str, str]:
        try:
            found = msgspec.json.decode((self._tmp.parent / PROJECTS).read_bytes(), type=Projects)
        except (OSError, msgspec.DecodeError):
            return {}
        return {path: name for path, name in found.projects.items() if re.fullmatch(r"[a-z0-9-]+", name)}


class OpenCodeSession(Struct, frozen=True, kw_only=True):
    """A session in OpenCode's database: the folder it belongs to, the ids of its messages."""

    directory: str
    messages: tuple[str, ...]


def opencode_session(database: Path, session_id: str) -> OpenCodeSession | None:
    """A session as the database has it; None where it has none. SourceError where the database cannot be read."""
    if not database.exists():
        return None
    rows = DatabaseRows(str(database))
    try:
        messages = tuple(row.message for row in rows.messages(session_id))
        try:
            header = rows.tree(session_id)[0]
        except SourceError:
            return None
        rows.check()
    finally:
        rows.close()
    return OpenCodeSession(directory=str(header.fields.get("directory") or ""), messages=messages)


PLACES: dict[str, Callable[[Path], Places]] = {
    "claude-code": ClaudeCodePlaces,
    "codex": CodexPlaces,
    "gemini": GeminiCliPlaces,
}


def same_start(path: Path, chunks: Iterator[bytes]) -> tuple[bool, bool]:
    """(does the file begin with these bytes?, does it hold nothing after them?)"""
    try:
        with path.open("rb") as file:
            for chunk in chunks:
                if file.read(len(chunk)) != chunk:
                    return False, False
            return True, not file.read(1)
    except OSError:
        return False, False


def _text_of(path: Path) -> str:
    try:
        return os.fsdecode(path.read_bytes()).strip()
    except OSError:
        return ""


def _plain(name: str) -> str:
    """A name as a pattern that means only it."""
    return re.sub(r"([\[\]*?])", r"[\1]", name)
