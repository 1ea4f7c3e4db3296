"""What an importer is, and the values it hands to the run around it.

Owns the protocol between a pure reader of one agent's sessions and the pipeline that finds files, keeps
the ledger and saves threads. A second shape of it would mean a second pipeline.

An importer is fed bytes and gives messages. It opens nothing, asks no clock, keeps no memory between two
sessions. A file is read from its start, or goes on from the `state` its last reading ended with; both give
the same messages, because whatever a reader gives is joined into the thread by id (`rev`, merge rule 4).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, field

from raddle.model.ids import derived_id, derived_thread_id
from raddle.model.threads.message import Message

Lookup = Callable[[str], Message | None]
"""Gives the stored message of an id, or None."""

Write = tuple[str, int, Any]
"""A register written by the empty device: (path, microseconds, value), as in `model/threads/fields.py`."""

_UUID7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")

MAX_LINE_BYTES = 64 << 20
"""A longer line is not read; whoever cuts lines calls `Reader.skip_line` for it."""


class Home(Struct, frozen=True, kw_only=True):
    """Where an agent keeps its sessions.

    `variables`: (environment variable, path below the folder it names), tried first. `folders`: where they
    lie otherwise, `~` for the home. `patterns`: globs below either. `sidecar`: suffix that, in the place of
    the session file's own, names the small file beside it. `companions`: names of small files in the folders around
    a session's, the nearest one of each. `collections`: names, below either, of what holds many
    sessions (`collection.py`). `collection_variables`: environment variables that name one more of these, by its whole
    path or by one below either.
    """

    variables: tuple[tuple[str, str], ...] = ()
    folders: tuple[str, ...]
    patterns: tuple[str, ...]
    suffix: str = ".jsonl"
    other_suffixes: tuple[str, ...] = ()
    sidecar: str = ""
    companions: tuple[str, ...] = ()
    collections: tuple[str, ...] = ()
    collection_variables: tuple[str, ...] = ()

    @property
    def suffixes(self) -> tuple[str, ...]:
        """How the names of its files may end."""
        return (self.suffix, *self.other_suffixes)


class SourceName(Struct, frozen=True, kw_only=True):
    """What is known of a file before it is read: its name, and the names of the folders around it, outermost
    first, from the agent's own folder on. `sidecar`: the bytes of the small file beside it, if there is one;
    `companions`: those of the small files around it, by name.

    Identity comes from content. A name decides only what the content leaves open.
    """

    name: str
    folders: tuple[str, ...] = ()
    sidecar: bytes = b""
    companions: dict[str, bytes] = {}


class Place(Struct, frozen=True, kw_only=True):
    """Where a file belongs: files of one `session` are read together, those that are no part first.

    `is_part`: a sub-agent's file, read with the `Links` of the files before it.
    `session` groups, it is not yet the identity: that is what `Ending.session_id` says.
    `other_agent`: who wrote it, where its first bytes show that it was not this importer's agent. `base`: the session
    that this one was forked from, where the turns before that stand in the other's file alone; it is read with the
    `Links` of that one.
    """

    session: str
    is_part: bool = False
    other_agent: str = ""
    base: str = ""


class Anchor(Struct, frozen=True, array_like=True):
    """A message that others may hang on: its id and its `order`."""

    message_id: str
    seq: int


class Links(Struct, frozen=True, kw_only=True):
    """What a session's files tell each other: which call started which sub-agent.

    `calls`: call id -> the message that made it. `agents`: a sub-agent's id -> call id. `prompts`: digest of
    the first prompt -> call id.
    """

    session_id: str = ""
    calls: dict[str, Anchor] = field(default_factory=dict)
    agents: dict[str, str] = field(default_factory=dict)
    prompts: dict[str, str] = field(default_factory=dict)

    def joined(self, other: Links) -> Links:
        """Both; where they differ, `self`: a sub-agent's own calls are added to its session's."""
        return Links(
            session_id=self.session_id or other.session_id,
            calls={**other.calls, **self.calls},
            agents={**other.agents, **self.agents},
            prompts={**other.prompts, **self.prompts},
        )


class Blob(Struct, frozen=True, kw_only=True):
    """Bytes of an attachment, to be stored under the SHA-256 (64 hex) of the bytes themselves."""

    sha256: str
    body: bytes
    media_type: str


class Problem(Struct, frozen=True, kw_only=True):
    """What could not be read as it stands: the line it starts on, from 1, and what is wrong with it."""

    line: int
    reason: str


class Taken(Struct, kw_only=True):
    """What a reader has finished since it was last asked.

    Messages come in (`seq`, `id`) order, but for one that grew after it was taken: that one comes again, with
    a greater `rev`.
    """

    messages: list[Message]
    blobs: list[Blob]


class Ending(Struct, frozen=True, kw_only=True):
    """What a reading comes to.

    `thread_id`, `session_id`: empty where the file holds no session. `registers`: at most one write a path.
    `state`: what goes on from the end of the complete lines; empty where only a reading from the start can.
    `needs_whole`: this reading went on from a state that did not know enough; throw its messages away and
    read the file from its start. `other_agent`: whose file this is, where it is not this importer's.
    `is_unplaced`: a part whose starting call was not found; read again with more `links`, it takes its place.
    `waits_for`: the session that this one was forked from, whose `links` were not given.
    """

    thread_id: str = ""
    session_id: str = ""
    registers: tuple[Write, ...] = ()
    links: Links = Links()
    state: bytes = b""
    needs_whole: bool = False
    other_agent: str = ""
    is_unplaced: bool = False
    waits_for: str = ""


class Reader(Protocol):
    """Reads one file of a session."""

    @property
    def problems(self) -> list[Problem]:
        """What could not be read as it stands, so far."""

    def feed(self, lines: Iterable[bytes]) -> None:
        """Read complete lines, in order, each without its final newline."""

    def skip_line(self, reason: str) -> None:
        """Count a line whose bytes are not handed over (`MAX_LINE_BYTES`), and report it."""

    def take(self) -> Taken:
        """What is finished so far; after `finish`, all that was left."""

    def finish(self, tail: bytes = b"") -> Ending:
        """End the reading. `tail`: what stands after the last newline.

        It is read where it is whole; the state is the one before it, for the next reading begins there.
        """


class Importer(Protocol):
    """One agent's sessions: where they lie and how they are read. Stateless."""

    agent: str
    """The name in `source.agent`, in ids, on the command line: `claude-code`."""
    label: str
    """The name for people: `Claude Code`."""
    home: Home

    def place(self, source: SourceName, head: bytes) -> Place | None:
        """Which session the file belongs to, judging by its name and its first bytes; None: to none."""

    def open(
        self,
        source: SourceName,
        *,
        state: bytes = b"",
        links: Links | None = None,
        lookup: Lookup | None = None,
    ) -> Reader:
        """A reader of the file. `links`: what is known of the session, for a part.

        `state`: of the file's last `Ending`, when it is read on from there; `lookup` then gives the thread's
        messages.
        """

    def links(self, state: bytes) -> Links | None:
        """The links that a `state` remembers; None where it is not a state of this version."""


@runtime_checkable
class NamesWorkspace(Protocol):
    """An importer whose sessions name their workspace otherwise than in a record's own `cwd`."""

    def workspace(self, source: SourceName, lines: Iterable[bytes]) -> str:
        """The workspace of a file, by its first lines and what lies around it; empty where nothing tells it."""


def prompt_digest(prompt: str) -> str:
    """What a prompt is known by in `Links.prompts`: the call has it, and the sub-agent's first line."""
    return hashlib.blake2b(prompt.strip().encode(errors="replace"), digest_size=8).hexdigest()


def thread_id_of(agent: str, session_id: str, header_time: int | None = None) -> str:
    """The thread of a session: the same from every copy, on every machine, at every stage of its growth.

    Its time bits come from a time inside the session id (UUIDv7), else from the session's header
    (microseconds), else from the hash; never from a first message, which another copy may not hold.
    """
    found = _UUID7.match(session_id)
    inside = int(found.group(1) + found.group(2), 16) * 1000 if found is not None else None
    return derived_thread_id(header_time if inside is None else inside, "thread", agent, session_id)


def message_id_of(agent: str, *record: str | int) -> str:
    """The id of a message, from the record's own id, or from (session, role, hash of the raw content, n)."""
    return derived_id("message", agent, *record)
