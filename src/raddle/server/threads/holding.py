"""One thread of one space as the tables hold it, within one transaction: reads and writes of its rows.

Everything that changes rows of a thread goes through here, so that the row which lists, access and the
feed read says the same as the rows that hold the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import msgspec
from psycopg import Connection

from raddle.model.clock import parse_time
from raddle.model.threads.deletion import deleted_at, edits_of_registers, note_edit
from raddle.model.threads.delta import Delta
from raddle.model.threads.message import Message
from raddle.model.threads.register import Register
from raddle.model.threads.summary import ThreadSummary
from raddle.model.threads.thread import Thread, join_messages
from raddle.model.threads.tree import MessageTree
from raddle.server import rows
from raddle.server.tables.queries import queries

SQL = queries("raddle.server.threads", "threads.sql")


class MessageIndex(Protocol):
    """What makes the words of threads findable, in the transaction that brings them."""

    def put(
        self, connection: Connection, number: int, summary: ThreadSummary, messages: Sequence[Message]
    ) -> None:
        """Make findable what changed: the thread's header as `summary` says, and these messages of it."""

    def erase(self, connection: Connection, number: int) -> None:
        """Leave no word of a thread."""


class Key(NamedTuple):
    """Which thread: the space it lies in, and its id."""

    space: UUID
    thread: str


class Held(NamedTuple):
    """A thread's own row, as the compare-and-set gave it back."""

    number: int
    version: int
    is_private: bool
    message_count: int
    shown_count: int
    has_removed: bool
    edit_clock: bytes
    clock: int


class Joined(NamedTuple):
    """What a delta changed in the rows of a thread."""

    messages: list[Message]
    """Those that are new or another form now."""
    new: list[Message]
    registers: dict[str, Register]
    hidden: dict[str, bool]
    """Of messages that were there: whether each is shown, before."""


class Holding:
    """A thread that this transaction holds the version of."""

    def __init__(self, connection: Connection, key: Key, held: Held) -> None:
        self._connection = connection
        self._where = {"space": key.space, "thread": key.thread}
        self.key = key
        self.held = held
        self.edit_clock: dict[str, int] = msgspec.json.decode(held.edit_clock)
        self.thread = Thread(key.thread)
        """Its registers alone, no messages."""
        self.thread.join(Delta(registers=self._registers(), version=held.version))

    def _run(self, name: str, **values: Any) -> Any:
        return self._connection.execute(SQL[name], {**self._where, **values})

    def _registers(self) -> dict[str, Register]:
        return {bytes(path).decode(): rows.register_of_row(body) for path, body in self._run("registers")}

    def join(self, delta: Delta) -> Joined:
        """Take in `delta`; the rows that it changed, written with this version."""
        before = dict(self.thread.registers)
        self.thread.join(Delta(registers=delta.registers))
        registers = {
            path: register
            for path in delta.registers
            if (register := self.thread.registers[path]) is not before.get(path)
        }
        mine: dict[str, Message] = {}
        was_shown: dict[str, bool] = {}
        if delta.messages and self.held.message_count:
            ids = [message.id.encode() for message in delta.messages]
            for name, is_shown, body in self._run("messages_of_ids", ids=ids):
                mine[bytes(name).decode()] = rows.message_of(body)
                was_shown[bytes(name).decode()] = is_shown
        changed, new = [], []
        for message in delta.messages:
            known = mine.get(message.id)
            kept = message if known is None else join_messages(known, message)
            if kept is not known:
                changed.append(kept)
            if known is None:
                new.append(kept)
        self._write(changed, registers)
        return Joined(changed, new, registers, was_shown)

    def _write(self, messages: Sequence[Message], registers: Mapping[str, Register]) -> None:
        if messages:
            bodies = [rows.message_json(message) for message in messages]
            self._run(
                "put_messages",
                version=self.held.version,
                ids=[message.id.encode() for message in messages],
                seqs=[message.order for message in messages],
                parents=[
                    None if message.parent_id is None else message.parent_id.encode() for message in messages
                ],
                sizes=[len(body) for body in bodies],
                bodies=[rows.packed(body) for body in bodies],
            )
        if registers:
            bodies = [rows.register_json(register) for register in registers.values()]
            self._run(
                "put_registers",
                version=self.held.version,
                paths=[path.encode() for path in registers],
                sizes=[len(body) for body in bodies],
                bodies=[rows.packed(body) for body in bodies],
            )

    def note(self, joined: Joined) -> ThreadSummary:
        """Bring the thread's own row up to date; what a list shows of it now."""
        thread = self.thread
        for message in joined.messages:
            note_edit(self.edit_clock, message.device, message.order)
        message_count = self.held.message_count + len(joined.new)
        shown_count, has_removed = self._count_shown(joined)
        summary = self.summary(shown_count)
        clock = max((thread.clock, self.held.clock, *(message.order for message in joined.messages)))
        self._run(
            "note_thread",
            message_count=message_count,
            shown_count=shown_count,
            has_removed=has_removed,
            edit_clock=msgspec.json.encode(self.edit_clock),
            clock=clock,
            summary=msgspec.json.encode(summary),
            last_activity=min(max(parse_time(summary.last_activity_at) or 0, 0), (1 << 62)),
            visibility=summary.visibility,
            is_private=summary.is_private,
            is_deleted=summary.is_deleted,
            is_shared_with_support=thread.is_shared_with_support,
            is_pinned=summary.is_pinned,
            is_archived=summary.is_archived,
        )
        return summary

    def summary(self, shown_count: int) -> ThreadSummary:
        """What a list shows."""
        gone = deleted_at(self.thread.registers.get("deleted"), self._edits)
        return msgspec.structs.replace(
            self.thread.summary(), message_count=shown_count, is_deleted=gone is not None
        )

    def _edits(self) -> dict[str, int]:
        edits = edits_of_registers(self.thread.registers)
        for device, n in self.edit_clock.items():
            note_edit(edits, device, n)
        return edits

    def _count_shown(self, joined: Joined) -> tuple[int, bool]:
        """(How many messages are shown now, whether any was removed); marks in the rows which are not.

        Only a thread in which something was removed has to be looked at whole, and not for a reply to what shows.
        """
        gone = self.thread.removed_messages
        touched = any(path.startswith("gone/") for path in joined.registers)
        if not gone and not touched and not self.held.has_removed:
            return self.held.shown_count + len(joined.new), False
        stubs, was_shown = [], {}
        for name, parent, seq, is_shown in self._run("outlines"):
            message_id = bytes(name).decode()
            parent_id = None if parent is None else bytes(parent).decode()
            stubs.append(Message(id=message_id, parent_id=parent_id, role="", seq=seq))
            was_shown[message_id] = is_shown
        shown = {message.id for message in MessageTree(stubs, gone).shown()}
        self._mark(True, (name for name, was in was_shown.items() if name in shown and not was))
        self._mark(False, (name for name, was in was_shown.items() if name not in shown and was))
        return len(shown), bool(gone)

    def _mark(self, is_shown: bool, ids: Iterable[str]) -> None:
        names = [name.encode() for name in ids]
        if names:
            self._run("show_messages", is_shown=is_shown, ids=names)

    def erase(self, kept: str) -> None:
        """Leave of the thread nothing but the register `kept`: for what was withdrawn, and for what is purged."""
        erased = (
            self._run("erase_messages").rowcount + self._run("erase_registers", kept=kept.encode()).rowcount
        )
        self._run("erase_blobs")
        self._run("erase_sources")
        if erased:
            self._run("note_erasure")
        register = self.thread.registers.get(kept)
        self.thread = Thread(self.key.thread)
        self.thread.join(Delta(registers={} if register is None else {kept: register}))
        self.edit_clock = {}
        self.held = self.held._replace(message_count=0, shown_count=0, has_removed=False)

    def forget_names(self) -> None:
        """Leave of a purged thread's own row no title, no branch, nothing that somebody wrote."""
        self._run(
            "forget_names", summary=msgspec.json.encode(ThreadSummary(id=self.key.thread, is_deleted=True))
        )

    def tell(self, kind: str) -> None:
        """Put the thread into the feed: the last statement of its transaction, or the feed has a gap."""
        self._run("note_change", version=self.held.version, kind=kind)
