"""The registration of the peer's MCP server: found however it is started, and nothing else of the file changed."""

from __future__ import annotations

import json

import pytest

from raddle.adapters.agent_settings.peer_registration import registered_as_ours
from raddle.model.errors import BrokenFormat


def registered(command: str, *args: str) -> list[str]:
    """How the server is started afterwards."""
    text = json.dumps(
        {"mcpServers": {"memory": {"command": command, "args": list(args), "env": {"A": "redthread"}}}}
    )
    server = json.loads(registered_as_ours(text))["mcpServers"]["memory"]
    assert server["env"] == {"A": "redthread"}
    return [server["command"], *server["args"]]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("redthread mcp-serve --store ./redthread-store", "raddle mcp-serve --store ./redthread-store"),
        ("/home/ada/.venv/bin/redthread mcp-serve", "raddle mcp-serve"),
        ("uvx redthread mcp-serve --allow-clone", "uvx raddle mcp-serve --allow-clone"),
        ("uvx --from redthread==0.14.0 redthread mcp-serve", "uvx --from raddle raddle mcp-serve"),
        ("uvx redthread@latest mcp-serve", "uvx raddle mcp-serve"),
        ("uv tool run redthread[all] mcp-serve", "uv tool run raddle mcp-serve"),
        ("python -m redthread mcp-serve", "python -m raddle mcp-serve"),
        ("redthread mcp-serve --store redthread", "raddle mcp-serve --store redthread"),
    ],
)
def test_the_peers_program_is_ours_however_it_is_started(before: str, after: str) -> None:
    assert registered(*before.split()) == after.split()


@pytest.mark.parametrize(
    "server",
    [
        {"command": "other", "args": ["mcp-serve"]},
        {"command": "redthread", "args": ["daemon"]},
        {"command": "redthread-like", "args": ["mcp-serve"]},
        {"command": ["redthread"], "args": "mcp-serve"},
        {"url": "https://example.org/redthread"},
        "redthread mcp-serve",
        None,
    ],
)
def test_another_server_stays_as_it_is(server: object) -> None:
    text = json.dumps({"mcpServers": {"redthread": server}})
    assert registered_as_ours(text) == text


@pytest.mark.parametrize("text", ["[]", "null", "3", '{"mcpServers": []}', "{}"])
def test_a_file_without_servers_stays_as_it_is(text: str) -> None:
    assert registered_as_ours(text) == text


def test_the_layout_stays() -> None:
    text = '{ "mcpServers" : {\n\t"a": {"command":"redthread" ,  "args":["mcp-serve"]},\r\n"b":{"x":1} } }\n'
    assert registered_as_ours(text) == text.replace('"redthread"', '"raddle"')


def test_what_is_no_json_is_told_of() -> None:
    with pytest.raises(BrokenFormat):
        registered_as_ours("{")
