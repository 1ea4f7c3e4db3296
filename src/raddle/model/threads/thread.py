"""A conversation: its messages, its registers, its version, and everything that shows of them.

The state only grows, and `join` is the one way it does: a Delta from this machine, another device, a server
or a file is joined, in any order, any number of times. Every property below is a pure reading of the joined
state, so it is the same on every machine. What a person changes goes through `edits.Editor`, the one place
that stamps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from raddle.model.clock import parse_time
from raddle.model.ids import canonical_json
from raddle.model.threads.agent_state import AgentState
from raddle.model.threads.deletion import deleted_at, edits_of_registers, is_real_device, note_edit
from raddle.model.threads.delta import Delta
from raddle.model.threads.fields import COMPOSITES, field_of
from raddle.model.threads.message import Message
from raddle.model.threads.message_codec import encode_message
from raddle.model.threads.register import Register, Write, join_registers
from raddle.model.threads.summary import Source, ThreadSummary
from raddle.model.threads.tree import MessageTree
from raddle.model.threads.visibility import ORGANIZATION


class PendingJob(Struct, frozen=True, kw_only=True):
    """A launched turn whose reply has not landed: `parent_id` is the turn that launched it."""

    job_id: str
    parent_id: str | None = None
    responder: str = ""
    launched_at: str = ""


class Conflict(NamedTuple):
    """Several values that nobody has settled; writing the field once more settles it."""

    path: str
    values: tuple[Any, ...]
    writes: tuple[Write, ...] = ()
    """Who wrote each of `values`, and when."""


class Thread:
    """A thread as a value that grows. `version` counts edits; it orders nothing and names nothing."""

    __slots__ = ("clock", "id", "registers", "tree", "version")

    def __init__(self, thread_id: str) -> None:
        self.id = thread_id
        self.version = 0
        self.registers: dict[str, Register] = {}
        self.tree = MessageTree()
        self.clock = 0
        """The greatest n or order anywhere in this thread, in microseconds."""

    def copy(self) -> Thread:
        """A thread of equal state that shares no part that can change."""
        other = Thread(self.id)
        other.join(self.whole())
        return other

    def whole(self) -> Delta:
        """All of it, as a Delta that starts from nothing."""
        return Delta(version=self.version, messages=tuple(self.tree), registers=dict(self.registers))

    def join(self, delta: Delta) -> bool:
        """Take in what `delta` holds; was there anything new? Commutative, associative, idempotent."""
        news = False
        for message in delta.messages:
            mine = self.tree.get(message.id)
            kept = message if mine is None else join_messages(mine, message)
            if kept is not mine:
                self.tree.put(kept)
                self.clock = max(self.clock, self.tree.key(kept.id)[0])
                news = True
        gone_changed = False
        for path, register in delta.registers.items():
            mine_register = self.registers.get(path)
            joined = register if mine_register is None else join_registers(mine_register, register)
            if joined is not mine_register:
                self.registers[path] = joined
                self.clock = max(self.clock, joined.clock)
                gone_changed = gone_changed or path.startswith("gone/")
                news = True
        if gone_changed:
            self.tree.set_gone(self._paths_true("gone"))
        if delta.version > self.version:
            self.version = delta.version
            news = True
        return news

    def shows(self, path: str, default: Any = None) -> Any:
        """What the register at `path` shows; `default` where nobody wrote it or it shows null."""
        register = self.registers.get(path)
        if register is None:
            return default
        value = field_of(path).shows(register)
        return default if value is None else value

    def family(self, family: str) -> Iterator[tuple[str, Register]]:
        """(name, register) of every register `family/name`, in no particular order."""
        prefix = family + "/"
        for path, register in self.registers.items():
            if path.startswith(prefix):
                yield path[len(prefix) :], register

    def _paths_true(self, family: str) -> list[str]:
        rule = field_of(family + "/")
        return [name for name, register in self.family(family) if rule.shows(register) is True]

    def _part(self, path: str, name: str) -> Any:
        value = self.shows(path)
        return value.get(name) if isinstance(value, dict) else None

    def _text(self, path: str) -> str | None:
        value = self.shows(path)
        return value if isinstance(value, str) else None

    @property
    def messages(self) -> list[Message]:
        """Every message, removed ones too, in (order, id) order."""
        return list(self.tree)

    @property
    def title(self) -> str:
        """The title, or empty."""
        return self._text("title") or ""

    @property
    def tags(self) -> list[str]:
        """The tags, sorted."""
        return sorted(self._paths_true("tag"))

    @property
    def is_pinned(self) -> bool:
        """Does it stand first in lists?"""
        return self.shows("is_pinned") is True

    @property
    def is_archived(self) -> bool:
        """Was it put away?"""
        return self.shows("is_archived") is True

    @property
    def is_private(self) -> bool:
        """Does it never leave this machine?"""
        return self.shows("is_private") is True

    @property
    def visibility(self) -> str:
        """`organization`, `private` or `public`."""
        value = self.shows("visibility", ORGANIZATION)
        return value if isinstance(value, str) else ORGANIZATION

    @property
    def is_shared_with_support(self) -> bool:
        """May the operator's support read it?"""
        return self.shows("is_shared_with_support") is True

    @property
    def source(self) -> Source | None:
        """The agent and session it was imported from; None for our own."""
        value = self.shows("source")
        try:
            return msgspec.convert(value, Source) if isinstance(value, dict) else None
        except msgspec.ValidationError:
            return None

    @property
    def agent_state(self) -> AgentState:
        """Where the agent stood at the last save."""
        value = self.shows("agent_state")
        try:
            return msgspec.convert(value, AgentState) if isinstance(value, dict) else AgentState()
        except msgspec.ValidationError:
            return AgentState(kind=str(value.get("kind", "")) or AgentState().kind)

    @property
    def git_commits(self) -> list[str]:
        """Every commit seen during the session, first seen first."""
        seen = sorted((register.first.n, sha) for sha, register in self.family("commit"))
        return [sha for _, sha in seen]

    @property
    def removed_messages(self) -> list[str]:
        """Ids that were taken back, sorted; one still shows while something shown stands under it."""
        return sorted(self._paths_true("gone"))

    @property
    def drafts(self) -> dict[str, dict[str, str]]:
        """Device -> reply target (message id or `root`) -> unsent text."""
        shown = {device: field_of("draft/").shows(register) for device, register in self.family("draft")}
        return {device: targets for device, targets in sorted(shown.items()) if targets}

    @property
    def pending_jobs(self) -> list[PendingJob]:
        """Launched turns whose replies have not landed, by launch."""
        landed = {message.job_id for message in self.tree if message.job_id} if self._has_jobs() else set()
        jobs = []
        for job_id, register in self.family("job"):
            entry = field_of("job/").shows(register)
            if isinstance(entry, dict) and job_id not in landed:
                jobs.append((register.latest.n, job_id, entry))
        return [_as_job(job_id, entry) for _, job_id, entry in sorted(jobs, key=lambda job: job[:2])]

    def _has_jobs(self) -> bool:
        return any(path.startswith("job/") for path in self.registers)

    @property
    def branch_marks(self) -> dict[str, dict[str, Any]]:
        """Message id -> {name, is_archived} of the branches somebody named or put away."""
        marks: dict[str, dict[str, Any]] = {}
        for name, register in self.family("branch"):
            message_id, _, mark = name.rpartition("/")
            value = field_of("branch/").shows(register)
            if message_id and value not in (None, "", False):
                marks.setdefault(message_id, {})[mark] = value
        return dict(sorted(marks.items()))

    @property
    def edit_clock(self) -> dict[str, int]:
        """Device -> the newest message or register of its that counts as an edit: what a delete must have seen."""
        edits = edits_of_registers(self.registers)
        for message in self.tree:
            note_edit(edits, message.device, self.tree.key(message.id)[0])
        return edits

    @property
    def is_deleted(self) -> bool:
        """Deleted, and nobody edited it without knowing so."""
        return self.deleted_at is not None

    @property
    def deleted_at(self) -> str | None:
        """When it was deleted; None while any value says it was not, or an edit is newer than the delete knew."""
        return deleted_at(self.registers.get("deleted"), lambda: self.edit_clock)

    @property
    def conflicts(self) -> list[Conflict]:
        """What a person can settle by writing once more: different values that stand together. Importers' are
        never asked about, those of copies met for the first time only among themselves."""
        found = []
        for path, register in sorted(self.registers.items()):
            if not field_of(path).asks:
                continue
            if path == "deleted":
                if any(isinstance(write.value, dict) for write in register.writes) and not self.is_deleted:
                    found.append(Conflict(path, tuple(register.values), register.writes))
                continue
            writes = {canonical_json(write.value): write for write in _asked_about(register)}
            if len(writes) > 1:
                values = tuple(write.value for write in writes.values())
                found.append(Conflict(path, values, tuple(writes.values())))
        return found

    def time(self, path: str) -> str:
        """RFC 3339 text of `created_at`, `updated_at` or `last_activity_at`; empty where nobody knows."""
        value = self.shows(path)
        return value if isinstance(value, str) and parse_time(value) is not None else ""

    def plain(self, name: str) -> Any:
        """A plain field of the file by its name: `git_branch`, `provider`, `workspace_root`, …; None where absent."""
        for path, parts in COMPOSITES.items():
            if name in parts:
                return self._part(path, name)
        return self.shows(name)

    def summary(self) -> ThreadSummary:
        """What a list shows of it."""
        return ThreadSummary(
            id=self.id,
            title=self.title,
            message_count=sum(1 for _ in self.tree.shown()),
            created_at=self.time("created_at"),
            last_activity_at=self.time("last_activity_at"),
            workspace_root=self._text("workspace_root"),
            git_branch=_text(self.plain("git_branch")),
            git_remote_url=self._text("git_remote_url"),
            git_commits=_texts(
                [
                    *self.git_commits,
                    self.plain("git_current_commit_sha"),
                    self.plain("git_initial_commit_sha"),
                ]
            ),
            git_branches=_texts([self.plain("git_branch"), self.plain("git_initial_branch")]),
            provider=_text(self.plain("provider")),
            model=_text(self.plain("model")),
            source=self.source,
            tags=tuple(self.tags),
            is_pinned=self.is_pinned,
            visibility=self.visibility,
            is_private=self.is_private,
            is_archived=self.is_archived,
            is_deleted=self.is_deleted,
            has_conflicts=bool(self.conflicts),
        )


def _asked_about(register: Register) -> list[Write]:
    persons = [write for write in register.writes if is_real_device(write.device)]
    return persons or [write for write in register.writes if write.device]


def join_messages(one: Message, other: Message) -> Message:
    """One id, two forms: the greater `rev`, else the lesser (order, canonical JSON); its stub where either is purged,
    not the stub that is there: it may be of a form that stands later than a reply to the other one."""
    if one is other or (one == other and _any_json(one) == _any_json(other)):
        return one
    kept = min(one, other, key=_form)
    if not one.is_purged and not other.is_purged:
        return kept
    stub = kept.purged()
    return one if one == stub else stub


def _any_json(message: Message) -> bytes:
    """The parts that may be equal to Python and not in JSON: 1, 1.0, true."""
    parts = (message.extra, message.unknown, message.tool_calls)
    return canonical_json(parts) if any(parts) else b""


def _form(message: Message) -> tuple[int, int, bytes, bytes]:
    """Sorts the forms of one message, the one that is kept first; a stub beside the form it was made of."""
    stub, whole = (canonical_json(encode_message(form)) for form in (message.purged(), message))
    return -message.rev, message.order, stub, whole


def merge(one: Thread, other: Thread) -> Thread:
    """Both in one; neither is changed."""
    joined = one.copy()
    joined.join(other.whole())
    return joined


def diff(old: Thread, new: Thread) -> Delta:
    """What `new` holds that `old` does not: `old` joined with it is `new`, for old <= new."""
    messages = tuple(
        message
        for message in new.tree
        if (mine := old.tree.get(message.id)) is None or join_messages(mine, message) is not mine
    )
    registers = {
        path: register
        for path, register in new.registers.items()
        if (known := old.registers.get(path)) is None or join_registers(known, register) is not known
    }
    return Delta(base_version=old.version, version=new.version, messages=messages, registers=registers)


def _as_job(job_id: str, entry: Mapping[str, Any]) -> PendingJob:
    parent_id = entry.get("parent_id")
    return PendingJob(
        job_id=job_id,
        parent_id=parent_id if isinstance(parent_id, str) else None,
        responder=str(entry.get("responder") or ""),
        launched_at=str(entry.get("launched_at") or ""),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _texts(values: list[Any]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if isinstance(value, str) and value))
