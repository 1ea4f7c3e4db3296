"""Session files in memory, and a sink that remembers: what `read_session` needs, with every byte counted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from raddle.actions.importing.importer import Importer, Links, SourceName, Taken
from raddle.actions.importing.rules import Rules
from raddle.actions.importing.run_plan import (
    HEAD_BYTES,
    FileProblem,
    Plan,
    SessionPlan,
    SourceEntry,
    SourceFile,
    plan_import,
)
from raddle.actions.importing.session import SessionRead, read_session
from raddle.actions.importing.source_reading import (
    KeepBytes,
    Lines,
    SourceError,
    Sources,
    Tail,
    TooLong,
)
from raddle.model.threads.delta import Delta
from raddle.model.threads.register import one_write
from raddle.model.threads.thread import Thread

ROOT = "/home/dev/.claude/projects/-kiln"


class MemorySource:
    """A file's bytes; an `OpenSource`. `longest`: of a line that is read."""

    is_repeatable = True

    def __init__(self, disk: MemoryDisk, path: str) -> None:
        self._disk = disk
        self._data = disk.files[path]
        self._path = path

    def grew_from(self, entry: SourceEntry) -> bool:
        if len(self._data) < entry.read_to:
            return False
        return not entry.read_to or (self.head(entry.read_to), self.tail(entry.read_to)) == (
            entry.head,
            entry.tail,
        )

    def head(self, read_to: int) -> str:
        return hashlib.sha256(self._data[: min(HEAD_BYTES, read_to)]).hexdigest()

    def tail(self, read_to: int) -> str:
        return hashlib.sha256(self._data[max(0, read_to - HEAD_BYTES) : read_to]).hexdigest()

    def read(
        self, start: int, first: int, keep: KeepBytes, *, end: int | None = None
    ) -> Iterator[Lines | TooLong | Tail]:
        data = self._data[start:end]
        self._disk.bytes_read += len(data)
        *lines, tail = data.split(b"\n")
        at = start
        for number, line in enumerate(lines, first):
            keep(line + b"\n")
            at += len(line) + 1
            if len(line) > self._disk.longest:
                yield TooLong(number, len(line), at)
            else:
                yield Lines([line], number, at)
        if tail:
            keep(tail)
            if len(tail) > self._disk.longest:
                yield TooLong(first + len(lines), len(tail), at, is_ended=False)
            else:
                yield Tail(tail)
        self._disk.after_reading(self._path)

    def close(self) -> None:
        self._disk.opened.append(self._path)


class MemorySink:
    """Keeps what it is given; a `Sink`."""

    def __init__(self) -> None:
        self.thread = Thread("")
        self.blobs: dict[str, bytes] = {}
        self._open: list[bytes] | None = None

    def take(self, taken: Taken, *, anew: bool = False) -> None:
        if anew:
            ids = {message.id for message in taken.messages}
            others = tuple(message for message in self.thread.messages if message.id not in ids)
            self.thread = Thread("")
            self.thread.join(Delta(messages=others))
        self.thread.join(Delta(messages=tuple(taken.messages)))

    def begin_segment(self) -> KeepBytes:
        assert self._open is None, "the last segment is still open"
        self._open = []
        return self._open.append

    def end_segment(self) -> str:
        assert self._open is not None
        data, self._open = b"".join(self._open), None
        sha256 = hashlib.sha256(data).hexdigest()
        self.blobs[sha256] = data
        return sha256

    def drop_segment(self) -> None:
        self._open = None


class MemoryDisk:
    """Files, a ledger, and the thread they became. `bytes_read` and `opened` since the last `read`."""

    def __init__(self, importer: Importer) -> None:
        self.importer = importer
        self.files: dict[str, bytes] = {}
        self.entries: dict[str, SourceEntry] = {}
        self.states: dict[str, bytes] = {}
        self.kept: dict[str, list[tuple[int, int, bytes]]] = {}
        """Path -> (generation, start, bytes)."""
        self.thread = Thread("")
        self.bytes_read = 0
        self.opened: list[str] = []
        self.longest = 1 << 20
        self.unreadable: set[str] = set()
        self.growth_while_read: dict[str, bytes] = {}
        self._clock = 0
        self._stamps: dict[str, tuple[bytes, int]] = {}

    def put(self, name: str, data: bytes) -> str:
        """Write a file below the root; its path."""
        path = f"{ROOT}/{name}"
        self.files[path] = data
        return path

    def after_reading(self, path: str) -> None:
        """A file may grow while it is read."""
        self.files[path] += self.growth_while_read.pop(path, b"")

    def plan(self) -> Plan:
        """What an import would read now."""
        return plan_import([self._found(path) for path in self.files], self.entries, Rules())

    def _found(self, path: str) -> SourceFile | FileProblem:
        data = self.files[path]
        if self._stamps.get(path, (None, 0))[0] != data:
            self._clock += 1
            self._stamps[path] = (data, self._clock)
        name = path.removeprefix(ROOT + "/")
        folders = tuple(name.split("/")[:-1])
        place = self.importer.place(SourceName(name=name.split("/")[-1], folders=("-kiln", *folders)), data)
        assert place is not None
        return SourceFile(
            path=path,
            agent=self.importer.agent,
            session=place.session,
            size=len(data),
            mtime_ns=self._stamps[path][1],
            inode=1,
            is_main=not place.is_part,
            root=ROOT.rpartition("/")[0],
        )

    def _open(self, file: SourceFile) -> MemorySource:
        path = file.path
        if path in self.unreadable or path not in self.files:
            raise SourceError(path, "it is not there", "check the path")
        return MemorySource(self, path)

    def _name_of(self, file: SourceFile) -> SourceName:
        *folders, name = file.path.removeprefix(file.root + "/").split("/")
        return SourceName(name=name, folders=tuple(folders))

    def _known(self, path: str) -> tuple[SourceEntry, bytes] | None:
        entry = self.entries.get(path)
        return None if entry is None else (entry, self.states.get(path, b""))

    def _links(self, paths: tuple[str, ...]) -> Links | None:
        told: Links | None = None
        for path in paths:
            links = self.importer.links(self.states.get(path, b""))
            if links is not None:
                told = links if told is None else told.joined(links)
        return told

    def read(self, *, largest: int | None = None) -> list[SessionRead]:
        """Import: read what the plan names, join it, and note it."""
        self.bytes_read, self.opened = 0, []
        return [self._read(plan, largest) for plan in self.plan().sessions]

    def _read(self, plan: SessionPlan, largest: int | None) -> SessionRead:
        sink = MemorySink()
        read = read_session(
            self.importer,
            plan,
            Sources(self._name_of, self._open, self._known),
            sink,
            links=self._links(plan.known),
            lookup=self.thread.tree.get,
            largest=largest,
        )
        self.thread.id = self.thread.id or read.thread_id
        registers = {path: one_write(n, "", value) for path, n, value in read.registers}
        self.thread.join(Delta(messages=tuple(sink.thread.messages), registers=registers))
        for file in read.files:
            self.entries[file.entry.path] = file.entry
            self.states[file.entry.path] = file.state
            if file.segment is not None:
                data = sink.blobs[file.segment.sha256]
                self.kept.setdefault(file.entry.path, []).append(
                    (file.segment.generation, file.segment.start, data)
                )
        return read

    def texts(self) -> list[str]:
        """What the thread's messages say."""
        return [message.content for message in self.thread.messages]

    def source_of(self, path: str) -> list[bytes]:
        """The kept bytes of a file, one value a generation."""
        generations: dict[int, bytes] = {}
        for generation, start, data in self.kept.get(path, []):
            before = generations.get(generation, b"")
            assert start <= len(before), "bytes are missing between two segments"
            generations[generation] = before[:start] + data
        return [generations[number] for number in sorted(generations)]
