"""The application: routes, what they are handed, and what surrounds each request. The only place that joins them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.enums import ScopeType
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.types import ASGIApp, ControllerRouterHandler, Message, Receive, Scope, Send
from msgspec import Struct

from raddle import __version__
from raddle.model.clock import Clock, system_clock
from raddle.model.ids import MonotonicIds, NewId
from raddle.model.protocol.wire import MOST_BODY_BYTES
from raddle.model.secret import Secret
from raddle.server.blobs.keeping import open_blobs
from raddle.server.events import Listener
from raddle.server.http.callers import provide_caller, provide_visitor
from raddle.server.http.coding import Coding
from raddle.server.http.described import DESCRIPTION, SECURITY, SIGNING_IN, describe
from raddle.server.http.pace import BODY_SECONDS
from raddle.server.http.problems import EXCEPTION_HANDLERS
from raddle.server.http.web import WebSettings
from raddle.server.hub import Hub
from raddle.server.jobs import Indexing, Jobs
from raddle.server.metrics import Metrics
from raddle.server.pages import handlers as pages
from raddle.server.routes import (
    auth,
    blobs,
    devices,
    events,
    health,
    mcp,
    openapi,
    search,
    sources,
    threads,
)
from raddle.server.routes.mcp import OpenDoor
from raddle.server.search.waiting import WaitingIndex
from raddle.server.tables.database import Database

_LOG = logging.getLogger("raddle.server.requests")


class ServerSettings(Struct, frozen=True, kw_only=True):
    """What a server is started with."""

    database_url: Secret
    blobs: Path | str
    """The folder that blobs are kept in, or the URL of a bucket."""
    web: WebSettings = WebSettings()
    body_seconds: float = BODY_SECONDS
    """How long the first bytes of a body may take."""
    pool_size: int = 12
    """Connections of this process; all processes together stay below what the database allows."""
    mcp: OpenDoor | None = None
    """What answers agents that speak MCP; None: nothing does. A top-level function, as every process opens one."""


def make_app(
    settings: ServerSettings, *, clock: Clock = system_clock, new_id: NewId | None = None
) -> ASGIApp:
    """The server as an ASGI application; its database is there and migrated."""
    ids = new_id or MonotonicIds(clock)
    database = Database(settings.database_url, size=settings.pool_size)
    hub = Hub(database, WaitingIndex(), open_blobs(settings.blobs), clock=clock, new_id=ids)
    jobs, indexing = Jobs(hub), Indexing(hub)
    listener = Listener(database, words=indexing.words)
    counts = Metrics()
    door = None if settings.mcp is None else settings.mcp(hub)

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncIterator[None]:
        database.open()
        listener.start(asyncio.get_running_loop())
        jobs.start()
        indexing.start()
        try:
            async with door.lifespan() if door is not None else nullcontext():
                yield
        finally:
            jobs.stop()
            indexing.stop()
            listener.stop()
            database.close()

    app = Litestar(
        # One router: registered one by one, Litestar 2.25 wraps a handler anew for each other one on its path.
        route_handlers=[Router(path="/", route_handlers=_handlers(door, database, settings.web))],
        dependencies={
            "hub": Provide(lambda: hub, sync_to_thread=False),
            "database": Provide(lambda: database, sync_to_thread=False),
            "listener": Provide(lambda: listener, sync_to_thread=False),
            "web": Provide(lambda: settings.web, sync_to_thread=False),
            "new_id": Provide(lambda: ids, sync_to_thread=False),
            "counts": Provide(lambda: counts, sync_to_thread=False),
            "caller": Provide(provide_caller, sync_to_thread=True),
            "visitor": Provide(provide_visitor, sync_to_thread=True),
        },
        exception_handlers=dict(EXCEPTION_HANDLERS),
        lifespan=[lifespan],
        openapi_config=OpenAPIConfig(
            title="raddle",
            version=__version__,
            path="/api/schema",
            render_plugins=[JsonRenderPlugin(path="/")],
            use_handler_docstrings=True,
            description=DESCRIPTION,
            components=SIGNING_IN,
            security=SECURITY,
        ),
        request_max_body_size=MOST_BODY_BYTES,
        debug=False,
        logging_config=None,
    )
    describe(app)
    return Counting(Coding(app, seconds=settings.body_seconds), counts)


def _handlers(door: mcp.Door | None, database: Database, web: WebSettings) -> list[ControllerRouterHandler]:
    return [
        *([] if door is None else [mcp.handler(door, database, web)]),
        *search.HANDLERS,
        *threads.HANDLERS,
        *events.HANDLERS,
        *blobs.HANDLERS,
        *sources.HANDLERS,
        *health.HANDLERS,
        *openapi.HANDLERS,
        *auth.HANDLERS,
        *devices.HANDLERS,
        *pages.HANDLERS,
    ]


class Counting:
    """Counts each request and writes one line of it to the log: route, status and time; no path, no body, no name."""

    def __init__(self, app: ASGIApp, counts: Metrics) -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            seconds = time.perf_counter() - started
            route = str(scope.get("path_template") or "other")
            self._counts.note(scope["method"], route, status, seconds)
            _LOG.info("%s %s %d %.1f ms", scope["method"], route, status, seconds * 1000)
