"""Everything a person or a program can do to a thread, and the one place where edits are stamped.

An `Editor` works on the newest state, under the thread's lock (the store sees to both): each verb stamps its
writes on top of what it can see, joins them into the thread at once, and gathers them into the one `Delta`
that the store appends. Two processes of one device share a device id, so an edit stamped on an older state
could be lost: hence the lock, and hence no second place that stamps.

Every verb looks at all it was given before it writes any of it (`plain_values.py`): InvalidInput, and nothing has
happened, or an edit that every reader takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from raddle.model.clock import Clock, format_time, parse_time
from raddle.model.errors import InvalidInput, NotFound
from raddle.model.ids import NewId, derived_id
from raddle.model.threads.agent_state import AgentState
from raddle.model.threads.deletion import is_real_device
from raddle.model.threads.delta import Delta
from raddle.model.threads.fields import FIELDS, field_of, first
from raddle.model.threads.git_facts import GitSnapshot
from raddle.model.threads.message import TURN, Message
from raddle.model.threads.message_input import given_fields
from raddle.model.threads.plain_values import (
    count,
    flag,
    named,
    plain_as,
    plain_text,
    plain_text_or_none,
    plain_value,
    shown,
)
from raddle.model.threads.register import Register, join_registers, one_write, overwrite
from raddle.model.threads.thread import PendingJob, Thread
from raddle.model.threads.visibility import PRIVATE, parse_visibility

CONTEXT = ("workspace_root", "cwd", "client_version", "active_policy", "orchestrator", "server_thread")
"""What `set_context` sets."""

ROOT = "root"
"""The reply target of a draft that starts a new line of conversation."""


class Author(Struct, frozen=True, kw_only=True):
    """Who edits: the device (8 hex), its clock, its source of ids, and a name for display (may be empty)."""

    device: str
    now: Clock
    new_id: NewId
    name: str = ""


class Editor:
    """Edits one thread in place; `delta()` is what changed since it was opened."""

    def __init__(self, thread: Thread, author: Author) -> None:
        self.thread = thread
        self.author = author
        self._base_version = thread.version
        self._messages: dict[str, Message] = {}
        self._registers: dict[str, Register] = {}
        self._was_deleted: bool | None = None

    def _tick(self) -> int:
        """The hybrid clock: now, or just after everything this thread holds."""
        return max(self.author.now(), self.thread.clock + 1)

    def write(self, path: str, value: Any, *, anew: bool = False) -> None:
        """Stamp `value` into the register at `path`; nothing where it already shows, settled.

        `anew`: also there. Who says that nobody else may read a thread is heard although it reads so here: another
        device may have opened it meanwhile.
        """
        self.write_all(((path, value),), anew=anew)

    def write_all(self, values: Iterable[tuple[str, Any]], *, anew: bool = False) -> None:
        """Write several (path, value) under one stamp, and take them in at once: what was done in one go
        can be known by it, and a turn of thousands of messages is undone in one join.
        """
        plain = [
            (named(path, "a path"), plain_value(value, "what is stored", is_any_depth=True))
            for path, value in values
        ]
        changes: list[tuple[str, Register | None, Any]] = []
        for path, value in plain:
            register = self.thread.registers.get(path)
            if not anew and _is_settled(register, value):
                continue
            if register is None and value is None:
                continue
            self._revive(path)
            changes.append((path, register, value))
        n = self._tick()  # once, and after a revival, which is a write of its own
        written = {
            path: overwrite(register, n, self.author.device, value) for path, register, value in changes
        }
        self._registers.update(written)
        self._take(Delta(registers=written))

    def put(self, message: Message) -> None:
        """Take in a message that is whole already (an adopted, landed or purged one)."""
        if not isinstance(message, Message):
            raise InvalidInput(f"a message is a Message, not {type(message).__name__}", "`append` makes one")
        self._messages[message.id] = message
        self._take(Delta(messages=(message,)))

    def _take(self, delta: Delta) -> None:
        self.thread.join(delta)

    def _revive(self, path: str) -> None:
        """An edit by someone who sees a deleted thread brings it back."""
        if path != "messages" and not field_of(path).is_edit:
            return
        if self._was_deleted is None:
            self._was_deleted = self.thread.is_deleted
            if self._was_deleted:
                self.write("deleted", None)

    def delta(self) -> Delta:
        """What changed, `updated_at` and the next version included; empty where nothing did."""
        if not self._messages and not self._registers:
            return Delta(base_version=self._base_version, version=self._base_version)
        if self._messages and "last_activity_at" not in self._registers:
            self.write("last_activity_at", self._no_earlier("last_activity_at"))
        if "updated_at" not in self._registers:
            self.write("updated_at", self._no_earlier("updated_at"))
        self._take(Delta(version=self._base_version + 1))
        return Delta(
            base_version=self._base_version,
            version=self.thread.version,
            messages=tuple(self._messages.values()),
            registers=dict(self._registers),
        )

    def _no_earlier(self, path: str) -> str:
        """Now, or what the time at `path` shows: a clock that is behind does not take a thread back in time."""
        return format_time(max(self.author.now(), parse_time(self.thread.time(path)) or 0))

    def start(
        self, *, workspace_root: str | None = None, cwd: str | None = None, client_version: str = ""
    ) -> None:
        """The registers of a new thread."""
        given = (
            ("workspace_root", plain_text_or_none(workspace_root, "a workspace's root")),
            ("cwd", plain_text_or_none(cwd, "a folder")),
            ("client_version", plain_text(client_version, "a client's version") or None),
        )
        self.write("created_at", format_time(self.author.now()))
        for path, value in given:
            if value is not None:
                self.write(path, value)

    def append(self, role: str, content: str, **fields: Any) -> Message:
        """A turn under the tip, or the first root turn."""
        tip = self.thread.tree.tip()
        return self.reply(tip.id if tip is not None else None, role, content, **fields)

    def reply(self, parent_id: str | None, role: str, content: str, **fields: Any) -> Message:
        """A turn under `parent_id` (None: a new root), sent: this device's draft there goes where it is this very text,
        or the beginning of it. Another text that somebody typed there stays.

        A reply to a leaf stays on its branch; any other forks. `fields` are further fields of `Message`.
        NotFound where the thread has no such parent, InvalidInput where a value is not of its field's type.
        """
        message = self.add(parent_id, named(role, "a role"), content, **fields)
        if message.role == "user" and not message.is_sidechain:
            typed = self.thread.drafts.get(self.author.device, {}).get(message.parent_id or ROOT, "")
            if typed and message.content.strip().startswith(typed.strip()):
                self.set_draft(message.parent_id, "")
        return message

    def add(
        self, parent_id: str | None, role: str, content: str, *, order: int | None = None, **fields: Any
    ) -> Message:
        """The same without a look at the drafts: a turn that nobody typed here. `order`: its place among the others,
        where it is none of the newest."""
        parent_id = plain_text_or_none(parent_id, "the id of a parent")
        role, content = plain_text(role, "a role"), plain_text(content, "the content of a message")
        message_id = plain_text_or_none(fields.pop("id", None), "the id of a message") or self.author.new_id()
        fields = given_fields(fields)
        tree = self.thread.tree
        branch_id = self._branch_under(parent_id, is_sidechain=fields.get("is_sidechain", False))
        known = tree.get(message_id)
        if known is not None:
            return known
        self._revive("messages")
        now = self.author.now()
        n = max(now, self.thread.clock + 1) if order is None else order
        message = Message(
            id=message_id,
            parent_id=parent_id,
            branch_id=message_id if branch_id is None else branch_id,
            role=role,
            content=content,
            ts=format_time(now),
            seq=None if n == now else n,
            device=self.author.device,
            author=fields.pop("author", self.author.name),
            **fields,
        )
        self.put(message)
        return message

    def _branch_under(self, parent_id: str | None, *, is_sidechain: bool) -> str | None:
        """The branch that a reply goes on with; None: it starts one. NotFound for an unknown parent."""
        if parent_id is None:
            return None
        tree = self.thread.tree
        parent = tree.get(parent_id)
        if parent is None:
            raise NotFound("message", parent_id, f"`raddle show {self.thread.id} --tree` lists them")
        goes_on = tree.is_leaf(parent_id) and not tree.is_removed(parent_id)
        return parent.branch_id if goes_on and parent.is_sidechain == is_sidechain else None

    def rollback_last_user_turn(self) -> bool:
        """Take back the last appended message where it is a user turn without replies; did one go?"""
        last = None
        for message in self.thread.tree.shown():
            last = message
        return last is not None and self.take_back(last.id)

    def take_back(self, message_id: str) -> bool:
        """Take back a user turn without replies: it was sent, and nobody will answer it. Did it go?

        Its job is cleared and its text goes back to the draft it came from, above what was typed there since.
        """
        turn = self.thread.tree.get(plain_text(message_id, "the id of a message"))
        if turn is None or not _starts_a_turn(turn) or not self.thread.tree.is_leaf(message_id):
            return False
        for job in self.thread.pending_jobs:
            if job.parent_id == message_id:
                self.clear_job(job.job_id)
        if self.thread.tree.is_removed(message_id):
            return False
        self.write(f"gone/{message_id}", True)
        typed = self.thread.drafts.get(self.author.device, {}).get(turn.parent_id or ROOT, "")
        self.set_draft(turn.parent_id, "\n\n".join(text for text in (turn.content, typed) if text))
        return True

    def rename_job(self, job_id: str, new_id: str) -> None:
        """Call a launch by another id from now on: that which who works on it gave it."""
        job_id, new_id = named(job_id, "the id of a job"), named(new_id, "the id of a job")
        entry = self.thread.shows(f"job/{job_id}")
        if isinstance(entry, dict) and new_id != job_id:
            self.write_all(((f"job/{job_id}", None), (f"job/{new_id}", entry)))

    def undo(self, turns: int = 1) -> list[str]:
        """Take back the last `turns` turns on the path to the tip (a user message and all below it); ids
        taken back.
        """
        taken: list[str] = []
        for _ in range(count(turns, "how many turns")):
            tip = self.thread.tree.tip()
            path = self.thread.tree.path_to_root(tip.id if tip is not None else None)
            asked = [message for message in path if _starts_a_turn(message)]
            if not asked:
                break
            taken.extend(self.remove(asked[-1].id))
        return taken

    def remove(self, message_id: str) -> list[str]:
        """Take back a message and all below it, under one stamp, so that one redo brings them back; ids taken back."""
        below = self.thread.tree.below(plain_text(message_id, "the id of a message"))
        names = [message.id for message in reversed(below)]
        gone = [name for name in names if self.thread.shows(f"gone/{name}") is not True]
        self.write_all((f"gone/{name}", True) for name in gone)
        return gone

    def redo(self, turns: int = 1) -> list[str]:
        """Bring back the last `turns` turns that were taken back, the last one first; ids brought back."""
        back: list[str] = []
        for _ in range(count(turns, "how many turns")):
            found = self._last_taken_back()
            if not found:
                break
            self.write_all((f"gone/{name}", False) for name in found)
            back.extend(found)
        return back

    def _last_taken_back(self) -> list[str]:
        """The messages of the last removal that still hides something: those that bear its stamp."""
        tree = self.thread.tree
        gone = [(name, register) for name, register in self.thread.family("gone") if name in tree]
        hidden = [register.latest[:2] for name, register in gone if tree.is_removed(name)]
        last = max(hidden, default=None)
        return [name for name, register in gone if any(write[:2] == last for write in register.writes)]

    def purge(self, message_ids: Iterable[str]) -> list[str]:
        """Erase the words of these messages for good, everywhere the thread goes; ids of those that had
        any.
        """
        purged = []
        for message_id in _names(message_ids, "the id of a message"):
            message = self.thread.tree.get(message_id)
            if message is not None and not message.is_purged:
                self.put(message.purged())
                purged.append(message_id)
        return purged

    def set_draft(self, parent_id: str | None, text: str) -> None:
        """This device's unsent text under a reply target (None: a new root); empty text clears it."""
        text = plain_text(text, "a draft")
        target = plain_text_or_none(parent_id, "the id of a parent") or ROOT
        path = f"draft/{self.author.device}"
        register = self.thread.registers.get(path)
        mine = dict(self.thread.drafts.get(self.author.device, {})) if register is not None else {}
        if mine.get(target, "") == text:
            return
        if text:
            mine[target] = text
        else:
            mine.pop(target, None)
        self.write(path, mine or None)

    def clear_draft(self, device: str, parent_id: str | None = None) -> None:
        """Drop a draft that `device` left under a reply target; only what could be seen is replaced."""
        device = plain_text(device, "the id of a device")
        target = plain_text_or_none(parent_id, "the id of a parent") or ROOT
        drafts = dict(self.thread.drafts.get(device, {}))
        if drafts.pop(target, None) is not None:
            self.write(f"draft/{device}", drafts or None)

    def launch_job(self, job_id: str, parent_id: str | None, responder: str) -> PendingJob:
        """Note that the turn `parent_id` was sent to `responder`; written before the request leaves."""
        job_id = named(job_id, "the id of a job")
        parent_id = plain_text_or_none(parent_id, "the id of a parent")
        responder = plain_text(responder, "a responder")
        now = format_time(self.author.now())
        self.write(f"job/{job_id}", {"parent_id": parent_id, "responder": responder, "launched_at": now})
        return PendingJob(job_id=job_id, parent_id=parent_id, responder=responder, launched_at=now)

    def land_job(
        self, job_id: str, content: str, *, parent_id: str | None = None, is_late: bool = False, **fields: Any
    ) -> Message:
        """The reply of a job, under the turn that launched it; landing it twice adds one message.

        Where that turn was taken back meanwhile, so is its reply. `is_late`: where something newer was said, it takes
        a place before that, and nobody goes on from it unasked.
        """
        job_id, content = named(job_id, "the id of a job"), plain_text(content, "the content of a message")
        for message in self.thread.tree:
            if message.job_id == job_id:
                return message
        entry = self.thread.shows(f"job/{job_id}")
        if isinstance(entry, dict) and parent_id is None:
            parent_id = entry.get("parent_id")
        turn = None if parent_id is None else self.thread.tree.get(parent_id)
        is_gone = turn is not None and self.thread.tree.is_removed(turn.id)
        newest = self.thread.tree.tip()
        is_behind = is_late and turn is not None and newest is not None and newest.id != turn.id
        landed = self.add(
            parent_id,
            fields.pop("role", "assistant"),
            content,
            order=turn.order + 1 if turn is not None and is_behind else None,
            id=derived_id("job", job_id, content),
            job_id=job_id,
            **fields,
        )
        if is_gone:
            self.write(f"gone/{landed.id}", True)
        self.clear_job(job_id)
        return landed

    def clear_job(self, job_id: str) -> None:
        """Forget a job: it landed, failed or was never known."""
        path = f"job/{named(job_id, 'the id of a job')}"
        if self.thread.registers.get(path) is not None:
            self.write(path, None)

    def rename(self, title: str) -> None:
        """Set the title; empty takes it away."""
        self.write("title", plain_text(title, "a title").strip() or None)

    def tag(self, tag: str) -> None:
        """Add a tag (no spaces at its ends, none inside a `/`-less word is required)."""
        self.write(f"tag/{_tag(tag)}", True)

    def untag(self, tag: str) -> None:
        """Take a tag away; nothing where it was not there."""
        if f"tag/{_tag(tag)}" in self.thread.registers:
            self.write(f"tag/{_tag(tag)}", False)

    def pin(self, is_pinned: bool) -> None:
        """Put it first in lists, or no longer."""
        self._flag("is_pinned", is_pinned)

    def archive(self, is_archived: bool) -> None:
        """Put it away, or bring it back."""
        self._flag("is_archived", is_archived)

    def set_private(self, is_private: bool) -> None:
        """Keep it on this machine, or no longer. Making it private also narrows its visibility."""
        self._flag("is_private", is_private, anew=is_private)
        if self.thread.is_private and is_private and self.thread.visibility != PRIVATE:
            self.write("visibility", PRIVATE)

    def set_visibility(self, visibility: str) -> None:
        """`organization`, `private` or `public`."""
        self.write("visibility", parse_visibility(plain_text(visibility, "a visibility")), anew=True)

    def share_with_support(self, is_shared: bool) -> None:
        """Let the operator's support read it, or no longer."""
        self._flag("is_shared_with_support", is_shared, anew=not is_shared)

    def _flag(self, path: str, given: bool, *, anew: bool = False) -> None:
        value = flag(given, path)
        if value or path in self.thread.registers:
            self.write(path, value, anew=anew)

    def delete(self) -> None:
        """Delete it for all devices; an edit that this device has not seen brings it back."""
        if not self.thread.is_deleted:
            at = format_time(self.author.now())
            self.write("deleted", {"at": at, "seen": dict(sorted(self.thread.edit_clock.items()))})

    def restore(self) -> None:
        """Bring a deleted thread back."""
        if "deleted" in self.thread.registers:
            self.write("deleted", None)

    def name_branch(self, message_id: str, name: str) -> None:
        """Name the branch that starts at a message; empty takes the name away."""
        self._branch_mark(message_id, "name", plain_text(name, "the name of a branch").strip() or None)

    def archive_branch(self, message_id: str, is_archived: bool) -> None:
        """Put the branch that starts at a message away, or bring it back."""
        self._branch_mark(message_id, "is_archived", flag(is_archived, "is_archived"))

    def _branch_mark(self, message_id: str, mark: str, value: Any) -> None:
        message_id = plain_text(message_id, "the id of a message")
        if message_id not in self.thread.tree:
            raise NotFound(
                "message", message_id, f"`raddle branches {self.thread.id}` lists where branches start"
            )
        path = f"branch/{message_id}/{mark}"
        if value or path in self.thread.registers:
            self.write(path, value)

    def set_agent_state(self, state: AgentState) -> None:
        """Where the agent stands now."""
        self.write("agent_state", msgspec.to_builtins(plain_as(AgentState, state, "the state of an agent")))

    def set_model(self, provider: str | None, model: str | None) -> None:
        """Which model answers from now on."""
        self.write(
            "model",
            {
                "provider": plain_text_or_none(provider, "a provider"),
                "model": plain_text_or_none(model, "a model"),
            },
        )

    def set_context(self, name: str, value: str | None) -> None:
        """`workspace_root`, `cwd`, `client_version`, `active_policy`, `orchestrator` or `server_thread`."""
        if name not in CONTEXT:
            raise InvalidInput(f"there is no {shown(name)[:60]} to set", f"it is one of {', '.join(CONTEXT)}")
        self.write(name, plain_text_or_none(value, name))

    def snapshot_git(self, snapshot: GitSnapshot | None, commits: Iterable[str] = ()) -> None:
        """What git says now; `commits` are those since the last snapshot, oldest first. None: nothing
        changes.
        """
        if snapshot is None:
            return
        snapshot = plain_as(GitSnapshot, snapshot, "what git says")
        commits = _names(commits, "a commit")
        if "git_initial" not in self.thread.registers:
            self.write(
                "git_initial",
                {
                    "git_initial_branch": snapshot.branch,
                    "git_initial_commit_sha": snapshot.head,
                    "git_start_dirty": snapshot.is_dirty,
                },
            )
        self.write(
            "git",
            {
                "git_branch": snapshot.branch,
                "git_current_commit_sha": snapshot.head,
                "git_end_dirty": snapshot.is_dirty,
            },
        )
        for sha in (*commits, *((snapshot.head,) if snapshot.head else ())):
            if f"commit/{sha}" not in self.thread.registers:
                self.write(f"commit/{sha}", True)
        if snapshot.remote and self.thread.shows("git_remote_url") is None:
            self.write("git_remote_url", snapshot.remote)


def imported_registers(
    known: Mapping[str, Register], writes: Iterable[tuple[str, int, Any]]
) -> dict[str, Register]:
    """An importer's writes as registers of the empty device, on top of its own earlier ones.

    A register that holds a value of a real device is left alone. A field that is set once keeps what it has,
    any other takes the write with the greatest n.
    """
    made: dict[str, Register] = {}
    for path, n, value in writes:
        before = made.get(path) or known.get(path)
        if before is not None and any(is_real_device(write.device) for write in before.writes):
            continue
        rule = FIELDS.get(path)
        if before is not None and rule is not None and rule.shows is first and before.first.n <= n:
            continue
        one = one_write(n, "", value)
        made[path] = one if before is None else join_registers(before, one)
    return made


def _starts_a_turn(message: Message) -> bool:
    """Did a person ask this? Neither a notice nor the words that start a sub-agent are a turn of its own."""
    return message.role == "user" and message.kind == TURN and not message.is_sidechain


def _same(old: Any, new: Any) -> bool:
    return type(old) is type(new) and bool(old == new)


def _is_settled(register: Register | None, value: Any) -> bool:
    """Does `value` stand there, and nothing else?"""
    return register is not None and len(register.writes) == 1 and _same(register.writes[0].value, value)


def _names(given: Iterable[str], what: str) -> list[str]:
    try:
        names = list(given)
    except TypeError as error:
        raise InvalidInput(
            f"of {what} a list is asked for, not {type(given).__name__}", "for example: []"
        ) from error
    return [plain_text(name, what) for name in names]


def _tag(tag: str) -> str:
    cleaned = " ".join(plain_text(tag, "a tag").split()).removeprefix("#")
    if not cleaned:
        raise InvalidInput("a tag needs at least one character", "for example: raddle tag ID bug")
    return cleaned
