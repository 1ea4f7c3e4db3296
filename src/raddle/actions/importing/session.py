"""One session read from its files: the main file first, then its parts with what the main one told of them.

Pure: bytes come through the port `OpenSource`, what is found goes to a `Sink`. Whether a file grew, was
rewritten or is new is decided here, by its bytes; so is when a reading that went on from a state has to be
thrown away and begun anew, and when a part that was read too early is read again.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import Struct

from raddle.actions.importing.importer import Ending, Importer, Links, Lookup, Taken, Write
from raddle.actions.importing.run_plan import FileProblem, SessionPlan, SourceEntry, SourceFile
from raddle.actions.importing.source_reading import FileRead, Pass, Sink, SourceError, Sources, without_bytes

LARGEST_GROWTH_BYTES = 64 << 20
"""More new bytes than this are read from the start instead: a reading that goes on holds its messages until
it knows that they are right."""


class SessionRead(Struct, frozen=True, kw_only=True):
    """A session's files read. `thread_id` is empty where they hold none, now or earlier. `other_agent`: whose they
    are, where they hold none of this importer's.

    `problems`: files that could not be read. `dropped`: blobs of source bytes that belong to no thread.
    `is_too_large`: nothing was read, because a file of more than `largest` bytes had to be read from its start.
    """

    thread_id: str = ""
    registers: tuple[Write, ...] = ()
    files: tuple[FileRead, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    dropped: tuple[str, ...] = ()
    other_agent: str = ""
    is_too_large: bool = False


def read_session(
    importer: Importer,
    plan: SessionPlan,
    sources: Sources,
    sink: Sink,
    *,
    links: Links | None,
    lookup: Lookup,
    base: Links | None = None,
    largest: int | None = None,
) -> SessionRead:
    """Read what `plan` names. `links`: what the session's files told when they were read before. `base`: what those of
    the session told that it was forked from.

    `largest`: of a file that is read from its start here; None: whatever there is.
    """
    reading = _Reading(importer, sources, sink, links=links, lookup=lookup, base=base, largest=largest)
    try:
        for file in plan.files:
            reading.read(file)
        reading.place(plan.unplaced)
    except _TooLarge:
        sink.drop_segment()
        return SessionRead(is_too_large=True)
    return reading.result()


def without_thread(read: SessionRead) -> SessionRead:
    """The same where it makes no thread: of its files nothing is kept, so one that changes is read from its start."""
    segments = (file.segment for file in read.files)
    dropped = (segment.sha256 for segment in segments if segment is not None)
    return msgspec.structs.replace(
        read,
        thread_id="",
        registers=(),
        files=tuple(_blank(file) for file in read.files),
        dropped=(*read.dropped, *dropped),
    )


def _blank(file: FileRead) -> FileRead:
    entry = msgspec.structs.replace(
        file.entry, thread_id="", read_to=0, lines=0, head="", tail="", is_unplaced=False
    )
    return msgspec.structs.replace(without_bytes(file), entry=entry, state=b"")


class _TooLarge(Exception):
    """A whole reading is needed and not allowed here."""


class _Early(NamedTuple):
    """A part that was read before its starting call was known: with which links, and how far it was read."""

    file: SourceFile
    given: Links | None
    end: int


class _Reading:
    """One call of `read_session`."""

    def __init__(
        self,
        importer: Importer,
        sources: Sources,
        sink: Sink,
        *,
        links: Links | None,
        lookup: Lookup,
        base: Links | None,
        largest: int | None,
    ) -> None:
        self._importer = importer
        self._sources = sources
        self._before = links
        self._told = links
        self._base = base
        self._lookup = lookup
        self._sink = sink
        self._largest = largest
        self._thread_id = ""
        self._other_agent = ""
        self._registers: list[Write] = []
        self._files: dict[str, FileRead] = {}
        self._early: list[_Early] = []
        self._problems: list[FileProblem] = []

    def read(self, file: SourceFile) -> None:
        """Read what is new of a file."""
        given = self._base if file.is_main else self._told
        try:
            read, ending = self._read(file, given)
        except SourceError as error:
            self._sink.drop_segment()
            self._problems.append(error.problem_of(file.path))
            return
        self._told = ending.links if self._told is None else ending.links.joined(self._told)
        self._thread_id = self._thread_id or ending.thread_id
        self._other_agent = self._other_agent or ending.other_agent
        self._registers.extend(ending.registers)
        self._files[file.path] = read
        if read.entry.is_unplaced:
            given = given if ending.is_unplaced else self._before
            self._early.append(_Early(file, given, _end_of(read)))

    def place(self, unplaced: tuple[SourceFile, ...]) -> None:
        """Read parts again that were read too early, once more is known: `unplaced` ones in an earlier run.

        Agents start agents, so a part that finds its place may move others; a round for each is enough.
        """
        early = [*self._early, *(_Early(file, self._before, file.size) for file in unplaced)]
        for _ in range(len(early) + 1):
            told = self._told
            early = [self._again(one, told) if one.given != told else one for one in early]
            if self._told == told:
                return

    def result(self) -> SessionRead:
        """What came of it."""
        thread_id = self._thread_id or self._thread_before()
        read = SessionRead(
            thread_id=thread_id,
            registers=tuple(self._registers),
            files=tuple(_of_thread(file, thread_id) for file in self._files.values()),
            problems=tuple(self._problems),
            other_agent="" if self._thread_id else self._other_agent,
        )
        return read if thread_id else without_thread(read)

    def _thread_before(self) -> str:
        """The thread that these files had, when they hold none any more: a source that was emptied."""
        entries = [known[0] for path in self._files if (known := self._sources.known(path)) is not None]
        return next((entry.thread_id for entry in entries if entry.thread_id), "")

    def _read(self, file: SourceFile, given: Links | None) -> tuple[FileRead, Ending]:
        entry, state = self._sources.known(file.path) or (None, b"")
        source = self._sources.open(file)
        try:
            goes_on = entry is not None and source.grew_from(entry)
            name = self._sources.name_of(file)
            end = None
            if entry is not None and goes_on and state and file.size - entry.read_to <= LARGEST_GROWTH_BYTES:
                reader = self._importer.open(name, state=state, links=given, lookup=self._lookup)
                read, ending = self._go_on(Pass(reader, source, file, entry.generation, self._sink), entry)
                if not ending.needs_whole:
                    return read, ending
                end = _end_of(read)  # so that the bytes kept are the same, should it grow meanwhile
            self._check_size(file)
            goes_on = goes_on and source.is_repeatable
            generation = 0 if entry is None else entry.generation + (not goes_on)
            reader = self._importer.open(name, links=given, lookup=self._lookup)
            start_of_new = entry.read_to if entry is not None and goes_on else 0
            whole = Pass(reader, source, file, generation, self._sink)
            return whole.run(self._sink.take, keep_from=start_of_new, end=end)
        finally:
            source.close()

    def _check_size(self, file: SourceFile) -> None:
        if self._largest is not None and file.size > self._largest:
            raise _TooLarge

    def _go_on(self, growth: Pass, entry: SourceEntry) -> tuple[FileRead, Ending]:
        """Read on where the last reading ended; nothing is handed on before it is known to be right."""
        held: list[Taken] = []
        read, ending = growth.run(held.append, start=entry.read_to, lines_before=entry.lines)
        if not ending.needs_whole:
            for taken in held:
                self._sink.take(taken)
        if entry.is_unplaced:
            unplaced = msgspec.structs.replace(read.entry, is_unplaced=True)
            read = msgspec.structs.replace(read, entry=unplaced)
        return read, ending

    def _again(self, early: _Early, told: Links | None) -> _Early:
        """Read a part from its start to where it was read, with more links; its bytes are kept already."""
        file = early.file
        self._check_size(file)
        read = self._files.get(file.path)
        entry = read.entry if read is not None else (self._sources.known(file.path) or (None, b""))[0]
        assert entry is not None
        try:
            source = self._sources.open(file)
            try:
                reader = self._importer.open(self._sources.name_of(file), links=told, lookup=self._lookup)
                again = Pass(reader, source, file, entry.generation, None)
                found, ending = again.run(self._take_anew, end=early.end)
            finally:
                source.close()
        except SourceError as error:
            self._problems.append(error.problem_of(file.path))
            return early._replace(given=told)
        self._told = ending.links if self._told is None else ending.links.joined(self._told)
        self._registers.extend(ending.registers)
        segment, problems = (read.segment, found.problems) if read is not None else (None, ())
        self._files[file.path] = msgspec.structs.replace(found, segment=segment, problems=problems)
        return early._replace(given=told)

    def _take_anew(self, taken: Taken) -> None:
        self._sink.take(taken, anew=True)


def _end_of(read: FileRead) -> int:
    """To where the file's bytes were read, an unfinished line included."""
    return read.entry.read_to if read.segment is None else read.segment.end


def _of_thread(file: FileRead, thread_id: str) -> FileRead:
    segment = file.segment
    return msgspec.structs.replace(
        file,
        entry=msgspec.structs.replace(file.entry, thread_id=thread_id),
        segment=None if segment is None else msgspec.structs.replace(segment, thread_id=thread_id),
    )
