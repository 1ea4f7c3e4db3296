"""What a Gemini CLI session says about itself beside its messages: title, workspace, model, times.

Owns which record a register of an imported thread comes from, with which time, and how the workspace is found,
which no record names: the program tells it to the model in words, and notes it in files around the session.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from msgspec import Struct, field

from raddle.actions.importing.facts import (
    Fact,
    add_activity,
    add_fact,
    add_model,
    add_time,
    hold,
    source_write,
)
from raddle.actions.importing.fitting import decoded
from raddle.actions.importing.importer import SourceName, Write
from raddle.actions.importing.titles import title_from

PROVIDER = "google"
PROJECT_ROOT, PROJECTS = ".project_root", "projects.json"
"""The files around a session: its project's path, in the project's folder; every project's, in the home."""

COMMAND, TYPED, SUMMARY = range(1, 4)
"""Where a title can come from; the greater one stays."""

_FOLDER = re.compile(
    r"(?:Workspace Directories:\*\*|working in the following directories:)\s+- (\S[^\n]*)"
    r"|working in the directory: (\S[^\n]*)"
)


class Facts(Struct, array_like=True):
    """What is known so far; plain values, so that a state can hold it. Times in microseconds, 0: none yet."""

    title: Fact = field(default_factory=Fact)
    title_from: int = 0
    first_folder: Fact = field(default_factory=Fact)
    folder: Fact = field(default_factory=Fact)
    model: Fact = field(default_factory=Fact)
    project_hash: str = ""
    created: int = 0
    active: int = 0
    now: int = 0
    """The greatest time of a record so far: a clock that steps back makes no later value an earlier write."""


class Projects(Struct, frozen=True):
    """`projects.json`: path -> the name of its folder."""

    projects: dict[str, str] = {}


def see_time(facts: Facts, at: int) -> None:
    """A record was written at `at` (0: nobody knows)."""
    facts.now = max(facts.now, at)
    facts.created = facts.created or at


def see_start(facts: Facts, at: int) -> None:
    """The session says that it began at `at` (0: it does not)."""
    if at and (not facts.created or at < facts.created):
        facts.created = at
    facts.now = max(facts.now, at)


def see_model(facts: Facts, model: str | None) -> None:
    """An answer came from `model`."""
    hold(facts.model, model, facts.now)


def see_context(facts: Facts, text: str) -> None:
    """Learn the workspace from what the program told the model about it."""
    folder = folder_in(text)
    hold(facts.folder, folder, facts.now)
    if not facts.first_folder.value:
        hold(facts.first_folder, folder, facts.now)


def folder_in(text: str) -> str:
    """The first workspace folder that `text` tells of; empty where it tells of none."""
    found = _FOLDER.search(text)
    return (found.group(1) or found.group(2)).strip() if found is not None else ""


def be_active(facts: Facts, at: int) -> None:
    """Something was said at `at`."""
    facts.active = max(facts.active, at)


def type_title(facts: Facts, content: str) -> None:
    """Take the title from what a person typed, if it is the first; a command only until words are typed."""
    entitle(facts, COMMAND if content.lstrip().startswith(("/", "?")) else TYPED, title_from(content))


def entitle(facts: Facts, origin: int, title: str) -> None:
    """A title from `origin`, unless one as good is known; of summaries the last one stays."""
    is_better = origin > facts.title_from or origin == facts.title_from == SUMMARY
    if title and is_better:
        facts.title_from = origin
        if title != facts.title.value:
            facts.title = Fact(title, max(facts.now, facts.title.n + 1))


def workspace_of(source: SourceName, project_hash: str, told: str) -> str:
    """The workspace of a session: the folder whose hash it names, else what it was told, else what is noted.

    `told`: what the program said of it in the session itself.
    """
    noted = list(_noted(source))
    for folder in (told, *(path for path, _ in noted)):
        if folder and hashlib.sha256(folder.encode(errors="replace")).hexdigest() == project_hash:
            return folder
    own = project_folder(source)
    return told or next((path for path, folder in noted if own and folder == own), "")


def _noted(source: SourceName) -> Iterator[tuple[str, str]]:
    """(a project's path, the name of its folder), as the files around the session note them."""
    root = source.companions.get(PROJECT_ROOT, b"").decode(errors="replace").strip()
    if root:
        yield root, project_folder(source)
    registry = decoded(source.companions.get(PROJECTS, b""), Projects)
    if registry is not None:
        yield from registry.projects.items()


def project_folder(source: SourceName) -> str:
    """The name of the project's folder: the one around `chats`. Empty where there is none."""
    above, _, _ = "/".join(source.folders).rpartition("/chats")
    return above.rpartition("/")[2]


def writes_of(
    facts: Facts, source: SourceName, agent: str, session_id: str, *, is_part: bool
) -> tuple[Write, ...]:
    """The registers, at most one write a path. A part knows only whose it is, and when it was active."""
    writes = [source_write(agent, session_id, facts.created)]
    if not is_part:
        workspace = workspace_of(source, facts.project_hash, facts.first_folder.value)
        since = facts.first_folder.n or facts.created
        add_time(writes, "created_at", facts.created)
        add_fact(writes, "title", facts.title)
        add_fact(writes, "workspace_root", Fact(workspace, since))
        add_fact(writes, "cwd", Fact(facts.folder.value or workspace, facts.folder.n or since))
        add_model(writes, facts.model.n, PROVIDER, facts.model.value)
    add_activity(writes, facts.active)
    return tuple(writes)
