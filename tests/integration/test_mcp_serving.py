"""The server for agents as the official client sees it, by the handshake of before and by the protocol of now."""

from __future__ import annotations

import json
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from pydantic import FileUrl

from raddle.apps.mcp_server.catalogue import TOOLS
from raddle.apps.mcp_server.serving import build_server
from raddle.apps.mcp_server.session import Session
from raddle.apps.mcp_server.tools import READS, Arguments, Call, Tool
from tests.mcp_sessions import call

pytest_plugins = ["tests.mcp_fixtures"]

MODES = ("legacy", "auto")
LARGEST_SCHEMA = 20_000


def talk(
    session: Session,
    work: Callable[[Client], Awaitable[None]],
    *,
    mode: str = "auto",
    tools: tuple[Tool, ...] = TOOLS,
    **options: Any,
) -> None:
    """A client's whole conversation with a server."""

    async def run() -> None:
        server = build_server(lambda _: session, tools)
        with anyio.fail_after(60):
            async with Client(server, mode=mode, **options) as client:
                await work(client)

    anyio.run(run)


def said(result: types.CallToolResult) -> str:
    """The text of a result."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


@pytest.mark.parametrize("mode", MODES)
def test_a_client_lists_calls_reads_and_asks(agent: Session, mode: str) -> None:
    call(agent, "memory_write", namespace="team", key="deep/kiln.md", content="cold")

    async def work(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == [tool.name for tool in TOOLS]
        told = await client.call_tool("memory_read", {"namespace": "team", "key": "deep/kiln.md"})
        assert told.structured_content == json.loads(said(told))
        assert told.structured_content["content"] == "cold\n"
        (read,) = (await client.read_resource("raddle://memory/team/deep/kiln.md")).contents
        assert isinstance(read, types.TextResourceContents)
        assert json.loads(read.text) == told.structured_content
        assert (await client.read_resource("raddle://project")).contents
        templates = (await client.list_resource_templates()).resource_templates
        assert "raddle://memory/{namespace}/{+key}" in [one.uri_template for one in templates]
        prompts = (await client.list_prompts()).prompts
        assert [one.name for one in prompts] == ["resume_thread", "catch_up", "write_handoff"]
        (message,) = (await client.get_prompt("catch_up")).messages
        assert isinstance(message.content, types.TextContent)
        assert "team/deep/kiln.md" in message.content.text

    talk(agent, work, mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_what_goes_wrong_is_said_with_what_to_do(agent: Session, mode: str) -> None:
    async def work(client: Client) -> None:
        for tool, arguments, what in (
            ("memory_read", {"namespace": "no", "key": "such"}, "memory_list"),
            ("memory_read", {"namespace": "no"}, "it takes"),
            ("memory_write", {"namespace": "..", "key": "x", "content": "x"}, "\n"),
            ("context_read", {"run_id": "ZZZ"}, "run"),
        ):
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            assert what in said(result)
            assert "Traceback" not in said(result)
            assert "http" not in said(result)
        with pytest.raises(MCPError, match="there is no tool"):
            await client.call_tool("no_such_tool", {})
        for uri in (
            "raddle://nope",
            "raddle://memory/a/b",
            "raddle://memory/%2e%2e/x",
            "raddle://thread/T-0",
        ):
            with pytest.raises(MCPError):
                await client.read_resource(uri)
        for name, given in (("nope", {}), ("resume_thread", {}), ("catch_up", {"x": "y"})):
            with pytest.raises(MCPError):
                await client.get_prompt(name, given)
        assert (await client.call_tool("run_list", {})).structured_content["total"] == 1

    talk(agent, work, mode=mode)


def test_all_that_a_client_has_to_read_is_small(agent: Session) -> None:
    async def work(client: Client) -> None:
        listed = await client.list_tools()
        text = json.dumps(
            listed.model_dump(by_alias=True, exclude_none=True, mode="json"), ensure_ascii=False
        )
        assert len(text.encode()) < LARGEST_SCHEMA
        for tool in listed.tools:
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is not None

    talk(agent, work)


class _Nothing(Arguments, frozen=True, kw_only=True):
    """No arguments."""


def test_a_call_that_waits_keeps_no_other_waiting_and_can_be_given_up(agent: Session) -> None:
    entered, release, given_up = threading.Event(), threading.Event(), threading.Event()

    def wait(session: Session, given: Any, under_way: Call) -> dict[str, Any]:
        under_way.progress(1, 3, "waiting")
        entered.set()
        release.wait(30)
        if under_way.is_over():
            given_up.set()
        return {}

    slow = Tool(name="slow", summary="Waits.", arguments=_Nothing, run=wait, hints=READS)
    told: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async def work(client: Client) -> None:
        async with anyio.create_task_group() as group:

            async def call_slow() -> None:
                await client.call_tool("slow", {}, progress_callback=on_progress)

            group.start_soon(call_slow)
            await anyio.to_thread.run_sync(entered.wait)
            with anyio.fail_after(5):
                for _ in range(3):
                    assert not (await client.call_tool("run_list", {})).is_error
                while not told:
                    await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        release.set()
        assert await anyio.to_thread.run_sync(given_up.wait, 10)
        assert not (await client.call_tool("run_list", {})).is_error

    talk(agent, work, tools=(*TOOLS, slow))
    assert told == [(1, 3, "waiting")]


def test_a_fault_of_ours_is_an_answer_and_the_server_goes_on(agent: Session) -> None:
    def fails(session: Session, given: Any, under_way: Call) -> dict[str, Any]:
        raise ZeroDivisionError("what was in it: secret")

    broken = Tool(name="broken", summary="Fails.", arguments=_Nothing, run=fails, hints=READS)

    async def work(client: Client) -> None:
        result = await client.call_tool("broken", {})
        assert result.is_error
        assert "ZeroDivisionError" in said(result)
        assert "secret" not in said(result)
        assert not (await client.call_tool("run_list", {})).is_error

    talk(agent, work, tools=(*TOOLS, broken))


def test_the_client_says_who_it_is_and_where_it_works(agent: Session, code: Path) -> None:
    agent.agent = ""

    async def roots(_: Any) -> types.ListRootsResult:
        named = [f"file://{code}", "file:///not/there", "file://elsewhere/x"]
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl(uri)) for uri in named])

    async def work(client: Client) -> None:
        await client.call_tool("context_log", {"type": "note", "phase": "build", "payload": "hello"})

    who = types.Implementation(name="a-client", version="1")
    talk(agent, work, mode="legacy", list_roots_callback=roots, client_info=who)
    assert agent.roots == (code,)
    (entry,) = call(agent, "context_read")["entries"]
    assert entry["agent"] == "a-client"
