"""Threads of a sync server for agents, over HTTP: the official client, two accounts, and what nobody is let in by."""

from __future__ import annotations

import json
import logging
import pickle
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from psycopg import Connection

from raddle.apps.mcp_server.http import open_door
from raddle.model.protocol.signing_in import THREADS, THREADS_READ
from raddle.model.secret import Secret
from raddle.server.accounts.devices import mint, revoke
from raddle.server.accounts.sessions import begin_session
from raddle.server.app import ServerSettings
from tests.builders import a_line
from tests.builders_routes import JSON, Asker, new_ids, push_body
from tests.builders_served import ADDRESS, Served, serving
from tests.builders_server import Person, a_person, connected, new_id, prepare
from tests.contract.remote_laws import new
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)

MODES = ("legacy", "auto")
WORD = "hippogriff"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPTS = {"Accept": "application/json, text/event-stream"}


class House(NamedTuple):
    """A server that answers agents, and two people with accounts on it."""

    served: Served
    connection: Connection
    ada: Person
    bob: Person

    def token(self, person: Person, *scopes: str) -> str:
        """Of a new device of theirs."""
        return mint(self.connection, person.user, "laptop", scopes or [THREADS], new_id=new_id)


@pytest.fixture
def house(new_database: NewDatabase, tmp_path: Path) -> Iterator[House]:
    with ExitStack() as stack:
        conninfo = new_database(prepare)
        connection = stack.enter_context(connected(conninfo))
        served = stack.enter_context(serving(conninfo, tmp_path / "blobs", mcp=open_door))
        yield House(served, connection, a_person(connection, "ada"), a_person(connection, "bob"))


def keep(house: House, token: str, *contents: str, visibility: str = "organization") -> str:
    """A thread of the token's person on the server; its id."""
    thread_id = new_ids().thread
    delta = new(*a_line(*contents), title="the kiln", visibility=visibility)
    with Asker(house.served, token) as asker:
        answer = asker.ask("POST", f"/api/threads/{thread_id}/delta", push_body(delta))
    assert answer.status_code == 200, answer.text
    return thread_id


def talk(house: House, token: str, work: Callable[[Client], Awaitable[None]], mode: str = "auto") -> None:
    """A client's whole conversation with the server."""

    async def run() -> None:
        transport = httpx2.AsyncHTTPTransport(uds=str(house.served.socket_path))
        headers = {"Authorization": f"Bearer {token}"}
        with anyio.fail_after(60):
            async with httpx2.AsyncClient(transport=transport, headers=headers) as http:
                streams = streamable_http_client(f"{ADDRESS}/mcp", http_client=http)
                async with Client(streams, mode=mode) as client:
                    await work(client)

    anyio.run(run)


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool gives; its error is the test's."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return dict(result.structured_content)


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """What a tool says that it does not do."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


def post(house: House, token: str = "", headers: Mapping[str, str] | None = None, body: Any = CALL) -> Any:
    """One request without the protocol's client."""
    sent = {**JSON, **ACCEPTS, **(headers or {})}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    with Asker(house.served, token) as asker:
        return asker.ask("POST", "/mcp", data, sent)


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_finds_reads_goes_on_with_and_forks_a_thread_of_the_server(house: House, mode: str) -> None:
    token = house.token(house.ada)
    thread_id = keep(house, token, f"why does the {WORD} hang", "it waits")

    async def work(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            "thread_search",
            "thread_read",
            "thread_list",
            "thread_append",
            "thread_fork",
        ]
        found = await ask(client, "thread_search", query=WORD)
        assert [hit["thread_id"] for hit in found["hits"]] == [thread_id]
        assert found["scope"]["looked_in"] == "your spaces on this server"
        assert [row["title"] for row in (await ask(client, "thread_list"))["threads"]] == ["the kiln"]
        added = await ask(client, "thread_append", thread_id=thread_id, text="then wake it")
        read = await ask(client, "thread_read", thread_id=thread_id)
        assert [one["text"] for one in read["messages"]][1:] == ["it waits", "then wake it"]
        assert read["messages"][-1]["role"] == "assistant"
        assert read["messages"][-1]["author"] in ("mcp", "agent")
        forked = await ask(client, "thread_fork", thread_id=thread_id, message_id=added["parent_id"])
        copy = await ask(client, "thread_read", thread_id=forked["thread_id"])
        assert [one["text"] for one in copy["messages"]] == [f"why does the {WORD} hang", "it waits"]

    talk(house, token, work, mode)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_adas_is_to_bobs_agent_what_is_nowhere(house: House, mode: str) -> None:
    ada, bob = house.token(house.ada), house.token(house.bob)
    hers, nowhere = keep(house, ada, f"the {WORD}"), new_ids().thread

    async def work(client: Client) -> None:
        found = await ask(client, "thread_search", query=WORD)
        assert (found["hits"], found["total_threads"], found["scope"]["threads"]) == ([], 0, 0)
        assert (await ask(client, "thread_list"))["threads"] == []
        for tool, more in (("thread_read", {}), ("thread_append", {"text": "x"}), ("thread_fork", {})):
            told = await refused(client, tool, thread_id=hers, **more)
            assert told.replace(hers, nowhere) == await refused(client, tool, thread_id=nowhere, **more)

    talk(house, bob, work, mode)


def test_what_is_public_may_be_read_and_forked_by_others_and_not_written(house: House) -> None:
    ada, bob = house.token(house.ada), house.token(house.bob)
    hers = keep(house, ada, f"the {WORD}", visibility="public")

    async def work(client: Client) -> None:
        assert (await ask(client, "thread_read", thread_id=hers))["messages"][0]["text"] == f"the {WORD}"
        assert "somebody else's" in await refused(client, "thread_append", thread_id=hers, text="mine")
        forked = await ask(client, "thread_fork", thread_id=hers)
        await ask(client, "thread_append", thread_id=forked["thread_id"], text="mine")

    talk(house, bob, work)


def test_a_token_that_may_only_read_reads_and_writes_nothing(house: House) -> None:
    thread_id = keep(house, house.token(house.ada), f"the {WORD}")

    async def work(client: Client) -> None:
        assert (await ask(client, "thread_search", query=WORD))["total_threads"] == 1
        assert "may only read" in await refused(client, "thread_append", thread_id=thread_id, text="x")
        assert "may only read" in await refused(client, "thread_fork", thread_id=thread_id)

    talk(house, house.token(house.ada, THREADS_READ), work)


def test_recalled_text_is_not_taken_for_a_turn_and_a_server_has_no_workspace(house: House) -> None:
    token = house.token(house.ada)
    said = f"the {WORD} is asleep because the kiln has been cold for a hundred years and a day"
    thread_id = keep(house, token, said)

    async def work(client: Client) -> None:
        await ask(client, "thread_read", thread_id=thread_id)
        assert "recalled text" in await refused(client, "thread_append", thread_id=thread_id, text=said)
        assert "no workspace" in await refused(client, "thread_list", workspace="/etc")
        assert "whole ids" in await refused(client, "thread_read", thread_id=thread_id[:12])

    talk(house, token, work)


def test_nobody_is_let_in_without_a_token_of_today(house: House) -> None:
    revoked = house.token(house.ada)
    device = house.connection.execute("SELECT id FROM devices").fetchone()
    assert device is not None
    revoke(house.connection, house.ada.user, device[0])
    cookie = begin_session(house.connection, house.ada.user)
    tries = (
        post(house),
        post(house, "rdl_nothing"),
        post(house, revoked),
        post(house, headers={"Authorization": "Basic YTpi"}),
        post(house, headers={"Cookie": f"raddle={cookie}"}),
    )
    for answer in tries:
        assert answer.status_code == 401, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["code"] == "not_signed_in"


def test_pages_of_other_sites_are_not_answered(house: House) -> None:
    token = house.token(house.ada)
    assert post(house, token, {"Origin": ADDRESS}).status_code == 200
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Host": "evil.example", "Origin": "http://evil.example"},
    ):
        answer = post(house, token, headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), headers


def test_what_is_no_request_is_refused_and_the_server_lives(house: House) -> None:
    token = house.token(house.ada)
    with Asker(house.served, token) as asker:
        for method in ("GET", "DELETE"):
            answer = asker.ask(method, "/mcp", headers=ACCEPTS)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    for body in (b"{" * 1000, b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', b'{"jsonrpc":"2.0","id":1}'):
        refused = post(house, token, body=body)
        assert refused.status_code == 400
        assert refused.json()["error"]["message"].startswith("this is no ")
    assert post(house, token, body=b"x" * ((4 << 20) + 1)).status_code == 413
    assert post(house, token, {"Content-Type": "text/plain"}).status_code == 400
    assert post(house, token).status_code == 200


def test_no_word_of_a_request_reaches_a_log(house: House, caplog: pytest.LogCaptureFixture) -> None:
    token = house.token(house.ada)
    with caplog.at_level(logging.DEBUG):
        post(house, token, body={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": WORD})
        post(house, token, body={"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": WORD}})
        post(house, token, body=f'{{"{WORD}'.encode())
        arguments = {"name": "thread_search", "arguments": {"query": WORD, "limit": WORD}}
        post(house, token, body={**CALL, "method": "tools/call", "params": arguments})
    assert WORD not in caplog.text
    assert token not in caplog.text
    assert "POST /mcp 200" in caplog.text


def test_each_of_several_processes_of_a_server_can_be_told_to_answer_agents() -> None:
    settings = ServerSettings(database_url=Secret("host=/nowhere"), blobs="/nowhere", mcp=open_door)
    assert pickle.loads(pickle.dumps(settings)).mcp is open_door  # noqa: S301  as a process is started


def test_a_server_that_was_not_asked_to_answers_no_agent(new_database: NewDatabase, tmp_path: Path) -> None:
    conninfo = new_database(prepare)
    with connected(conninfo) as connection, serving(conninfo, tmp_path / "blobs") as served:
        ada = a_person(connection, "ada")
        house = House(served, connection, ada, ada)
        assert post(house, house.token(ada)).status_code == 404


def test_spaces_around_the_name_of_a_tool_in_a_header_are_no_part_of_it(house: House) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "thread_list", "arguments": {}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    head = (
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {house.token(house.ada)}\r\nContent-Length: {len(body)}\r\n"
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
        "Mcp-Method: tools/call\r\nMcp-Name: \t thread_list \t\r\n\r\n"
    )
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(str(house.served.socket_path))
        connection.sendall(head.encode() + body)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200 "), answer
    assert b'"looked_in"' in answer
