"""Threads that other programs keep one to a JSON file: the two seeds' programs, and raddle's own exports.

Such a file is a whole state and not a log, so it is no `Importer`: it is read at once, and joined on top of
what is known of its thread (`adopt` for the first seed's, `quorum` for the second's).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from raddle.actions.importing.importer import Home, Place, Problem, SourceName
from raddle.model.errors import FormatError
from raddle.model.ids import canonical_json, is_thread_id
from raddle.model.threads.adopt import open_file
from raddle.model.threads.codec import decode_file
from raddle.model.threads.deletion import is_real_device
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Author, imported_registers
from raddle.model.threads.plain_fields import registers_shown
from raddle.model.threads.quorum import AGENT as QUORUM
from raddle.model.threads.quorum import decode_quorum
from raddle.model.threads.thread import Thread, diff

LOOM = "loom"

_LOOM_HEAD = re.compile(rb'"conversation"\s*:|"id"\s*:\s*"T-[0-9a-fA-F]{8}-')
_TIMES = {"updated_at", "last_activity_at"}
_QUORUM_HEAD = re.compile(rb'"subject"\s*:')

Known = Callable[[str], Thread | None]
"""What is stored of a thread; None where it is not there."""


class ThreadDelta(Struct, frozen=True, kw_only=True):
    """What a file adds to its thread."""

    thread_id: str
    delta: Delta
    problems: tuple[Problem, ...]
    exported_from: str = ""
    """The thread of ours that the file is an export of for another program, known here or not."""


class ThreadFileAgent(Struct, frozen=True, kw_only=True):
    """A program whose files are whole threads."""

    agent: str
    label: str
    home: Home

    def place(self, source: SourceName, head: bytes) -> Place | None:
        """The file's own session, where it looks like a thread of this program."""
        before_messages = head.partition(b'"messages"')[0]  # in them anything may stand
        is_quorum = _QUORUM_HEAD.search(before_messages) is not None and b'"conversation"' not in head
        is_ours = is_quorum if self.agent == QUORUM else not is_quorum and _LOOM_HEAD.search(head) is not None
        return Place(session="/".join((*source.folders, source.name))) if is_ours else None

    def read(
        self, data: bytes, known: Known, author: Author, said_before: bytes | None = None
    ) -> ThreadDelta:
        """The file's bytes as a Delta. FormatError where they hold no thread that can be read.

        `said_before`: the file when it was last read. What it says otherwise now its program has changed; all
        else may be older than what is stored.
        """
        if self.agent == QUORUM:
            return _read_quorum(data, known)
        return _read_loom(data, known, author, said_before)


THREAD_FILES: tuple[ThreadFileAgent, ...] = (
    ThreadFileAgent(
        agent=LOOM,
        label="Loom",
        home=Home(
            variables=(("XDG_DATA_HOME", "loom/threads"),),
            folders=("~/.local/share/loom/threads",),
            patterns=("*.json",),
            suffix=".json",
        ),
    ),
    ThreadFileAgent(
        agent=QUORUM,
        label="quorum",
        home=Home(
            variables=(("NSED_THREAD_DIR", ""),),
            folders=("~/.nsed/threads",),
            patterns=("*.json",),
            suffix=".json",
        ),
    ),
)


def _read_loom(data: bytes, known: Known, author: Author, said_before: bytes | None) -> ThreadDelta:
    decoded = decode_file(data)
    before = known(decoded.id)
    thread = open_file(decoded, before, author)
    if before is None and not decoded.is_stamped:
        source = {"agent": LOOM, "session_id": decoded.id}
        thread.join(Delta(registers=imported_registers({}, [("source", 0, source)])))
    delta = diff(before if before is not None else Thread(decoded.id), thread)
    if before is not None and not decoded.is_as_written:
        delta = _said_anew(delta, before, registers_shown(decoded.plain), said_before)
    problems = tuple(Problem(line=0, reason=problem) for problem in decoded.problems)
    return ThreadDelta(thread_id=decoded.id, delta=delta, problems=problems)


def _said_anew(delta: Delta, before: Thread, shown: Mapping[str, Any], said_before: bytes | None) -> Delta:
    """Of a delta, what the file's program has changed since it was last read; where that is not known, what no
    person has set here."""
    told = _shown_in(said_before)

    def is_news(path: str) -> bool:
        if told is not None:
            return canonical_json(shown.get(path)) != canonical_json(told.get(path))
        register = before.registers.get(path)
        return register is None or not any(is_real_device(write.device) for write in register.writes)

    registers = {path: register for path, register in delta.registers.items() if is_news(path)}
    if not delta.messages and registers.keys() <= _TIMES:
        registers = {}
    version = delta.version if delta.messages or registers else before.version
    return msgspec.structs.replace(delta, version=version, registers=registers)


def _shown_in(data: bytes | None) -> Mapping[str, Any] | None:
    if data is None:
        return None
    try:
        return registers_shown(decode_file(data).plain)
    except FormatError:
        return None


def _read_quorum(data: bytes, known: Known) -> ThreadDelta:
    file = decode_quorum(data)
    problems = tuple(Problem(line=0, reason=problem) for problem in file.problems)
    exported_from = file.session_id if is_thread_id(file.session_id) else ""
    origin = known(exported_from) if exported_from else None
    if origin is not None and origin.id == exported_from:
        thread_id, delta = origin.id, file.turns_for(origin)
    else:
        thread_id, delta = file.thread_id, file.delta(known(file.thread_id))
    return ThreadDelta(thread_id=thread_id, delta=delta, problems=problems, exported_from=exported_from)
