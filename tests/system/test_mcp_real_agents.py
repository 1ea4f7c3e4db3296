"""The agents' own programs call the tools of this project's memory and threads, registered by `raddle mcp install`.

Each program is the real one; the model that it asks is ours, which calls the tools by the names that the program gave
them, and tells what came back.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from raddle.actions.threads import start_thread
from raddle.config import load_config
from raddle.model.threads.recalled import is_recalled
from raddle.wiring import Stores
from raddle.wiring.importing import import_sessions
from tests.agent_programs import NAMES, AgentProgram, installed, texts_of
from tests.command_line import program
from tests.fakes.model_server import Model, running_model
from tests.mcp_sessions import call, session_in
from tests.memory_hosts import make_code

pytestmark = pytest.mark.soak

CALLED = {"codex": "mcp__raddle.{}", "gemini": "mcp_raddle_{}", "opencode": "raddle_{}"}
"""How each program names our tools to its model."""
SHOWN = {"codex": "{}", "gemini": "mcp_raddle_{}", "opencode": "raddle_{}"}
"""And in what it tells the model of earlier calls; Codex says the server beside it."""
KNOWN_AS = {"codex": "codex-mcp-client", "gemini": "gemini-cli-mcp-client", "opencode": "opencode"}
WORD = "hippogriff"


@pytest.fixture(scope="session")
def programs(pytestconfig: pytest.Config) -> Path:
    return installed(pytestconfig)


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Model]:
    with running_model(tmp_path / "model") as running:
        yield running


class Place(NamedTuple):
    """A project with a memory and a thread, and an agent that is told of raddle's server."""

    agent: AgentProgram
    code: Path
    environment: dict[str, str]
    thread_id: str

    def asks_for(self, *calls: tuple[str, str]) -> list[str]:
        """The agent works on a prompt whose model calls these tools; what the last request told the model."""
        named = " ".join(f"[call {CALLED[self.agent.name].format(tool)} {given}]" for tool, given in calls)
        before = len(self.agent.asked())
        self.agent.begin(self.code, f"Look after the kiln. {named}")
        asked = [texts_of(one) for one in self.agent.asked()[before:]]
        return max(asked, key=lambda texts: sum(text.startswith("result ") for text in texts))

    def stores(self) -> Stores:
        return Stores(load_config({"HOME": self.environment["HOME"], "RADDLE_WORKSPACE": str(self.code)}))


def a_place(name: str, programs: Path, model: Model, folder: Path) -> Place:
    agent = AgentProgram(name, programs, folder / "home", model)
    code = make_code(folder / "code")
    session = session_in(code, agent.home)
    call(session, "store_init", project_id="kiln", phases=["build"])
    call(session, "run_start")
    with session.stores() as stores:
        thread_id, _ = start_thread(
            stores.threads, f"The {WORD} is why the kiln is cold.", workspace_root=str(code)
        )
    session.freshness.close()
    _put_raddle_on_the_path(agent, folder / "bin")
    _trust(agent.home, code)
    environment = {**os.environ, **agent.environment}
    answer = program("mcp", "install", name, "-y", cwd=code, env=environment)
    assert answer.code == 0, answer.err
    return Place(agent, code, environment, thread_id)


def _put_raddle_on_the_path(agent: AgentProgram, folder: Path) -> None:
    """A project's own settings name it without a path, as every machine has one of its own."""
    folder.mkdir()
    script = folder / "raddle"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m raddle "$@"\n')
    script.chmod(0o755)
    agent.environment["PATH"] = f"{folder}:{agent.environment['PATH']}"


def _trust(home: Path, code: Path) -> None:
    """As a person does when Gemini CLI asks: it starts no server of a project before."""
    folder = home / ".gemini"
    folder.mkdir(exist_ok=True)
    (folder / "trustedFolders.json").write_text(json.dumps({str(code): "TRUST_FOLDER"}))


def _results(texts: list[str]) -> list[str]:
    return [text for text in texts if text.startswith("result ")]


def _in(result: str) -> dict[str, Any]:
    """The answer that a result holds, whatever the program put around it."""
    told: dict[str, Any] = json.JSONDecoder().raw_decode(result[result.index("{") :])[0]
    return told


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_keeps_a_memory_and_finds_an_earlier_conversation(
    name: str, programs: Path, model: Model, tmp_path: Path
) -> None:
    place = a_place(name, programs, model, tmp_path)
    calls = (
        ("context_bootstrap", ""),
        ("memory_write", "namespace=team; key=glaze; content=cobalt"),
        ("context_log", 'type=decision; phase=build; payload:={"text":"cobalt it is"}'),
        ("thread_search", f"query={WORD}; limit:=5"),
        ("thread_append", f"thread_id={place.thread_id}; text=The gas was shut."),
    )
    told = place.asks_for(*calls)
    assert [text for text in told if text.startswith("call ")] == [
        f"call {SHOWN[name].format(tool)}" for tool, _ in calls
    ]
    bootstrap, written, logged, found, appended = map(_in, _results(told))
    assert bootstrap["project"]["project_id"] == "kiln"
    assert written == {"name": "team/glaze", "state": "created"}
    assert [hit["thread_id"] for hit in found["hits"]] == [place.thread_id]
    _check_the_store(place, logged["entry_id"], appended["message_id"])


def _check_the_store(place: Place, entry_id: str, message_id: str) -> None:
    session = session_in(place.code, place.agent.home)
    assert call(session, "memory_read", namespace="team", key="glaze")["content"] == "cobalt\n"
    (entry,) = call(session, "context_read")["entries"]
    assert (entry["entry_id"], entry["payload"]) == (entry_id, {"text": "cobalt it is"})
    assert entry["agent"] == KNOWN_AS[place.agent.name]
    session.freshness.close()
    with place.stores() as stores:
        (added,) = [one for one in stores.threads.load(place.thread_id).messages if one.id == message_id]
    assert (added.content, added.author) == ("The gas was shut.", KNOWN_AS[place.agent.name])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("paragraphs", [1, 1000])
def test_what_it_was_told_is_known_again_in_its_transcript(
    paragraphs: int, name: str, programs: Path, model: Model, tmp_path: Path
) -> None:
    place = a_place(name, programs, model, tmp_path)
    session = session_in(place.code, place.agent.home)
    text = "\n\n".join(f"{number}: the {WORD} sits in the flue of the kiln" for number in range(paragraphs))
    call(session, "memory_write", namespace="team", key="flue", content=text)
    session.freshness.close()
    place.asks_for(
        ("memory_read", "namespace=team; key=flue"),
        ("thread_search", f"query={WORD}"),
        ("memory_write", "namespace=team; key=glaze; content=cobalt"),
    )
    with place.stores() as stores:
        import_sessions(stores, (), since=None, revive=False, progress=lambda *_, **__: None)
        (imported,) = [one for one in stores.threads.ids() if one != place.thread_id]
        outputs = [one.content for one in stores.threads.load(imported).messages if one.role == "tool"]
        recalled, new = (
            {hit.thread.id for hit in stores.index.search(f"{word} role:tool").hits}
            for word in (WORD, "glaze")
        )
    assert [is_recalled(output) for output in outputs if WORD in output][-1:] == [True]
    assert [output for output in outputs if WORD in output and not is_recalled(output)] == []
    assert (len(outputs), recalled, new) == (3, set(), {imported})


def test_gemini_sends_an_argument_of_its_own_with_a_call(
    programs: Path, model: Model, tmp_path: Path
) -> None:
    place = a_place("gemini", programs, model, tmp_path)
    given = "namespace=team; key=glaze; content=cobalt; wait_for_previous:=true"
    told = place.asks_for(("memory_write", given))
    assert _in(_results(told)[0])["state"] == "created"
