"""One client over stdin and stdout, in this process."""

from __future__ import annotations

import logging

import anyio
from mcp.server.stdio import stdio_server

from raddle.apps.mcp_server.serving import build_server
from raddle.apps.mcp_server.session import Session


def serve_stdio(session: Session) -> None:
    """Serve until stdin ends; what was written last goes out before this returns, as far as that takes seconds."""
    logging.basicConfig(level=logging.WARNING, format="raddle mcp: %(message)s")
    session.warm_up()
    try:
        anyio.run(_serve, session)
    finally:
        session.freshness.close()


async def _serve(session: Session) -> None:
    server = build_server(lambda _: session)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
