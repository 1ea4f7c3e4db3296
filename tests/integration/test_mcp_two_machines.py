"""Agents side by side: two servers on one memory, and two machines that nobody tells to sync."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client

from raddle.apps.mcp_server.freshness import Freshness
from raddle.apps.mcp_server.serving import build_server
from raddle.apps.mcp_server.session import Session
from raddle.config import Config, load_config
from raddle.model.errors import NetworkError
from raddle.wiring.memory import open_memory
from raddle.wiring.memory_syncing import sync_memory
from tests.mcp_sessions import call, session_in
from tests.memory_clones import git
from tests.memory_hosts import commit, make_code

pytest_plugins = ["tests.mcp_fixtures"]


@contextmanager
def working(code: Path, home: Path) -> Iterator[Session]:
    """An agent for a while."""
    session = session_in(code, home)
    try:
        yield session
    finally:
        session.freshness.close()


def _written_by_two(code: Path, home: Path, each: int) -> None:
    """Two servers on one memory, each told to write so often, as fast as it goes; every write is read back at once."""
    troubles: list[str] = []

    async def writes(client: Client, who: str) -> None:
        for number in range(each):
            named = {"namespace": who, "key": f"k{number}"}
            text = f"{who} {number}"
            wrote = await client.call_tool("memory_write", {**named, "content": text})
            read = await client.call_tool("memory_read", named)
            if wrote.is_error or read.is_error or read.structured_content["content"] != f"{text}\n":
                troubles.append(f"{who} {number}: {wrote.content} {read.content}")

    async def both() -> None:
        with working(code, home) as one, working(code, home) as other:
            async with (
                Client(build_server(lambda _: one)) as first,
                Client(build_server(lambda _: other)) as second,
                anyio.create_task_group() as group,
            ):
                group.start_soon(writes, first, "one")
                group.start_soon(writes, second, "other")

    anyio.run(both)
    assert not troubles
    with working(code, home) as reader:
        names = {line["name"] for line in call(reader, "memory_list", limit=1000)["memories"]}
    assert names == {f"{who}/k{number}" for who in ("one", "other") for number in range(each)}


def test_two_servers_that_write_to_one_memory_lose_nothing(
    agent: Session, code: Path, tmp_path: Path
) -> None:
    _written_by_two(code, tmp_path / "home", 12)


@pytest.mark.soak
def test_two_servers_that_write_two_hundred_times_lose_nothing(
    agent: Session, code: Path, tmp_path: Path
) -> None:
    _written_by_two(code, tmp_path / "home", 200)


def _published(tmp_path: Path) -> tuple[Path, Path]:
    """Two machines with the code, on the first of which a person said that the memory goes to the code's remote."""
    hub = tmp_path / "hub.git"
    here = make_code(tmp_path / "here", hub=hub)
    with working(here, tmp_path / "home-here") as agent:
        call(agent, "store_init", project_id="kiln")
        call(agent, "run_start")
        git("add", ".raddle.yaml", cwd=here)
        commit(here, "more.py", "pass\n")
        git("push", "--quiet", "origin", "main", cwd=here)
        with agent.stores() as stores:
            assert sync_memory(open_memory(stores), may_publish=True).state == "in_step"
    there = tmp_path / "there"
    git("clone", "--quiet", str(hub), str(there), cwd=tmp_path)
    return here, there


def _until(is_so: Any, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        threading.Event().wait(0.05)


def test_what_one_machine_writes_another_knows_without_anybody_running_a_sync(tmp_path: Path) -> None:
    here, there = _published(tmp_path)
    with (
        working(here, tmp_path / "home-here") as ada,
        working(there, tmp_path / "home-there") as bob,
    ):
        assert call(bob, "context_bootstrap")["project"]["project_id"] == "kiln"
        call(ada, "memory_write", namespace="team", key="kiln", content="cold")
        call(ada, "context_log", type="decision", phase="build", payload={"text": "warm it"})

        def knows() -> bool:
            told = call(bob, "context_bootstrap")
            entries = [entry["payload"]["text"] for entry in told["run"].get("entries", [])]
            return "team/kiln" in [one["name"] for one in told.get("memories", [])] and entries == ["warm it"]

        _until(knows)


def test_what_was_written_last_goes_out_before_the_server_ends(tmp_path: Path) -> None:
    here, there = _published(tmp_path)
    with working(here, tmp_path / "home-here") as ada:
        call(ada, "memory_write", namespace="team", key="last", content="words")
    with working(there, tmp_path / "home-there") as bob:
        assert [one["name"] for one in call(bob, "context_bootstrap")["memories"]] == ["team/last"]


def test_a_remote_that_does_not_answer_makes_no_call_wait(tmp_path: Path) -> None:
    here, _ = _published(tmp_path)
    asked = tmp_path / "asked"
    waits = tmp_path / "waits.sh"
    waits.write_text(f"#!/bin/sh\ntouch {asked}\nsleep 30\n")
    waits.chmod(0o755)
    git("config", "remote.origin.uploadpack", str(waits), cwd=here)
    with working(here, tmp_path / "home-here") as agent:
        call(agent, "memory_write", namespace="team", key="k0", content="x")
        _until(asked.exists)
        began = time.monotonic()
        for number in range(5):
            call(agent, "memory_write", namespace="team", key=f"k{number}", content="more")
            assert call(agent, "memory_read", namespace="team", key=f"k{number}")["content"] == "more\n"
        told = call(agent, "context_bootstrap")
        assert time.monotonic() - began < 20
        assert "not answered" in told["sync"]
        assert len(told["memories"]) == 5
        agent.freshness.close(seconds=0.1)


def test_a_running_server_obeys_a_project_that_is_to_stay_here_from_now_on(tmp_path: Path) -> None:
    here, there = _published(tmp_path)
    with working(here, tmp_path / "home-here") as ada:
        call(ada, "memory_write", namespace="team", key="before", content="words")
        with ada.memory() as memory:
            assert ada.freshness.come_into_step(memory.root, 20) == ""
            project = memory.root / "project.yaml"
        project.write_text(project.read_text().replace("publish: null", "publish: false"))
        call(ada, "memory_write", namespace="team", key="after", content="words")
        assert "stays on this machine" in ada.freshness.come_into_step(memory.root, 20)
        assert "stays on this machine" in call(ada, "context_bootstrap")["sync"]
    with working(there, tmp_path / "home-there") as bob:
        assert [one["name"] for one in call(bob, "context_bootstrap")["memories"]] == ["team/before"]


def test_a_sync_that_fails_is_told_and_tried_again(tmp_path: Path) -> None:
    outcomes = iter((NetworkError("the hub does not answer"), ZeroDivisionError(), None))
    tries: list[Path] = []

    def sync(root: Path, config: Config) -> str:
        tries.append(root)
        outcome = next(outcomes, None)
        if outcome is not None:
            raise outcome
        return ""

    freshness = Freshness(sync)
    freshness.keep(tmp_path, load_config({"HOME": str(tmp_path)}))
    _until(lambda: len(tries) == 1)
    told = []
    for _ in range(2):
        freshness.wrote(tmp_path)
        told.append(freshness.come_into_step(tmp_path, 20))
    freshness.close()
    assert told == ["the sync failed: ZeroDivisionError", ""]
