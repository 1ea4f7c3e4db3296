"""Deliberations from the command line: launched, left, asked about, landed; their server dies and comes back."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raddle.config import load_config
from tests.builders_answering import write_settings
from tests.builders_daemon import DaemonProcess
from tests.builders_import import Machine
from tests.command_line import Answer, new, program, terminal
from tests.fakes.orchestrator import TOKEN, Orchestrator, orchestrating


def said(thread: str) -> list[str]:
    shown = program("show", thread, "--json").json
    return [f"{message['role']}: {message['content']}" for message in shown["conversation"]["messages"]]


def state(thread: str) -> dict[str, Any]:
    found: dict[str, Any] = program("show", thread, "--json").json["agent_state"]
    return found


def jobs(thread: str) -> list[dict[str, Any]]:
    answer = program("jobs", thread, "--json")
    assert answer.code == 0, answer.err
    found: list[dict[str, Any]] = answer.json
    return found


@pytest.fixture
def council(monkeypatch: pytest.MonkeyPatch) -> Iterator[Orchestrator]:
    """A server that programs reach, set up as who answers."""
    monkeypatch.setenv("NSED_API_KEY", TOKEN)
    with orchestrating() as server:
        write_settings(
            f'[responders.council]\nkind = "orchestrator"\nurl = "{server.open_port()}"\nretries = 0\n'
            "timeout_seconds = 20\n"
        )
        yield server


def ask_and_leave(thread: str, text: str) -> str:
    """Ask, and stop waiting once it is launched."""
    with terminal("reply", thread, text, "--ask") as screen:
        screen.wait_for("Ctrl-C stops waiting")
        screen.interrupt()
        return screen.shown


def the_job(council: Orchestrator) -> str:
    (job,) = council.jobs
    return job


def test_an_answer_lands_under_its_turn(council: Orchestrator) -> None:
    council.answer = "cone six"
    thread = new("how hot is the kiln?")
    answer = program("reply", thread, "--ask")
    assert (answer.code, answer.out) == (0, "cone six\n")
    assert said(thread) == ["user: how hot is the kiln?", "assistant: cone six"]
    assert TOKEN not in answer.out + answer.err + str(program("config", "show", "--json").json)


def test_who_does_not_wait_finds_it_later_under_its_own_turn(council: Orchestrator) -> None:
    council.answer, council.polls = "cone six", 10_000
    thread = new("hello")
    ask_and_leave(thread, "how hot?")
    assert [one["what"] for one in jobs(thread)] == ["kept"]
    for text in ("one", "two", "three"):
        assert program("reply", thread, text).code == 0
    council.finish(the_job(council))
    assert [one["what"] for one in jobs(thread)] == ["landed"]
    assert jobs(thread) == []
    messages = program("show", thread, "--json").json["conversation"]["messages"]
    by_text = {message["content"]: message for message in messages}
    assert by_text["cone six"]["parent_id"] == by_text["how hot?"]["id"]
    assert len(council.launched) == 1


def test_two_branches_of_a_thread_deliberate_at_once(council: Orchestrator) -> None:
    council.polls = 10_000
    thread = new("hello")
    ask_and_leave(thread, "one way")
    with terminal("reply", thread, "another way", "--ask", "--parent", "root") as screen:
        screen.wait_for("Ctrl-C stops waiting")
        screen.interrupt()
    assert [one["what"] for one in jobs(thread)] == ["kept", "kept"]
    for job, text in zip(list(council.jobs), ("answer one", "answer two"), strict=True):
        council.finish(job, text)
    assert [one["what"] for one in jobs(thread)] == ["landed", "landed"]
    shown = program("show", thread, "--json").json["conversation"]["messages"]
    asked = {message["id"]: message["content"] for message in shown}
    answers = {
        message["content"]: asked[message["parent_id"]] for message in shown if message["role"] == "assistant"
    }
    assert answers == {"answer one": "one way", "answer two": "another way"}


def test_a_refusal_gives_the_turn_back_as_a_draft(council: Orchestrator) -> None:
    council.agents = []
    thread = new("hello")
    answer = program("reply", thread, "how hot?", "--ask")
    assert answer.code == 7
    assert "how hot?" in program("draft", thread).out
    assert "assistant" not in str(said(thread))
    assert state(thread)["kind"] == "waiting_for_user_input"


def test_an_orchestrator_that_dies_and_comes_back_keeps_its_job(council: Orchestrator) -> None:
    council.answer, council.polls = "cone six", 10_000
    thread = new("hello")
    ask_and_leave(thread, "how hot?")
    council.die(forgets=False)
    (settled,) = jobs(thread)
    assert settled["what"] == "kept"
    council.start()
    council.finish(the_job(council))
    assert [one["what"] for one in jobs(thread)] == ["landed"]
    assert said(thread)[-1] == "assistant: cone six"


def test_an_orchestrator_that_forgot_the_job_is_said_so(council: Orchestrator) -> None:
    council.polls = 10_000
    thread = new("hello")
    ask_and_leave(thread, "how hot?")
    council.die(forgets=True)
    council.start()
    (settled,) = jobs(thread)
    assert settled["what"] == "ended"
    assert settled["why"]
    assert state(thread)["kind"] == "error"
    assert said(thread) == ["user: hello", "user: how hot?"]


def test_a_question_of_an_agent_is_shown_and_answered(council: Orchestrator) -> None:
    council.answer, council.polls = "cone six", 10_000
    thread = new("hello")
    ask_and_leave(thread, "how hot?")
    (settled,) = jobs(thread)
    job = settled["job_id"]
    council.ask_person(job, {"question": "which kiln?"})
    (settled,) = jobs(thread)
    (question,) = settled["questions"]
    assert question["text"] == "which kiln?"
    assert program("jobs", "answer", job, question["call_id"], "the small one").code == 0
    assert jobs(thread)[0]["questions"] == []
    assert program("jobs", "tell", job, "hurry").code == 0
    assert program("jobs", "cancel", job).code == 0
    assert [one["what"] for one in jobs(thread)] == ["ended"]


def test_policies_are_listed_and_chosen_for_a_thread_and_for_a_turn(council: Orchestrator) -> None:
    council.policies = [
        {"policy_id": name, "name": name.title(), "tags": []} for name in ("plain", "careful")
    ]
    listed: Answer = program("policies", "--json")
    assert listed.code == 0, listed.err
    first, second = [policy["id"] for policy in listed.json][:2]
    thread = new("hello")
    assert program("policies", thread, first).out.strip() == first
    program("reply", thread, "one", "--ask")
    program("reply", thread, "two", "--ask", "--policy", second)
    program("reply", thread, "three", "--ask")
    assert [body["policy_id"] for body in council.launched] == [first, second, first]


def test_the_daemon_brings_in_what_nobody_waited_for(council: Orchestrator, tmp_path: Path) -> None:
    council.answer, council.polls = "cone six", 10_000
    thread = new("hello")
    ask_and_leave(thread, "how hot?")
    council.finish(the_job(council))
    machine = Machine(tmp_path, home=Path(os.environ["HOME"]))
    here = load_config()
    folders = {
        f"RADDLE_{name.upper()}_DIR": str(getattr(here, f"{name}_dir"))
        for name in ("data", "config", "state", "cache")
    }
    with DaemonProcess(machine, folders) as daemon:
        daemon.until(lambda: said(thread)[-1] == "assistant: cone six")
        daemon.end()


def test_a_process_that_is_killed_while_it_waits_leaves_the_job(council: Orchestrator) -> None:
    council.answer, council.polls = "cone six", 10_000
    thread = new("hello")
    with terminal("reply", thread, "how hot?", "--ask") as screen:
        screen.wait_for("Ctrl-C stops waiting")
        os.killpg(screen.process.pid, signal.SIGKILL)
        screen.end()
    assert [one["what"] for one in jobs(thread)] == ["kept"]
    council.finish(the_job(council))
    assert [one["what"] for one in jobs(thread)] == ["landed"]
    assert len(council.launched) == 1
