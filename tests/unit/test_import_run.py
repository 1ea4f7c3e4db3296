"""An import stores before it notes, notes all it stored, and counts what became of each session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import pytest

from raddle.actions.importing import run
from raddle.actions.importing.importer import Problem
from raddle.actions.importing.run import Converted, ImportReport, mistake, run_import
from raddle.actions.importing.run_plan import (
    FileProblem,
    LeftOut,
    Plan,
    Segment,
    SessionPlan,
    SourceEntry,
    SourceFile,
)
from raddle.actions.importing.source_reading import FileRead
from raddle.model.errors import StorageError


def a_session(name: str, *, is_new: bool = True, size: int = 10) -> SessionPlan:
    file = SourceFile(path=f"/{name}", agent="a", session=name, size=size, mtime_ns=1, inode=1)
    return SessionPlan(agent="a", session=name, files=(file,), is_new=is_new, size=size)


def a_reading(session: SessionPlan, thread_id: str, *problems: Problem) -> FileRead:
    file = session.files[0]
    entry = SourceEntry(
        path=file.path,
        agent="a",
        session=file.session,
        thread_id=thread_id,
        size=file.size,
        mtime_ns=1,
        inode=1,
        read_to=file.size,
        lines=1,
        head="",
        tail="",
        generation=0,
    )
    segment = Segment(generation=0, start=0, end=file.size, sha256="x", thread_id=thread_id)
    return FileRead(entry=entry, state=b"s", segment=segment, problems=problems)


class Office:
    """A desk and a ledger that write down, in order, what they are asked for."""

    def __init__(self, results: dict[str, Converted | Exception], *, dies_after: int = -1) -> None:
        self.told: list[str] = []
        self._results = results
        self._dies_after = dies_after

    def can_convert(self, session: SessionPlan) -> bool:
        return session.is_new

    def convert(self, sessions: Sequence[SessionPlan]) -> Iterator[Converted]:
        for number, session in enumerate(sessions):
            if number == self._dies_after:
                raise StorageError("a worker died", "run it again")
            self.told.append(f"read {session.session}")
            result = self._results[session.session]
            assert isinstance(result, Converted)
            yield result

    def join(self, session: SessionPlan) -> Converted:
        self.told.append(f"join {session.session}")
        result = self._results[session.session]
        if isinstance(result, Exception):
            raise result
        return result

    def place(self, batch: Sequence[Converted]) -> list[Converted]:
        self.told.append("place " + " ".join(one.plan.session for one in batch))
        return [msgspec.structs.replace(one, prepared="", is_new=True, has_news=True) for one in batch]

    def record(
        self,
        entries: Iterable[tuple[SourceEntry, bytes | None]],
        segments: Iterable[tuple[str, Segment]],
    ) -> None:
        noted = [entry.session for entry, _ in entries]
        assert [path for path, _ in segments] == [f"/{name}" for name in noted]
        if noted:
            self.told.append("note " + " ".join(noted))


def prepared(session: SessionPlan, thread_id: str = "", size: int = 1) -> Converted:
    thread_id = thread_id or f"T-{session.session}"
    return Converted(
        plan=session,
        thread_id=thread_id,
        files=(a_reading(session, thread_id),),
        prepared="temporary",
        prepared_bytes=size,
        messages=3,
    )


def joined(session: SessionPlan, *, has_news: bool = True, problems: tuple[Problem, ...] = ()) -> Converted:
    thread_id = f"T-{session.session}"
    files = (a_reading(session, thread_id, *problems),)
    return Converted(
        plan=session, thread_id=thread_id, files=files, messages=int(has_news), has_news=has_news
    )


def carried_out(office: Office, *sessions: SessionPlan, seen: list[int] | None = None) -> ImportReport:
    def progress(done: int, total: int, messages: int) -> None:
        if seen is not None:
            seen.append(done * 100 // total)

    return run_import(Plan(sessions=sessions, unchanged={"a": 5}), office, office, progress)


def test_threads_are_in_their_places_before_the_ledger_notes_them() -> None:
    sessions = [a_session(name) for name in "xyz"]
    office = Office({one.session: prepared(one) for one in sessions})
    report = carried_out(office, *sessions)
    assert office.told == ["read x", "read y", "read z", "place x y z", "note x y z"]
    assert (report.threads, report.messages, report.agents["a"].new, report.agents["a"].unchanged) == (
        3,
        9,
        3,
        5,
    )


def test_a_batch_is_placed_when_it_is_large_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "BATCH_BYTES", 10)
    sessions = [a_session(name) for name in "xyz"]
    office = Office({one.session: prepared(one, size=6) for one in sessions})
    carried_out(office, *sessions)
    assert office.told == ["read x", "read y", "place x y", "note x y", "read z", "place z", "note z"]


def test_two_sessions_of_one_thread_are_placed_one_after_the_other() -> None:
    sessions = [a_session("x"), a_session("y")]
    office = Office({one.session: prepared(one, "T-same") for one in sessions})
    carried_out(office, *sessions)
    assert office.told == ["read x", "read y", "place x", "note x", "place y", "note y"]


def test_what_was_read_before_a_worker_died_is_placed_and_noted() -> None:
    sessions = [a_session(name) for name in "xyz"]
    office = Office({one.session: prepared(one) for one in sessions}, dies_after=2)
    with pytest.raises(StorageError, match="a worker died"):
        carried_out(office, *sessions)
    assert office.told == ["read x", "read y", "place x y", "note x y"]


def test_new_sessions_are_placed_before_others_are_joined() -> None:
    new, known = a_session("new"), a_session("known", is_new=False)
    office = Office({"new": prepared(new), "known": joined(known)})
    report = carried_out(office, known, new)
    assert office.told == ["read new", "place new", "note new", "join known", "note known"]
    assert (report.agents["a"].new, report.agents["a"].grown, report.messages) == (1, 1, 4)


def test_joined_sessions_are_noted_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "BATCH_SESSIONS", 2)
    sessions = [a_session(name, is_new=False) for name in "xyz"]
    office = Office({one.session: joined(one) for one in sessions})
    carried_out(office, *sessions)
    assert office.told == ["join x", "join y", "note x y", "join z", "note z"]


@pytest.mark.parametrize("error", [StorageError("it is locked", "wait"), KeyError("secret words")])
def test_a_session_that_cannot_be_joined_costs_itself(error: Exception) -> None:
    sessions = [a_session(name, is_new=False) for name in "xy"]
    office = Office({"x": error, "y": joined(sessions[1])})
    report = carried_out(office, *sessions)
    (problem,) = report.problems
    assert (problem.path, "secret" in problem.reason) == ("/x", False)
    assert office.told[-1] == "note y"
    assert (report.agents["a"].partial, report.agents["a"].grown) == (1, 1)


def test_the_report_names_file_line_and_reason_and_what_was_left_out() -> None:
    session = a_session("x", is_new=False)
    left = msgspec.structs.replace(joined(session), left_out="a rule")
    office = Office({"x": left})
    plan = Plan(
        sessions=(session,),
        unchanged={},
        left_out=(LeftOut(path="/z", reason="another"),),
        problems=(FileProblem(path="/folder", reason="closed"),),
    )
    report = run_import(plan, office, office, lambda done, total, messages: None)
    assert report.left_out == [LeftOut(path="/z", reason="another"), LeftOut(path="/x", reason="a rule")]
    assert report.problems == [FileProblem(path="/folder", reason="closed")]
    assert (report.threads, report.messages) == (0, 0)
    problems = (Problem(line=7, reason="torn"), Problem(line=0, reason="odd"))
    office = Office({"x": joined(session, has_news=False, problems=problems)})
    report = carried_out(office, session)
    assert [(one.path, one.line, one.reason) for one in report.problems] == [
        ("/x", 7, "torn"),
        ("/x", None, "odd"),
    ]
    assert (report.agents["a"].unchanged, report.agents["a"].partial) == (6, 1)


def test_progress_goes_from_nothing_to_all() -> None:
    sessions = [a_session("new", size=60), a_session("known", is_new=False, size=40)]
    office = Office({"new": prepared(sessions[0]), "known": joined(sessions[1])})
    seen: list[int] = []
    carried_out(office, *sessions, seen=seen)
    assert seen == [60, 100]


def test_a_bug_is_told_by_its_kind_and_place_never_by_its_words() -> None:
    empty: dict[str, str] = {}
    with pytest.raises(KeyError) as met:
        empty["secret words"]
    problem = mistake("/s.jsonl", met.value)
    assert problem.path == "/s.jsonl"
    assert "KeyError in test_import_run.py, line" in problem.reason
    assert "secret" not in problem.reason
    assert "KeyError); please" in mistake("/s", KeyError()).reason
