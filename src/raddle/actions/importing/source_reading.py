"""One file of another agent fed to its reader, once, from one offset to another, its bytes kept on the way.

Owns what a reading of a file leaves: the ledger's entry, the importer's state, the segment, the problems. A
second place that counted bytes and lines would, sooner or later, count them otherwise, and the next reading
would begin in the middle of a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import msgspec
from msgspec import Struct

from raddle.actions.importing.importer import Ending, Problem, Reader, SourceName, Taken
from raddle.actions.importing.run_plan import FileProblem, Segment, SourceEntry, SourceFile
from raddle.model.errors import StorageError

_KEPT, _NOT_KEPT = "; its bytes are kept", ", and not kept"

KeepBytes = Callable[[bytes], None]
Known = Callable[[str], tuple[SourceEntry, bytes] | None]
"""Path -> its ledger entry and the importer's state (empty: only a reading from the start can go on)."""


class SourceError(StorageError):
    """A file of another agent cannot be read, for a `reason`: it costs itself, not the import."""

    code = "unreadable_source"

    def __init__(self, path: str, reason: str, hint: str = "") -> None:
        super().__init__(f"cannot read {path}: {reason}", hint)
        self.path = path
        self.reason = reason

    def problem_of(self, path: str) -> FileProblem:
        """What it is to the file `path`, which is named once: the error may be of one that lies beside it."""
        reason = f"it cannot be read: {self.reason}" if self.path == path else self.message
        return FileProblem(path=path, reason=reason)


class Lines(Struct, frozen=True):
    """Whole lines (without their ends), the number of the first (from 1), and the offset after the last."""

    lines: list[bytes]
    first: int
    read_to: int


class TooLong(Struct, frozen=True):
    """A line that was passed over: its number, its size in bytes, and the offset after it.

    One that has no end yet stays unread: `read_to` is where it starts.
    """

    number: int
    size: int
    read_to: int
    is_ended: bool = True


class Tail(Struct, frozen=True):
    """What stands after the last line end: a record that has none yet, or one that is still being written."""

    data: bytes


class Unread(Struct, frozen=True):
    """Something that belongs before the line `number` cannot be read now: what was read is to be read again."""

    number: int
    reason: str


class Broken(Struct, frozen=True):
    """The file is damaged from the line `number` on, for good: what could be read of it was given."""

    number: int
    reason: str


class OpenSource(Protocol):
    """A source file, open for reading; SourceError where that fails."""

    @property
    def is_repeatable(self) -> bool:
        """Does a reading from the start give again what was read before, where that still stands? If not, what it
        gives later on is what changed meanwhile, and a reading from the start is another generation."""

    def grew_from(self, entry: SourceEntry) -> bool:
        """Does what was read before still stand there?"""

    def head(self, read_to: int) -> str:
        """Hash of its beginning, to know it again."""

    def tail(self, read_to: int) -> str:
        """Hash of what stands before `read_to`."""

    def read(
        self, start: int, first: int, keep: KeepBytes, *, end: int | None = None
    ) -> Iterator[Lines | TooLong | Tail | Unread | Broken]:
        """Its lines from `start` (line `first`) to `end` (None: its end), in batches; every byte goes to `keep`."""

    def close(self) -> None:
        """Let go of it."""


class Sources(NamedTuple):
    """How files are reached: what is told of one before its first byte, its bytes, what is known of it."""

    name_of: Callable[[SourceFile], SourceName]
    open: Callable[[SourceFile], OpenSource]
    known: Known


class Sink(Protocol):
    """Where one session's findings go."""

    def take(self, taken: Taken, *, anew: bool = False) -> None:
        """Messages and attachments, as they are finished. `anew`: they replace what came under their ids."""

    def begin_segment(self) -> KeepBytes:
        """Start keeping source bytes: each call of what is returned adds some."""

    def end_segment(self) -> str:
        """The SHA-256 (64 hex) under which the bytes since `begin_segment` were kept."""

    def drop_segment(self) -> None:
        """Keep nothing of what came since `begin_segment`, if there is something open."""


class FileRead(Struct, frozen=True, kw_only=True):
    """What became of one file: its new ledger entry, the importer's state, its new segment, its problems."""

    entry: SourceEntry
    state: bytes
    segment: Segment | None
    problems: tuple[Problem, ...]


def without_bytes(file: FileRead) -> FileRead:
    """The same where its bytes are not kept: no segment, and no problem that says they were."""
    problems = tuple(
        msgspec.structs.replace(problem, reason=problem.reason.removesuffix(_KEPT) + _NOT_KEPT)
        if problem.reason.endswith(_KEPT)
        else problem
        for problem in file.problems
    )
    return msgspec.structs.replace(file, segment=None, problems=problems)


class Pass:
    """A reader fed with one file, once. `sink`: where its bytes are kept; None: nowhere."""

    def __init__(
        self, reader: Reader, source: OpenSource, file: SourceFile, generation: int, sink: Sink | None
    ) -> None:
        self._reader = reader
        self._source = source
        self._file = file
        self._generation = generation
        self._sink = sink
        self._unread: list[Problem] = []
        self._is_whole = True

    def run(
        self,
        take: Callable[[Taken], None],
        *,
        start: int = 0,
        lines_before: int = 0,
        keep_from: int = 0,
        end: int | None = None,
    ) -> tuple[FileRead, Ending]:
        """Feed the file from `start`, which comes after so many lines; keep its bytes from `keep_from` on."""
        keep_from = max(start, keep_from)
        keep = _nowhere if self._sink is None else self._sink.begin_segment()
        kept = _Kept(keep, skip=keep_from - start)
        ending, read_to, lines = self._feed(take, kept, start, lines_before, end)
        segment = None
        if self._sink is not None and kept.size:
            segment = Segment(
                generation=self._generation,
                start=keep_from,
                end=keep_from + kept.size,
                sha256=self._sink.end_segment(),
                thread_id="",
            )
        elif self._sink is not None:
            self._sink.drop_segment()
        problems = (*self._reader.problems, *self._unread)
        read = FileRead(
            entry=self._entry(read_to, lines, ending, len(problems)),
            state=ending.state,
            segment=segment,
            problems=problems,
        )
        return read, ending

    def _feed(
        self, take: Callable[[Taken], None], kept: _Kept, start: int, lines: int, end: int | None
    ) -> tuple[Ending, int, int]:
        """(how it ended, offset and number of the last whole line)."""
        read_to, tail = start, b""
        reader = self._reader
        for batch in self._source.read(start, lines + 1, kept.add, end=end):
            match batch:
                case Lines():
                    reader.feed(batch.lines)
                    read_to, lines = batch.read_to, batch.first + len(batch.lines) - 1
                case TooLong(is_ended=True):
                    reader.skip_line(f"a line of {batch.size:,} bytes is too long to read{_KEPT}")
                    read_to, lines = batch.read_to, batch.number
                case TooLong():
                    reason = f"a line of {batch.size:,} bytes so far is too long to read{_KEPT}"
                    self._unread.append(Problem(line=batch.number, reason=reason))
                case Unread():
                    self._is_whole = False
                    self._unread.append(Problem(line=batch.number, reason=batch.reason))
                case Broken():
                    self._unread.append(Problem(line=batch.number, reason=batch.reason))
                case Tail():
                    tail = batch.data
            take(reader.take())
        ending = reader.finish(tail)
        take(reader.take())
        return ending, read_to, lines

    def _entry(self, read_to: int, lines: int, ending: Ending, problems: int) -> SourceEntry:
        file = self._file
        return SourceEntry(
            path=file.path,
            agent=file.agent,
            session=file.session,
            is_main=file.is_main,
            thread_id="",
            size=file.size if self._is_whole else -1,  # no file is of that size: it is never as it was
            mtime_ns=file.mtime_ns,
            inode=file.inode,
            read_to=read_to,
            lines=lines,
            head=self._source.head(read_to),
            tail=self._source.tail(read_to),
            generation=self._generation,
            is_unplaced=ending.is_unplaced,
            problems=problems,
            base=ending.waits_for,
        )


def _nowhere(_: bytes) -> None:
    """Where bytes go that are kept already."""


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
