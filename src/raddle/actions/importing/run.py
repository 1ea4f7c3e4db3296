"""An import from its plan to its report: what is new is converted in bulk, what grew is joined.

Everything here is decided on values; the ports below read, store and count. The order of storing is: blobs,
thread files, index, ledger. A crash between any two costs the work of reading again and nothing else, because
whatever is read again joins into what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from raddle.actions.importing.importer import Problem
from raddle.actions.importing.run_plan import Plan, Segment, SessionPlan, SourceEntry, SourceFile, plan_import
from raddle.model.errors import FormatError, StorageError

BATCH_BYTES = 48 << 20
"""Thread files of about this size take their places together, with one sync."""

Progress = Callable[[int, int, int], None]
"""(bytes read, bytes to read, messages so far)."""


class FileProblem(Struct, frozen=True, kw_only=True):
    """What could not be read as it stands: the file, its line (None: the file as a whole), and the reason."""

    path: str
    line: int | None = None
    reason: str


class LeftOut(Struct, frozen=True, kw_only=True):
    """A file that a rule, or an earlier purge, kept out."""

    path: str
    reason: str


class FileDone(Struct, frozen=True, kw_only=True):
    """A file that was read: its ledger entry, the importer's state, its new segment, its problems."""

    entry: SourceEntry
    state: bytes
    segment: Segment | None
    problems: tuple[Problem, ...]


class Converted(Struct, frozen=True, kw_only=True):
    """A session read. `prepared`: names what the bulk converter made of a thread that was not there, for
    `Threads.place`; empty where it was joined already. `is_new`, `has_news`: what it did to the thread."""

    plan: SessionPlan
    thread_id: str
    files: tuple[FileDone, ...] = ()
    prepared: str = ""
    prepared_bytes: int = 0
    messages: int = 0
    is_new: bool = False
    has_news: bool = True
    left_out: str = ""
    problems: tuple[FileProblem, ...] = ()
    other_agent: str = ""


class Ledger(Protocol):
    """What was read before."""

    def entries(self, agent: str | None = None) -> dict[str, SourceEntry]:
        """Path -> entry."""

    def purged(self) -> set[str]:
        """Threads that no import brings back."""

    def note_purged(self, thread_id: str, *, is_purged: bool = True) -> None:
        """Keep a thread gone, or let it come back."""

    def record(
        self,
        entries: Iterable[tuple[SourceEntry, bytes | None]],
        segments: Iterable[tuple[str, Segment]],
    ) -> None:
        """Note what was read, in one transaction."""


class Desk(Protocol):
    """Reads sessions and stores what they become."""

    def convert(self, sessions: Sequence[SessionPlan]) -> Iterator[Converted]:
        """Sessions never read before, in bulk, each as it is done."""

    def can_convert(self, session: SessionPlan) -> bool:
        """Is it one for `convert`? All others are for `join`."""

    def join(self, session: SessionPlan) -> Converted:
        """A session whose thread may be there: read what is new and join it."""

    def place(self, batch: Sequence[Converted]) -> list[Converted]:
        """Put prepared threads in their places and into the index, durably; one whose thread is there by now is
        joined. What was done, `is_new` and `has_news` set."""


class AgentCounts(Struct, kw_only=True):
    """Sessions of one agent, by what became of them; `partial`: of the others, those with problems."""

    agent: str
    new: int = 0
    grown: int = 0
    unchanged: int = 0
    partial: int = 0
    messages: int = 0


class ImportReport(Struct, kw_only=True):
    """What an import did. `threads`: new ones. `messages`: that were not there before (an estimate by reading for
    new threads: exact)."""

    agents: dict[str, AgentCounts]
    threads: int = 0
    messages: int = 0
    problems: list[FileProblem]
    left_out: list[LeftOut]


def plan_of(
    found: Iterable[SourceFile],
    known: Mapping[str, SourceEntry],
    leaves_out: Callable[[str], str],
) -> tuple[Plan, list[LeftOut]]:
    """The plan over the files that no rule on paths leaves out, and those that one does."""
    kept: list[SourceFile] = []
    left_out: list[LeftOut] = []
    for file in found:
        reason = leaves_out(file.path)
        if reason:
            left_out.append(LeftOut(path=file.path, reason=reason))
        else:
            kept.append(file)
    return plan_import(kept, known), left_out


def run_import(
    plan: Plan, left_out: Iterable[LeftOut], ledger: Ledger, desk: Desk, progress: Progress
) -> ImportReport:
    """Carry `plan` out; what it did."""
    report = ImportReport(agents={}, problems=[], left_out=list(left_out))
    for agent, count in plan.unchanged.items():
        _counts(report, agent).unchanged += count
    total = sum(session.size for session in plan.sessions)
    done = 0
    batch: list[Converted] = []

    def settle() -> None:
        for converted in desk.place(batch):
            _note(report, ledger, converted)
        batch.clear()

    new = [session for session in plan.sessions if desk.can_convert(session)]
    others = [session for session in plan.sessions if not desk.can_convert(session)]
    try:
        for converted in desk.convert(new) if new else ():
            done += converted.plan.size
            if converted.prepared:
                if any(other.thread_id == converted.thread_id for other in batch):
                    settle()
                batch.append(converted)
                if sum(other.prepared_bytes for other in batch) > BATCH_BYTES:
                    settle()
            else:
                _note(report, ledger, converted)
            progress(done, total, report.messages + sum(other.messages for other in batch))
    finally:
        settle()
    for session in others:
        _note(report, ledger, _joined(desk, session))
        done += session.size
        progress(done, total, report.messages)
    return report


def _joined(desk: Desk, session: SessionPlan) -> Converted:
    """A session that cannot be read costs itself, not the import."""
    try:
        return desk.join(session)
    except (StorageError, FormatError) as error:
        problem = FileProblem(path=session.files[0].path, reason=f"{error.message} ({error.hint})")
        return Converted(plan=session, thread_id="", has_news=False, problems=(problem,))


def _note(report: ImportReport, ledger: Ledger, converted: Converted) -> None:
    """Into the ledger first, then into the report."""
    ledger.record(
        ((file.entry, file.state or None) for file in converted.files),
        ((file.entry.path, file.segment) for file in converted.files if file.segment is not None),
    )
    counts = _counts(report, converted.plan.agent)
    problems = [
        FileProblem(path=file.entry.path, line=problem.line, reason=problem.reason)
        for file in converted.files
        for problem in file.problems
    ]
    problems.extend(converted.problems)
    report.problems.extend(problems)
    if converted.left_out:
        report.left_out.extend(
            LeftOut(path=file.path, reason=converted.left_out) for file in converted.plan.files
        )
        return
    if converted.is_new:
        counts.new += 1
        report.threads += 1
    elif converted.has_news:
        counts.grown += 1
    else:
        counts.unchanged += 1
    if problems:
        counts.partial += 1
    counts.messages += converted.messages
    report.messages += converted.messages


def _counts(report: ImportReport, agent: str) -> AgentCounts:
    return report.agents.setdefault(agent, AgentCounts(agent=agent))
