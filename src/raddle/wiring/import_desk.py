"""The desk of an import: the one place where blobs, threads, index and ledger are written in one go.

Their order (blobs, thread files, index, ledger) is what makes a crash harmless. Between thread files and index
the threads that are on their way are noted (`_Placing`), so that a search finds them even then.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from raddle.actions.importing.importer import Importer, Links, Taken
from raddle.actions.importing.registry import importer_of
from raddle.actions.importing.run import Converted
from raddle.actions.importing.run_plan import PURGED, SessionPlan, SourceEntry, Task
from raddle.actions.importing.session import LARGEST_GROWTH_BYTES, SessionRead, read_session, without_thread
from raddle.actions.importing.source_reading import FileRead, Sources
from raddle.adapters.agent_homes.discovery import name_of
from raddle.adapters.agent_homes.source_bytes import SourceBytes
from raddle.adapters.files import find_bytes
from raddle.adapters.local_store.search_bulk import Bulk
from raddle.adapters.local_store.search_dirty import Taken as Marks
from raddle.adapters.local_store.search_dirty import drop_taken, mark_dirty
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.adapters.workers import answers
from raddle.model.errors import NotFound, StorageError
from raddle.model.threads.codec import decode_file
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import imported_registers
from raddle.model.threads.message import Message, changed
from raddle.model.threads.thread import Thread, join_messages
from raddle.wiring import Stores
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
    with_context,
)
from raddle.wiring.purging import drop_blobs
from raddle.wiring.thread_file_joins import ThreadFileJoins

SMALL_BYTES = 8 << 20
"""Up to this much is read in this process: starting workers would take longer."""


class ImportDesk:
    """Reads sessions and stores what they become (the port `Desk` of `run`).

    `known`: the ledger's entries, by path. `revive`: purged threads may come back.
    """

    def __init__(
        self,
        stores: Stores,
        stack: contextlib.ExitStack,
        known: dict[str, SourceEntry],
        *,
        revive: bool,
    ) -> None:
        self._stores = stores
        self._stack = stack
        self._known_entries = known
        self._threads = ThreadFiles(
            stores.paths, stores.locks, stores.author, changed=self._changed, report=stores.report
        )
        self._remotes = Remotes()
        purged = stores.ledger.purged()
        self._purged = frozenset() if revive else frozenset(purged)
        self._to_revive = purged if revive else set()
        self._without_bytes = stores.ledger.without_bytes()
        self._there = set(self._threads.ids())
        self._new: set[str] = set()
        self._placing: set[str] = set()
        self._bulk: Bulk | None = None
        self._files = ThreadFileJoins(stores, self._threads, self._known, self._purged)

    def _changed(self, thread_id: str) -> None:
        """A thread whose words are in the index already, or are about to be, needs no second look."""
        if thread_id not in self._placing:
            self._stores.mark_dirty(thread_id)

    def can_convert(self, session: SessionPlan) -> bool:
        """A log that was never read, or of which so much is new that it is read in bulk. Whole thread files are
        joined: another program may have raddle's own in hand."""
        return not self._files.reads(session.agent) and (
            session.is_new or session.size > LARGEST_GROWTH_BYTES
        )

    def convert(self, sessions: Sequence[SessionPlan]) -> Iterator[Converted]:
        """In workers; each as it is done, its words in the index before its file is in its place."""
        total = sum(session.size for session in sessions)
        return self._convert(sessions, 0 if total <= SMALL_BYTES else min(os.cpu_count() or 1, 4))

    def _convert(self, sessions: Sequence[SessionPlan], processes: int) -> Iterator[Converted]:
        setup = Setup(
            threads_dir=str(self._stores.paths.threads_dir),
            blobs_dir=str(self._stores.paths.blobs_dir),
            rules=self._stores.rules,
            purged=self._purged,
        )
        tasks = (encode_task(self._task(session)) for session in sessions)
        if self._bulk is None:
            # Open until the whole run is over: what is converted last is still to be placed and committed.
            self._bulk = self._stack.enter_context(self._stores.index.bulk())
        for answer in answers(functools.partial(convert_session, setup), tasks, processes=processes):
            told = decode_answer(answer)
            if isinstance(told, Failed):
                raise StorageError(told.message, told.hint)
            if isinstance(told, Rows):
                self._bulk.add(told.session, told.rows)
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
        folder = self._stores.paths.threads_dir
        new = [converted for converted in batch if converted.thread_id in self._new]
        placed: dict[str, Converted] = {}
        with self._on_their_way(new):
            results = self._threads.import_many(
                (converted.thread_id, str(folder / converted.prepared)) for converted in new
            )
            if self._bulk is not None:
                self._bulk.commit()
        for converted, result in zip(new, results, strict=True):
            if not result.is_new:  # somebody else brought it meanwhile
                self._stores.mark_dirty(converted.thread_id)
            placed[converted.plan.key] = msgspec.structs.replace(
                converted, is_new=result.is_new, has_news=result.has_news
            )
        for converted in batch:
            if converted.plan.key not in placed:
                placed[converted.plan.key] = self._join_prepared(converted)
            self._revive(converted.thread_id)
        return [placed[converted.plan.key] for converted in batch]

    @contextlib.contextmanager
    def _on_their_way(self, batch: Iterable[Converted]) -> Iterator[None]:
        """Were the process to die in this block, a search takes in itself what is in its place and not in the index."""
        self._placing = {converted.thread_id for converted in batch}
        self._new -= self._placing
        marks = self._stores.paths.dirty_list.with_suffix(".placing")
        for thread_id in self._placing:
            mark_dirty(marks, thread_id)
        yield
        drop_taken(Marks((), (marks,)))
        self._placing = set()

    def _join_prepared(self, converted: Converted) -> Converted:
        """What was prepared, into the thread that is there; registers as an importer writes them."""
        path = self._stores.paths.threads_dir / converted.prepared
        try:
            prepared = decode_file(find_bytes(path) or b"").thread()
        finally:
            path.unlink(missing_ok=True)
        writes = [(name, *register.latest[::2]) for name, register in prepared.registers.items()]
        put = {attachment.sha256 for message in prepared.tree for attachment in message.attachments}
        thread = _Stored(self._threads, converted.thread_id).thread(converted.thread_id)
        return self._joined(converted, thread, prepared.tree, writes, put=put)

    def join(self, session: SessionPlan) -> Converted:
        """Read what is new of a session and join it into its thread."""
        if self._files.reads(session.agent):
            converted = self._files.join(session)
            self._revive(converted.thread_id)
            return converted
        importer = importer_of(session.agent)
        stored = _Stored(self._threads, self._thread_of(session))
        sink = _JoinSink(self._stores.blobs)
        try:
            read = read_session(
                importer,
                session,
                Sources(lambda file: name_of(importer, file), SourceBytes, self._known),
                sink,
                links=self._links(session),
                lookup=stored.message,
                largest=LARGEST_GROWTH_BYTES,
            )
        finally:
            sink.drop_segment()
        if read.is_too_large:
            return self._in_bulk(session)
        if read.thread_id in self._purged:
            return self._purged_again(session, importer, read, sink)
        converted = self._kept(converted_of(importer, session, read))
        if not read.thread_id:
            return converted
        thread = stored.thread(read.thread_id)
        writes = with_context(read.registers, self._stores.rules, self._remotes)
        joined = self._joined(
            converted, thread, sink.messages.values(), writes, put=sink.put, moved=sink.moved
        )
        self._revive(read.thread_id)
        return joined
