"""Threads kept in memory: a `ThreadStore` and `ThreadShelf` for tests that need no disk."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from raddle.actions.ports import Placed, is_empty
from raddle.model.errors import Ambiguous, ConflictError, NotFound, UserError
from raddle.model.ids import parse_thread_id, parse_thread_id_prefix
from raddle.model.threads.adopt import open_file
from raddle.model.threads.codec import decode_file
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Author, Editor
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread

T = TypeVar("T")


class MemoryFolder:
    """What several stores share, as processes share a disk."""

    def __init__(self) -> None:
        self.threads: dict[str, Thread] = {}
        self.unfolded: set[str] = set()
        self.edited: set[str] = set()


class MemoryStore:
    """One process over a `MemoryFolder`."""

    def __init__(
        self,
        author: Author,
        folder: MemoryFolder | None = None,
        *,
        changed: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._author = author
        self._folder = folder or MemoryFolder()
        self._hook = changed

    def load(self, thread_id: str) -> Thread:
        thread_id = parse_thread_id(thread_id)
        if thread_id not in self._folder.threads:
            raise NotFound("thread", thread_id)
        return self._folder.threads[thread_id].copy()

    def ids(self) -> list[str]:
        return sorted(self._folder.threads)

    def resolve(self, prefix: str) -> str:
        start = parse_thread_id_prefix(prefix)
        found = [thread_id for thread_id in self.ids() if thread_id.startswith(start)]
        if not found:
            raise NotFound("thread", prefix)
        if len(found) > 1:
            raise Ambiguous("thread", prefix, found)
        return found[0]

    @contextlib.contextmanager
    def create(self, thread_id: str | None = None) -> Iterator[Editor]:
        thread_id = f"T-{self._author.new_id()}" if thread_id is None else parse_thread_id(thread_id)
        with self._locked(thread_id):
            if thread_id in self._folder.threads:
                raise ConflictError(f"a thread {thread_id} is there already")
            editor = Editor(Thread(thread_id), self._author)
            yield editor
            editor.delta()
            is_kept = self._write_new(editor.thread)
        if is_kept:
            self._hook(thread_id)

    @contextlib.contextmanager
    def edit(self, thread_id: str) -> Iterator[Editor]:
        thread_id = parse_thread_id(thread_id)
        with self._locked(thread_id):
            editor = Editor(self.load(thread_id), self._author)
            yield editor
            delta = editor.delta()
            if not delta.is_empty:
                self._folder.threads[thread_id].join(delta)
                self._folder.unfolded.add(thread_id)
        if not delta.is_empty:
            self._hook(thread_id)

    def apply(self, thread_id: str, change: Callable[[Editor], T]) -> T:
        with self.edit(thread_id) as editor:
            return change(editor)

    def append(self, thread_id: str, role: str, content: str, **fields: Any) -> Message:
        return self.apply(thread_id, lambda editor: editor.append(role, content, **fields))

    def join(self, thread_id: str, delta: Delta) -> bool:
        thread_id = parse_thread_id(thread_id)
        with self._locked(thread_id):
            has_news = self._join(thread_id, delta)
        if has_news:
            self._hook(thread_id)
        return has_news

    def save(self, thread: Thread) -> bool:
        return self.join(thread.id, thread.whole())

    def import_many(self, files: Iterable[tuple[str, bytes | str]]) -> list[Placed]:
        placed = []
        for name, content in files:
            thread_id = parse_thread_id(name)
            data = content if isinstance(content, bytes) else Path(content).read_bytes()
            is_new = thread_id not in self._folder.threads
            has_news = self.save(open_file(decode_file(data), None, self._author))
            placed.append(Placed(thread_id, is_new=is_new, has_news=has_news))
        return placed

    def fold(self, thread_id: str) -> bool:
        thread_id = parse_thread_id(thread_id)
        self.load(thread_id)
        was_appended_to = thread_id in self._folder.unfolded
        self._folder.unfolded.discard(thread_id)
        return was_appended_to

    def scrub(self, thread_id: str) -> None:
        self.fold(thread_id)

    def delete_files(self, thread_id: str) -> bool:
        thread_id = parse_thread_id(thread_id)
        with self._locked(thread_id):
            was_there = self._folder.threads.pop(thread_id, None) is not None
            self._folder.unfolded.discard(thread_id)
        if was_there:
            self._hook(thread_id)
        return was_there

    @contextlib.contextmanager
    def _locked(self, thread_id: str) -> Iterator[None]:
        if thread_id in self._folder.edited:
            raise UserError(f"{thread_id} is being edited already", "use the editor of that edit")
        self._folder.edited.add(thread_id)
        try:
            yield
        finally:
            self._folder.edited.discard(thread_id)

    def _join(self, thread_id: str, delta: Delta) -> bool:
        known = self._folder.threads.get(thread_id)
        if known is None:
            thread = Thread(thread_id)
            thread.join(delta)
            return self._write_new(thread)
        has_news = known.join(delta)
        if has_news:
            self._folder.unfolded.add(thread_id)
        return has_news

    def _write_new(self, thread: Thread) -> bool:
        if is_empty(thread):
            return False
        self._folder.threads[thread.id] = thread.copy()
        return True
