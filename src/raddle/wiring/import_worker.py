"""What a worker of an import does with one session: reads it, writes its thread file aside, cuts its words.

Runs in a process of its own, so everything it is told and tells is bytes. It stores blobs (they are named by
their content, so one too many harms nobody) and prepares a thread file under a temporary name; the parent
decides what takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from pathlib import Path

import msgspec
from msgspec import Struct

from raddle.actions.importing.importer import Importer, NamesWorkspace, SourceName, Taken, Write
from raddle.actions.importing.privacy import private_writes, tells_of_private
from raddle.actions.importing.registry import agents, importer_of
from raddle.actions.importing.rules import Rules, workspace_in
from raddle.actions.importing.run import Converted, mistake
from raddle.actions.importing.run_plan import PURGED, FileProblem, SessionPlan, Task
from raddle.actions.importing.session import SessionRead, read_session, without_thread
from raddle.actions.importing.source_reading import KeepBytes, Sources
from raddle.adapters.agent_homes.collections import open_source
from raddle.adapters.agent_homes.discovery import name_of
from raddle.adapters.agent_homes.source_bytes import first_lines
from raddle.adapters.blobs.directory import BlobDirectory, BlobWriter
from raddle.adapters.git import read_remote
from raddle.adapters.local_store.search_ready import ReadyRows, RowGatherer
from raddle.adapters.local_store.thread_spool import ThreadSpool
from raddle.adapters.path_names import normalised
from raddle.model.errors import RaddleError
from raddle.model.threads.carried import copied_from
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import imported_registers
from raddle.model.threads.search_fields import index_row
from raddle.model.threads.search_text import Cutter
from raddle.model.threads.summary import ThreadSummary
from raddle.model.threads.thread import Thread
from raddle.wiring.resumed_copies import says_something


class Setup(Struct, frozen=True, kw_only=True):
    """What a worker is told once. `run`: names the import. `agents`: whose sessions are wanted. `purged`: threads
    that stay gone."""

    run: str
    threads_dir: str
    blobs_dir: str
    rules: Rules
    agents: frozenset[str]
    purged: frozenset[str] = frozenset()


class Rows(Struct, frozen=True, kw_only=True, tag="rows"):
    """Some messages of the session's thread, ready for the index. `session`: the key of its plan."""

    session: str
    ready: ReadyRows


class Done(Struct, frozen=True, kw_only=True, tag="done"):
    """The session is read; its rows came before. No `summary`: it makes no thread."""

    converted: Converted
    summary: ThreadSummary | None = None


class Failed(Struct, frozen=True, kw_only=True, tag="failed"):
    """Nothing can be stored, for this session or any other: the import ends."""

    message: str
    hint: str


encode_answer = msgspec.msgpack.Encoder().encode
decode_answer = msgspec.msgpack.Decoder(Rows | Done | Failed).decode
encode_task = msgspec.msgpack.Encoder().encode
decode_task = msgspec.msgpack.Decoder(Task).decode


class BlobSink:
    """Keeps blobs and source segments as they come; messages are somebody else's."""

    def __init__(self, blobs: BlobDirectory) -> None:
        self.put: set[str] = set()
        """The attachments that were stored."""
        self._blobs = blobs
        self._writer: BlobWriter | None = None

    def begin_segment(self) -> KeepBytes:
        """Start keeping source bytes."""
        self.drop_segment()
        self._writer = self._blobs.writer()
        return self._writer.write

    def end_segment(self) -> str:
        """The name under which they were kept."""
        assert self._writer is not None
        sha256 = self._writer.finish()
        self._writer = None
        return sha256

    def drop_segment(self) -> None:
        """Keep nothing of a reading that broke off."""
        if self._writer is not None:
            self._writer.discard()
            self._writer = None

    def keep_blobs(self, taken: Taken) -> None:
        """Store the attachments."""
        for blob in taken.blobs:
            self.put.add(self._blobs.put(blob.body))


class _NewThreadSink(BlobSink):
    """Spools the messages of a thread that is not there yet, and sends their words on."""

    def __init__(
        self,
        session: str,
        blobs: BlobDirectory,
        spool: ThreadSpool,
        cutter: Cutter,
        send: Callable[[bytes], None],
    ) -> None:
        super().__init__(blobs)
        self._session = session
        self._cutter = cutter
        self._spool = spool
        self._send = send
        self._gatherer = RowGatherer()
        self._newest = (0, "")
        self.copied_from = ""
        """The thread in which the newest turn was said."""
        self.is_private = False
        """Is something in it that raddle told of a private thread?"""

    def take(self, taken: Taken, *, anew: bool = False) -> None:
        """Messages and blobs, as they are finished."""
        self.keep_blobs(taken)
        for message in self._spool.add(taken.messages, anew=anew):
            self.is_private = self.is_private or tells_of_private(message)
            row = index_row(message, self._cutter)
            place = (row.text.order, message.id)
            if place >= self._newest and says_something(message):
                self._newest, self.copied_from = place, copied_from(message)
            self._gatherer.add(row)
            if self._gatherer.is_full:  # here: a reader may give much at once, which the parent would hold
                self.send_rows()

    def send_rows(self) -> None:
        """Send what has gathered."""
        ready = self._gatherer.take()
        if ready is not None:
            self._send(encode_answer(Rows(session=self._session, ready=ready)))


class Remotes:
    """The repository each workspace belongs to, asked once a workspace."""

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}

    def of(self, workspace: object) -> str | None:
        """The slug of its remote; None where the folder is gone, or is in no repository."""
        if not isinstance(workspace, str) or not workspace.startswith("/"):
            return None
        if workspace not in self._known:
            self._known[workspace] = read_remote(Path(workspace))
        return self._known[workspace]


class _Memory:
    """What a process remembers from one session of an import to the next, and never beyond.

    A word that the cutter has seen it need not tell again: this import's index has it. Another might not.
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.cutter = Cutter()
        self.remotes = Remotes()


_memory = _Memory("")


def _memory_of(run: str) -> _Memory:
    global _memory  # noqa: PLW0603  a worker has no other place that outlives a task
    if _memory.run != run:
        _memory = _Memory(run)
    return _memory


def convert_session(setup: Setup, task: bytes, send: Callable[[bytes], None]) -> None:
    """Convert one session; the answers are `Rows` … and one `Done` or `Failed`."""
    given = decode_task(task)
    answer: Done | Failed
    try:
        answer = _convert(setup, given, send)
    except (BrokenPipeError, ConnectionResetError):
        raise  # the parent is gone
    except RaddleError as error:
        answer = Failed(message=error.message, hint=error.hint)
    except Exception as error:  # noqa: BLE001
        problem = mistake(given.plan.files[0].path, error)
        answer = Done(converted=Converted(plan=given.plan, thread_id="", problems=(problem,)))
    send(encode_answer(answer))


def _convert(setup: Setup, task: Task, send: Callable[[bytes], None], *, is_given_over: bool = False) -> Done:
    plan = task.plan
    importer = importer_of(plan.agent)
    spool = ThreadSpool(Path(setup.threads_dir))
    memory = _memory_of(setup.run)
    blobs = BlobDirectory(Path(setup.blobs_dir), syncs=False)
    sink = _NewThreadSink(plan.key, blobs, spool, memory.cutter, send)
    entries = task.entries
    sources = Sources(
        name_of=lambda file: name_of(importer, file),
        open=open_source,
        known=lambda path: (entries[path], b"") if path in entries else None,
    )
    try:
        read = read_session(importer, plan, sources, sink, links=task.links, lookup=lambda message_id: None)
        other = None if is_given_over else given_over(plan, read, setup.agents)
        if other is not None:
            left = left_to_rules(other, read, setup.rules)
            if left is not None:
                return Done(converted=left)
            done = _convert(setup, Task(plan=other, entries=entries), send, is_given_over=True)
            return msgspec.structs.replace(done, converted=with_dropped(done.converted, read))
        if read.thread_id in setup.purged:
            return Done(converted=left_as_purged(importer, plan, read, sink.put))
        if plan.is_new and not len(spool):
            read = without_thread(read)
        converted = converted_of(importer, plan, read)
        if not read.thread_id or not len(spool):
            return Done(converted=converted)
        writes = with_context(read.registers, setup.rules, memory.remotes)
        if sink.is_private:
            writes += private_writes(0)
        return _prepared(read.thread_id, writes, converted, sink, spool)
    finally:
        sink.drop_segment()
        spool.close()


def given_over(plan: SessionPlan, read: SessionRead, wanted: AbstractSet[str]) -> SessionPlan | None:
    """The same file for the importer of the agent that wrote it, which only its records told; None where it is not
    another's, or one that is not `wanted` or not known."""
    agent = read.other_agent
    if agent not in wanted or agent not in agents() or len(plan.files) != 1 or plan.files[0].collection:
        return None
    file = msgspec.structs.replace(plan.files[0], agent=agent)
    return msgspec.structs.replace(plan, agent=agent, files=(file,), unplaced=())


def left_to_rules(plan: SessionPlan, read: SessionRead, rules: Rules) -> Converted | None:
    """The session that was given over, where a rule leaves its workspace out, which its own importer finds."""
    if not rules.exclude:
        return None
    importer, (file,) = importer_of(plan.agent), plan.files
    workspace = workspace_of(importer, name_of(importer, file), first_lines(file.path))
    reason = rules.leaves_out(file.path, workspace)
    if not reason:
        return None
    return Converted(plan=plan, thread_id="", left_out=reason, dropped=without_thread(read).dropped)


def workspace_of(importer: Importer, source: SourceName, lines: Iterable[bytes]) -> str:
    """The workspace that a log names in its first lines; empty where it names none."""
    return importer.workspace(source, lines) if isinstance(importer, NamesWorkspace) else workspace_in(lines)


def with_dropped(converted: Converted, read: SessionRead) -> Converted:
    """With the blobs of the reading that took it for another agent's: those that are its own are named by then."""
    return msgspec.structs.replace(converted, dropped=(*converted.dropped, *without_thread(read).dropped))


def left_as_purged(
    importer: Importer, plan: SessionPlan, read: SessionRead, put: AbstractSet[str]
) -> Converted:
    """A session whose thread was purged: of its bytes, and of the attachments that were `put`, nothing stays."""
    nothing = converted_of(importer, plan, without_thread(read))
    files = tuple(
        msgspec.structs.replace(
            file, entry=msgspec.structs.replace(file.entry, thread_id=read.thread_id), problems=()
        )
        for file in nothing.files
    )
    dropped = (*nothing.dropped, *put)
    return msgspec.structs.replace(nothing, files=files, left_out=PURGED, dropped=dropped)


def _prepared(
    thread_id: str, writes: list[Write], converted: Converted, sink: _NewThreadSink, spool: ThreadSpool
) -> Done:
    frame = Thread(thread_id)
    frame.join(Delta(version=1, registers=imported_registers({}, writes)))
    sink.send_rows()
    prepared = spool.write(frame)
    converted = msgspec.structs.replace(
        converted,
        copied_from=sink.copied_from,
        messages=len(spool),
        prepared=prepared.name,
        prepared_bytes=prepared.stat().st_size,
    )
    summary = msgspec.structs.replace(frame.summary(), message_count=len(spool))
    return Done(converted=converted, summary=summary)


def with_context(registers: tuple[Write, ...], rules: Rules, remotes: Remotes) -> list[Write]:
    """An importer's writes, with what this machine adds: the repository of the workspace, and `is_private` where
    a rule says so; the workspace without `..` in it."""
    writes = [
        (path, n, normalised(value))
        if path == "workspace_root" and isinstance(value, str)
        else (path, n, value)
        for path, n, value in registers
    ]
    said = next((value for path, _, value in registers if path == "workspace_root"), None)
    values = {path: (n, value) for path, n, value in writes}
    n, _ = values.get("workspace_root", (0, None))
    remote = values["git_remote_url"][1] if "git_remote_url" in values else remotes.of(said)
    if remote and "git_remote_url" not in values:
        writes.append(("git_remote_url", n, remote))
    if rules.makes_private(said if isinstance(said, str) else None, remote):
        writes += private_writes(n)
    return writes


def converted_of(importer: Importer, plan: SessionPlan, read: SessionRead) -> Converted:
    """What was read, as the run wants it, but for what it did to a thread."""
    problems, files = list(read.problems), read.files
    if read.other_agent:  # that says it all: what its lines look like to the wrong reader is noise
        files = tuple(msgspec.structs.replace(file, problems=()) for file in files)
        reason = f"this is a session of {read.other_agent}, not of {importer.label}: not read here"
        problems.append(FileProblem(path=plan.files[0].path, reason=reason))
    return Converted(
        plan=plan,
        thread_id=read.thread_id,
        files=files,
        problems=tuple(problems),
        dropped=read.dropped,
    )
