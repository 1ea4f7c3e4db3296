"""What a Claude Code session says about itself beside its messages: title, folder, branch, model, times.

Owns which line a register of an imported thread comes from, and with which time. A register is written with
the time its value began to hold, so that a session that merely grew writes nothing anew.
"""

from __future__ import annotations

import re

from msgspec import field

from raddle.actions.importing.claude_code_lines import Entry
from raddle.actions.importing.facts import (
    Fact,
    SessionFacts,
    add_git,
    add_git_initial,
    add_model,
    hold,
    retitle,
    see_folder,
    session_writes,
    tick,
)
from raddle.actions.importing.importer import Write
from raddle.actions.importing.titles import title_from

_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)

COMMAND, TYPED, SUMMARY, GENERATED, CUSTOM = range(1, 6)
"""Where a title can come from; the greater one stays."""

_SUMMARIES = 32


class Facts(SessionFacts, array_like=True):
    """What is known so far of a Claude Code session."""

    first_branch: Fact = field(default_factory=Fact)
    summaries: list[tuple[str, str]] = field(default_factory=list)
    """(uuid of a leaf, summary) of summaries whose leaf has not been seen."""


def see(facts: Facts, entry: Entry, at: int) -> None:
    """Take in what a line of the main conversation says beside its words. `at`: its time, or 0."""
    tick(facts, at)
    facts.created = facts.created or at
    see_folder(facts, entry.cwd)
    hold(facts.version, entry.version, facts.now)
    hold(facts.branch, entry.git_branch, facts.now)
    if not facts.first_branch.value:
        hold(facts.first_branch, entry.git_branch, facts.now)
    said = entry.message
    if said is not None and said.model and said.model != "<synthetic>":
        hold(facts.model, said.model, facts.now)


def type_title(facts: Facts, content: str) -> None:
    """Take the title from what a person typed, if it is the first; a command only until words are typed."""
    command = _COMMAND.search(content) if content.lstrip().startswith("<command-message>") else None
    if command is None:
        if facts.title_from < TYPED:
            entitle(facts, TYPED, title_from(content))
    elif facts.title_from < COMMAND:
        arguments = _ARGUMENTS.search(content)
        given = f"{command.group(1)} {arguments.group(1) if arguments else ''}"
        entitle(facts, COMMAND, title_from(given))


def entitle(facts: Facts, origin: int, title: str) -> None:
    """A title from `origin`, unless a better one is known."""
    if title and origin >= facts.title_from:
        retitle(facts, title)
        facts.title_from = origin


def summarize(facts: Facts, leaf: str, summary: str, *, is_ours: bool) -> None:
    """A summary of the conversation up to `leaf`.

    Summaries of other sessions stray into a file too: one waits until its leaf is seen here.
    """
    if is_ours:
        entitle(facts, SUMMARY, title_from(summary))
    else:
        facts.summaries = [*facts.summaries, (leaf, summary)][-_SUMMARIES:]


def see_leaf(facts: Facts, uuid: str) -> None:
    """The line `uuid` is of this session."""
    if facts.summaries:
        for leaf, summary in facts.summaries:
            if leaf == uuid:
                entitle(facts, SUMMARY, title_from(summary))
        facts.summaries = [one for one in facts.summaries if one[0] != uuid]


def writes_of(facts: Facts, agent: str, session_id: str, *, is_part: bool) -> tuple[Write, ...]:
    """The registers, at most one write a path. A part knows only whose it is, and when it was active."""
    writes = session_writes(facts, agent, session_id, is_part=is_part)
    if not is_part:
        add_model(writes, facts.model.n, "anthropic", facts.model.value)
        if facts.branch.value:
            add_git(writes, facts.branch.n, branch=facts.branch.value)
            add_git_initial(writes, facts.first_branch.n, branch=facts.first_branch.value)
    return tuple(writes)
