"""What an OpenCode session says about itself beside its messages: title, folder, model, version, times.

Owns which record a register of an imported thread comes from, and with which time. A register is written with the
time its value began to hold, as far as that is told, so that a session that merely grew writes nothing anew.
"""

from __future__ import annotations

import re

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
from raddle.actions.importing.importer import Write
from raddle.actions.importing.opencode_lines import Line
from raddle.actions.importing.titles import title_from

_UNTITLED = re.compile(r"(?:New|Child) session - \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")


class Facts(Struct, array_like=True):
    """What is known so far; plain values, so that a state can hold it. Times in microseconds, 0: none yet."""

    title: Fact = field(default_factory=Fact)
    has_own_title: bool = False
    """Is the title the agent's, and not the first words that were typed?"""
    folder: Fact = field(default_factory=Fact)
    cwd: Fact = field(default_factory=Fact)
    version: Fact = field(default_factory=Fact)
    provider: str = ""
    model: Fact = field(default_factory=Fact)
    created: int = 0
    active: int = 0
    now: int = 0
    """The greatest time of a message so far: a clock that steps back makes no later value an earlier write."""


def microseconds(milliseconds: float | None) -> int:
    """The same time in microseconds; 0 where there is none, or none that a clock can show."""
    if milliseconds is None or not 0 < milliseconds < 1e14:
        return 0
    return int(milliseconds) * 1000


def see_header(facts: Facts, line: Line) -> None:
    """Take in the header of the session itself."""
    created = microseconds(line.time.created if line.time else None)
    updated = max(created, microseconds(line.time.updated if line.time else None))
    facts.created = facts.created or created
    hold(facts.folder, line.directory, created)
    hold(facts.cwd, line.directory, created)
    hold(facts.version, line.version, created)
    if line.title and not _UNTITLED.match(line.title):
        title = title_from(line.title)
        if title:
            hold(facts.title, title, updated)
            facts.has_own_title = True


def see_message(facts: Facts, line: Line, provider: str, model: str, *, is_side: bool) -> None:
    """Take in what a message says beside its words."""
    time = line.info.time if line.info is not None else None
    at = microseconds(time.created if time is not None else None)
    end = microseconds(time.completed if time is not None else None)
    facts.created = facts.created or at
    facts.active = max(facts.active, at, end)
    if is_side:
        return
    facts.now = max(facts.now, at)
    if model and (provider, model) != (facts.provider, facts.model.value):
        facts.provider, facts.model = provider, Fact(model, max(facts.now, facts.model.n + 1))
    path = line.info.path if line.info is not None else None
    hold(facts.cwd, path if path is None or isinstance(path, str) else path.cwd, facts.now)


def type_title(facts: Facts, content: str) -> None:
    """Take the title from what a person typed, if it is the first and the agent gave none."""
    if not facts.title.value:
        hold(facts.title, title_from(content), facts.now)


def writes_of(facts: Facts, agent: str, session_id: str) -> dict[str, Write]:
    """The registers, by path."""
    writes = [source_write(agent, session_id, facts.created)]
    add_time(writes, "created_at", facts.created)
    add_fact(writes, "title", facts.title)
    add_fact(writes, "workspace_root", facts.folder)
    add_fact(writes, "cwd", facts.cwd)
    add_fact(writes, "client_version", facts.version)
    add_model(writes, facts.model.n, facts.provider, facts.model.value)
    add_activity(writes, facts.active)
    return {write[0]: write for write in writes}
