"""A deliberation that goes on: followed from anywhere, waited for while its server is away, asked, told and ended."""

from __future__ import annotations

from typing import Any

import pytest

from raddle.actions.answering.ports import Answered, Asks, Done, Launched, Retry
from raddle.adapters.responders.orchestrator import OrchestratorResponder
from raddle.model.errors import NetworkError, NotFound, Unanswered, Unconfirmed
from tests.builders_orchestrator import (
    Pauses,
    a_question,
    a_responder,
    an_answer,
    generator,
    in_order,
    meanwhile,
    told,
)
from tests.fakes.orchestrator import Orchestrator, Says

# httpcore does not close the Unix socket that it could not connect; over TCP there is nothing of the kind.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
pytest_plugins = ("tests.builders_orchestrator",)


class TestFollowing:
    def test_the_stream_brings_the_answer_and_who_gave_it(
        self, server: Orchestrator, council: OrchestratorResponder, pauses: Pauses
    ) -> None:
        server.polls = None
        events = generator(council.ask(a_question()))
        next(events)
        server.happen("job-1", "round_start", {"round": 1})
        server.happen("job-1", "keepalive", "{}")
        with meanwhile(lambda: server.wait_for("stream"), lambda: server.finish("job-1", "because")):
            assert list(events) == [an_answer("because")]
        assert (len(server.of("result")), pauses.seconds) == (1, [])

    @pytest.mark.parametrize("streams", ["none", "cut"])
    def test_without_a_stream_it_is_asked_less_and_less_often(
        self, server: Orchestrator, council: OrchestratorResponder, pauses: Pauses, streams: str
    ) -> None:
        server.streams, server.polls = streams, 12
        *_, last = told(server, council)
        assert last == an_answer("Forty-two.", author="")
        assert len(pauses.seconds) == 11
        assert pauses.seconds[:3] == [1, 1.5, 2.25]
        assert pauses.seconds == sorted(pauses.seconds)
        assert pauses.seconds[-1] == 15
        assert len(server.of("stream")) == (1 if streams == "none" else 11)

    def test_a_silent_stream_is_not_believed(self, server: Orchestrator, pauses: Pauses) -> None:
        server.streams, server.polls = "silent", 2
        *_, last = told(server, a_responder(server, pauses, timeout_seconds=0.3))
        assert last == an_answer("Forty-two.", author="")

    @pytest.mark.parametrize(
        "event",
        ["not json", '"a text"', '{"status": 7}', '{"status": "Success", "job_id": "job-9"}', "{}"],
    )
    def test_an_end_that_cannot_be_read_is_asked_for(
        self, server: Orchestrator, council: OrchestratorResponder, event: str
    ) -> None:
        server.polls = 2
        events = generator(council.ask(a_question()))
        next(events)
        server.happen("job-1", "job_complete", event)
        assert list(events) == [an_answer("Forty-two.", author="")]

    def test_a_page_where_a_stream_should_be_is_no_stream(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        server.polls = 2
        server.next_time("stream", Says(200, b"<html>\x1b[31m</html>", {"Content-Type": "text/html"}))
        assert told(server, council)[-1] == an_answer("Forty-two.", author="")

    def test_an_answer_of_ten_megabytes_is_whole(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        server.polls = None
        text = 'é\u2028"\n' * 2_000_000
        events = generator(council.ask(a_question()))
        next(events)
        with meanwhile(lambda: server.wait_for("stream"), lambda: server.finish("job-1", text)):
            (streamed,) = list(events)
        (asked,) = list(council.follow("job-1"))
        assert isinstance(streamed, Answered)
        assert isinstance(asked, Answered)
        assert streamed.text == text == asked.text

    @pytest.mark.parametrize(
        ("text", "status", "why"),
        [
            ("", "completed", "without a word"),
            (" \n", "completed", "without a word"),
            ("", "failed", "failed"),
            ("no quorum", "failed", "failed: no quorum"),
            ("", "Failed: budget \x1b[31m spent", r"failed: budget \[31m spent"),
            ("half", "cancelled", "cancelled"),
            ("", "exploded", "exploded"),
        ],
    )
    def test_an_end_without_an_answer_says_why(
        self, server: Orchestrator, council: OrchestratorResponder, text: str, status: str, why: str
    ) -> None:
        server.polls = None
        events = generator(council.ask(a_question()))
        next(events)
        with (
            meanwhile(lambda: server.wait_for("stream"), lambda: server.finish("job-1", text, status)),
            pytest.raises(Unanswered, match=why),
        ):
            list(events)
        with pytest.raises(Unanswered, match=why) as caught:
            list(council.follow("job-1"))
        assert not isinstance(caught.value, Unconfirmed)
        assert council.result("job-1").state == "failed"

    def test_a_job_that_the_server_has_forgotten_has_no_answer(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        server.polls = None
        events = generator(council.ask(a_question()))
        next(events)
        server.forget("job-1")
        with pytest.raises(Unanswered, match="knows nothing of this job"):
            list(events)
        assert council.result("job-1") == Done(state="unknown")

    @pytest.mark.parametrize("job_id", ["", "..", ".", "a\nb", "x" * 201])
    def test_what_is_no_job_is_not_asked_for(
        self, server: Orchestrator, council: OrchestratorResponder, job_id: str
    ) -> None:
        assert council.result(job_id) == Done(state="unknown")
        assert council.questions(job_id) == []
        with pytest.raises(Unanswered):
            list(council.follow(job_id))
        council.cancel(job_id)
        assert server.asked == []

    def test_a_job_id_stays_one_step_of_the_path(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        assert council.result("../agents?x#y") == Done(state="unknown")
        assert server.asked[0].path == "/deliberation/..%2Fagents%3Fx%23y/result"


class TestDyingAndComingBack:
    def test_a_server_that_comes_back_with_its_jobs_gives_the_answer(
        self, server: Orchestrator, council: OrchestratorResponder, pauses: Pauses
    ) -> None:
        server.polls = None
        events = generator(council.ask(a_question()))
        next(events)
        server.die()
        pauses.then = [lambda: None, in_order(server.start, lambda: server.finish("job-1", "because"))]
        *retries, answer = list(events)
        assert [type(event) for event in retries] == [Retry, Retry]
        assert answer == an_answer("because", author="")
        assert len(server.launched) == 1

    def test_a_server_that_dies_while_it_streams_is_waited_for(
        self, server: Orchestrator, council: OrchestratorResponder, pauses: Pauses
    ) -> None:
        server.polls = None
        events = generator(council.ask(a_question()))
        next(events)
        pauses.then = [in_order(server.start, lambda: server.finish("job-1", "because"))]
        with meanwhile(lambda: server.wait_for("stream"), server.die):
            assert list(events)[-1] == an_answer("because", author="")

    def test_a_server_that_comes_back_without_its_jobs_has_no_answer(
        self, server: Orchestrator, council: OrchestratorResponder, pauses: Pauses
    ) -> None:
        server.polls = None
        events = generator(council.ask(a_question()))
        next(events)
        server.die(forgets=True)
        pauses.then = [server.start]
        with pytest.raises(Unanswered, match="knows nothing of this job"):
            list(events)
        assert len(server.launched) == 1

    def test_a_server_that_stays_away_leaves_the_job_as_it_is(
        self, server: Orchestrator, council: OrchestratorResponder, pauses: Pauses
    ) -> None:
        server.polls = None
        events = generator(council.ask(a_question()))
        next(events)
        server.die()
        with pytest.raises(NetworkError) as caught:
            list(events)
        assert "look again later" in caught.value.hint
        assert pauses.seconds == [0.5, 1, 2, 4]
        with pytest.raises(NetworkError):
            council.result("job-1")

    @pytest.mark.parametrize("status", [500, 502, 503, 429, 401, 403, 400])
    def test_a_server_that_does_not_say_how_it_stands_says_nothing_of_the_job(
        self, server: Orchestrator, council: OrchestratorResponder, status: int
    ) -> None:
        server.polls = None
        events = generator(council.ask(a_question()))
        next(events)
        server.next_time("result", *[Says(status, {"error": "hm"})] * 6)
        with pytest.raises(NetworkError, match="hm"):
            council.result("job-1")
        with pytest.raises(NetworkError, match="hm"):
            list(events)

    @pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b'{"status": 7}', b"{}", b"\xff\x00"])
    def test_nonsense_says_nothing_of_the_job(
        self, server: Orchestrator, council: OrchestratorResponder, body: bytes
    ) -> None:
        server.polls = None
        next(generator(council.ask(a_question())))
        server.next_time("result", Says(200, body))
        with pytest.raises(NetworkError, match="cannot be read"):
            council.result("job-1")

    def test_a_bad_moment_passes(
        self, server: Orchestrator, council: OrchestratorResponder, pauses: Pauses
    ) -> None:
        server.polls = 0
        server.next_time("result", Says(503, None, {"Retry-After": "9"}), Says(200, b"<html>"))
        assert [type(event) for event in told(server, council)] == [Launched, Retry, Retry, Answered]
        assert pauses.seconds == [9, 1]


class TestStanding:
    @pytest.mark.parametrize("status", ["pending", "running", "claimed", "Running"])
    def test_what_is_worked_on_is_pending(
        self, server: Orchestrator, council: OrchestratorResponder, status: str
    ) -> None:
        server.polls = None
        next(generator(council.ask(a_question())))
        server.next_time("result", Says(200, {"job_id": "job-1", "status": status, "result": None}))
        assert council.result("job-1") == Done(state="pending")

    def test_what_is_completed_is_answered(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        next(generator(council.ask(a_question())))
        assert council.result("job-1") == Done(state="answered", answer=an_answer("Forty-two.", author=""))


class TestAgentsThatAsk:
    def test_a_question_is_told_once_and_answered(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        server.polls = None
        events = generator(council.ask(a_question()))
        next(events)
        call_id = server.ask_person("job-1", {"question": "which?", "options": ["this", "that"]})
        asks = Asks(job_id="job-1", call_id=call_id, text="which?\n- this\n- that", tool_name="user_ask_user")
        assert next(events) == asks
        assert council.questions("job-1") == [asks]
        server.happen("job-1", "tool_call", "{}")
        second = server.ask_person("job-1", '{"question": "sure?"}')
        event = next(events)
        assert isinstance(event, Asks)
        assert (event.call_id, event.text) == (second, "sure?")
        council.answer_call("job-1", call_id, "that")
        assert server.jobs["job-1"].calls[call_id]["result"] == "that"
        assert server.of("answer_call")[0].body == {"result": "that"}
        assert [each.call_id for each in council.questions("job-1")] == [second]
        server.finish("job-1")
        assert list(events) == [an_answer("Forty-two.")]

    def test_questions_are_told_where_there_is_no_stream(
        self, server: Orchestrator, council: OrchestratorResponder, pauses: Pauses
    ) -> None:
        server.polls, server.streams = 5, "none"
        pauses.then = [lambda: server.ask_person("job-1", {"question": "which?"})]
        events = told(server, council)
        assert [type(event) for event in events] == [Launched, Asks, Answered]

    @pytest.mark.parametrize("arguments", [None, 7, "no json", {"question": 7}, {}, [1]])
    def test_what_an_agent_asks_in_no_usual_shape_is_told_all_the_same(
        self, server: Orchestrator, council: OrchestratorResponder, arguments: Any
    ) -> None:
        server.polls = None
        next(generator(council.ask(a_question())))
        call_id = server.ask_person("job-1", arguments)
        assert [each.call_id for each in council.questions("job-1")] == [call_id]

    @pytest.mark.parametrize(
        "body", [None, 7, {"tool_calls": None}, {"tool_calls": [7, {}, {"call_id": ".."}]}]
    )
    def test_a_list_of_nonsense_asks_nothing(
        self, server: Orchestrator, council: OrchestratorResponder, body: Any
    ) -> None:
        server.polls = None
        next(generator(council.ask(a_question())))
        server.next_time("calls", Says(200, body))
        assert council.questions("job-1") == []

    @pytest.mark.parametrize("status", [403, 404])
    def test_where_nobody_may_be_asked_the_answer_comes_all_the_same(
        self, server: Orchestrator, council: OrchestratorResponder, status: int
    ) -> None:
        server.polls, server.streams = 3, "none"
        server.next_time("calls", *[Says(status)] * 3)
        assert told(server, council)[-1] == an_answer("Forty-two.", author="")

    def test_nobody_waits_for_an_answer_twice(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        server.polls = None
        next(generator(council.ask(a_question())))
        call_id = server.ask_person("job-1", {"question": "which?"})
        council.answer_call("job-1", call_id, "this")
        for job_id, call in (("job-1", call_id), ("job-1", "no-call"), ("no-job", call_id), ("job-1", "..")):
            with pytest.raises(NotFound):
                council.answer_call(job_id, call, "that")
        assert server.jobs["job-1"].calls[call_id]["result"] == "this"


class TestTellingAndEnding:
    def test_agents_are_told_while_they_work(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        server.polls = None
        next(generator(council.ask(a_question())))
        council.tell("job-1", "mind the gap")
        assert server.jobs["job-1"].told == [{"message": "mind the gap"}]
        server.finish("job-1")
        with pytest.raises(NotFound):
            council.tell("job-1", "too late")

    def test_a_job_is_ended_once_and_ending_it_again_is_nothing(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        server.polls = None
        next(generator(council.ask(a_question())))
        council.cancel("job-1")
        assert server.jobs["job-1"].status == "cancelled"
        council.cancel("job-1")
        council.cancel("no-job")
        assert council.result("job-1") == Done(state="failed", why="cancelled")

    def test_a_server_that_is_away_ends_nothing(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        server.die()
        for call in (
            lambda: council.cancel("job-1"),
            lambda: council.tell("job-1", "hm"),
            lambda: council.answer_call("job-1", "call-1", "hm"),
            lambda: council.questions("job-1"),
            council.policies,
        ):
            with pytest.raises(NetworkError):
                call()
