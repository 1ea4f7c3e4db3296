"""The way in for agents that speak MCP: who asks is known before a byte of it is read, as for every other route.

What answers is handed to the server from outside: this side knows tokens, and nothing of the protocol. Only a token
counts, no cookie, so that no page of another site can ask in somebody's name.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias
from urllib.parse import urlsplit

import anyio.to_thread
from litestar import asgi
from litestar.connection import ASGIConnection
from litestar.exceptions import MethodNotAllowedException
from litestar.handlers import ASGIRouteHandler
from litestar.types import Receive, Scope, Send

from raddle.model.errors import Forbidden, NotSignedIn
from raddle.server.http.callers import caller_by_header
from raddle.server.http.web import AnyConnection, WebSettings, origin_of
from raddle.server.hub import Hub
from raddle.server.tables.database import Database

PATH = "/mcp"
CALLER = "raddle.caller"
"""Where a request's scope says who asks: a Caller."""
_PORT = re.compile(r":\d{1,5}\Z")


class Door(Protocol):
    """What answers requests whose scope says who asks."""

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Open for the length of the block: once."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one POST, as ASGI has it."""


OpenDoor: TypeAlias = Callable[[Hub], Door]


def handler(door: Door, database: Database, web: WebSettings) -> ASGIRouteHandler:
    """The route. A stream that nothing would ever come by is not opened: GET is not allowed, as the protocol has it."""

    @asgi(PATH, copy_scope=True)
    async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
        connection: AnyConnection = ASGIConnection(scope, receive, send)
        _check_origin(connection, web)
        header = connection.headers.get("authorization")
        if header is None:
            raise NotSignedIn("this needs the token of a device", "`raddle serve token NAME` prints one")
        caller = await anyio.to_thread.run_sync(caller_by_header, database, header)
        if scope.get("method") != "POST":
            raise MethodNotAllowedException("agents are answered by POST alone", headers={"Allow": "POST"})
        await door({**scope, CALLER: caller}, receive, send)

    return mcp


def _check_origin(connection: AnyConnection, web: WebSettings) -> None:
    """Forbidden where a page of another site asks, or a name that was made to lead here (DNS rebinding)."""
    ours = origin_of(connection, web)
    host = connection.headers.get("host", "")
    if not _is_loopback(host):
        if web.public_url:
            fits = host.lower() == urlsplit(ours).netloc.lower() or web.is_behind_proxy
        else:
            fits = web.is_behind_proxy or not _is_local(connection)
        if not fits:
            raise Forbidden("Host: it is not this server's", "--public-url says how people reach it")
    origin = connection.headers.get("origin")
    if origin is not None and origin.lower() != ours.lower():
        raise Forbidden("Origin: it is another site's", "ask without it, or from this server's own address")


def _is_loopback(host: str) -> bool:
    name = _PORT.sub("", host).strip("[]").lower()
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _is_local(connection: AnyConnection) -> bool:
    """Did it come in by this machine's own address (or by a socket in its file system)?"""
    server = connection.scope.get("server")
    return server is None or server[1] is None or _is_loopback(server[0])
