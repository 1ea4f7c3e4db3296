"""The server for agents behind a port of this machine, for clients that speak HTTP alone and know no token.

`python -m tests.served_mcp WHAT …` prints the address, and ends when its stdin does. WHAT is `whole WORKSPACE HOME`
(all that `raddle mcp-serve` answers), `threads CONNINFO BLOBS TOKEN` (a sync server's own door, with the token put into
every request), or `made-up` (tools that a suite of tests asks for by name, over the same serving).
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import Any

from raddle.apps.mcp_server.session import Session
from raddle.apps.mcp_server.tools import READS, Arguments, Call, Tool
from raddle.model.errors import InvalidInput
from tests.listening_program import serve_until_stdin_ends


class NoArguments(Arguments, frozen=True, kw_only=True):
    """None but those of every tool."""


def _fails(session: Session, given: NoArguments, call: Call) -> dict[str, Any]:
    raise InvalidInput("This tool intentionally returns an error for testing")


def _advances(session: Session, given: NoArguments, call: Call) -> dict[str, Any]:
    for done in (0, 50, 100):
        call.progress(done, 100, f"{done} of 100")
    return {"done": 100}


def _is_quiet(session: Session, given: NoArguments, call: Call) -> dict[str, Any]:
    return {}


_RUNS = {
    "test_error_handling": _fails,
    "test_tool_with_progress": _advances,
    "test_logging_tool": _is_quiet,
    "test_streaming_elicitation": _is_quiet,
}
MADE_UP = tuple(
    Tool(name=name, summary=f"{name}.", arguments=NoArguments, run=run, hints=READS)
    for name, run in _RUNS.items()
)


def _app(what: str, *arguments: str) -> Any:
    """An ASGI application."""
    from raddle.apps.mcp_server.serving import build_server
    from raddle.config import load_config

    if what == "threads":
        return _threads(*arguments)
    if what == "whole":
        workspace, home = arguments
        session = Session(load_config({"HOME": home, "RADDLE_WORKSPACE": workspace, "RADDLE_OFFLINE": "1"}))
        return build_server(lambda _: session).streamable_http_app()
    session = Session(load_config())
    return build_server(lambda _: session, MADE_UP).streamable_http_app()


def _threads(conninfo: str, blobs: str, token: str) -> Any:
    from raddle.apps.mcp_server.http import open_door
    from raddle.model.secret import Secret
    from raddle.server.app import ServerSettings, make_app

    app: Any = make_app(ServerSettings(database_url=Secret(conninfo), blobs=Path(blobs), mcp=open_door))

    async def with_token(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope["headers"] = [*scope["headers"], (b"authorization", f"Bearer {token}".encode())]
        await app(scope, receive, send)

    return with_token


def main(what: str, *arguments: str) -> None:
    """Serve until stdin ends."""
    import uvicorn

    from raddle.server.http.pace import PacedConnection

    config = uvicorn.Config(
        _app(what, *arguments),
        http=PacedConnection,
        ws="none",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        serve_until_stdin_ends(server, door, f"http://127.0.0.1:{door.getsockname()[1]}/mcp")


if __name__ == "__main__":
    main(*sys.argv[1:])
