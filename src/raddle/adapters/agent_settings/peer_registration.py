"""The registration of the peer's MCP server in a project's `.mcp.json`, made one of ours and nothing else changed.

The name that the server goes by stays: what a person allowed an agent to call is noted under it.
"""

from __future__ import annotations

import re
from typing import Any

from raddle.adapters.agent_settings import json_edits

PEER, OURS, VERB = "redthread", "raddle", "mcp-serve"
_PEERS_PROGRAM = re.compile(rf"(?:.*/)?{PEER}(?:\.exe)?(?:\[[\w,-]*\])?(?:(?:@|[=<>~!]=).*)?\Z", re.DOTALL)


def registered_as_ours(text: str) -> str:
    """The text with `redthread mcp-serve …` as `raddle mcp-serve …`, however it is started; the same text where no
    server is the peer's. BrokenFormat where it is no JSON."""
    plain = json_edits.decoded(text)
    for path in _programs(plain):
        text = json_edits.with_other_value(text, path, OURS)
    return text


def _programs(plain: Any) -> list[list[str | int]]:
    """Where the peer's program is named, in every server that it serves."""
    servers = plain.get("mcpServers") if isinstance(plain, dict) else None
    found: list[list[str | int]] = []
    for name, server in servers.items() if isinstance(servers, dict) else ():
        if not isinstance(server, dict) or not isinstance(server.get("args"), list):
            continue
        args = server["args"]
        before_verb = args[: args.index(VERB)] if VERB in args else []
        at: list[list[str | int]] = [
            ["mcpServers", name, "args", place]
            for place, word in enumerate(before_verb)
            if isinstance(word, str) and _PEERS_PROGRAM.match(word)
        ]
        if (
            VERB in args
            and isinstance(server.get("command"), str)
            and _PEERS_PROGRAM.match(server["command"])
        ):
            at.append(["mcpServers", name, "command"])
        found += at
    return found
