"""One file of a store as rows of its index, and out of it again.

What is searched of a file `actions.memory.memory_search` says; how words stand in the columns is said here and in
`shelf_search`, by the same two names.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import msgspec

from raddle.actions.memory.memories import MemoryLine, line_of
from raddle.actions.memory.memory_search import (
    Document,
    document_of,
    entry_document,
    memory_document,
    read_text,
)
from raddle.model.errors import FormatError
from raddle.model.memory.entry import ContextEntry, encode_entry
from raddle.model.memory.repo_layout import Place, place_of
from raddle.model.threads.search_text import Cutter

BORDER = "\ue000"
"""Stands between the texts of a column, so that no phrase reaches over: no text is ever cut to it."""

_pack = msgspec.msgpack.encode
line_in = msgspec.msgpack.Decoder(MemoryLine).decode
"""What a list shows of a memory, of its column `line`."""
_INSERT = """
INSERT INTO documents
  (path, kind, namespace, key, run_id, phase, entry_id, at, tags, line)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


class ShelfWriter:
    """Puts files into the index and takes them out; inside a transaction of the caller."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql
        self._cutter = Cutter(collect=False)

    def put(self, path: str, data: bytes, modified: int) -> None:
        """What the file at `path` says now, in place of what it said. `modified`: microseconds since 1970."""
        place = place_of(path)
        match place.kind:
            case "memory":
                memory = read_text(data)
                line = line_of(place, data, memory, modified)
                self._put_document(memory_document(place, memory, modified), line)
            case "entry":
                self._put_entry(place, data)
            case "summary" | "handoff":
                found = document_of(path, data, modified)
                if found is not None:
                    self._put_document(found)
            case "conflict":
                self._put_conflict(place, data, modified)
            case _:
                return

    def take_out(self, paths: Iterable[str]) -> None:
        """Nothing of these files is left."""
        for path in paths:
            row = self._sql.execute("SELECT number FROM documents WHERE path = ?", (path,)).fetchone()
            self._sql.execute("DELETE FROM damaged WHERE path = ?", (path,))
            if row is None:
                continue
            self._sql.execute("DELETE FROM words WHERE rowid = ?", row)
            self._sql.execute("DELETE FROM texts WHERE number = ?", row)
            self._sql.execute("DELETE FROM documents WHERE number = ?", row)
            place = place_of(path)
            if place.kind == "entry":
                key = (place.run_id, place.phase, place.entry_id, path)
                self._sql.execute(
                    "DELETE FROM entries WHERE run_id = ? AND phase = ? AND entry_id = ? AND path = ?", key
                )

    def _put_entry(self, place: Place, data: bytes) -> None:
        from raddle.actions.memory.entries import entry_at  # most looks find none  # noqa: PLC0415

        try:
            entry = entry_at(place, data)
        except FormatError as error:
            self._sql.execute("INSERT OR REPLACE INTO damaged VALUES (?, ?)", (place.path, error.message))
            return
        self._put_document(entry_document(place, entry))
        self._sql.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)",
            (place.run_id, place.phase, place.entry_id, place.path, _thread_of(entry), encode_entry(entry)),
        )

    def _put_conflict(self, place: Place, data: bytes, modified: int) -> None:
        line = MemoryLine(namespace=place.namespace, key=place.key, size=len(data))
        self._insert(
            Document(kind="memory", path=place.path, namespace=place.namespace, key=place.key, at=modified),
            line,
            kind="conflict",
        )

    def _put_document(self, document: Document, line: MemoryLine | None = None) -> None:
        number = self._insert(document, line, kind=document.kind)
        names = [self._cutter.cut(text) for text in document.names]
        texts = [self._cutter.cut(text) for text in document.texts]
        self._sql.execute(
            "INSERT INTO texts VALUES (?, ?, ?)", (number, _pack(document.names), _pack(document.texts))
        )
        between = f" {BORDER} "
        self._sql.execute(
            "INSERT INTO words (rowid, names, texts, name_pieces, text_pieces) VALUES (?, ?, ?, ?, ?)",
            (
                number,
                between.join(each.words for each in names),
                between.join(each.words for each in texts),
                " ".join(each.pieces for each in names),
                " ".join(each.pieces for each in texts),
            ),
        )

    def _insert(self, document: Document, line: MemoryLine | None, *, kind: str) -> int:
        row = self._sql.execute(
            _INSERT,
            (
                document.path,
                kind,
                document.namespace,
                document.key,
                document.run_id,
                document.phase,
                document.entry_id,
                document.at,
                "\n".join(tag.replace("\n", " ") for tag in document.tags),
                _pack(line) if line else None,
            ),
        )
        return row.lastrowid or 0


def _thread_of(entry: ContextEntry) -> str | None:
    return entry.provenance.thread_id
