"""An import with everything it needs: finds the files, reads them in workers, stores what they become.

The desk below is the one place where threads, blobs, index and ledger are written in one go; their order
(blobs, thread files, index, ledger) is what makes a crash harmless.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from raddle.actions.importing.importer import Importer, Links, Taken
from raddle.actions.importing.registry import IMPORTERS, importer_of
from raddle.actions.importing.run import (
    Converted,
    FileDone,
    ImportReport,
    LeftOut,
    Progress,
    plan_of,
    run_import,
)
from raddle.actions.importing.run_plan import Plan, Segment, SessionPlan, SourceEntry, SourceFile
from raddle.actions.importing.session import read_session
from raddle.actions.importing.thread_files import THREAD_FILES, ThreadDelta, ThreadFileAgent
from raddle.adapters.agent_homes.discovery import Agent, find_at, find_in_homes, name_of
from raddle.adapters.agent_homes.source_bytes import SourceBytes
from raddle.adapters.files import find_bytes, make_folder
from raddle.adapters.local_store.search_bulk import Bulk
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.adapters.workers import answers
from raddle.model.errors import InvalidInput, NotFound
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import imported_registers
from raddle.model.threads.message import Message
from raddle.model.threads.query_times import parse_moment
from raddle.model.threads.register import Register
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores
from raddle.wiring.import_worker import BlobSink, Done, Remotes, Rows, Setup, convert_session, converted_of
from raddle.wiring.import_worker import decode_answer, encode_task, with_context

_THREAD_FILE_AGENTS = {one.agent: one for one in THREAD_FILES}

SMALL_BYTES = 8 << 20
"""Up to this much is read in this process: starting workers would take longer."""


class PlannedAgent(Struct, frozen=True, kw_only=True):
    """What an import would read of one agent."""

    agent: str
    sessions: int
    size: int


def dry_run(stores: Stores, what: Sequence[str], *, since: str | None) -> list[PlannedAgent]:
    """What an import would read now."""
    plan, _ = _plan(stores, what, since)
    agents = dict.fromkeys(session.agent for session in plan.sessions)
    return [
        PlannedAgent(
            agent=agent,
            sessions=sum(session.agent == agent for session in plan.sessions),
            size=sum(session.size for session in plan.sessions if session.agent == agent),
        )
        for agent in agents
    ]


def import_sessions(
    stores: Stores, what: Sequence[str], *, since: str | None, revive: bool, progress: Progress
) -> ImportReport:
    """Find what is new of the agents or paths named in `what` (all agents where it is empty), and store it."""
    with stores.locks.held("import", timeout_seconds=5):
        plan, left_out = _plan(stores, what, since)
        if not plan.sessions:
            return run_import(plan, left_out, stores.ledger, _Idle(), progress)
        make_folder(stores.paths.threads_dir)
        with contextlib.ExitStack() as stack:
            return run_import(plan, left_out, stores.ledger, _Desk(stores, stack, revive=revive), progress)


def _plan(stores: Stores, what: Sequence[str], since: str | None) -> tuple[Plan, list[LeftOut]]:
    known = stores.ledger.entries()
    found = list(_find(stores, what, known))
    if since is not None:
        moment = parse_moment(since, stores.clock())
        if moment is None:
            raise InvalidInput(f"{since!r} is not a time", "for example 2026-11-30, 7d or 12h")
        found = [file for file in found if file.mtime_ns // 1000 >= moment]
    return plan_of(found, known, stores.rules.leaves_out)


def _find(stores: Stores, what: Sequence[str], known: dict[str, SourceEntry]) -> Iterator[SourceFile]:
    known_agents: tuple[Agent, ...] = (*IMPORTERS, *THREAD_FILES)
    names = {agent.agent for agent in known_agents}
    for path in what:
        if path not in names:
            if os.path.sep not in path and not Path(path).exists():
                raise NotFound(
                    "agent or path",
                    path,
                    f"agents: {', '.join(sorted(names))}; a path names a file or folder",
                )
            yield from find_at(known_agents, path, known)
    chosen = [agent for agent in known_agents if agent.agent in what]
    if chosen or not what:
        home = Path(stores.config.environment("HOME") or "~").expanduser()
        yield from find_in_homes(chosen or known_agents, stores.config.environment, home, known)


class _Idle:
    """The desk of an import that has nothing to do."""

    def convert(self, sessions: Sequence[SessionPlan]) -> Iterator[Converted]:
        """Nothing."""
        return iter(())

    def can_convert(self, session: SessionPlan) -> bool:
        """None."""
        return False

    def join(self, session: SessionPlan) -> Converted:
        """Never asked."""
        raise AssertionError(session)

    def place(self, batch: Sequence[Converted]) -> list[Converted]:
        """Nothing."""
        return []


class _Desk:
    """Reads sessions and stores what they become (the port `Desk` of `run`)."""

    def __init__(self, stores: Stores, stack: contextlib.ExitStack, *, revive: bool) -> None:
        self._stores = stores
        self._stack = stack
        self._threads = ThreadFiles(stores.paths, stores.locks, stores.author, changed=self._changed)
        self._remotes = Remotes()
        self._purged = set() if revive else stores.ledger.purged()
        self._revive = revive
        self._bulk: Bulk | None = None
        self._placing: set[str] = set()

    def _changed(self, thread_id: str) -> None:
        """A thread whose words are in the index already, or are about to be, needs no second look."""
        if thread_id not in self._placing:
            self._stores.mark_dirty(thread_id)

    # -- sessions that were never read ---------------------------------------------------------

    def convert(self, sessions: Sequence[SessionPlan]) -> Iterator[Converted]:
        """In workers; each as it is done, its words in the index before its file is in its place."""
        total = sum(session.size for session in sessions)
        setup = Setup(
            threads_dir=str(self._stores.paths.threads_dir),
            blobs_dir=str(self._stores.paths.blobs_dir),
            rules=self._stores.rules,
        )
        processes = 0 if total <= SMALL_BYTES else min(os.cpu_count() or 1, 4)
        tasks = (encode_task(session) for session in sessions)
        # Open until the whole run is over: what is converted last is still to be placed and committed.
        self._bulk = bulk = self._stack.enter_context(self._stores.index.bulk())
        for answer in answers(functools.partial(convert_session, setup), tasks, processes=processes):
            told = decode_answer(answer)
            if isinstance(told, Rows):
                bulk.add(told.session, told.rows)
            else:
                yield self._done(told, bulk)

    def _done(self, done: Done, bulk: Bulk) -> Converted:
        converted = done.converted
        if done.summary is None:
            bulk.forget(done.session)
            return converted
        if converted.thread_id in self._purged:
            bulk.forget(done.session)
            self._drop(converted)
            reason = "it was purged here (--revive brings it back)"
            return msgspec.structs.replace(converted, prepared="", left_out=reason, has_news=False)
        bulk.finish(done.session, done.summary)
        return converted

    def _drop(self, converted: Converted) -> None:
        (self._stores.paths.threads_dir / converted.prepared).unlink(missing_ok=True)
        for file in converted.files:
            if file.segment is not None:
                self._stores.blobs.delete(file.segment.sha256)

    def place(self, batch: Sequence[Converted]) -> list[Converted]:
        """Thread files into their places, then the index on the disk."""
        if not batch:
            return []
        self._stores.blobs.sync()  # the workers left the wait for the disk to us: once for a whole batch
        folder = self._stores.paths.threads_dir
        self._placing = {converted.thread_id for converted in batch}
        placed = self._threads.import_many(
            (converted.thread_id, str(folder / converted.prepared)) for converted in batch
        )
        if self._bulk is not None:
            self._bulk.commit()
        self._placing = set()
        done = []
        for converted, result in zip(batch, placed, strict=True):
            if not result.is_new:
                self._stores.mark_dirty(converted.thread_id)
            if self._revive:
                self._stores.ledger.note_purged(converted.thread_id, is_purged=False)
            done.append(msgspec.structs.replace(converted, is_new=result.is_new, has_news=result.has_news))
        return done

    # -- sessions whose thread may be there ----------------------------------------------------

    def can_convert(self, session: SessionPlan) -> bool:
        """A log that was never read. Whole thread files are joined: another program may have raddle's own in hand."""
        return session.is_new and session.agent not in _THREAD_FILE_AGENTS

    def join(self, session: SessionPlan) -> Converted:
        """Read what is new of a session and join it into its thread."""
        if session.agent in _THREAD_FILE_AGENTS:
            return self._join_files(_THREAD_FILE_AGENTS[session.agent], session)
        importer = importer_of(session.agent)
        stored = _Stored(self._threads, self._thread_of(session))
        sink = _JoinSink(self._stores)
        try:
            read = read_session(
                importer,
                session,
                name_of=lambda file: name_of(importer, file),
                open_source=SourceBytes,
                known=self._known,
                links=self._links(importer, session),
                lookup=stored.message,
                sink=sink,
            )
        finally:
            sink.drop_segment()
        if not read.thread_id or read.thread_id in self._purged:
            return converted_of(importer, session, read, messages=0, has_news=False)
        thread = stored.thread(read.thread_id)
        registers = thread.registers if thread is not None else {}
        writes = with_context(read.registers, self._stores.rules, self._remotes)
        delta = Delta(messages=tuple(sink.messages), registers=imported_registers(registers, writes))
        has_news = self._threads.join(read.thread_id, delta)
        new = len(
            {message.id for message in sink.messages if thread is None or message.id not in thread.tree}
        )
        return converted_of(importer, session, read, messages=new, has_news=has_news, is_new=thread is None)

    def _join_files(self, agent: ThreadFileAgent, session: SessionPlan) -> Converted:
        """Read whole thread files and join what they say."""
        stored = _Stored(self._threads, "")
        done: list[FileDone] = []
        has_news = is_new = False
        messages, thread_id = 0, ""
        for file in session.files:
            data = read_whole(file.path)
            found = agent.read(data, stored.thread, self._stores.author)
            thread_id = found.thread_id
            entry = whole_entry(file, data, thread_id, self._known(file.path))
            if thread_id in self._purged:
                continue
            before = stored.thread(thread_id)
            delta = msgspec.structs.replace(
                found.delta, registers={**found.delta.registers, **self._private(found)}
            )
            is_new = is_new or before is None
            has_news = self._threads.join(thread_id, delta) or has_news
            messages += sum(before is None or message.id not in before.tree for message in delta.messages)
            sha256 = self._stores.blobs.put(data, compress=True)
            segment = Segment(
                generation=entry.generation, start=0, end=len(data), sha256=sha256, thread_id=thread_id
            )
            done.append(FileDone(entry=entry, state=b"", segment=segment, problems=found.problems))
        return Converted(
            plan=session,
            thread_id=thread_id,
            files=tuple(done),
            messages=messages,
            is_new=is_new and has_news,
            has_news=has_news,
        )

    def _private(self, found: ThreadDelta) -> dict[str, Register]:
        """What the config's rules say of a thread that is met for the first time."""
        thread = Thread(found.thread_id)
        thread.join(found.delta)
        workspace, remote = thread.plain("workspace_root"), thread.plain("git_remote_url")
        if not self._stores.rules.makes_private(workspace, remote):
            return {}
        return imported_registers({}, [("is_private", 0, True)])

    def _thread_of(self, session: SessionPlan) -> str:
        for file in session.files:
            known = self._known(file.path)
            if known is not None and known[0].thread_id:
                return known[0].thread_id
        return ""

    def _known(self, path: str) -> tuple[SourceEntry, bytes] | None:
        entry = self._entries.get(path)
        return None if entry is None else (entry, self._stores.ledger.state_of(path) or b"")

    @functools.cached_property
    def _entries(self) -> dict[str, SourceEntry]:
        return self._stores.ledger.entries()

    def _links(self, importer: Importer, session: SessionPlan) -> Links | None:
        """What the session's main file told when it was last read, where only its parts are read now."""
        if session.files[0].is_main:
            return None
        told: Links | None = None
        for entry in self._entries.values():
            if entry.session == session.session and entry.agent == session.agent:
                links = importer.links(self._stores.ledger.state_of(entry.path) or b"")
                told = links if told is None or links is None else told.joined(links)
        return told


def read_whole(path: str) -> bytes:
    """All bytes of a small file of another program."""
    data = find_bytes(Path(path))
    if data is None:
        raise NotFound("file", path, "it went away while it was being imported")
    return data


def whole_entry(
    file: SourceFile, data: bytes, thread_id: str, known: tuple[SourceEntry, bytes] | None
) -> SourceEntry:
    """The ledger's row of a file that is read whole each time."""
    return SourceEntry(
        path=file.path,
        agent=file.agent,
        session=file.session,
        thread_id=thread_id,
        size=file.size,
        mtime_ns=file.mtime_ns,
        inode=file.inode,
        read_to=len(data),
        lines=data.count(b"\n"),
        head="",
        tail="",
        generation=0 if known is None else known[0].generation + 1,
    )


class _JoinSink(BlobSink):
    """Holds the messages of one reading."""

    def __init__(self, stores: Stores) -> None:
        super().__init__(stores.blobs)
        self.messages: list[Message] = []

    def take(self, taken: Taken) -> None:
        """Messages and blobs, as they are finished."""
        self.keep_blobs(taken)
        self.messages.extend(taken.messages)


class _Stored:
    """The thread a session belongs to, loaded when somebody first asks for a message of it."""

    def __init__(self, threads: ThreadFiles, thread_id: str) -> None:
        self._threads = threads
        self._loaded: dict[str, Thread | None] = {}
        self._thread_id = thread_id

    def thread(self, thread_id: str) -> Thread | None:
        """The thread; None where it is not there."""
        if thread_id not in self._loaded:
            try:
                self._loaded[thread_id] = self._threads.load(thread_id)
            except NotFound:
                self._loaded[thread_id] = None
        return self._loaded[thread_id]

    def message(self, message_id: str) -> Message | None:
        """A stored message of the session's thread."""
        thread = self.thread(self._thread_id) if self._thread_id else None
        return None if thread is None else thread.tree.get(message_id)
