"""A conversation goes on in the agents' own programs: on another machine at another path, and in another agent.

Each program is the real one; the model that it asks is ours, and tells what it was asked.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raddle.model.clock import system_clock
from raddle.model.threads.thread import Thread
from tests.agent_programs import NAMES, AgentProgram, installed
from tests.builders_import import Machine
from tests.builders_served import a_token
from tests.builders_server import connected, prepare
from tests.command_line import program
from tests.fakes.model_server import Model, running_model
from tests.postgres import NewDatabase
from tests.served_program import served_at

pytest_plugins = ["tests.postgres"]
pytestmark = pytest.mark.soak

PROMPTS = {
    "codex": "Why is the kiln cold? [call exec_command cmd=echo warm]",
    "gemini": "Why is the kiln cold? [call list_directory dir_path=.]",
    "opencode": "Why is the kiln cold? [call bash command=echo warm; description=look]",
}
CALLS = {"codex": "exec_command", "gemini": "list_directory", "opencode": "bash"}


@pytest.fixture(scope="session")
def programs(pytestconfig: pytest.Config) -> Path:
    return installed(pytestconfig)


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Model]:
    with running_model(tmp_path / "model") as running:
        yield running


class Place:
    """A machine with an agent's program and a folder to work in. `environment`: of raddle there."""

    def __init__(self, folder: Path, agent: AgentProgram, machine: Machine, **more: str) -> None:
        self.agent, self.machine = agent, machine
        self.workspace = folder
        self.workspace.mkdir(parents=True)
        self.environment = {**os.environ, **agent.environment, **machine.environment, **more}

    def raddle(self, *words: str) -> Any:
        """What a command answers, as JSON where it does."""
        answer = program(*words, cwd=self.workspace, env=self.environment)
        assert answer.code == 0, answer.err
        return answer.json if "--json" in words else answer.out

    def thread(self, thread_id: str) -> Thread:
        (found,) = [thread for thread in self.machine.threads() if thread.id == thread_id]
        return found

    def goes_on(self, thread_id: str, prompt: str) -> tuple[str, list[str]]:
        """(the session, what the model was asked): raddle writes it, the program goes on with it."""
        told = self.raddle("resume", thread_id, "--in", self.agent.name, "--json")
        assert told["folder"] == str(self.workspace)
        asked = self.agent.go_on(self.workspace, told["session_id"], prompt)
        return told["session_id"], asked


def a_place(folder: Path, name: str, programs: Path, model: Model, **more: str) -> Place:
    machine = Machine(folder, clock=system_clock)
    agent = AgentProgram(name, programs, machine.home, model)
    return Place(folder / f"work of {name}", agent, machine, **more)


def check_earlier_turns(asked: list[str], agent: str, prompt: str) -> None:
    """The request holds the prompt, the call, its result, the answer, the new prompt: each once, in this order."""
    said = [
        rf'"?{re.escape(PROMPTS[agent])}"?',
        f"call {CALLS[agent]}",
        "result .*",
        r"Answer \d+\.",
        rf'"?{re.escape(prompt)}"?',
    ]
    places = [[at for at, text in enumerate(asked) if re.fullmatch(one, text, re.DOTALL)] for one in said]
    firsts = [found[0] for found in places if found]
    assert len(firsts) == len(said), (places, asked)
    assert firsts == sorted(firsts), (places, asked)
    assert [len(found) for found in (places[0], places[1], places[3], places[4])] == [1, 1, 1, 1], asked


def counted(place: Place) -> int:
    """How many answers `raddle stats` counts."""
    return int(place.raddle("stats", "--json")["total"]["messages"])


def the_thread(place: Place) -> str:
    (thread_id,) = [thread.id for thread in place.machine.threads()]
    return thread_id


@pytest.mark.parametrize("name", NAMES)
def test_a_session_goes_on_on_another_machine_at_another_path(
    name: str, programs: Path, model: Model, tmp_path: Path, new_database: NewDatabase
) -> None:
    conninfo = new_database(prepare)
    with connected(conninfo) as connection:
        token = a_token(connection)
    with served_at(conninfo, tmp_path / "blobs") as address:
        server = {"RADDLE_SERVER": address, "RADDLE_TOKEN": token}
        one = a_place(tmp_path / "one", name, programs, model, **server)
        other = a_place(tmp_path / "other", name, programs, model, **server)
        one.agent.begin(one.workspace, PROMPTS[name])
        one.raddle("import")
        one.raddle("sync")
        shutil.rmtree(one.workspace)  # the other machine has no such folder
        other.raddle("sync")
        thread_id = the_thread(other)
        session_id, asked = other.goes_on(thread_id, "And the glaze?")
        check_earlier_turns(asked, name, "And the glaze?")
        before = one.thread(thread_id)
        assert before.source is not None
        assert session_id == before.source.session_id
        other.raddle("import")
        after = other.thread(thread_id)
        old = [message.id for message in before.messages]
        assert [message.id for message in after.messages][: len(old)] == old
        news = [m.content for m in after.messages[len(old) :] if m.kind == "turn"]
        assert next(text.strip('"') for text in news) == "And the glaze?"
        assert len(news) == 2


@pytest.mark.parametrize(
    ("first", "then"), [("codex", "opencode"), ("opencode", "gemini"), ("gemini", "codex")]
)
def test_a_session_goes_on_in_another_agent(
    first: str, then: str, programs: Path, model: Model, tmp_path: Path
) -> None:
    one = a_place(tmp_path / "one", first, programs, model)
    one.agent.begin(one.workspace, PROMPTS[first])
    one.raddle("import")
    thread_id = the_thread(one)
    shutil.rmtree(one.workspace)
    other = Place(
        tmp_path / f"work of {then}",
        AgentProgram(then, programs, one.machine.home, model),
        one.machine,
    )
    before_that = counted(other)
    session_id, asked = other.goes_on(thread_id, "And the glaze?")
    check_earlier_turns(asked, first, "And the glaze?")
    other.raddle("import")
    before = other.thread(thread_id)
    (told,) = [thread for thread in other.machine.threads() if thread.id != thread_id]
    assert told.source is not None
    assert told.source.session_id == session_id
    turns = [message.id for message in before.messages if message.kind == "turn"]
    again = [message.id for message in told.messages if message.kind == "turn"]
    assert again[: len(turns)] == turns
    assert len(again) == len(turns) + 2
    assert counted(other) == before_that + 1, "a turn that two sessions share was counted twice"


def test_turns_that_were_added_here_are_in_the_next_request(
    programs: Path, model: Model, tmp_path: Path
) -> None:
    for name in NAMES:
        place = a_place(tmp_path / name, name, programs, model)
        place.agent.begin(place.workspace, PROMPTS[name])
        place.raddle("import")
        thread_id = the_thread(place)
        place.raddle("reply", thread_id, "Was it the gas?")
        place.raddle("reply", thread_id, "It was the gas.", "--role", "assistant")
        told = place.raddle("resume", thread_id, "--in", name, "--json")
        asked = place.agent.go_on(place.workspace, told["session_id"], "And the glaze?")
        check_earlier_turns(asked, name, "And the glaze?")
        assert [text for text in asked if "the gas" in text] == ["Was it the gas?", "It was the gas."]


def test_the_requests_are_noted_as_they_came(model: Model, tmp_path: Path) -> None:
    assert model.requests() == []
    model.log.write_text(json.dumps(["/v1/responses", {"input": []}]) + "\n")
    (asked,) = model.requests()
    assert (asked.path, asked.body) == ("/v1/responses", {"input": []})
