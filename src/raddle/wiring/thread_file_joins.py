"""Whole thread files of other programs (Loom, quorum, an export of our own) joined into the threads here.

Such a file is small, and a state rather than a log: it is read at once, and what it says otherwise than it did
the last time is what its program changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from raddle.actions.importing.importer import Problem
from raddle.actions.importing.privacy import private_writes
from raddle.actions.importing.run import Converted
from raddle.actions.importing.run_plan import (
    PURGED,
    Segment,
    SessionPlan,
    SourceEntry,
    SourceFile,
)
from raddle.actions.importing.source_reading import FileRead
from raddle.actions.importing.thread_files import THREAD_FILES, ThreadDelta
from raddle.adapters.agent_homes.source_bytes import read_whole
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.model.errors import FormatError, NotFound
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import imported_registers
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores

_AGENTS = {one.agent: one for one in THREAD_FILES}
_PRIVACY = ("is_private", "visibility")


class ThreadFileJoins:
    """Reads thread files and joins them. `known`: path -> ledger entry."""

    def __init__(
        self,
        stores: Stores,
        threads: ThreadFiles,
        known: Callable[[str], SourceEntry | None],
        purged: frozenset[str],
    ) -> None:
        self._stores = stores
        self._threads = threads
        self._known = known
        self._purged = purged

    def reads(self, agent: str) -> bool:
        """Are the files of this agent whole threads?"""
        return agent in _AGENTS

    def join(self, session: SessionPlan) -> Converted:
        """Read the session's one file and join what it says anew; a file that holds no thread costs itself."""
        (file,) = session.files
        agent = _AGENTS[session.agent]
        data = read_whole(file.path)
        before = self._known(file.path)
        try:
            found = agent.read(data, self._load, self._stores.author, self._said_before(file.path, before))
        except FormatError as error:
            problem = Problem(line=0, reason=error.message)
            nothing = _read(file, data, before, thread_id="", problems=(problem,))
            return Converted(plan=session, thread_id="", files=(nothing,))
        read = _read(file, data, before, thread_id=found.thread_id, problems=found.problems)
        is_purged = not self._purged.isdisjoint((found.thread_id, found.exported_from))
        left_out = PURGED if is_purged else self._left_out(file, found)
        if left_out:
            files = (read,) if left_out == PURGED else ()
            return Converted(plan=session, thread_id=found.thread_id, files=files, left_out=left_out)
        return self._join(session, found, read, data)

    def _join(self, session: SessionPlan, found: ThreadDelta, read: FileRead, data: bytes) -> Converted:
        known = self._load(found.thread_id)
        segment = None
        if found.thread_id not in self._stores.ledger.without_bytes():
            segment = Segment(
                generation=read.entry.generation,
                start=0,
                end=len(data),
                sha256=self._stores.blobs.put(data, compress=True),
                thread_id=found.thread_id,
            )
        delta = self._with_privacy(found, known)
        has_news = join_noted(self._stores, self._threads, found.thread_id, delta)
        return Converted(
            plan=session,
            thread_id=found.thread_id,
            files=(msgspec.structs.replace(read, segment=segment),),
            messages=sum(known is None or message.id not in known.tree for message in delta.messages),
            is_new=known is None and has_news,
            has_news=has_news,
        )

    def _left_out(self, file: SourceFile, found: ThreadDelta) -> str:
        """The rule that leaves this thread out; its workspace is known only now, and nothing is stored yet."""
        return self._stores.rules.leaves_out(file.path, _joined(found, self._load).plain("workspace_root"))

    def _with_privacy(self, found: ThreadDelta, known: Thread | None) -> Delta:
        """The delta, and what the config's rules say of its thread, unless a person said otherwise."""
        thread = _joined(found, lambda _: known)
        workspace, remote = thread.plain("workspace_root"), thread.plain("git_remote_url")
        if not self._stores.rules.makes_private(workspace, remote):
            return found.delta
        registers = {
            path: register for path, register in found.delta.registers.items() if path not in _PRIVACY
        }
        before = {} if known is None else known.registers
        registers |= imported_registers(before, private_writes(0))
        return msgspec.structs.replace(found.delta, registers=registers)

    def _said_before(self, path: str, entry: SourceEntry | None) -> bytes | None:
        """The file as it was when it was last read; None where that is not known."""
        if entry is None or not entry.thread_id:
            return None
        kept = [one for at, one in self._stores.ledger.segments_of(entry.thread_id) if at == path]
        if not kept:
            return None
        try:
            return self._stores.blobs.read(max(kept, key=lambda one: one.generation).sha256)
        except (NotFound, FormatError):
            return None

    def _load(self, thread_id: str) -> Thread | None:
        try:
            return self._threads.load(thread_id)
        except NotFound:
            return None


def join_noted(stores: Stores, threads: ThreadFiles, thread_id: str, delta: Delta) -> bool:
    """Join what is new into a thread; was there anything? It is noted for the index before it is written, too.

    Were it only noted after, and the process died between, no later import would have any news to note.
    """
    if delta.is_empty:
        return False
    stores.mark_dirty(thread_id)
    return threads.join(thread_id, delta)


def _joined(found: ThreadDelta, load: Callable[[str], Thread | None]) -> Thread:
    """The thread as it will be."""
    known = load(found.thread_id)
    thread = Thread(found.thread_id) if known is None else known.copy()
    thread.join(found.delta)
    return thread


def _read(
    file: SourceFile,
    data: bytes,
    before: SourceEntry | None,
    *,
    thread_id: str,
    problems: tuple[Problem, ...] = (),
) -> FileRead:
    """What the ledger keeps of a file that is read whole each time: every change opens a generation."""
    entry = SourceEntry(
        path=file.path,
        agent=file.agent,
        session=file.session,
        thread_id=thread_id,
        size=file.size,
        mtime_ns=file.mtime_ns,
        inode=file.inode,
        read_to=len(data),
        lines=data.count(b"\n"),
        head=hashlib.sha256(data).hexdigest()[:32],
        tail="",
        generation=0 if before is None else before.generation + 1,
        problems=len(problems),
    )
    return FileRead(entry=entry, state=b"", segment=None, problems=problems)
