"""What is a deliberation server's own among who answers: what is launched, what is refused, and nothing twice."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from typing import Any

import pytest

from raddle.actions.answering.ports import Answered, Asks, Launched, Policy, Retry
from raddle.actions.answering.settings import ResponderSettings
from raddle.adapters.responders import responder_of
from raddle.adapters.responders.orchestrator import OrchestratorResponder
from raddle.model.errors import NetworkError, Rejected, Unconfirmed
from raddle.model.threads.rendering import ChatMessage
from tests.builders_orchestrator import Pauses, a_question, a_responder, an_answer, generator, told
from tests.fakes.orchestrator import TOKEN, Breaks, IsSilent, Orchestrator, Says

# httpcore does not close the Unix socket that it could not connect; over TCP there is nothing of the kind.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
pytest_plugins = ("tests.builders_orchestrator",)

BUSY = Says(503, {"error": "starting"}, {"Retry-After": "7"})


class TestLaunching:
    def test_a_lone_question_is_launched_with_what_the_settings_say(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        told(server, council)
        (asked,) = server.of("launch")
        tools = asked.body.pop("user_tools")
        assert asked.body == {
            "room_id": "council_ask-1",
            "conversation_id": "thread-1",
            "user_query": "why?",
            "deliberation_rounds": 2,
        }
        assert [tool["name"] for tool in tools] == ["ask_user"]
        assert asked.headers["authorization"] == f"Bearer {TOKEN}"
        assert asked.headers["content-type"] == "application/json"
        assert "x-nsed-session-id" not in asked.headers
        assert TOKEN not in asked.path + json.dumps(asked.body)

    def test_each_branch_is_a_conversation_of_its_own_so_that_several_are_worked_on_at_once(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        server.session, server.polls = "of the main line", None
        main, again, other = (
            council.ask(a_question(job_id=f"ask-{number}", branch=branch, server_thread="before"))
            for number, branch in enumerate(("", "", "m7"))
        )
        assert isinstance(next(main), Launched)
        with pytest.raises(Rejected, match="job already running"):
            next(again)
        assert next(other) == Launched(job_id="job-2")
        assert [body["conversation_id"] for body in server.launched] == ["thread-1", "thread-1_m7"]
        sessions = [asked.headers.get("x-nsed-session-id") for asked in server.of("launch")]
        assert sessions == ["before", "before", None]
        for events in (main, other):
            generator(events).close()

    def test_a_later_turn_is_also_sent_alone(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        messages = tuple(
            ChatMessage(role=role, content=content)
            for role, content in (("user", "why?"), ("assistant", "so"), ("user", "and?"))
        )
        query = "[user] why?\n\n[assistant] so\n\n[user] and?"
        told(server, council, a_question(messages=messages, query=query))
        assert server.launched[0]["new_turn"] == "and?"
        assert server.launched[0]["user_query"] == query

    def test_agents_effort_scope_and_rounds_come_from_the_settings(
        self, server: Orchestrator, pauses: Pauses
    ) -> None:
        told(
            server,
            a_responder(server, pauses, agents=("a", "b"), effort="0.8", scope="repo", rounds=5),
        )
        body = server.launched[0]
        assert (body["agent_names"], body["effort"], body["scope"], body["deliberation_rounds"]) == (
            ["a", "b"],
            0.8,
            "repo",
            5,
        )
        assert "policy_id" not in body

    def test_the_policy_of_the_question_comes_before_the_settings_and_the_agents(
        self, server: Orchestrator, pauses: Pauses
    ) -> None:
        council = a_responder(server, pauses, agents=("a", "b"), policy="theirs")
        *_, answer = told(server, council, a_question(policy="mine", effort="high"))
        body = server.launched[0]
        assert (body["policy_id"], body["effort"], "agent_names" in body) == ("mine", "high", False)
        assert isinstance(answer, Answered)
        assert answer.policy == "mine"

    def test_the_session_goes_there_and_comes_back(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        first, *_ = told(server, council)
        assert first == Launched(job_id="job-1", server_thread="session-1")
        told(server, council, a_question(server_thread="session-9"))
        assert server.of("launch")[1].headers["x-nsed-session-id"] == "session-9"

    @pytest.mark.parametrize("session", ["", "two words", "x\r\nAuthorization: nobody", "é", "x" * 501])
    def test_a_session_that_no_header_holds_is_not_sent(
        self, server: Orchestrator, council: OrchestratorResponder, session: str
    ) -> None:
        told(server, council, a_question(server_thread=session))
        assert "x-nsed-session-id" not in server.of("launch")[0].headers

    def test_a_server_without_sessions_gives_none(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        server.session = None
        assert told(server, council)[0] == Launched(job_id="job-1")

    def test_the_launch_is_told_before_anything_else_is_asked(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        server.polls = None
        events = council.ask(a_question())
        assert next(iter(events)) == Launched(job_id="job-1", server_thread="session-1")
        assert [each.route for each in server.asked] == ["launch"]


class TestRejection:
    @pytest.mark.parametrize(
        ("says", "word"),
        [
            (Says(409, {"error": "job already running"}), "job already running"),
            (Says(403, {"error": "not your policy"}), "not your policy"),
            (Says(422, {"detail": "two agents at least"}), "two agents at least"),
            (Says(503, {"error": "no agents online"}), "no agents online"),
            (Says(500, {"error": "a fault"}), "a fault"),
            (Says(429, b"slow down"), "slow down"),
            (Says(302, b"", {"Location": "http://elsewhere/"}), "302"),
        ],
    )
    def test_what_the_server_refuses_is_sent_once_and_rejected(
        self, server: Orchestrator, council: OrchestratorResponder, pauses: Pauses, says: Says, word: str
    ) -> None:
        server.next_time("launch", says)
        with pytest.raises(Rejected, match=word) as caught:
            told(server, council)
        assert caught.value.hint
        assert (len(server.of("launch")), server.launched, pauses.seconds) == (1, [], [])

    def test_without_agents_nothing_is_begun(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        server.agents = []
        with pytest.raises(Rejected, match="no agents online"):
            told(server, council)

    def test_a_second_job_of_a_conversation_is_rejected_and_the_first_goes_on(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        server.polls = None
        with contextlib.closing(generator(council.ask(a_question()))) as events:
            next(events)
        with pytest.raises(Rejected, match="already running") as caught:
            told(server, council, a_question(job_id="ask-2"))
        assert "cancel" in caught.value.hint
        assert server.jobs["job-1"].status == "running"

    def test_a_wrong_key_is_rejected_without_showing_it(self, server: Orchestrator, pauses: Pauses) -> None:
        server.next_time("launch", Says(401, {"error": f"no such token: {TOKEN}"}))
        with pytest.raises(Rejected, match="no such token") as caught:
            told(server, a_responder(server, pauses, key_env="MY_KEY"))
        assert TOKEN not in caught.value.message + caught.value.hint
        assert "MY_KEY" in caught.value.hint

    def test_without_a_key_a_server_elsewhere_is_not_asked(self, pauses: Pauses) -> None:
        settings = ResponderSettings(name="council", kind="orchestrator", url="https://example.org")
        council = responder_of(settings, key=lambda: None, pause=pauses, random=lambda: 0.5)
        with pytest.raises(Rejected, match="no key for council") as caught:
            list(council.ask(a_question()))
        assert "NSED_API_KEY" in caught.value.hint
        assert "raddle responders key council" in caught.value.hint

    def test_who_asks_for_patience_gets_it(
        self, server: Orchestrator, council: OrchestratorResponder, pauses: Pauses
    ) -> None:
        server.next_time("launch", BUSY, Says(429, None, {"Retry-After": "3"}))
        events = told(server, council)
        retries = [event for event in events if isinstance(event, Retry)]
        assert [(each.wait_seconds, each.retries) for each in retries] == [(7, 1), (3, 2)]
        assert pauses.seconds == [7, 3]
        assert len(server.launched) == 1
        assert isinstance(events[-1], Answered)

    def test_who_asks_for_patience_for_ever_has_begun_nothing(
        self, server: Orchestrator, pauses: Pauses
    ) -> None:
        server.next_time("launch", BUSY, BUSY, BUSY)
        with pytest.raises(Rejected, match="starting"):
            told(server, a_responder(server, pauses, retries=2))
        assert (pauses.seconds, server.launched) == ([7, 7], [])

    def test_a_server_that_is_not_there_yet_is_tried_again(
        self, server: Orchestrator, council: OrchestratorResponder, pauses: Pauses
    ) -> None:
        server.die()
        pauses.then = [lambda: None, server.start]
        events = told(server, council)
        assert [type(event) for event in events] == [Retry, Retry, Launched, Answered]
        assert len(server.launched) == 1

    def test_a_server_that_never_is_there_has_begun_nothing(
        self, server: Orchestrator, council: OrchestratorResponder, pauses: Pauses
    ) -> None:
        server.die()
        with pytest.raises(Rejected, match="cannot be reached"):
            told(server, council)
        assert len(pauses.seconds) == 4


class TestNothingTwice:
    @pytest.mark.parametrize(
        "fault",
        [
            Breaks(),
            Breaks(does_it=False),
            Says(502, {"error": "bad gateway"}),
            Says(504, {"error": "gateway timeout"}),
            Says(202, b"<html>"),
            Says(202, {"job": "?"}),
            Says(202, {"job_id": ".."}),
            Says(202, {"job_id": 7}),
            Says(202, b""),
            Says(202, b'{"job_id": "j', {"Content-Encoding": "gzip"}),
        ],
    )
    def test_a_launch_that_may_have_been_taken_is_not_sent_again(
        self,
        server: Orchestrator,
        council: OrchestratorResponder,
        pauses: Pauses,
        fault: Says | Breaks,
    ) -> None:
        server.next_time("launch", fault)
        with pytest.raises(Unconfirmed, match="not known whether council has taken it") as caught:
            told(server, council)
        assert caught.value.code == "unconfirmed"
        assert (len(server.of("launch")), pauses.seconds) == (1, [])

    def test_a_launch_that_is_never_answered_is_not_sent_again(
        self, server: Orchestrator, pauses: Pauses
    ) -> None:
        server.next_time("launch", IsSilent())
        with pytest.raises(Unconfirmed, match="no sign of life"):
            told(server, a_responder(server, pauses, timeout_seconds=0.3))
        assert len(server.launched) == 1

    def test_letting_go_ends_nothing_there(
        self, server: Orchestrator, council: OrchestratorResponder
    ) -> None:
        server.polls = None
        events = generator(council.ask(a_question()))
        next(events)
        server.ask_person("job-1", {"question": "which?"})
        assert isinstance(next(events), Asks)
        events.close()
        server.wait_for_no_stream()
        assert (server.jobs["job-1"].status, server.of("cancel")) == ("running", [])
        server.finish("job-1", "because")
        assert list(council.follow("job-1")) == [an_answer("because", author="")]
        assert len(server.launched) == 1


class TestPolicies:
    def test_policies_are_listed(self, server: Orchestrator, council: OrchestratorResponder) -> None:
        server.policies = [
            {"policy_id": "p1", "name": "review", "tags": ["code", 7], "config": {}},
            {"policy_id": "p2"},
            {"name": "nameless"},
            7,
        ]
        assert council.policies() == [
            Policy(id="p1", name="review", tags=("code",)),
            Policy(id="p2"),
        ]

    @pytest.mark.parametrize("policies", [None, 7, {}])
    def test_what_is_no_list_cannot_be_read(
        self, server: Orchestrator, council: OrchestratorResponder, policies: Any
    ) -> None:
        server.policies = policies
        with pytest.raises(NetworkError, match="no list of policies"):
            council.policies()


_PROGRAM = """\
import sys
from raddle.actions.answering.ports import Question
from raddle.actions.answering.settings import ResponderSettings
from raddle.adapters.responders import responder_of
from raddle.model.errors import RaddleError

_, url, key = sys.argv
settings = ResponderSettings(name="council", kind="orchestrator", url=url, retries=0)
council = responder_of(settings, key=lambda: key, pause=print, random=lambda: 0.5)
try:
    for event in council.ask(Question(thread_id="t", job_id="j", messages=(), query="why?", read=print)):
        print(type(event).__name__)
except RaddleError as error:
    print(error.code)
"""


def test_a_program_reaches_it_over_tcp_while_it_lives(server: Orchestrator) -> None:
    def said() -> list[str]:
        command = [sys.executable, "-c", _PROGRAM, address, TOKEN]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    address = server.open_port()
    assert said() == ["Launched", "Answered"]
    server.die()
    assert said() == ["rejected"]
    server.start()
    assert said() == ["Launched", "Answered"]
    assert len(server.launched) == 2


def test_its_work_goes_on_without_this_process(council: OrchestratorResponder) -> None:
    assert (council.lives_on, council.kind, council.name) == (True, "orchestrator", "council")
    assert TOKEN not in repr(council) + repr(vars(council))
