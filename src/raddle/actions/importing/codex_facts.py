"""What a Codex session says about itself beside its messages: title, folder, repository, model, times.

Owns which line a register of an imported thread comes from, and with which time. A register is written with
the time its value began to hold, so that a session that merely grew writes nothing anew.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Struct, field

from raddle.actions.importing.codex_lines import Git, Payload
from raddle.actions.importing.facts import (
    Fact,
    SessionFacts,
    add_fact,
    add_git,
    add_git_initial,
    add_model,
    hold,
    retitle,
    see_folder,
    session_writes,
    tick,
)
from raddle.actions.importing.fitting import decoded
from raddle.actions.importing.importer import Write
from raddle.actions.importing.titles import title_from
from raddle.model.clock import parse_time
from raddle.model.threads.git_facts import slug

TYPED, NAMED = range(1, 3)
"""Where a title can come from; the greater one stays."""

INDEX = "session_index.jsonl"
"""The file in Codex's folder that holds the names people gave to sessions, one line each time."""

_CWD = re.compile(r"<cwd>(.*?)</cwd>|Current working directory: (.*)")


class Named(Struct, frozen=True, gc=False):
    """A line of `INDEX`."""

    id: str = ""
    thread_name: str | None = None
    updated_at: str | None = None


class Facts(SessionFacts, array_like=True):
    """What is known so far of a Codex session."""

    provider: Fact = field(default_factory=Fact)
    remote: Fact = field(default_factory=Fact)
    commit: Fact = field(default_factory=Fact)
    first_branch: str = ""
    first_commit: str = ""
    first_git: int = 0


def see_header(facts: Facts, header: Payload, at: int) -> None:
    """Take in a header of this session. `at`: its own time, or 0."""
    tick(facts, at)
    facts.created = facts.created or at
    see_folder(facts, header.cwd)
    hold(facts.version, header.cli_version, facts.now)
    hold(facts.provider, header.model_provider, facts.now)
    hold(facts.model, header.model, facts.now)
    if header.git is not None:
        _see_git(facts, header.git)


def _see_git(facts: Facts, git: Git) -> None:
    hold(facts.remote, slug(git.repository_url) if git.repository_url else None, facts.now)
    hold(facts.branch, git.branch, facts.now)
    hold(facts.commit, git.commit_hash, facts.now)
    if not facts.first_git and (git.branch or git.commit_hash):
        facts.first_branch, facts.first_commit = git.branch or "", git.commit_hash or ""
        facts.first_git = facts.now or 1


def see_model(facts: Facts, model: str | None, provider: str | None = None) -> None:
    """The model is this one from now on."""
    hold(facts.model, model, facts.now)
    hold(facts.provider, provider, facts.now)


def see_context(facts: Facts, content: str) -> None:
    """The context that the program injects names the folder; the first versions name it nowhere else."""
    if not facts.cwd.value and (found := _CWD.search(content)) is not None:
        see_folder(facts, (found[1] or found[2]).strip())


def type_title(facts: Facts, content: str) -> None:
    """Take the title from what a person typed, if it is the first."""
    if facts.title_from < TYPED:
        _entitle(facts, TYPED, title_from(content))


def name_title(facts: Facts, name: str) -> None:
    """A person, or the program, gave the session a name."""
    _entitle(facts, NAMED, title_from(name))


def _entitle(facts: Facts, origin: int, title: str) -> None:
    retitle(facts, title)
    if title:
        facts.title_from = origin


def with_name_in(index: bytes, facts: Facts, session_id: str) -> Facts:
    """The same, with the name that `INDEX` gives the session last, unless its own file gives a later one."""
    for line in reversed(index.split(b"\n")):
        found = decoded(line, Named) if session_id.encode() in line else None
        if found is None or found.id != session_id or not (title := title_from(found.thread_name or "")):
            continue
        n = (parse_time(found.updated_at) if found.updated_at else None) or 0
        if title == facts.title.value or (facts.title_from == NAMED and facts.title.n >= n):
            return facts
        return msgspec.structs.replace(facts, title=Fact(title, max(n, facts.title.n + 1)))
    return facts


def writes_of(facts: Facts, agent: str, session_id: str, *, is_part: bool) -> tuple[Write, ...]:
    """The registers, at most one write a path. A part knows only whose it is, and when it was active."""
    writes = session_writes(facts, agent, session_id, is_part=is_part)
    if not is_part:
        add_fact(writes, "git_remote_url", facts.remote)
        add_model(writes, max(facts.model.n, facts.provider.n), facts.provider.value, facts.model.value)
        if facts.first_git:
            n = max(facts.branch.n, facts.commit.n)
            add_git(writes, n, branch=facts.branch.value, commit=facts.commit.value)
            add_git_initial(writes, facts.first_git, branch=facts.first_branch, commit=facts.first_commit)
    return tuple(writes)
