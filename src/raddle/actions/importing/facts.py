"""What a session says about itself beside its messages, and the registers that are written of it.

Owns the shape of those registers and when a value began to hold, for every importer. A register is written with the
time its value began to hold, so that a session that merely grew writes nothing anew; a second rule of it would make
one session two on two machines.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from raddle.actions.importing.importer import Write
from raddle.model.clock import format_time


class Fact(Struct, array_like=True):
    """A value and the time, in microseconds, since when it holds."""

    value: str = ""
    n: int = 0


class SessionFacts(Struct, array_like=True):
    """What is known so far of a session that works in a folder; plain values, so that a state can hold it. Times in
    microseconds, 0: none yet. An importer adds what its agent says besides."""

    title: Fact = field(default_factory=Fact)
    title_from: int = 0
    workspace_root: Fact = field(default_factory=Fact)
    cwd: Fact = field(default_factory=Fact)
    version: Fact = field(default_factory=Fact)
    model: Fact = field(default_factory=Fact)
    branch: Fact = field(default_factory=Fact)
    created: int = 0
    active: int = 0
    now: int = 0
    """The greatest time of a line so far: a clock that steps back makes no later value an earlier write."""


def tick(facts: SessionFacts, at: int) -> None:
    """A line was written at `at`."""
    facts.now = max(facts.now, at)


def be_active(facts: SessionFacts, at: int) -> None:
    """Something was said at `at`."""
    facts.created = facts.created or at
    facts.active = max(facts.active, at)


def see_folder(facts: SessionFacts, cwd: str | None) -> None:
    """The session works in `cwd` from now on."""
    hold(facts.cwd, cwd, facts.now)
    if not facts.workspace_root.value:
        hold(facts.workspace_root, cwd, facts.now)


def retitle(facts: SessionFacts, title: str) -> None:
    """The title from now on. Its write is later than the one it replaces."""
    if title and title != facts.title.value:
        facts.title = Fact(title, max(facts.now, facts.title.n + 1))


def session_writes(facts: SessionFacts, agent: str, session_id: str, *, is_part: bool) -> list[Write]:
    """The registers that all of these have. A part knows only whose it is, and when it was active."""
    writes = [source_write(agent, session_id, facts.created)]
    add_activity(writes, facts.active)
    if not is_part:
        add_time(writes, "created_at", facts.created)
        add_fact(writes, "title", facts.title)
        add_fact(writes, "workspace_root", facts.workspace_root)
        add_fact(writes, "cwd", facts.cwd)
        add_fact(writes, "client_version", facts.version)
    return writes


def hold(fact: Fact, value: str | None, n: int) -> None:
    """From `n` on the fact is `value`, if that is one, and another; later in any case than what it replaces."""
    if value and value != fact.value:
        fact.value, fact.n = value, max(n, fact.n + 1)


def source_write(agent: str, session_id: str, created: int) -> Write:
    """Whose session it is."""
    return "source", created, {"agent": agent, "session_id": session_id}


def add_fact(writes: list[Write], path: str, fact: Fact) -> None:
    """A register of a text, where it is known."""
    if fact.value:
        writes.append((path, fact.n, fact.value))


def add_time(writes: list[Write], path: str, at: int) -> None:
    """A register of a time (microseconds; 0: not known), which holds since then."""
    if at:
        writes.append((path, at, format_time(at)))


def add_activity(writes: list[Write], active: int) -> None:
    """The registers of when something was said last."""
    add_time(writes, "updated_at", active)
    add_time(writes, "last_activity_at", active)


def add_model(writes: list[Write], n: int, provider: str, model: str) -> None:
    """The register of the model, where that is known."""
    if model:
        writes.append(("model", n, {"provider": provider or None, "model": model}))


def add_git(writes: list[Write], n: int, *, branch: str, commit: str = "") -> None:
    """The register of the repository as it is now. What is not known (empty) is null: a snapshot is one value."""
    value: dict[str, Any] = {
        "git_branch": branch or None,
        "git_current_commit_sha": commit or None,
        "git_end_dirty": None,
    }
    writes.append(("git", n, value))


def add_git_initial(writes: list[Write], n: int, *, branch: str, commit: str = "") -> None:
    """The same, as it was when the session began."""
    value: dict[str, Any] = {
        "git_initial_branch": branch or None,
        "git_initial_commit_sha": commit or None,
        "git_start_dirty": None,
    }
    writes.append(("git_initial", n, value))
