"""The threads of this machine: readable files, each with a journal, changed under locks, never half-written.

The only writer of the folder `threads/`. Every change is made here on the newest state, under the thread's
lock: two processes of one device share its id, so an edit that somebody stamped elsewhere, on an older
state, would be taken for one that was seen, and lost.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from raddle.actions.ports import Finding, Placed
from raddle.adapters.files import make_folder, storage_error, write_atomic
from raddle.adapters.local_store.journal import identity_of
from raddle.adapters.local_store.thread_files_moves import remove_all
from raddle.adapters.local_store.thread_files_reading import (
    Report,
    ThreadReading,
    files_of,
    is_there,
    status_of,
)
from raddle.adapters.local_store.thread_files_writing import ThreadWriting
from raddle.adapters.locks import LockFiles
from raddle.adapters.paths import Paths
from raddle.adapters.temporaries import sweep_temporaries
from raddle.model.clock import system_clock
from raddle.model.errors import Ambiguous, ConflictError, NotFound, RaddleError, StorageError, UserError
from raddle.model.ids import parse_thread_id, parse_thread_id_prefix
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Author, Editor
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread

T = TypeVar("T")

_FILE_NAME = re.compile(r"(T-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(?:json|prev)\Z")
_ANY_NAME = re.compile(r"(T-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(?:json|prev|journal)(?:\..*)?\Z")
_REVISED_NAME = re.compile(r"(T-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(json|journal)\Z")
_BATCH_FILES, _BATCH_BYTES = 256, 48 << 20
_SWEEP_SECONDS = 3600


def _nothing(_: Any) -> None:
    """What the hooks do until somebody listens."""


def _nothing_erased(_: str, __: frozenset[str]) -> None:
    """The same of the one that is told more."""


class ThreadFiles:
    """A `ThreadStore` and `ThreadShelf` on the local disk.

    `changing` is called with a thread's id before the first byte of a write, `changed` after each write, when
    its lock is free again: who keeps something derived of threads learns of a write even where the process dies
    in it. `erased` is called where words went that were erased elsewhere, with the blobs that they named: who
    keeps anything else that holds them lets go of it. `report` gets whatever was found damaged or had to be
    mended. Several threads of a process may share one.
    """

    def __init__(
        self,
        paths: Paths,
        locks: LockFiles,
        author: Author,
        *,
        changing: Callable[[str], None] = _nothing,
        changed: Callable[[str], None] = _nothing,
        erased: Callable[[str, frozenset[str]], None] = _nothing_erased,
        report: Report = _nothing,
    ) -> None:
        self._paths = paths
        self._locks = locks
        self._author = author
        self._hook = changed
        self._erased = erased
        self._report = report
        self._reading = ThreadReading(paths, author, report, changing=changing)
        self._writing = ThreadWriting(paths, author, self._reading, report, changing)
        self._folder = os.path.realpath(paths.threads_dir)
        self._is_swept = False

    def load(self, thread_id: str) -> Thread:
        """The thread. NotFound; FormatError where nothing can be read (damaged files are set aside)."""
        thread_id = parse_thread_id(thread_id)
        thread = self._reading.load_unlocked(thread_id)
        if thread is not None:
            return thread
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(self._locks.held(thread_id))
            except StorageError:  # a store that only may be read is read as it is
                return self._reading.load_locked(thread_id, may_write=False).thread
            return self._reading.load_locked(thread_id).thread

    def ids(self) -> list[str]:
        """Every thread's id, oldest first."""
        return sorted({found[1] for name in self._names() if (found := _FILE_NAME.match(name))})

    def has(self, thread_id: str) -> bool:
        """Is there a thread file, or the earlier revision of one?"""
        return self._writing.exists(parse_thread_id(thread_id))

    def remains(self) -> list[str]:
        """Every id of which any file is there, if only one that was set aside; oldest first."""
        return sorted({found[1] for name in self._names() if (found := _ANY_NAME.match(name))})

    def resolve(self, prefix: str) -> str:
        """The one id that starts with `prefix`; NotFound, Ambiguous (listing them), InvalidInput.

        Where no thread has such an id, one of which something else is left: to load it says what is wrong.
        """
        start = parse_thread_id_prefix(prefix)
        found = [thread_id for thread_id in self.ids() if thread_id.startswith(start)]
        found = found or [thread_id for thread_id in self.remains() if thread_id.startswith(start)]
        if not found:
            raise NotFound("thread", prefix, "`raddle list` lists them")
        if len(found) > 1:
            raise Ambiguous("thread", prefix, found)
        return found[0]

    def revisions(self) -> dict[str, str]:
        """Id -> text that is another whenever the thread's files are: so a sweep finds foreign edits."""
        found: dict[str, dict[str, str]] = {}
        for entry in self._entries():
            name = _REVISED_NAME.match(entry.name)
            if name is not None:
                with contextlib.suppress(FileNotFoundError):  # it was folded away meanwhile
                    found.setdefault(name[1], {})[name[2]] = _text(entry.stat())
        return {
            thread_id: f"{stamps.get('json', '-')} {stamps.get('journal', '-')}"
            for thread_id, stamps in sorted(found.items())
        }

    @contextlib.contextmanager
    def create(self, thread_id: str | None = None) -> Iterator[Editor]:
        """A new thread (None: under a new id), written at the end of the block unless it is empty then.

        ConflictError where a thread of that id is there.
        """
        thread_id = f"T-{self._author.new_id()}" if thread_id is None else parse_thread_id(thread_id)
        with self._locked(thread_id):
            if self._writing.exists(thread_id):
                raise ConflictError(f"a thread {thread_id} is there already", "edit it, or leave the id out")
            editor = Editor(Thread(thread_id), self._author)
            yield editor
            editor.delta()
            is_kept = self._writing.write_new(editor.thread)
        if is_kept:
            self._tell(thread_id)

    @contextlib.contextmanager
    def edit(self, thread_id: str) -> Iterator[Editor]:
        """An editor on the newest state; its changes are appended at the end of the block, none if it raises.

        The thread stays locked for as long as the block lasts: ask nobody, wait for nothing inside, and open
        no other thread in it, or two processes may wait for each other until the lock's time is up.
        """
        thread_id = parse_thread_id(thread_id)
        with self._locked(thread_id):
            loaded = self._writing.load(thread_id)
            editor = Editor(loaded.thread, self._author)
            yield editor
            delta = editor.delta()
            if not delta.is_empty:
                self._writing.commit(loaded, delta)
        if not delta.is_empty:
            self._tell(thread_id)

    def apply(self, thread_id: str, change: Callable[[Editor], T]) -> T:
        """What `change` answers; what it changed is appended.

        It first sees only the end of the journal, and the tip of that says its id, branch and role, not its
        words. Where it asks for more it is called again with the whole thread; the first call left nothing.
        """
        thread_id = parse_thread_id(thread_id)
        with self._locked(thread_id):
            done = self._writing.apply_on_tail(thread_id, change)
            result, is_changed = done or self._writing.apply_on_whole(thread_id, change)
        if is_changed:
            self._tell(thread_id)
        return result

    def append(self, thread_id: str, role: str, content: str, **fields: Any) -> Message:
        """A turn under the tip, in time and bytes that do not grow with the thread."""
        return self.apply(thread_id, lambda editor: editor.append(role, content, **fields))

    def join(self, thread_id: str, delta: Delta) -> bool:
        """Take in `delta`; was there anything new? A thread that is not there is made, unless it is empty."""
        thread_id = parse_thread_id(thread_id)
        with self._locked(thread_id):
            joined = self._writing.join(thread_id, delta)
        if joined.has_news:
            self._tell(thread_id)
        if joined.erased is not None:
            self._erased(thread_id, joined.erased)
        return joined.has_news

    def save(self, thread: Thread) -> bool:
        """Take in a whole thread: it joins what is there. Was there anything new?"""
        return self.join(thread.id, thread.whole())

    def import_many(self, files: Iterable[tuple[str, bytes | str]]) -> list[Placed]:
        """Put whole thread files in their places, 256 or 48 MiB at a time, with one wait each for the disk.

        Bytes, or the path of a temporary file beside the thread files, which is taken over. A thread that is
        there by now, or comes twice, is joined.
        """
        placed: list[Placed] = []
        for batch in _batches(files):
            ids = [parse_thread_id(thread_id) for thread_id, _ in batch]
            make_folder(self._paths.threads_dir)
            with self._locked(*ids):
                done = self._writing.place(zip(ids, (content for _, content in batch), strict=True))
            for one in done:
                if one.has_news:
                    self._tell(one.thread_id)
                if one.erased is not None:
                    self._erased(one.thread_id, one.erased)
            placed.extend(done)
        return placed

    def fold(self, thread_id: str, *, anyway: bool = False) -> bool:
        """Write what was appended into the readable file, at a session's end; was there anything to write?

        `anyway`: write it afresh even if there was not.
        """
        thread_id = parse_thread_id(thread_id)
        with self._locked(thread_id):
            return self._writing.fold(thread_id, anyway=anyway)

    def scrub(self, thread_id: str) -> None:
        """Leave of the thread what it holds now, and no byte of what it held: so ends every purge of words.

        Its journal, its earlier revision and what was set aside of it go.
        """
        thread_id = parse_thread_id(thread_id)
        with self._locked(thread_id):
            self._writing.scrub(thread_id)

    def delete_files(self, thread_id: str) -> bool:
        """Remove the thread, its journal, revision, what was set aside; was there anything?"""
        thread_id = parse_thread_id(thread_id)
        with self._locked(thread_id):
            names = self._names_of(thread_id)
            # The .json last: should the process die here, the thread is still listed and can be purged again.
            names.sort(key=lambda name: name.endswith(".json"))
            removed = remove_all(self._paths.threads_dir / name for name in names)
        if removed:
            self._tell(thread_id)
        return removed > 0

    @contextlib.contextmanager
    def _locked(self, *thread_ids: str) -> Iterator[None]:
        """Hold the locks of these threads. UserError for an edit inside an edit: the outer one was made on a state
        that does not have it, and a lock cannot tell, for its thread of control may take it twice.
        """
        mine = {_OpenEdit(os.getpid(), self._folder, thread_id) for thread_id in thread_ids}
        already = mine & _open_edits.here
        if already:
            names = ", ".join(sorted(edit.thread_id for edit in already))
            raise UserError(
                f"{names} is being edited already",
                "use the editor of that edit, or wait until its block is left",
            )
        self._sweep()
        with self._locks.held(*thread_ids):
            _open_edits.here |= mine
            try:
                yield
            finally:
                _open_edits.here -= mine

    def _tell(self, thread_id: str) -> None:
        """Tell whoever keeps an index; the write stands, whatever becomes of that."""
        try:
            self._hook(thread_id)
        except RaddleError as error:
            what = f"{thread_id} is written, but whoever keeps the index was not told: {error.message}"
            self._report(Finding(path=str(files_of(self._paths, thread_id).json), what=what))

    def _names(self) -> list[str]:
        return [entry.name for entry in self._entries()]

    def _entries(self) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self._paths.threads_dir) as entries:
                return list(entries)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise storage_error(error, self._paths.threads_dir, "list") from error

    def _names_of(self, thread_id: str) -> list[str]:
        return [name for name in self._names() if name.startswith(f"{thread_id}.")]

    def _sweep(self) -> None:
        """Once a process, and once an hour for all of them: remove what killed processes left half-made."""
        if self._is_swept:
            return
        self._is_swept = True
        mark = self._paths.sweep_mark
        status = status_of(mark)
        if status is not None and system_clock() // 1_000_000 - status.st_mtime < _SWEEP_SECONDS:
            return
        if is_there(self._paths.threads_dir):
            sweep_temporaries(self._paths.threads_dir)
            write_atomic(mark, b"")


class _OpenEdit(NamedTuple):
    """`process`: a fork inherits the note of an edit, not the edit."""

    process: int
    folder: str
    thread_id: str


class _OpenEdits(threading.local):
    """What this thread of control is editing."""

    def __init__(self) -> None:
        self.here: set[_OpenEdit] = set()


# Of the process and not of a ThreadFiles, as the locks are: two over one folder let each other in.
_open_edits = _OpenEdits()


def _batches(files: Iterable[tuple[str, bytes | str]]) -> Iterator[list[tuple[str, bytes | str]]]:
    batch: list[tuple[str, bytes | str]] = []
    size = 0
    for thread_id, content in files:
        batch.append((thread_id, content))
        size += len(content) if isinstance(content, bytes) else 0
        if len(batch) >= _BATCH_FILES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _text(status: os.stat_result) -> str:
    return "-".join(str(part) for part in identity_of(status))
