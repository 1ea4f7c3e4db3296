"""Two agents at once on one memory, each with a `raddle mcp-serve` of its own, by the protocol's own client."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.builders_daemon import DaemonProcess
from tests.builders_import import Machine
from tests.mcp_sessions import call, session_in
from tests.memory_clones import git
from tests.memory_hosts import make_code

pytestmark = pytest.mark.soak

WRITES = 200
PATIENCE_SECONDS = 300


@contextlib.contextmanager
def _with_a_daemon(machine: Machine) -> Iterator[None]:
    with DaemonProcess(machine) as daemon:
        daemon.until_at_work()
        yield


@pytest.mark.parametrize("has_daemon", [False, True], ids=["by themselves", "through a daemon"])
def test_two_agents_that_write_at_once_lose_nothing(has_daemon: bool, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "machine")
    machine.claude.mkdir(parents=True)
    code = make_code(tmp_path / "code")
    session = session_in(code, machine.home, env=machine.environment)
    call(session, "store_init", project_id="kiln", phases=["build"])
    session.freshness.close()
    troubles: list[str] = []

    async def work(who: str) -> None:
        words = ["-m", "raddle", "mcp-serve", *([] if has_daemon else ["--no-daemon"])]
        started = StdioServerParameters(
            command=sys.executable, args=words, env=machine.environment, cwd=str(code)
        )
        async with Client(stdio_client(started)) as client:
            for number in range(WRITES):
                named = {"namespace": who, "key": f"k{number}"}
                text = f"{who} {number}"
                wrote = await client.call_tool("memory_write", {**named, "content": text})
                read = await client.call_tool("memory_read", named)
                told = read.structured_content or {}
                if wrote.is_error or told.get("content") != f"{text}\n":
                    troubles.append(f"{text}: {wrote.content} {read.content}")

    async def both() -> None:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(work, "one")
                group.start_soon(work, "other")

    with _with_a_daemon(machine) if has_daemon else contextlib.nullcontext():
        anyio.run(both)
    assert troubles == []
    names = git("ls-tree", "-r", "--name-only", "raddle-store", "memory/", cwd=code).split()
    assert {f"memory/{who}/k{number}" for who in ("one", "other") for number in range(WRITES)} <= set(names)
