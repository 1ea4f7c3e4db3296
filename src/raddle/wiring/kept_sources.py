"""Threads built anew from the source bytes that their imports kept: what is left where every file of one is lost.

The bytes are read as the import read the agent's own files, and the ids are derived, so what comes out is the
same thread. A second way of reading them would make a second thread of one session.
"""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec

from raddle.actions.importing.importer import SourceName, Taken
from raddle.actions.importing.joining import news_of
from raddle.actions.importing.privacy import private_writes
from raddle.actions.importing.registry import importer_of, importers
from raddle.actions.importing.rules import Rules
from raddle.actions.importing.run_plan import Segment, SessionPlan, SourceEntry, SourceFile, plan_import
from raddle.actions.importing.session import read_session
from raddle.actions.importing.source_reading import KeepBytes, SourceError, Sources
from raddle.actions.importing.thread_files import THREAD_FILES
from raddle.actions.ports import is_empty
from raddle.adapters.agent_homes.discovery import Agent, name_of
from raddle.adapters.agent_homes.source_bytes import SourceBytes
from raddle.adapters.blobs.directory import BlobDirectory
from raddle.adapters.files import NewFile, make_folder
from raddle.adapters.local_store.doctor import Kept
from raddle.model.errors import FormatError, StorageError
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import imported_registers
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread, join_messages
from raddle.wiring import Stores
from raddle.wiring.fork_histories import first_session
from raddle.wiring.import_worker import BlobSink, Remotes, with_context
from raddle.wiring.source_names import root_of
from raddle.wiring.source_segments import bytes_of, generations_in

HEAD_BYTES = 1 << 16
_THREAD_FILES = {agent.agent: agent for agent in THREAD_FILES}


class KeptSources:
    """The source bytes of this store's threads."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._remotes = Remotes()
        self._said: dict[str, bytes] = {}
        """Path -> what a thread file said in its generation before."""

    @functools.cached_property
    def _entries(self) -> dict[str, SourceEntry]:
        return self._stores.ledger.entries()

    def thread_ids(self) -> set[str]:
        """Every thread of which source bytes are kept, and that was not purged."""
        ledger = self._stores.ledger
        named = {entry.thread_id for entry in self._entries.values()} | set(ledger.kept_blobs().values())
        return named - {""} - ledger.purged()

    def of(self, thread_id: str) -> Kept | None:
        """What the source bytes say of a thread; None where none are kept, or it was purged."""
        if thread_id in self._stores.ledger.purged():
            return None
        files, is_whole = self._files(thread_id)
        thread = Thread(thread_id)
        self._said = {}
        for turn in range(max(map(len, files.values()), default=0)):
            # Each file in its next generation, or in the last it has: every one is read, the oldest first.
            self._join(thread, {path: each[min(turn, len(each) - 1)] for path, each in files.items()})
        if is_empty(thread):
            return None
        self._keep_private(thread)
        return Kept(delta=thread.whole(), is_whole=is_whole)

    def _files(self, thread_id: str) -> tuple[dict[str, list[list[Segment]]], bool]:
        """(path -> its generations, the oldest first, as far as they are there; are all there?)"""
        kept = self._stores.ledger.segments_of(thread_id)
        there = [(path, segment) for path, segment in kept if self._stores.blobs.is_whole(segment.sha256)]
        files = {path: list(each.values()) for path, each in generations_in(there).items()}
        return files, len(there) == len(kept)

    def _join(self, thread: Thread, files: dict[str, list[Segment]]) -> None:
        """Read these files as one import would have, and join what they say of the thread."""
        sources = (self._source(path, generation) for path, generation in files.items())
        found = [source for source in sources if source is not None]
        sessions = plan_import(found, {}, Rules()).sessions
        # An export with which another program went on adds turns to a session that has to be there.
        for session in sorted(sessions, key=lambda session: session.agent in _THREAD_FILES):
            if session.agent in _THREAD_FILES:
                for file in session.files:
                    self._join_thread_file(thread, file, files[file.path])
            else:
                self._join_session(thread, session, files)

    def _source(self, path: str, generation: list[Segment]) -> SourceFile | None:
        """The file as it would be found; None where it is no agent's that is known."""
        entry = self._entries.get(path)
        if entry is not None:
            agent, session, is_main = entry.agent, entry.session, entry.is_main
        else:
            head = b"".join(bytes_of(self._stores.blobs, generation))[:HEAD_BYTES]
            found = placed(Path(path), head)
            if found is None:
                return None
            agent, session, is_main = found
        size = generation[-1].end
        return SourceFile(
            path=path,
            agent=agent,
            session=session,
            size=size,
            mtime_ns=0,
            inode=0,
            is_main=is_main,
            root=root_of(path),
            base=self._base_of(path, agent, generation) if is_main and agent not in _THREAD_FILES else "",
        )

    def _base_of(self, path: str, agent: str, generation: list[Segment]) -> str:
        """The session that a file's session was forked from, where only that one's holds the turns before."""
        head = b""
        for part in bytes_of(self._stores.blobs, generation):
            head += part
            if len(head) >= HEAD_BYTES:
                break
        place = importer_of(agent).place(_name_of(Path(path)), head[:HEAD_BYTES])
        return "" if place is None else place.base

    def _join_session(self, thread: Thread, session: SessionPlan, files: dict[str, list[Segment]]) -> None:
        importer = importer_of(session.agent)
        sink = _Sink(self._stores.blobs)
        forked_from = msgspec.structs.replace(session, base=session.files[0].base)
        first = first_session(self._stores, self._stores.threads, forked_from)
        read = read_session(
            importer,
            session,
            Sources(
                name_of=lambda file: name_of(importer, file),
                open=lambda file: _KeptBytes(self._stores, files[file.path]),
                known=lambda _: None,
            ),
            sink,
            links=None,
            lookup=lambda _: None,
            base=first.links,
        )
        if read.thread_id == thread.id:
            writes = [*with_context(read.registers, self._stores.rules, self._remotes), *first.writes()]
            messages = [*first.history(sink.messages), *sink.messages.values()]
            thread.join(news_of(thread, messages, writes, sink.moved).delta)

    def _join_thread_file(self, thread: Thread, file: SourceFile, generation: list[Segment]) -> None:
        """A file that is a whole thread: of what it says the thread holds what its program changed since then."""
        data = b"".join(bytes_of(self._stores.blobs, generation))
        before, self._said[file.path] = self._said.get(file.path), data
        if data == before:
            return
        known = None if is_empty(thread) else thread.copy()
        try:
            found = _THREAD_FILES[file.agent].read(data, lambda _: known, self._stores.author, before)
        except FormatError:
            return
        if found.thread_id == thread.id:
            thread.join(found.delta)

    def _keep_private(self, thread: Thread) -> None:
        """Private where a rule of the config says so, or where the list still knows it was."""
        listed = self._stores.index.get(thread.id)
        was_private = listed is not None and (listed.is_private or listed.visibility == "private")
        remote = thread.plain("git_remote_url")
        if was_private or self._stores.rules.makes_private(thread.plain("workspace_root"), remote):
            thread.join(Delta(registers=imported_registers(thread.registers, private_writes(0))))


class _Sink(BlobSink):
    """Holds the messages of one reading, each id once. `moved`: those whose place was found anew."""

    def __init__(self, blobs: BlobDirectory) -> None:
        super().__init__(blobs)
        self.messages: dict[str, Message] = {}
        self.moved: set[str] = set()

    def begin_segment(self) -> KeepBytes:
        """They are kept already."""
        return lambda _: None

    def end_segment(self) -> str:
        """Nothing new has a name."""
        return ""

    def take(self, taken: Taken, *, anew: bool = False) -> None:
        """Messages and blobs, as they are finished."""
        self.keep_blobs(taken)
        for message in taken.messages:
            before = self.messages.get(message.id)
            stands = message if before is None or anew else join_messages(before, message)
            self.messages[message.id] = stands
            if anew:
                self.moved.add(message.id)


class _KeptBytes(SourceBytes):
    """A source file as it was kept, laid together under a temporary name until it is closed."""

    def __init__(self, stores: Stores, generation: list[Segment]) -> None:
        try:
            make_folder(stores.paths.cache_dir)
            self._file = NewFile(stores.paths.cache_dir)
        except StorageError as error:
            raise SourceError(error.message, error.hint) from error
        try:
            for data in bytes_of(stores.blobs, generation):
                self._file.write(data)
            super().__init__(str(self._file.path))
        except BaseException:
            self._file.discard()
            raise

    def close(self) -> None:
        """Let go of the file, and remove it."""
        super().close()
        self._file.discard()


def _name_of(path: Path) -> SourceName:
    return SourceName(name=path.name, folders=path.parent.parts[1:])


def placed(path: Path, head: bytes) -> tuple[str, str, bool] | None:
    """(agent, session, is it the main file) of a file that the ledger names no agent of; `head`: HEAD_BYTES of it."""
    name = _name_of(path)
    agents: tuple[Agent, ...] = (*importers(), *THREAD_FILES)
    for agent in agents:
        place = agent.place(name, head) if path.name.endswith(agent.home.suffixes) else None
        if place is not None:
            return agent.agent, place.session, not place.is_part
    return None
