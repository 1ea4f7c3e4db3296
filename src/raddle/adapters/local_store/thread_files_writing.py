"""Everything that changes a thread's files, for a caller who holds its lock.

A write is one line in the journal, or a new file where there was none; the readable file follows at the fold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from raddle.actions.ports import Finding, Placed, is_empty
from raddle.adapters.files import find_bytes, make_folder, write_atomic
from raddle.adapters.local_store.journal import Line, append_line, identity_of, read_tail
from raddle.adapters.local_store.journal_tail import TailThread, footer_of
from raddle.adapters.local_store.thread_files_fold import (
    SMALL_JOURNAL_BYTES,
    begin_journal,
    fold,
    is_due,
    keep_first_revision,
)
from raddle.adapters.local_store.thread_files_moves import TakingBatch, remove_all
from raddle.adapters.local_store.thread_files_reading import (
    Files,
    Loaded,
    Report,
    ThreadReading,
    decode_checked,
    files_of,
    is_there,
    status_of,
)
from raddle.adapters.paths import Paths
from raddle.model.errors import StorageError
from raddle.model.threads.adopt import open_file
from raddle.model.threads.codec import encode_thread
from raddle.model.threads.delta import Delta, decode_delta, encode_delta
from raddle.model.threads.edits import Author, Editor
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread
from raddle.model.tolerant_json import decode_tolerantly

T = TypeVar("T")


class Joined(NamedTuple):
    """What became of a Delta. `erased`: the blobs that words named which it erased; None where it erased none."""

    has_news: bool
    erased: frozenset[str] | None


class ThreadWriting:
    """Writes threads by whole ids, each under its lock, which the caller holds."""

    def __init__(
        self,
        paths: Paths,
        author: Author,
        reading: ThreadReading,
        report: Report,
        changing: Callable[[str], None],
    ) -> None:
        self._paths = paths
        self._author = author
        self._reading = reading
        self._report = report
        self._changing = changing

    def exists(self, thread_id: str) -> bool:
        """Is there a thread file, or the earlier revision of one?"""
        return _exists(files_of(self._paths, thread_id))

    def load(self, thread_id: str) -> Loaded:
        """The newest state, mended where need be; an error where it cannot be."""
        return self._reading.load_locked(thread_id, must_write=True)

    def write_new(self, thread: Thread) -> bool:
        """The file of a thread that had none; False where it is empty and so not written."""
        if is_empty(thread):
            return False
        files = files_of(self._paths, thread.id)
        try:
            data = encode_thread(thread)
        except UnicodeEncodeError:
            whole = self._storable(files, thread.whole())
            thread = Thread(thread.id)
            thread.join(whole)
            data = encode_thread(thread)
        make_folder(files.json.parent)
        self._changing(thread.id)
        write_atomic(files.json, data)
        if len(data) > SMALL_JOURNAL_BYTES:
            keep_first_revision(files, data)
            begin_journal(files, thread, self._author.device)
        return True

    def commit(self, loaded: Loaded, delta: Delta) -> None:
        """Append `delta`, which `loaded.thread` holds already, to the journal as it was loaded."""
        thread, glance = loaded
        files = files_of(self._paths, thread.id)
        if glance.data is None or glance.identity is None:
            raise AssertionError("a thread that was loaded to be written has its file")
        if not glance.journal.lines or not is_there(files.previous):
            keep_first_revision(files, glance.data)
        footer = footer_of(thread, self._author.device)
        line = Line(id=thread.id, file=glance.identity, delta=delta, footer=footer)
        size = self._append(files, line, end=glance.journal.end, size=glance.journal.size)
        self._fold_if_due(thread.id, size, glance.identity.size, glance.links)

    def join(self, thread_id: str, delta: Delta) -> Joined:
        """Take in `delta`. A thread that is not there is made, unless it is empty."""
        if not self.exists(thread_id):
            thread = Thread(thread_id)
            thread.join(delta)
            return Joined(self.write_new(thread), None)
        loaded = self.load(thread_id)
        known = {message.id: loaded.thread.tree.get(message.id) for message in delta.messages}
        news = _join_news(loaded.thread, delta)
        if news is None:
            return Joined(False, None)
        self.commit(loaded, news)
        erased = _erased(known, news)
        if erased is not None:
            self.scrub(thread_id)
        return Joined(True, erased)

    def apply_on_tail(self, thread_id: str, change: Callable[[Editor], T]) -> tuple[T, bool] | None:
        """(answer, was anything changed); None where the end of the journal does not tell enough."""
        files = files_of(self._paths, thread_id)
        status = status_of(files.json)
        tail = read_tail(files.journal, thread_id)
        if status is None or tail is None or tail.line is None or tail.line.footer is None:
            return None
        line, footer = tail.line, tail.line.footer
        if footer.device != self._author.device or line.file != identity_of(status):
            return None
        if is_due(tail.end, status.st_size, status.st_nlink):
            return None
        thread = TailThread(thread_id, footer)
        done = _edit(thread, thread.author(self._author), change)
        if done is None:
            return None
        result, delta = done
        if delta.is_empty:
            return result, False
        after = Line(id=thread_id, file=line.file, delta=delta, footer=thread.footer())
        size = self._append(files, after, end=tail.end, size=tail.size)
        self._fold_if_due(thread_id, size, status.st_size, status.st_nlink)
        return result, True

    def apply_on_whole(self, thread_id: str, change: Callable[[Editor], T]) -> tuple[T, bool]:
        """(answer, was anything changed), `change` having seen all there is."""
        loaded = self.load(thread_id)
        editor = Editor(loaded.thread, self._author)
        result = change(editor)
        delta = editor.delta()
        if not delta.is_empty:
            self.commit(loaded, delta)
        return result, not delta.is_empty

    def _append(self, files: Files, line: Line, *, end: int, size: int) -> int:
        self._changing(line.id)
        try:
            return append_line(files.journal, line, end=end, size=size)
        except UnicodeEncodeError:
            delta = self._storable(files, line.delta)
            without_footer = msgspec.structs.replace(line, delta=delta, footer=None)
            return append_line(files.journal, without_footer, end=end, size=size)

    def _storable(self, files: Files, delta: Delta) -> Delta:
        """`delta` with U+FFFD for halves of characters, which no file can hold."""
        text = json.dumps(msgspec.to_builtins(encode_delta(delta)))
        plain, repairs = decode_tolerantly(text.encode())
        for repair in dict.fromkeys(repairs):
            self._report(Finding(path=str(files.json), what=repair, done="stored as U+FFFD"))
        return decode_delta(plain)

    def fold(self, thread_id: str, *, anyway: bool = False) -> bool:
        """Write what the journal holds into the readable file; was there anything to write?"""
        loaded = self.load(thread_id)
        if not (anyway or loaded.glance.journal.has_edits or loaded.glance.links > 1):
            return False
        fold(self._paths, files_of(self._paths, thread_id), loaded, self._author.device)
        return True

    def scrub(self, thread_id: str) -> None:
        """Write the whole thread into the readable file, and remove every other file of it."""
        thread = self.load(thread_id).thread
        kept = files_of(self._paths, thread_id).json
        write_atomic(kept, encode_thread(thread))
        remove_all([path for path in kept.parent.glob(f"{thread_id}.*") if path.name != kept.name])

    def _fold_if_due(self, thread_id: str, journal_size: int, file_size: int, links: int) -> None:
        """The edit is durable by now, so a fold that fails is no failure of it."""
        if not is_due(journal_size, file_size, links):
            return
        try:
            self.fold(thread_id)
        except StorageError as error:
            journal = files_of(self._paths, thread_id).journal
            self._report(Finding(path=str(journal), what=f"not folded: {error.message}"))

    def place(self, batch: Iterable[tuple[str, bytes | str]]) -> list[Placed]:
        """Put whole files (bytes or temporary files) in place at once; those that are there are joined."""
        given = list(batch)
        new: dict[str, int] = {}
        with TakingBatch() as taking:
            for index, (thread_id, content) in enumerate(given):
                files = files_of(self._paths, thread_id)
                if thread_id in new or _exists(files):
                    continue
                new[thread_id] = index
                if isinstance(content, bytes):
                    taking.write(files.json, content)
                else:
                    taking.take(Path(content), files.json)
        return [
            Placed(thread_id, is_new=True, has_news=True)
            if new.get(thread_id) == index
            else self._join_file(thread_id, content)
            for index, (thread_id, content) in enumerate(given)
        ]

    def _join_file(self, thread_id: str, content: bytes | str) -> Placed:
        if isinstance(content, bytes):
            data, path = content, files_of(self._paths, thread_id).json
        else:
            path = Path(content)
            data = find_bytes(path) or b""
        thread = open_file(decode_checked(data, thread_id, path), None, self._author)
        joined = self.join(thread_id, thread.whole())
        if not isinstance(content, bytes):
            remove_all([path])
        return Placed(thread_id, is_new=False, has_news=joined.has_news, erased=joined.erased)


def _exists(files: Files) -> bool:
    return is_there(files.json) or is_there(files.previous)


def _edit(thread: TailThread, author: Author, change: Callable[[Editor], T]) -> tuple[T, Delta] | None:
    """What `change` answers and what it changed; None where it asked `thread` for what that does not know."""
    editor = Editor(thread, author)
    try:
        result = change(editor)
        delta = editor.delta()
    except Exception:
        if thread.fell_short:  # whatever was made of the alarm on the way up
            return None
        raise
    return None if thread.fell_short else (result, delta)


def _erased(known: Mapping[str, Message | None], news: Delta) -> frozenset[str] | None:
    """The blobs that words named which were `known` and are no more; None where all are there."""
    stubs = {message.id for message in news.messages if message.is_purged}
    gone = [old for name, old in known.items() if old is not None and name in stubs and not old.is_purged]
    return frozenset(one.sha256 for old in gone for one in old.attachments) if gone else None


def _join_news(thread: Thread, delta: Delta) -> Delta | None:
    """Join `delta` into `thread`; the part of it that was new, as it stands there now, or None."""
    before = thread.version
    messages = {message.id: thread.tree.get(message.id) for message in delta.messages}
    registers = {path: thread.registers.get(path) for path in delta.registers}
    if not thread.join(delta):
        return None
    now = ((old, thread.tree.get(message_id)) for message_id, old in messages.items())
    return Delta(
        base_version=before,
        version=thread.version,
        messages=tuple(new for old, new in now if new is not None and new is not old),
        registers={
            path: thread.registers[path]
            for path, register in registers.items()
            if thread.registers[path] is not register
        },
    )
