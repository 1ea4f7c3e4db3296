"""A thread laid out for reading: which lines of the conversation, in which order, and what is folded into
what.

Owns the order that Markdown, plain text and every later readable form share. A second place that orders turns
would number them otherwise, and "turn 7" would mean two things.

The line to the tip comes first, every other line after it, from where it leaves one that is already told.
Results stand with their calls, sub-agents with the turn that started them. What was taken back is not told.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from raddle.model.clock import format_time, parse_time
from raddle.model.errors import NotFound
from raddle.model.threads.branching import list_branches
from raddle.model.threads.message import NOTICE, Message
from raddle.model.threads.rendering import Exchange, exchanges
from raddle.model.threads.thread import Thread


class Turn(Struct, frozen=True, kw_only=True):
    """What one side said before the other did. `number` counts from 1 through the whole transcript.

    `forks`: numbers of the sections that answer it, too; `hidden_forks`: how many answers are left out.
    """

    number: int
    role: str
    author: str
    time: str
    """RFC 3339, of its first message; empty where nobody knows."""
    exchanges: tuple[Exchange, ...]
    sub_agents: tuple[tuple[Exchange, ...], ...] = ()
    forks: tuple[int, ...] = ()
    hidden_forks: int = 0


class Section(Struct, frozen=True, kw_only=True):
    """One line of the conversation. `after`: the turn it leaves from (0: it has a beginning of its own)."""

    number: int
    name: str
    after: int
    is_lost: bool
    """Does its first message name a parent that is not there?"""
    turns: tuple[Turn, ...]


class Transcript(Struct, frozen=True, kw_only=True):
    """A thread for reading. `facts`: (label, value) of what is known around it."""

    title: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]


def transcript_of(thread: Thread, leaf: str | None = None) -> Transcript:
    """The whole thread, or only the path to `leaf`; NotFound for an unknown leaf."""
    lines = _lines(thread, leaf)
    layout = _Layout(thread, lines, is_part=leaf is not None)
    names = {row.start: row.name for row in list_branches(thread) if row.name}
    sections = tuple(
        Section(
            number=number,
            name=names.get(line[0].id, ""),
            after=layout.turn_of.get(line[0].parent_id or "", 0),
            is_lost=line[0].parent_id is not None and line[0].parent_id not in thread.tree,
            turns=tuple(layout.turns(line)),
        )
        for number, line in enumerate(lines, 1)
    )
    return Transcript(title=thread.title or thread.id, facts=tuple(_facts(thread)), sections=sections)


def minute(time: str) -> str:
    """RFC 3339 text as `2026-11-30 09:52 UTC`; empty where it is no time."""
    microseconds = parse_time(time)
    return "" if microseconds is None else format_time(microseconds)[:16].replace("T", " ") + " UTC"


def _lines(thread: Thread, leaf: str | None) -> list[list[Message]]:
    """The lines of conversation; every shown message that is no sub-agent's stands in exactly one."""
    tree = thread.tree
    if leaf is not None:
        if leaf not in tree:
            raise NotFound("message", leaf, f"`raddle show {thread.id} --tree` lists them")
        return [tree.path_to_root(leaf)]
    tip = tree.tip()
    lines = [tree.path_to_root(tip.id)] if tip is not None else []
    told = {message.id for line in lines for message in line}
    folded: set[str] = set()
    for message in tree.shown():
        parent = tree.get(message.parent_id or "")
        if message.is_sidechain and parent is not None and (not parent.is_sidechain or parent.id in folded):
            folded.add(message.id)
        elif message.id not in told:
            lines.append(_line_from(thread, message, told))
    return lines


def _line_from(thread: Thread, start: Message, told: set[str]) -> list[Message]:
    """`start` and what goes on from it: the branch it is on, and where that ends, the newest answer."""
    line = [start]
    told.add(start.id)
    while True:
        answers = [
            child
            for child in thread.tree.children(line[-1].id)
            if child.id not in told and child.is_sidechain == start.is_sidechain
        ]
        if not answers:
            return line
        goes_on = thread.tree.continuation(line[-1].id)
        line.append(goes_on if goes_on is not None and goes_on in answers else answers[-1])
        told.add(line[-1].id)


class _Layout:
    """Cuts lines into turns, one after the other; `turn_of`: message id -> number of its turn."""

    def __init__(self, thread: Thread, lines: list[list[Message]], *, is_part: bool) -> None:
        self.turn_of: dict[str, int] = {}
        self._tree = thread.tree
        self._is_part = is_part
        self._starts = {} if is_part else {line[0].id: number for number, line in enumerate(lines, 1)}
        self._count = 0

    def turns(self, line: list[Message]) -> list[Turn]:
        """The turns of the next line."""
        on_line = {message.id for message in line}
        groups: list[list[Exchange]] = []
        for exchange in exchanges(line):
            if groups and _goes_on(groups[-1][-1].message, exchange.message):
                groups[-1].append(exchange)
            else:
                groups.append([exchange])
        return [self._turn(group, on_line) for group in groups]

    def _turn(self, group: list[Exchange], on_line: set[str]) -> Turn:
        first = group[0].message
        if first.kind != NOTICE:
            self._count += 1
        messages = [exchange.message for exchange in group]
        messages += [result for exchange in group for result in exchange.results if result is not None]
        self.turn_of |= dict.fromkeys((message.id for message in messages), self._count)
        answers = [
            (message, child)
            for message in messages
            for child in self._tree.children(message.id)
            if child.id not in on_line
        ]
        others = [child.id for message, child in answers if child.is_sidechain == message.is_sidechain]
        return Turn(
            number=self._count,
            role=first.role,
            author=first.author,
            time=first.ts,
            exchanges=tuple(group),
            sub_agents=tuple(
                self._sub_agent(child.id)
                for message, child in answers
                if child.is_sidechain and not message.is_sidechain
            ),
            forks=tuple(sorted(self._starts[name] for name in others if name in self._starts)),
            hidden_forks=len(others) if self._is_part else 0,
        )

    def _sub_agent(self, start: str) -> tuple[Exchange, ...]:
        said = (message for message in self._tree.below(start) if not self._tree.is_removed(message.id))
        return tuple(exchanges(sorted(said, key=lambda message: self._tree.key(message.id))))


def _goes_on(before: Message, after: Message) -> bool:
    """Is it still the same side that speaks? A person's two messages are two turns."""
    return (
        after.role == before.role == "assistant"
        and after.kind == before.kind
        and after.author == before.author
        and after.is_sidechain == before.is_sidechain
    )


def _facts(thread: Thread) -> Iterable[tuple[str, str]]:
    source = thread.source
    commits = thread.git_commits
    head = thread.plain("git_current_commit_sha")
    dirty = " (dirty)" if thread.plain("git_end_dirty") is True else ""
    facts = (
        ("Thread", thread.id),
        ("Agent", source.agent if source is not None else ""),
        ("Model", " / ".join(_texts(thread.plain("provider"), thread.plain("model")))),
        ("Started", minute(thread.time("created_at"))),
        ("Last activity", minute(thread.time("last_activity_at"))),
        ("Workspace", *_texts(thread.plain("workspace_root"))),
        ("Repository", *_texts(thread.plain("git_remote_url"))),
        ("Git", " @ ".join(_texts(thread.plain("git_branch"), _short(head))) + dirty),
        ("Commits", ", ".join(sha[:10] for sha in commits) if len(commits) > 1 else ""),
        ("Tags", ", ".join(thread.tags)),
    )
    return ((fact[0], fact[1]) for fact in facts if len(fact) > 1 and fact[1])


def _short(sha: object) -> str:
    return sha[:10] if isinstance(sha, str) else ""


def _texts(*values: object) -> list[str]:
    return [value for value in values if isinstance(value, str) and value]
