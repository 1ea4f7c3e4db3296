"""An import from its plan to its report: what is new is converted in bulk, what grew is joined.

Everything here is decided on values; the ports below read, store and count. The order of storing is: blobs,
thread files, index, ledger. A crash between any two costs the work of reading again and nothing else, because
whatever is read again joins into what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from raddle.actions.importing.run_plan import (
    FileProblem,
    LeftOut,
    PassedOver,
    Plan,
    Segment,
    SessionPlan,
    SourceEntry,
)
from raddle.actions.importing.source_reading import FileRead, SourceError
from raddle.model.errors import RaddleError

BATCH_BYTES = 48 << 20
"""Thread files of about this size take their places together, with one sync."""

BATCH_SESSIONS = 64
"""So many sessions that were joined are noted together."""

Progress = Callable[[int, int, int], None]
"""(bytes read, bytes to read, messages so far)."""


class Converted(Struct, frozen=True, kw_only=True):
    """A session read. `prepared`: names what the bulk converter made of a thread, for `Desk.place`; empty where
    it was joined already, or makes none. `is_new`, `has_news`: what it did to the thread. `messages`: new ones.
    `dropped`: blobs that were stored on the way and belong to no thread. `copied_from`: the thread in which its newest
    turn was said, where raddle copied it from there."""

    plan: SessionPlan
    thread_id: str
    files: tuple[FileRead, ...] = ()
    prepared: str = ""
    prepared_bytes: int = 0
    messages: int = 0
    is_new: bool = False
    has_news: bool = False
    left_out: str = ""
    copied_from: str = ""
    problems: tuple[FileProblem, ...] = ()
    dropped: tuple[str, ...] = ()


class Ledger(Protocol):
    """What was read before."""

    def record(
        self,
        entries: Iterable[tuple[SourceEntry, bytes | None]],
        segments: Iterable[tuple[str, Segment]],
    ) -> None:
        """Note what was read, in one transaction."""


class Desk(Protocol):
    """Reads sessions and stores what they become."""

    def convert(self, sessions: Sequence[SessionPlan]) -> Iterator[Converted]:
        """Sessions read from their start, in bulk, each as it is done."""

    def can_convert(self, session: SessionPlan) -> bool:
        """Is it one for `convert`? All others are for `join`."""

    def join(self, session: SessionPlan) -> Converted:
        """A session whose thread may be there: read what is new and join it."""

    def place(self, batch: Sequence[Converted]) -> list[Converted]:
        """Put prepared threads in their places and into the index, durably; one whose thread is there by now is
        joined. What was done, `messages`, `is_new` and `has_news` set."""


class AgentCounts(Struct, kw_only=True):
    """Sessions of one agent, by what became of them; `partial`: how many of all have problems."""

    agent: str
    new: int = 0
    grown: int = 0
    unchanged: int = 0
    partial: int = 0
    messages: int = 0


class ImportReport(Struct, kw_only=True):
    """What an import did. `threads`: new ones. `messages`: that were not there before. `unread`: paths that a person
    named and from which nothing could be read."""

    agents: dict[str, AgentCounts]
    threads: int = 0
    messages: int = 0
    problems: list[FileProblem]
    left_out: list[LeftOut]
    passed_over: PassedOver
    unread: list[str] = []


def run_import(plan: Plan, ledger: Ledger, desk: Desk, progress: Progress) -> ImportReport:
    """Carry `plan` out; what it did. What was stored is noted even where the run breaks off."""
    run = _Run(plan, ledger, desk, progress)
    new = [session for session in plan.sessions if desk.can_convert(session)]
    others = [session for session in plan.sessions if not desk.can_convert(session)]
    try:
        if new:
            run.convert(new)
            run.settle()  # a session that is joined may be of a thread that was just prepared
        run.join(others)
    finally:
        run.settle()
    run.report.agents = dict(sorted(run.report.agents.items()))
    return run.report


def nothing_new(plan: Plan) -> ImportReport:
    """What a plan without sessions comes to: most imports."""
    return ImportReport(
        agents={
            agent: AgentCounts(agent=agent, unchanged=count)
            for agent, count in sorted(plan.unchanged.items())
        },
        problems=list(plan.problems),
        left_out=list(plan.left_out),
        passed_over=plan.passed_over,
    )


def mistake(path: str, error: Exception) -> FileProblem:
    """A bug met in one file, as its problem: the file costs itself, and whoever mends the bug knows where it is."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    where = ""
    if at is not None:
        where = f" in {at.tb_frame.f_code.co_filename.rpartition('/')[2]}, line {at.tb_lineno}"
    reason = f"not read: raddle made a mistake ({type(error).__name__}{where}); please report it"
    return FileProblem(path=path, reason=reason)


class _Run:
    """One call of `run_import`: what is stored and not yet noted, and the report so far."""

    def __init__(self, plan: Plan, ledger: Ledger, desk: Desk, progress: Progress) -> None:
        self.report = nothing_new(plan)
        self._ledger = ledger
        self._desk = desk
        self._progress = progress
        self._total = sum(session.size for session in plan.sessions)
        self._done = 0
        self._prepared: dict[str, Converted] = {}
        """By thread."""
        self._prepared_bytes = 0
        self._stored: list[Converted] = []
        self._messages = 0
        """Of what is prepared or stored, and not noted yet."""

    def convert(self, sessions: Sequence[SessionPlan]) -> None:
        """Sessions never read before."""
        for converted in self._desk.convert(sessions):
            self._messages += converted.messages
            if not converted.prepared:
                self._stored.append(converted)
            else:
                if converted.thread_id in self._prepared:
                    self.settle()
                self._prepared[converted.thread_id] = converted
                self._prepared_bytes += converted.prepared_bytes
                if self._prepared_bytes > BATCH_BYTES:
                    self.settle()
            self._advance(converted.plan)

    def join(self, sessions: Sequence[SessionPlan]) -> None:
        """Sessions whose threads may be there; one that cannot be joined costs itself."""
        for session in sessions:
            if session.base:
                self.settle()  # what its first session told is asked of the ledger
            try:
                converted = self._desk.join(session)
            except SourceError as error:
                problem = error.problem_of(session.files[0].path)
                converted = Converted(plan=session, thread_id="", problems=(problem,))
            except RaddleError as error:
                problem = FileProblem(path=session.files[0].path, reason=f"{error.message} ({error.hint})")
                converted = Converted(plan=session, thread_id="", problems=(problem,))
            except Exception as error:  # noqa: BLE001
                converted = Converted(
                    plan=session, thread_id="", problems=(mistake(session.files[0].path, error),)
                )
            self._stored.append(converted)
            self._messages += converted.messages
            if len(self._stored) >= BATCH_SESSIONS:
                self.settle()
            self._advance(session)

    def settle(self) -> None:
        """Store what is prepared, and note all that is stored: in the ledger first, then in the report."""
        prepared, self._prepared, self._prepared_bytes = self._prepared, {}, 0
        if prepared:
            self._stored += self._desk.place(list(prepared.values()))
        stored, self._stored = self._stored, []
        files = [(converted, file) for converted in stored for file in converted.files]
        self._ledger.record(
            ((file.entry, file.state or None) for _, file in files),
            ((file.entry.path, file.segment) for _, file in files if file.segment is not None),
        )
        for converted in stored:
            self._tell(converted)
        self._messages = 0

    def _advance(self, session: SessionPlan) -> None:
        self._done += session.size
        self._progress(self._done, self._total, self.report.messages + self._messages)

    def _tell(self, converted: Converted) -> None:
        report, counts = self.report, self._counts(converted.plan.agent)
        problems = [
            FileProblem(path=file.entry.path, line=problem.line or None, reason=problem.reason)
            for file in converted.files
            for problem in file.problems
        ]
        problems.extend(converted.problems)
        report.problems.extend(problems)
        counts.partial += bool(problems)
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
        elif converted.thread_id or converted.copied_from:
            counts.unchanged += 1
        counts.messages += converted.messages
        report.messages += converted.messages

    def _counts(self, agent: str) -> AgentCounts:
        return self.report.agents.setdefault(agent, AgentCounts(agent=agent))
