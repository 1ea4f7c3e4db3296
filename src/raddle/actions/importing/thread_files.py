"""Threads that other programs keep one to a JSON file: the two seeds' programs, and raddle's own exports.

Such a file is a whole state and not a log, so it is no `Importer`: it is read at once, and joined on top of
what is known of its thread (`adopt` for the first seed's, `quorum` for the second's).
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from raddle.actions.importing.importer import Home, Place, Problem, SourceName
from raddle.model.threads.adopt import open_file
from raddle.model.threads.codec import decode_file
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Author, imported_registers
from raddle.model.threads.quorum import AGENT as QUORUM
from raddle.model.threads.quorum import decode_quorum
from raddle.model.threads.thread import Thread, diff

LOOM = "loom"

_LOOM_HEAD = re.compile(rb'"conversation"\s*:|"id"\s*:\s*"T-[0-9a-fA-F]{8}-')
_QUORUM_HEAD = re.compile(rb'"subject"\s*:')

Known = Callable[[str], Thread | None]
"""What is stored of a thread; None where it is not there."""


class ThreadDelta(Struct, frozen=True, kw_only=True):
    """What a file adds to its thread."""

    thread_id: str
    delta: Delta
    problems: tuple[Problem, ...]


class ThreadFileAgent(Struct, frozen=True, kw_only=True):
    """A program whose files are whole threads."""

    agent: str
    label: str
    home: Home

    def place(self, source: SourceName, head: bytes) -> Place | None:
        """The file's own session, where it looks like a thread of this program."""
        is_quorum = _QUORUM_HEAD.search(head) is not None and b'"conversation"' not in head
        is_ours = is_quorum if self.agent == QUORUM else not is_quorum and _LOOM_HEAD.search(head) is not None
        return Place(session="/".join((*source.folders, source.name))) if is_ours else None

    def read(self, data: bytes, known: Known, author: Author) -> ThreadDelta:
        """The file's bytes as a Delta. FormatError where they hold no thread that can be read."""
        return _read_quorum(data, known) if self.agent == QUORUM else _read_loom(data, known, author)


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


def _read_loom(data: bytes, known: Known, author: Author) -> ThreadDelta:
    decoded = decode_file(data)
    before = known(decoded.id)
    thread = open_file(decoded, before, author)
    if before is None and not decoded.is_stamped:
        source = {"agent": LOOM, "session_id": decoded.id}
        thread.join(Delta(registers=imported_registers({}, [("source", 0, source)])))
    delta = diff(before if before is not None else Thread(decoded.id), thread)
    problems = tuple(Problem(line=0, reason=problem) for problem in decoded.problems)
    return ThreadDelta(thread_id=decoded.id, delta=delta, problems=problems)


def _read_quorum(data: bytes, known: Known) -> ThreadDelta:
    file = decode_quorum(data)
    problems = tuple(Problem(line=0, reason=problem) for problem in file.problems)
    return ThreadDelta(thread_id=file.thread_id, delta=file.delta(known(file.thread_id)), problems=problems)
