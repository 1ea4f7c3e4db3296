"""A machine to import on: a home folder with agents' sessions in it, and a raddle with folders of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raddle.actions.importing.run import ImportReport
from raddle.config import load_config
from raddle.model.clock import Clock
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores
from raddle.wiring.importing import Preview, dry_run, import_sessions
from tests.builders import WoundClock
from tests.builders_claude_code import ClaudeSession

PROJECT = "-home-dev-src-kiln"


class Machine:
    """One person's machine. `folder` holds all of it; two with one `home` are two machines with a copy of it."""

    def __init__(self, folder: Path, *, home: Path | None = None, clock: Clock | None = None) -> None:
        self.folder = folder
        self.home = home or folder / "home"
        self.clock = clock or WoundClock()
        self.claude = self.home / ".claude" / "projects"
        self.variables: dict[str, str] = {}
        """Variables of agents."""
        self.config_file = folder / "config" / "config.toml"
        self.home.mkdir(parents=True, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that raddle is started with."""
        places = {f"RADDLE_{name.upper()}_DIR": str(self.folder / name) for name in _FOLDERS}
        return {"HOME": str(self.home), **places, **self.variables}

    @contextmanager
    def stores(self) -> Iterator[Stores]:
        """A raddle at work here, as in a process of its own."""
        with Stores(load_config(self.environment), clock=self.clock) as stores:
            yield stores

    def configure(self, text: str) -> None:
        """Write the config file."""
        self.config_file.parent.mkdir(parents=True, exist_ok=True)
        self.config_file.write_text(text)

    def bring_in(self, *what: str, revive: bool = False, since: str | None = None) -> ImportReport:
        """`raddle import`."""
        with self.stores() as stores:
            return import_sessions(stores, what, since=since, revive=revive, progress=_unseen)

    def look(self, *what: str) -> Preview:
        """`raddle import --dry-run`."""
        with self.stores() as stores:
            return dry_run(stores, what, since=None)

    def threads(self) -> list[Thread]:
        """Every thread as it is stored, oldest id first."""
        with self.stores() as stores:
            return [stores.threads.load(thread_id) for thread_id in stores.threads.ids()]

    def thread(self) -> Thread:
        """The only one."""
        (thread,) = self.threads()
        return thread

    def texts(self) -> list[str]:
        """What the messages of the only thread say."""
        return [message.content for message in self.thread().messages]

    def finds(self, query: str) -> list[str]:
        """The ids of the threads that a search finds."""
        with self.stores() as stores:
            return [hit.thread.id for hit in stores.index.search(query).hits]

    def file(self, name: str, *folders: str) -> Path:
        """A file of Claude Code's, whose folders are made."""
        path = self.claude.joinpath(*(folders or (PROJECT,)), name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def keep(self, session: ClaudeSession, *folders: str, lines: int | None = None) -> Path:
        """Write a session (its first `lines`) where Claude Code keeps it; a sub-agent's below its session's."""
        project = folders or (PROJECT,)
        if session.agent:
            path = self.file(f"agent-{session.agent}.jsonl", *project, session.session, "subagents")
        else:
            path = self.file(f"{session.session}.jsonl", *project)
        write(path, b"".join(line + b"\n" for line in session.lines[:lines]))
        return path

    def everything_stored(self) -> bytes:
        """All bytes of all of raddle's files, blobs as they were before compression, and all paths."""
        told = [str(path).encode() for path in self.folder.rglob("*") if self.home not in path.parents]
        for name in _FOLDERS:
            told += [path.read_bytes() for path in (self.folder / name).rglob("*") if path.is_file()]
        with self.stores() as stores:
            told += [stores.blobs.read(sha256) for sha256 in stores.blobs.ids()]
        return b"\n".join(told)

    def source_of(self, path: Path) -> list[bytes]:
        """The bytes that were kept of a source file, one value for each of its generations."""
        with self.stores() as stores:
            kept = [
                (segment, stores.blobs.read(segment.sha256))
                for thread_id in stores.threads.ids()
                for at, segment in stores.ledger.segments_of(thread_id)
                if at == str(path)
            ]
        generations: dict[int, bytes] = {}
        for segment, data in kept:
            assert len(data) == segment.end - segment.start
            before = generations.get(segment.generation, b"")
            assert segment.start <= len(before), "bytes are missing between two segments"
            generations[segment.generation] = before[: segment.start] + data
        return [generations[number] for number in sorted(generations)]

    def orphans(self) -> set[str]:
        """Blobs that no thread and no segment names."""
        with self.stores() as stores:
            named = set(stores.ledger.kept_blobs())
            for thread_id in stores.threads.ids():
                for message in stores.threads.load(thread_id).messages:
                    named.update(attachment.sha256 for attachment in message.attachments)
            return set(stores.blobs.ids()) - named


_FOLDERS = ("data", "config", "state", "cache")


def write(path: Path, data: bytes) -> None:
    """Write a file as another program does at another time: its `stat` differs from what it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    later = path.stat().st_mtime_ns + 1_000_000_000 if path.exists() else None
    path.write_bytes(data)
    if later is not None:
        os.utime(path, ns=(later, later))


def add(path: Path, data: bytes) -> None:
    """Add bytes at the end of a file."""
    with path.open("ab") as file:
        file.write(data)


def counts(report: ImportReport, agent: str = "claude-code") -> tuple[int, int, int, int]:
    """(new, grown, unchanged, messages) of one agent."""
    one = report.agents[agent]
    return one.new, one.grown, one.unchanged, one.messages


def reasons(report: ImportReport) -> list[str]:
    """What is wrong, without where."""
    return [problem.reason for problem in report.problems]


def _unseen(done: int, total: int, messages: int) -> None:
    """Progress that nobody looks at."""
