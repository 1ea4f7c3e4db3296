"""A turn that is asked: its answer under it, a true state whatever ends it, and nothing twice after any death."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from raddle.actions.answering.asking import Desk, Landed, Request, Sent, Told, ask, turn_to_ask
from raddle.actions.answering.ports import Answered, Asks, Done, Launched, Piece, Responder, Retry
from raddle.actions.answering.reconciling import CUT, ENDED, KEPT, LANDED, Settled, reconcile
from raddle.actions.recording.recorder import Opening, Recorder
from raddle.actions.recording.sharing import told_in
from raddle.adapters.local_store.launch_book import LaunchBook
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.adapters.locks import LockFiles
from raddle.model.clock import system_clock
from raddle.model.errors import InvalidInput, NetworkError, Rejected, StorageError, Unanswered, Unconfirmed
from raddle.model.ids import MonotonicIds
from raddle.model.threads.message import Message, Usage
from raddle.model.threads.thread import Thread
from tests.builders import an_author
from tests.builders_store import paths_in
from tests.fakes.responders import ScriptedCouncil, ScriptedResponder
from tests.file_events import deaths_of, some_deaths_or_all, start_child

ANSWER = Answered(
    text="cone six", provider="openai", model="m1", usage=Usage(input_tokens=3, output_tokens=2)
)


class Room:
    """A machine with one thread in it, and the desk at which turns are asked."""

    def __init__(self, folder: Path) -> None:
        self.paths = paths_in(folder)
        self.new_id = MonotonicIds(system_clock)
        author = an_author("aaaaaaaa", system_clock, new_id=self.new_id)
        self.threads = ThreadFiles(self.paths, LockFiles(self.paths.locks_dir), author)
        self.desk = Desk(
            threads=lambda: self.threads,
            book=LaunchBook(self.paths.launches_dir),
            new_id=self.new_id,
            keep_body=lambda text: (text, ()),
            read=lambda _: None,
        )
        with self.threads.create() as editor:
            editor.append("user", "hello")
            self.head = editor.append("assistant", "What is it?").id
            self.thread_id = editor.thread.id

    @property
    def thread(self) -> Thread:
        return self.threads.load(self.thread_id)

    @property
    def texts(self) -> list[str]:
        return [message.content for message in self.thread.tree.shown()]

    @property
    def last(self) -> Message:
        return list(self.thread.tree.shown())[-1]

    def begin(self, responder: Responder, text: str = "how hot?", under: str | None = "") -> object:
        """What asking tells, not yet asked for."""
        thread = self.thread
        head = self.head if under == "" else under
        opening = Opening(is_new=False, head=head, state=thread.agent_state, told=told_in(thread))
        recorder = Recorder(self.desk.threads, thread.id, opening, keep_body=self.desk.keep_body)
        return ask(self.desk, recorder, responder, Request(parent_id=head, text=text))

    def ask(self, responder: Responder, text: str = "how hot?", under: str | None = "") -> list[Told]:
        """All that is told."""
        told = self.begin(responder, text, under)
        return list(told)  # type: ignore[call-overload,no-any-return]

    def settle(self, *responders: ScriptedCouncil) -> list[Settled]:
        """What becomes of what was left in this thread."""
        known = {one.name: one for one in responders}
        return list(reconcile(self.desk, known.get, self.thread_id))

    @property
    def left(self) -> int:
        return len(list(LaunchBook(self.paths.launches_dir).all()))


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def test_an_answer_lands_under_its_turn_with_who_gave_it(room: Room) -> None:
    responder = ScriptedResponder(Piece(text="cone "), Piece(text="six"), ANSWER)
    sent, *pieces, landed = room.ask(responder)
    assert isinstance(sent, Sent)
    assert isinstance(landed, Landed)
    assert pieces == [Piece(text="cone "), Piece(text="six")]
    answer = room.last
    assert (answer.content, answer.parent_id, answer.role) == ("cone six", sent.message_id, "assistant")
    assert (answer.provider, answer.model, answer.usage) == ("openai", "m1", ANSWER.usage)
    assert room.thread.agent_state.kind == "waiting_for_user_input"
    assert not room.thread.pending_jobs
    assert not room.left


def test_what_is_asked_is_the_path_down_to_the_turn_and_no_sibling(room: Room) -> None:
    with room.threads.edit(room.thread_id) as editor:
        editor.reply(room.head, "user", "a question of another branch")
    responder = ScriptedResponder(ANSWER)
    room.ask(responder)
    (question,) = responder.asked
    assert [message.content for message in question.messages] == ["hello", "What is it?", "how hot?"]
    assert question.query == "[user] hello\n\n[assistant] What is it?\n\n[user] how hot?"


def test_the_launch_is_in_the_thread_before_the_question_leaves(room: Room) -> None:
    seen: list[Thread] = []
    room.ask(ScriptedResponder(lambda: seen.append(room.thread), ANSWER))
    (job,) = seen[0].pending_jobs
    turn = seen[0].tree.get(job.parent_id or "")
    assert turn is not None
    assert turn.content == "how hot?"
    assert (job.responder, seen[0].agent_state.kind) == ("local", "calling_llm")


def test_the_state_says_that_an_answer_comes_in_and_how_often_it_was_tried(room: Room) -> None:
    kinds: list[tuple[str, int, str | None]] = []

    def look() -> None:
        state = room.thread.agent_state
        kinds.append((state.kind, state.retries, state.last_error))

    retry = Retry(why="overloaded", wait_seconds=1, retries=1)
    room.ask(ScriptedResponder(Piece(text="co"), look, retry, look, Piece(text="cone six"), look, ANSWER))
    assert kinds == [
        ("processing_llm_response", 0, None),
        ("calling_llm", 1, "overloaded"),
        ("processing_llm_response", 1, "overloaded"),
    ]
    assert room.last.content == "cone six"
    assert room.thread.agent_state.retries == 0


def test_an_answer_that_comes_after_three_more_turns_lands_under_its_own(room: Room) -> None:
    def go_on() -> None:
        for text in ("one", "two", "three"):
            room.threads.append(room.thread_id, "user", text)

    sent, *_ = room.ask(ScriptedResponder(go_on, ANSWER))
    assert isinstance(sent, Sent)
    (answer,) = [message for message in room.thread.tree.shown() if message.content == "cone six"]
    assert answer.parent_id == sent.message_id


def test_a_fragment_that_is_found_late_takes_the_tip_from_nobody(room: Room) -> None:
    die = Piece(text="cone "), lambda: os.kill(os.getpid(), signal.SIGKILL)
    start_child(lambda: room.ask(ScriptedResponder(*die))).join()
    turn = room.last.id
    room.ask(ScriptedResponder(Answered(text="the whole answer")), "", turn)
    tip = room.thread.tree.tip()
    assert [one.what for one in room.settle()] == [CUT]
    assert room.thread.tree.tip() == tip
    assert sorted(message.content for message in room.thread.tree.children(turn)) == [
        "cone ",
        "the whole answer",
    ]


def test_an_answer_to_a_turn_that_was_taken_back_is_taken_back_too(room: Room) -> None:
    def undo() -> None:
        with room.threads.edit(room.thread_id) as editor:
            editor.undo()

    room.ask(ScriptedResponder(Piece(text="cone "), undo, ANSWER))
    assert room.texts == ["hello", "What is it?"]
    assert not room.thread.pending_jobs
    with room.threads.edit(room.thread_id) as editor:
        editor.redo(2)
    assert room.texts == ["hello", "What is it?", "how hot?", "cone six"]


def test_an_answer_does_not_bring_back_a_thread_that_was_deleted(room: Room) -> None:
    def delete() -> None:
        with room.threads.edit(room.thread_id) as editor:
            editor.delete()

    room.ask(ScriptedResponder(Piece(text="cone "), delete, ANSWER))
    assert room.thread.is_deleted
    assert not room.left


def test_a_draft_that_is_another_text_than_what_is_sent_stays(room: Room) -> None:
    for draft, stays in (("my precious text", True), ("how ", False), ("how hot?", False)):
        with room.threads.edit(room.thread_id) as editor:
            editor.set_draft(room.head, draft)
        room.ask(ScriptedResponder(ANSWER))
        kept = room.thread.drafts.get("aaaaaaaa", {}).get(room.head, "")
        assert (kept == draft) is stays


def test_a_turn_with_a_cut_answer_is_asked_again_and_one_with_a_whole_answer_only_when_that_is_meant(
    room: Room,
) -> None:
    room.ask(ScriptedResponder(Answered(text="co", cut_by="max_tokens")))
    turn = room.last.parent_id
    assert turn_to_ask(room.thread, room.last.id) == turn
    room.ask(ScriptedResponder(ANSWER), "", turn)
    with pytest.raises(InvalidInput, match="has its answer"):
        turn_to_ask(room.thread, room.last.id)
    assert turn_to_ask(room.thread, room.last.id, anew=True) == turn


def test_a_turn_that_is_refused_goes_back_into_the_draft_above_what_was_typed_since(room: Room) -> None:
    def type_on() -> None:
        with room.threads.edit(room.thread_id) as editor:
            editor.set_draft(room.head, "and the glaze?")

    with pytest.raises(Rejected):
        room.ask(ScriptedResponder(type_on, Rejected("no agents online")))
    assert room.texts == ["hello", "What is it?"]
    assert room.thread.drafts == {"aaaaaaaa": {room.head: "how hot?\n\nand the glaze?"}}
    assert room.thread.agent_state.kind == "waiting_for_user_input"
    assert not room.thread.pending_jobs
    assert not room.left


def test_a_turn_that_stood_there_before_stays_where_it_is_refused(room: Room) -> None:
    turn = room.threads.append(room.thread_id, "user", "how hot?").id
    with pytest.raises(Rejected):
        room.ask(ScriptedResponder(Rejected("no key")), "", turn)
    assert room.last.id == turn
    assert room.thread.agent_state.kind == "error"
    assert room.thread.agent_state.last_error == "no key"
    room.ask(ScriptedResponder(ANSWER), "", turn)
    assert room.last.parent_id == turn


def test_only_a_turn_of_the_users_is_asked_about(room: Room) -> None:
    with pytest.raises(InvalidInput):
        room.ask(ScriptedResponder(ANSWER), "", room.head)
    assert not room.thread.pending_jobs
    assert not room.left


@pytest.mark.parametrize("error", [Unanswered("cut off"), NetworkError("gone"), StorageError("full")])
def test_what_came_before_an_answer_failed_is_kept_and_marked(room: Room, error: Exception) -> None:
    with pytest.raises(type(error)):
        room.ask(ScriptedResponder(Piece(text="cone "), Piece(thinking="hm"), error))
    assert (room.last.content, room.last.thinking) == ("cone ", "hm")
    assert room.last.extra["cut_by"] == error.code  # type: ignore[attr-defined]
    state = room.thread.agent_state
    assert (state.kind, state.last_error) == ("error", str(error))
    assert not room.thread.pending_jobs
    assert not room.left


def test_a_failure_before_anything_came_leaves_the_turn_and_says_why(room: Room) -> None:
    with pytest.raises(Unanswered):
        room.ask(ScriptedResponder(Unanswered("empty")))
    assert room.texts == ["hello", "What is it?", "how hot?"]
    assert room.thread.agent_state.last_error == "empty"
    assert not room.thread.pending_jobs


@pytest.mark.parametrize("pieces", [0, 2])
def test_who_stops_an_answer_keeps_what_came_of_it(room: Room, pieces: int) -> None:
    responder = ScriptedResponder(*([Piece(text="cone ")] * pieces), KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        room.ask(responder)
    assert room.texts[3:] == (["cone cone "] if pieces else [])
    assert room.thread.agent_state.kind == "waiting_for_user_input"
    assert not room.thread.pending_jobs
    assert responder.is_closed


def test_who_looks_away_stops_it_in_the_same_way(room: Room) -> None:
    responder = ScriptedResponder(Piece(text="cone "), Piece(text="six"), ANSWER)
    told = room.begin(responder)
    next(told), next(told)  # type: ignore[call-overload]
    told.close()  # type: ignore[attr-defined]
    assert room.last.content == "cone "
    assert room.last.extra["cut_by"] == "interrupted"
    assert responder.is_closed


def test_an_answer_that_its_model_cut_short_says_so(room: Room) -> None:
    room.ask(ScriptedResponder(Answered(text="cone", cut_by="max_tokens")))
    assert room.last.extra["cut_by"] == "max_tokens"


class TestJobs:
    """Who goes on without us."""

    def test_the_launch_is_called_what_its_server_calls_it_and_lands_so(self, room: Room) -> None:
        seen: list[Thread] = []
        launched = Launched(job_id="job-7", server_thread="session-1")
        room.ask(ScriptedCouncil(launched, lambda: seen.append(room.thread), ANSWER))
        assert [job.job_id for job in seen[0].pending_jobs] == ["job-7"]
        assert room.last.job_id == "job-7"
        assert (room.thread.plain("server_thread"), room.thread.plain("orchestrator")) == (
            "session-1",
            "council",
        )
        assert not room.left

    def test_who_does_not_wait_finds_the_answer_later(self, room: Room) -> None:
        council = ScriptedCouncil(Launched(job_id="job-7"), KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            room.ask(council)
        assert [job.job_id for job in room.thread.pending_jobs] == ["job-7"]
        council.jobs["job-7"] = Done(state="pending")
        assert [one.what for one in room.settle(council)] == [KEPT]
        council.jobs["job-7"] = NetworkError("no network")
        assert [one.what for one in room.settle(council)] == [KEPT]
        room.threads.append(room.thread_id, "user", "meanwhile")
        council.jobs["job-7"] = Done(state="answered", answer=ANSWER)
        assert [one.what for one in room.settle(council)] == [LANDED]
        (answer,) = [message for message in room.thread.tree if message.job_id == "job-7"]
        turn = room.thread.tree.get(answer.parent_id or "")
        assert turn is not None
        assert turn.content == "how hot?"
        assert room.settle(council) == []
        assert room.thread.agent_state.kind == "waiting_for_user_input"

    @pytest.mark.parametrize("end", [Done(state="failed", why="all agents left"), Done(state="unknown")])
    def test_a_job_that_ended_without_an_answer_is_cleared_and_said(self, room: Room, end: Done) -> None:
        council = ScriptedCouncil(Launched(job_id="job-7"), KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            room.ask(council)
        council.jobs["job-7"] = end
        (settled,) = room.settle(council)
        assert settled.what == ENDED
        assert settled.why
        assert not room.thread.pending_jobs
        assert room.thread.agent_state.last_error == settled.why
        assert room.texts == ["hello", "What is it?", "how hot?"]

    def test_several_live_at_once_one_for_each_branch(self, room: Room) -> None:
        for number in (1, 2):
            council = ScriptedCouncil(Launched(job_id=f"job-{number}"), KeyboardInterrupt())
            with pytest.raises(KeyboardInterrupt):
                room.ask(council, f"question {number}")
        assert [job.job_id for job in room.thread.pending_jobs] == ["job-1", "job-2"]
        council = ScriptedCouncil()
        council.jobs = {
            "job-2": Done(state="answered", answer=Answered(text="answer 2")),
            "job-1": Done(state="answered", answer=Answered(text="answer 1")),
        }
        room.settle(council)
        tree = room.thread.tree
        answers = [message for message in tree.shown() if message.job_id]
        asked = [tree.get(message.parent_id or "") for message in answers]
        assert [turn.content for turn in asked if turn is not None] == ["question 1", "question 2"]
        assert [message.content for message in answers] == ["answer 1", "answer 2"]

    def test_a_launch_that_nobody_confirmed_is_kept_and_then_said_to_be_so(self, room: Room) -> None:
        council = ScriptedCouncil(Unconfirmed("cut off after it was sent"))
        with pytest.raises(Unconfirmed):
            room.ask(council)
        assert len(room.thread.pending_jobs) == 1
        (settled,) = room.settle(council)
        assert settled.what == ENDED
        assert "council never said that it took it" in settled.why
        assert room.texts[-1] == "how hot?"

    def test_who_stops_while_the_request_is_on_its_way_may_have_launched_it(self, room: Room) -> None:
        with pytest.raises(KeyboardInterrupt):
            room.ask(ScriptedCouncil(KeyboardInterrupt()))
        assert len(room.thread.pending_jobs) == 1
        assert [one.what for one in room.settle(ScriptedCouncil())] == [ENDED]

    def test_what_its_agents_ask_is_told_with_the_job(self, room: Room) -> None:
        council = ScriptedCouncil(Launched(job_id="job-7"), KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            room.ask(council)
        asks = Asks(job_id="job-7", call_id="c1", text="which kiln?")
        council.jobs["job-7"], council.waiting = Done(state="pending"), [asks]
        (settled,) = room.settle(council)
        assert settled.questions == (asks,)

    def test_what_another_machine_launched_is_settled_where_the_thread_is_opened(self, room: Room) -> None:
        with room.threads.edit(room.thread_id) as editor:
            turn = editor.reply(room.head, "user", "asked elsewhere")
            editor.launch_job("job-9", turn.id, "council")
        council = ScriptedCouncil()
        council.jobs["job-9"] = Done(state="answered", answer=ANSWER)
        assert [one.what for one in room.settle(council)] == [LANDED]
        assert room.last.parent_id == turn.id

    def test_a_responder_that_is_not_set_up_here_keeps_its_jobs(self, room: Room) -> None:
        with room.threads.edit(room.thread_id) as editor:
            editor.launch_job("job-9", room.head, "elsewhere")
        (settled,) = room.settle()
        assert (settled.what, len(room.thread.pending_jobs)) == (KEPT, 1)


def test_a_turn_that_another_process_is_asking_is_left_alone(room: Room, tmp_path: Path) -> None:
    reading, writing = os.pipe()

    def wait() -> None:
        os.write(writing, b"asked\n")
        signal.pause()

    child = start_child(lambda: room.ask(ScriptedResponder(Piece(text="co"), wait, ANSWER)))
    assert os.read(reading, 6) == b"asked\n"
    assert [one.what for one in room.settle()] == [KEPT]
    assert len(room.thread.pending_jobs) == 1
    os.kill(child.pid or 0, signal.SIGKILL)
    child.join()
    assert [one.what for one in room.settle()] == [CUT]
    assert (room.last.content, room.last.extra["cut_by"]) == ("co", "killed")
    assert room.thread.agent_state.kind == "waiting_for_user_input"
    os.close(reading)
    os.close(writing)


def _must_be_whole(room: Room, council: ScriptedCouncil) -> None:
    """After any death: settled, there is the turn once or not at all, at most one answer, and a true state."""
    room.settle(council)
    thread = room.thread
    said = [message for message in thread.tree.shown() if message.content == "how hot?"]
    answers = [message for message in thread.tree.shown() if message.job_id]
    assert len(said) <= 1
    assert len(answers) <= len(said)
    for answer in answers:
        assert answer.parent_id == said[0].id
        assert "cone six".startswith(answer.content)
    assert not thread.pending_jobs
    assert thread.agent_state.kind in {"waiting_for_user_input", "error"}
    assert not room.left
    assert room.settle(council) == []


@some_deaths_or_all
@pytest.mark.parametrize("responder", ["local", "council"])
def test_after_a_death_at_any_point_nothing_is_twice_and_nothing_is_lost(
    tmp_path: Path, responder: str, every: int
) -> None:
    folders = (tmp_path / str(number) for number in range(1, 400))
    room = Room(next(folders))

    def run() -> None:
        if responder == "local":
            room.ask(ScriptedResponder(Piece(text="cone "), Piece(text="six"), ANSWER))
        else:
            room.ask(ScriptedCouncil(Launched(job_id="job-7"), ANSWER))

    council = ScriptedCouncil()
    council.jobs["job-7"] = Done(state="answered", answer=ANSWER)
    deaths = 0
    for _ in deaths_of(run, every):
        deaths += every
        _must_be_whole(room, council)
        room = Room(next(folders))
    assert deaths > 8
    assert room.last.content == "cone six"


def test_a_death_between_two_pieces_keeps_those_that_came(tmp_path: Path) -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    for count in range(4):
        room = Room(tmp_path / str(count))
        script = [*[Piece(text=part) for part in ("co", "ne ", "six")][:count], die]
        child = start_child(lambda room=room, script=script: room.ask(ScriptedResponder(*script)))
        child.join()
        assert [one.what for one in room.settle()] == [CUT if count else ENDED]
        expected = ["".join(("co", "ne ", "six")[:count])] if count else []
        assert room.texts[3:] == expected
        _must_be_whole(room, ScriptedCouncil())


@some_deaths_or_all
@pytest.mark.parametrize("responder", ["local", "council"])
def test_after_a_death_while_settling_nothing_is_twice_either(
    tmp_path: Path, responder: str, every: int
) -> None:
    folders = (tmp_path / str(number) for number in range(1, 400))
    council = ScriptedCouncil()
    council.jobs["job-7"] = Done(state="answered", answer=ANSWER)

    def left_in(folder: Path) -> Room:
        room = Room(folder)
        with contextlib.suppress(KeyboardInterrupt):
            if responder == "council":
                room.ask(ScriptedCouncil(Launched(job_id="job-7"), KeyboardInterrupt()))
        if responder == "local":
            start_child(
                lambda: room.ask(
                    ScriptedResponder(Piece(text="cone "), lambda: os.kill(os.getpid(), signal.SIGKILL))
                )
            ).join()
        return room

    room = left_in(next(folders))
    run: Callable[[], object] = lambda: room.settle(council)  # noqa: E731  the room of the moment
    deaths = 0
    for _ in deaths_of(run, every):
        deaths += every
        _must_be_whole(room, council)
        assert [message.job_id for message in room.thread.tree if message.job_id]
        room = left_in(next(folders))
    assert deaths > 4
