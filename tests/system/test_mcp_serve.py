"""`raddle mcp-serve` as an agent starts it: by itself, through a daemon, and when that daemon dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from raddle.adapters.local_socket import connect_to
from raddle.wiring.memory import open_memory
from raddle.wiring.memory_syncing import sync_memory
from tests.builders_daemon import DaemonProcess, called, status
from tests.builders_import import Machine
from tests.mcp_sessions import call, session_in
from tests.memory_clones import git
from tests.memory_hosts import make_code

PATIENCE_SECONDS = 60
ENDS_WITHIN_SECONDS = 3.5
"""Two, and what a busy machine adds."""
INITIALIZE = {
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "a test", "version": "1"},
    },
}


class Server:
    """`raddle mcp-serve` on a machine, and a client of few words."""

    def __init__(self, machine: Machine, workspace: Path, *options: str) -> None:
        self._number = 0
        self.process = subprocess.Popen(
            [sys.executable, "-m", "raddle", "mcp-serve", *options],
            cwd=workspace,
            env={**os.environ, **machine.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to a request."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._number += 1
        self._say({"id": self._number, **request})
        told: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert told["id"] == self._number
        assert "result" in told, told
        return dict(told["result"])

    def begin(self) -> dict[str, Any]:
        """The handshake; what the server said of itself."""
        told = self.ask(**INITIALIZE)
        self._say({"method": "notifications/initialized"})
        return told

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a tool gives."""
        told = self.ask(method="tools/call", params={"name": tool, "arguments": arguments})
        assert not told.get("isError"), told
        return dict(told["structuredContent"])

    def answers_to(self, *requests: dict[str, Any]) -> list[dict[str, Any]]:
        """What comes of requests that are all said before any answer is read, by a client that then says no more."""
        for number, request in enumerate(requests, 1):
            self._say(
                {"id": number, **request} if request["method"] != "notifications/initialized" else request
            )
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        assert (self.process.returncode, err) == (0, b"")
        return sorted((json.loads(line) for line in out.splitlines()), key=lambda answer: int(answer["id"]))

    def _say(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def end(self) -> tuple[int, bytes, str]:
        """Close its stdin: its exit code, and what else it said on both streams."""
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, out, err.decode()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path / "machine")
    made.claude.mkdir(parents=True)
    return made


@pytest.fixture
def code(tmp_path: Path, machine: Machine) -> Path:
    """Code with a memory, whose remote is `hub.git` beside it."""
    made = make_code(tmp_path / "code", hub=tmp_path / "hub.git")
    session = session_in(made, machine.home, env=machine.environment)
    call(session, "store_init", project_id="kiln", phases=["build"])
    with session.stores() as stores:
        assert sync_memory(open_memory(stores), may_publish=True).state == "in_step"
    session.freshness.close()
    return made


def test_by_itself_it_says_nothing_but_the_protocol_and_sends_out_what_was_written_last(
    machine: Machine, code: Path
) -> None:
    with Server(machine, code) as server:
        assert server.begin()["serverInfo"]["name"] == "raddle"
        names = [tool["name"] for tool in server.ask(method="tools/list")["tools"]]
        assert {"context_bootstrap", "memory_write"} <= set(names)
        server.call("memory_write", namespace="team", key="glaze.md", content="cobalt")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE_SECONDS) == 0
        assert server.end()[1:] == (b"", "")
    assert "cobalt" in git("show", "raddle-store:memory/team/glaze.md", cwd=code.parent / "hub.git")


def test_requests_that_are_piped_in_are_all_answered(machine: Machine, code: Path) -> None:
    calls = [
        {"method": "tools/call", "params": {"name": "memory_write", "arguments": arguments}}
        for arguments in ({"namespace": "team", "key": f"k{n}", "content": "x"} for n in range(3))
    ]
    with Server(machine, code) as server:
        told = server.answers_to(INITIALIZE, {"method": "notifications/initialized"}, *calls)
    assert [answer["id"] for answer in told] == [1, 3, 4, 5]
    assert [answer["result"]["structuredContent"]["state"] for answer in told[1:]] == ["created"] * 3


def test_what_is_no_request_is_answered_with_what_is_wrong(machine: Machine, code: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"method": "tools/call", "params": {"name": 5}},
        {"method": "tools/call", "params": {"name": "run_list", "arguments": [1]}},
        {"method": "resources/read"},
    ]
    with Server(machine, code) as server:
        told = server.answers_to(INITIALIZE, {"method": "notifications/initialized"}, *wrong)[1:]
    said = [answer["error"]["message"] for answer in told]
    assert [text.split(": ")[:2] for text in said] == [
        ["tools/call", "params.name"],
        ["tools/call", "params.arguments"],
        ["resources/read", "params"],
    ]
    assert not any("http" in text or "pydantic" in text for text in said)


def test_what_is_named_and_not_there_is_said_at_once(machine: Machine, code: Path) -> None:
    for option in ("--workspace", "--store"):
        with Server(machine, code, option, str(code / "nowhere")) as server:
            number, out, err = server.end()
        assert (number, out) == (3, b""), err
        assert "nowhere" in err
        assert len(err.splitlines()) == 2


def test_through_a_daemon_it_is_the_same_server(machine: Machine, code: Path) -> None:
    async def work() -> None:
        started = StdioServerParameters(
            command=sys.executable, args=["-m", "raddle", "mcp-serve"], env=machine.environment, cwd=str(code)
        )
        with anyio.fail_after(PATIENCE_SECONDS):
            async with Client(stdio_client(started)) as client:
                named = {"namespace": "team", "key": "glaze"}
                await client.call_tool("memory_write", {**named, "content": "cobalt"})
                told = await client.call_tool("memory_read", named)
                assert told.structured_content["content"] == "cobalt\n"

    with DaemonProcess(machine) as daemon:
        daemon.until_at_work()
        anyio.run(work)
        daemon.until(lambda: status(machine)["agents"] == 0)
        with Server(machine, code) as server:
            server.begin()
            assert _modules_of_the_sdk(server.process.pid) == []
            assert server.call("memory_read", namespace="team", key="glaze")["content"] == "cobalt\n"
            daemon.until(lambda: "serves: 1 agent" in called(machine, "daemon", "status").lines)
            assert server.end() == (0, b"", "")
        with Server(machine, code) as server:
            server.begin()
            assert daemon.end() < ENDS_WITHIN_SECONDS
            code_of_end, out, err = server.end()
        assert (code_of_end, out) == (6, b"")
        assert "the daemon has ended this agent's session" in err
        assert len(err.splitlines()) <= 2
    assert not list((machine.folder / "state").glob("*.sock"))


def test_a_daemon_that_was_killed_leaves_a_socket_that_is_in_nobodys_way(
    machine: Machine, code: Path
) -> None:
    with DaemonProcess(machine) as first:
        first.until_at_work()
        first.until(lambda: list((machine.folder / "state").glob("*.sock")))
        first.kill()
    (left,) = (machine.folder / "state").glob("*.sock")
    with Server(machine, code) as server:
        server.begin()
        assert server.end() == (0, b"", "")
    before = left.lstat().st_ino
    with DaemonProcess(machine) as second:
        second.until(lambda: left.lstat().st_ino != before)
        connection = connect_to(left, seconds=PATIENCE_SECONDS)
        assert connection is not None
        connection.close()


def _modules_of_the_sdk(pid: int) -> list[str]:
    """What of the SDK that process has open, where the system says so."""
    maps = Path(f"/proc/{pid}/maps")
    return (
        [line for line in maps.read_text().splitlines() if "pydantic_core" in line] if maps.exists() else []
    )
