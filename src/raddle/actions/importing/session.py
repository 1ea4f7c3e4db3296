"""One session read from its files: the main file first, then its parts with what the main one told of them.

Pure: bytes come through the port `OpenSource`, what is found goes to a `Sink`. Whether a file grew, was
rewritten or is new is decided here, by its bytes; so is when a reading that went on from a state has to be
thrown away and begun anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec
from msgspec import Struct

from raddle.actions.importing.importer import (
    Ending,
    Importer,
    Links,
    Lookup,
    Problem,
    Reader,
    SourceName,
    Taken,
    Write,
)
from raddle.actions.importing.run_plan import Segment, SessionPlan, SourceEntry, SourceFile

KeepBytes = Callable[[bytes], None]

LARGEST_GROWTH_BYTES = 64 << 20
"""More new bytes than this are read from the start instead: a reading that goes on holds its messages until
it knows that they are right."""


class Lines(Struct, frozen=True):
    """Whole lines (without their ends), the number of the first (from 1), and the offset after the last."""

    lines: list[bytes]
    first: int
    read_to: int


class TooLong(Struct, frozen=True):
    """A line that was passed over: its number, its size in bytes, and the offset after it."""

    number: int
    size: int
    read_to: int


class Tail(Struct, frozen=True):
    """What stands after the last line end: a record that has none yet, or one that is still being written."""

    data: bytes


class OpenSource(Protocol):
    """A source file, open for reading."""

    def grew_from(self, entry: SourceEntry) -> bool:
        """Does what was read before still stand there?"""

    def head(self, read_to: int) -> str:
        """Hash of its beginning, to know it again."""

    def tail(self, read_to: int) -> str:
        """Hash of what stands before `read_to`."""

    def read(self, start: int, first: int, keep: KeepBytes) -> Iterator[Lines | TooLong | Tail]:
        """Its lines from `start` on, in batches; every byte read goes to `keep`."""

    def close(self) -> None:
        """Let go of it."""


class Sink(Protocol):
    """Where one session's findings go."""

    def take(self, taken: Taken) -> None:
        """Messages and attachments, as they are finished."""

    def begin_segment(self) -> KeepBytes:
        """Start keeping source bytes: each call of what is returned adds some."""

    def end_segment(self) -> str:
        """The SHA-256 (64 hex) under which the bytes since `begin_segment` were kept."""


class FileRead(Struct, frozen=True, kw_only=True):
    """What became of one file: its new ledger entry (without a thread yet), the importer's state, its segment."""

    entry: SourceEntry
    state: bytes
    segment: Segment | None
    problems: tuple[Problem, ...]
    grew: bool
    """It went on from where it was read to before."""


class SessionRead(Struct, frozen=True, kw_only=True):
    """A session's files read. `thread_id` is empty where they hold none; `other_agent`: whose they are then."""

    thread_id: str
    registers: tuple[Write, ...]
    files: tuple[FileRead, ...]
    other_agent: str = ""


def read_session(
    importer: Importer,
    plan: SessionPlan,
    *,
    name_of: Callable[[SourceFile], SourceName],
    open_source: Callable[[str], OpenSource],
    known: Callable[[str], tuple[SourceEntry, bytes] | None],
    links: Links | None,
    lookup: Lookup,
    sink: Sink,
) -> SessionRead:
    """Read what `plan` names. `known`: path -> ledger entry and state. `links`: what the main file told, where
    it is not read now."""
    files: list[FileRead] = []
    registers: list[Write] = []
    thread_id = other_agent = ""
    told = links
    unplaced: list[SourceFile] = []
    for file in plan.files:
        read, ending = _read_file(
            importer, file, name_of(file), open_source, known(file.path), told, lookup, sink
        )
        told = ending.links if told is None else told.joined(ending.links)
        if file.is_main or not thread_id:
            thread_id = thread_id or ending.thread_id
            other_agent = other_agent or ending.other_agent
        registers.extend(ending.registers)
        files.append(read)
    files = [
        msgspec.structs.replace(
            file, entry=_of_thread(file.entry, thread_id), segment=_segment(file, thread_id)
        )
        for file in files
    ]
    return SessionRead(
        thread_id=thread_id, registers=tuple(registers), files=tuple(files), other_agent=other_agent
    )


def _of_thread(entry: SourceEntry, thread_id: str) -> SourceEntry:
    return msgspec.structs.replace(entry, thread_id=thread_id)


def _segment(file: FileRead, thread_id: str) -> Segment | None:
    return None if file.segment is None else msgspec.structs.replace(file.segment, thread_id=thread_id)


def _read_file(
    importer: Importer,
    file: SourceFile,
    name: SourceName,
    open_source: Callable[[str], OpenSource],
    known: tuple[SourceEntry, bytes] | None,
    links: Links | None,
    lookup: Lookup,
    sink: Sink,
) -> tuple[FileRead, Ending]:
    source = open_source(file.path)
    try:
        entry, state = known or (None, b"")
        goes_on = entry is not None and source.grew_from(entry)
        generation = 0 if entry is None else entry.generation + (0 if goes_on else 1)
        if entry is not None and goes_on and state and file.size - entry.read_to <= LARGEST_GROWTH_BYTES:
            reader = importer.open(name, state=state, links=links, lookup=lookup)
            held: list[Taken] = []
            read, ending = _run(
                reader, source, file, entry.read_to, entry.lines, generation, held.append, sink
            )
            if not ending.needs_whole:
                for taken in held:
                    sink.take(taken)
                return msgspec.structs.replace(read, grew=True), ending
        start_of_new = entry.read_to if entry is not None and goes_on else 0
        reader = importer.open(name, links=links, lookup=lookup)
        return _run(reader, source, file, 0, 0, generation, sink.take, sink, keep_from=start_of_new)
    finally:
        source.close()


def _run(
    reader: Reader,
    source: OpenSource,
    file: SourceFile,
    start: int,
    lines_before: int,
    generation: int,
    take: Callable[[Taken], None],
    sink: Sink,
    *,
    keep_from: int = 0,
) -> tuple[FileRead, Ending]:
    """Feed `reader` the file from `start` on; bytes from `keep_from` (or `start`) on are kept as a segment."""
    keep_from = max(start, keep_from)
    kept = _Kept(sink.begin_segment(), skip=keep_from - start)
    read_to, lines, tail = start, lines_before, b""
    for batch in source.read(start, lines_before + 1, kept.add):
        match batch:
            case Lines():
                reader.feed(batch.lines)
                read_to, lines = batch.read_to, batch.first + len(batch.lines) - 1
            case TooLong():
                reader.skip_line(f"a line of {batch.size:,} bytes is too long to read; its bytes are kept")
                read_to, lines = batch.read_to, batch.number
            case Tail():
                tail = batch.data
        take(reader.take())
    ending = reader.finish(tail)
    take(reader.take())
    sha256 = sink.end_segment()
    segment = Segment(
        generation=generation, start=keep_from, end=keep_from + kept.size, sha256=sha256, thread_id=""
    )
    entry = SourceEntry(
        path=file.path,
        agent=file.agent,
        session=file.session,
        thread_id="",
        size=file.size,
        mtime_ns=file.mtime_ns,
        inode=file.inode,
        read_to=read_to,
        lines=lines,
        head=source.head(read_to),
        tail=source.tail(read_to),
        generation=generation,
        problems=len(reader.problems),
    )
    return (
        FileRead(
            entry=entry,
            state=ending.state,
            segment=segment if kept.size else None,
            problems=tuple(reader.problems),
            grew=False,
        ),
        ending,
    )


class _Kept:
    """Passes bytes on to the segment, but for the first `skip`, which an earlier segment holds."""

    def __init__(self, keep: KeepBytes, *, skip: int) -> None:
        self._keep = keep
        self._skip = skip
        self.size = 0

    def add(self, data: bytes) -> None:
        if self._skip >= len(data):
            self._skip -= len(data)
            return
        new = data[self._skip :] if self._skip else data
        self._skip = 0
        self.size += len(new)
        self._keep(new)
