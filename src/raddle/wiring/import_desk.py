"""The desk of an import: the one place where blobs, threads, index and ledger are written in one go.

Their order (blobs, thread files, index, ledger) is what makes a crash harmless. Between thread files and index
the threads that are on their way are noted (`_place_new`), so that a search finds them even then.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from raddle.actions.importing.importer import Links, Taken, Write
from raddle.actions.importing.joining import news_of
from raddle.actions.importing.registry import importer_of
from raddle.actions.importing.run import Converted
from raddle.actions.importing.run_plan import FileProblem, SessionPlan, SourceEntry, Task
from raddle.actions.importing.session import LARGEST_GROWTH_BYTES, read_session
from raddle.actions.importing.source_reading import Sources, without_bytes
from raddle.actions.ports import Placed
from raddle.adapters.agent_homes.collections import open_source
from raddle.adapters.agent_homes.discovery import name_of
from raddle.adapters.blobs.directory import BlobDirectory
from raddle.adapters.files import find_bytes
from raddle.adapters.local_store.search_bulk import Bulk
from raddle.adapters.local_store.search_dirty import Taken as Marks
from raddle.adapters.local_store.search_dirty import drop_taken, mark_dirty
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.adapters.workers import answers
from raddle.model.errors import NotFound, RaddleError, StorageError
from raddle.model.threads.codec import decode_file
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread, join_messages
from raddle.wiring import Stores
from raddle.wiring.fork_histories import first_session, settled
from raddle.wiring.import_worker import (
    BlobSink,
    Done,
    Failed,
    Remotes,
    Rows,
    Setup,
    convert_session,
    converted_of,
    decode_answer,
    encode_task,
    given_over,
    left_as_purged,
    left_to_rules,
    with_context,
    with_dropped,
)
from raddle.wiring.purging import drop_blobs
from raddle.wiring.resumed_copies import is_told_already, without_copy
from raddle.wiring.thread_file_joins import ThreadFileJoins, join_noted

SMALL_BYTES = 8 << 20
"""Up to this much is read in this process: starting workers would take longer."""


class ImportDesk:
    """Reads sessions and stores what they become (the port `Desk` of `run`).

    `known`: the ledger's entries, by path. `agents`: whose sessions are wanted. `revive`: purged threads may come back.
    """

    def __init__(
        self,
        stores: Stores,
        stack: contextlib.ExitStack,
        known: dict[str, SourceEntry],
        *,
        agents: AbstractSet[str],
        revive: bool,
    ) -> None:
        self._stores = stores
        self._stack = stack
        self._known_entries = known
        self._agents = frozenset(agents)
        self._threads = ThreadFiles(
            stores.paths, stores.locks, stores.author, changed=self._changed, report=stores.report
        )
        self._run = stores.author.new_id()
        self._remotes = Remotes()
        purged = stores.ledger.purged()
        self._purged = frozenset() if revive else frozenset(purged)
        self._to_revive = purged if revive else set()
        self._without_bytes = stores.ledger.without_bytes()
        self._new: set[str] = set()
        self._placing: set[str] = set()
        self._dropped: set[str] = set()
        self._holds_purged_words = False
        """Does the index, in pages that are only marked as free, hold words that were purged?"""
        self._bulk: Bulk | None = None
        self._files = ThreadFileJoins(stores, self._threads, known.get, self._purged)

    @functools.cached_property
    def _there(self) -> set[str]:
        """Threads that have their files, or will when what is prepared is placed."""
        return set(self._threads.ids())

    def _changed(self, thread_id: str) -> None:
        """A thread whose words are in the index already, or are about to be, needs no second look."""
        if thread_id not in self._placing:
            self._stores.mark_dirty(thread_id)

    def can_convert(self, session: SessionPlan) -> bool:
        """A log that was never read, or of which so much is new that it is read in bulk. Whole thread files are
        joined: another program may have raddle's own in hand."""
        return not self._files.reads(session.agent) and (
            (session.is_new and not session.base) or session.size > LARGEST_GROWTH_BYTES
        )

    def convert(self, sessions: Sequence[SessionPlan]) -> Iterator[Converted]:
        """In workers; each as it is done, its words in the index before its file is in its place."""
        total = sum(session.size for session in sessions)
        return self._convert(sessions, 0 if total <= SMALL_BYTES else min(os.cpu_count() or 1, 4))

    def _convert(self, sessions: Sequence[SessionPlan], processes: int) -> Iterator[Converted]:
        setup = Setup(
            run=self._run,
            threads_dir=str(self._stores.paths.threads_dir),
            blobs_dir=str(self._stores.paths.blobs_dir),
            rules=self._stores.rules,
            agents=self._agents,
            purged=self._purged,
        )
        tasks = (encode_task(self._task(session)) for session in sessions)
        if self._bulk is None:
            # Open until the whole run is over: what is converted last is still to be placed and committed.
            self._bulk = self._stack.enter_context(self._stores.index.bulk())
        stream = answers(functools.partial(convert_session, setup), tasks, processes=processes)
        self._stack.callback(stream.close)  # so that no worker outlives a run that breaks off
        for answer in stream:
            told = decode_answer(answer)
            if isinstance(told, Failed):
                raise StorageError(told.message, told.hint)
            if isinstance(told, Rows):
                self._bulk.write(told.session, told.ready)
            else:
                yield self._done(told, self._bulk)

    def _task(self, session: SessionPlan) -> Task:
        entries = {
            file.path: entry
            for file in (*session.files, *session.unplaced)
            if (entry := self._known_entries.get(file.path)) is not None
        }
        return Task(plan=session, entries=entries, links=self._links(session))

    def _done(self, done: Done, bulk: Bulk) -> Converted:
        """A thread that is there keeps what the index has of it, until what is new has joined."""
        converted = done.converted
        if converted.left_out or converted.thread_id in self._without_bytes:
            self._holds_purged_words = True
        is_there = converted.thread_id in self._there
        if not is_there and is_told_already(self._stores.paths, self._threads.load, self._purged, converted):
            bulk.forget(converted.plan.key)
            return self._kept(without_copy(self._stores.paths, converted))
        if done.summary is None or converted.thread_id in self._there:
            bulk.forget(converted.plan.key)
        else:
            bulk.finish(converted.plan.key, done.summary)
            self._there.add(converted.thread_id)
            self._new.add(converted.thread_id)
        return self._kept(converted)

    def place(self, batch: Sequence[Converted]) -> list[Converted]:
        """Thread files into their places, then the index on the disk."""
        self._stores.blobs.sync()  # the workers left the wait for the disk to us: once for a whole batch
        new = [converted for converted in batch if converted.thread_id in self._new]
        placed: dict[str, Converted] = {}
        for converted, result in zip(new, self._place_new(new), strict=True):
            if not result.is_new:  # somebody else brought it meanwhile
                self._stores.mark_dirty(converted.thread_id)
            placed[converted.plan.key] = msgspec.structs.replace(
                converted, is_new=result.is_new, has_news=result.has_news
            )
        for converted in batch:
            if converted.plan.key not in placed:
                placed[converted.plan.key] = self._join_or_tell(converted)
            self._revive(converted.thread_id)
        return [placed[converted.plan.key] for converted in batch]

    def _place_new(self, batch: Sequence[Converted]) -> list[Placed]:
        """Were the process to die in here, what is in its place and not in the index is taken in by a search, which
        reads the marks."""
        if not batch:
            return []
        self._placing = {converted.thread_id for converted in batch}
        self._new -= self._placing
        marks = self._stores.paths.placing_list(self._run)
        for thread_id in self._placing:
            mark_dirty(marks, thread_id)
        folder = self._stores.paths.threads_dir
        placed = self._threads.import_many(
            (converted.thread_id, str(folder / converted.prepared)) for converted in batch
        )
        assert self._bulk is not None
        for thread_id in self._placing:
            self._bulk.note_files(thread_id, self._stores.index.file_stamp(thread_id))
        self._bulk.commit()
        drop_taken(Marks((), (marks,)))
        self._placing = set()
        return placed

    def _join_or_tell(self, converted: Converted) -> Converted:
        """A thread that is there and cannot be read costs its session, not the batch."""
        try:
            return self._join_prepared(converted)
        except RaddleError as error:
            problem = FileProblem(path=converted.plan.files[0].path, reason=error.message)
            return Converted(plan=converted.plan, thread_id="", problems=(problem,))

    def _join_prepared(self, converted: Converted) -> Converted:
        """What was prepared, into the thread that is there; registers as an importer writes them."""
        path = self._stores.paths.threads_dir / converted.prepared
        try:
            prepared = decode_file(find_bytes(path) or b"").thread()
        finally:
            path.unlink(missing_ok=True)
        latest = {name: register.latest for name, register in prepared.registers.items()}
        writes = [(name, write.n, write.value) for name, write in latest.items()]
        put = {attachment.sha256 for message in prepared.tree for attachment in message.attachments}
        stored = _Stored(self._threads, converted.thread_id)
        return self._joined(converted, stored, prepared.tree, writes, put=put)

    def join(self, session: SessionPlan) -> Converted:
        """Read what is new of a session and join it into its thread."""
        if self._files.reads(session.agent):
            converted = self._files.join(session)
            self._revive(converted.thread_id)
            return converted
        return self._join_log(session)

    def _join_log(self, session: SessionPlan, *, is_given_over: bool = False) -> Converted:
        importer = importer_of(session.agent)
        stored = _Stored(self._threads, self._thread_of(session))
        sink = _JoinSink(self._stores.blobs)
        first = first_session(self._stores, self._threads, session)
        known = self._known_from_start if session.base else self._known
        try:
            read = read_session(
                importer,
                session,
                Sources(lambda file: name_of(importer, file), open_source, known),
                sink,
                links=self._links(session),
                lookup=stored.message,
                base=first.links,
                largest=LARGEST_GROWTH_BYTES,
            )
        finally:
            sink.drop_segment()
        if read.is_too_large:
            return self._in_bulk(session)
        other = None if is_given_over else given_over(session, read, self._agents)
        if other is not None:
            left = left_to_rules(other, read, self._stores.rules)
            converted = left or with_dropped(self._join_log(other, is_given_over=True), read)
            return self._kept(converted)
        if read.thread_id in self._purged:
            return self._kept(left_as_purged(importer, session, read, sink.put))
        converted = self._kept(converted_of(importer, session, read))
        if first.is_here:
            converted = settled(converted)
        if not read.thread_id:
            return converted
        writes = [*with_context(read.registers, self._stores.rules, self._remotes), *first.writes()]
        messages = [*first.history(sink.messages), *sink.messages.values()]
        moved = sink.moved | sink.messages.keys() if session.base else sink.moved
        joined = self._joined(converted, stored, messages, writes, put=sink.put, moved=moved)
        self._revive(read.thread_id)
        return joined

    def _in_bulk(self, session: SessionPlan) -> Converted:
        """A large file whose growth could not be read on its own: from its start, in a worker, as a new one is."""
        (converted,) = map(settled, self._convert([session], 1))
        return self.place([converted])[0] if converted.prepared else converted

    def _joined(
        self,
        converted: Converted,
        stored: _Stored,
        messages: Iterable[Message],
        writes: Iterable[Write],
        *,
        put: AbstractSet[str],
        moved: AbstractSet[str] = frozenset(),
    ) -> Converted:
        """`messages` and `writes` in the session's thread. `put`: attachments that were stored for them; what no
        message shows (the words were purged meanwhile, or another form won) goes again."""
        news = news_of(stored.thread(converted.thread_id), messages, writes, moved)
        stored.forget()  # or a large thread would be held twice: the store loads it under its lock
        self._dropped |= put - news.shown
        has_news = join_noted(self._stores, self._threads, converted.thread_id, news.delta)
        return msgspec.structs.replace(
            converted, prepared="", messages=news.new, is_new=news.is_first and has_news, has_news=has_news
        )

    def _kept(self, converted: Converted) -> Converted:
        """The same, its blobs that belong to nobody put down to be dropped."""
        self._dropped.update(converted.dropped)
        files = converted.files
        if converted.thread_id in self._without_bytes:
            self._dropped.update(file.segment.sha256 for file in files if file.segment is not None)
            files = tuple(without_bytes(file) for file in files)
        return msgspec.structs.replace(converted, files=files, dropped=())

    def tidy(self) -> None:
        """At the end: drop the blobs that were stored on the way and that nothing names, and words of purged turns."""
        drop_blobs(self._stores, self._dropped)
        if self._holds_purged_words:
            self._stores.index.optimize()

    def _revive(self, thread_id: str) -> None:
        if thread_id in self._to_revive:
            self._stores.ledger.revive(thread_id)
            self._to_revive.discard(thread_id)

    def _thread_of(self, session: SessionPlan) -> str:
        paths = (*session.known, *(file.path for file in session.files))
        entries = (self._known_entries.get(path) for path in paths)
        return next((entry.thread_id for entry in entries if entry is not None and entry.thread_id), "")

    def _known(self, path: str) -> tuple[SourceEntry, bytes] | None:
        entry = self._known_entries.get(path)
        if entry is None:
            return None
        return entry, (self._stores.ledger.state_of(path) or b"") if entry.read_to else b""

    def _known_from_start(self, path: str) -> tuple[SourceEntry, bytes] | None:
        known = self._known(path)
        return None if known is None else (known[0], b"")

    def _links(self, session: SessionPlan) -> Links | None:
        """What the session's files told when they were last read."""
        importer = importer_of(session.agent)
        told: Links | None = None
        for path in session.known:
            links = importer.links(self._stores.ledger.state_of(path) or b"")
            if links is not None:
                told = links if told is None else told.joined(links)
        return told


class _JoinSink(BlobSink):
    """Holds the messages of one reading, each id once. `moved`: those whose place was found anew."""

    def __init__(self, blobs: BlobDirectory) -> None:
        super().__init__(blobs)
        self.messages: dict[str, Message] = {}
        self.moved: set[str] = set()

    def take(self, taken: Taken, *, anew: bool = False) -> None:
        """Messages and blobs, as they are finished."""
        self.keep_blobs(taken)
        for message in taken.messages:
            before = self.messages.get(message.id)
            stands = message if before is None or anew else join_messages(before, message)
            self.messages[message.id] = stands
            if anew:
                self.moved.add(message.id)


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

    def forget(self) -> None:
        """Hold it no longer."""
        self._loaded.clear()

    def message(self, message_id: str) -> Message | None:
        """A stored message of the session's thread."""
        thread = self.thread(self._thread_id) if self._thread_id else None
        return None if thread is None else thread.tree.get(message_id)
