"""Runs the server: its database up and in shape, its processes, and a clean end.

Everything that a start may fail at is met here before a socket is open, so that who sees `listening` can use it.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from raddle.adapters.workers import Servers
from raddle.config import Config
from raddle.model.clock import system_clock
from raddle.model.errors import StorageError
from raddle.model.ids import MonotonicIds
from raddle.model.secret import Secret
from raddle.server.accounts.setup import new_link
from raddle.server.app import ServerSettings, make_app
from raddle.server.blobs.keeping import check_blobs
from raddle.server.embedded_pg.health import check_database
from raddle.server.embedded_pg.running import start
from raddle.server.http.pace import PacedConnection
from raddle.server.http.web import WebSettings
from raddle.server.routes.mcp import OpenDoor
from raddle.server.tables.database import connect
from raddle.server.tables.migrating import migrate
from raddle.server.threads.feed import hub_epoch

_STOP_SECONDS = 3
_LOOK_SECONDS = 1.0
_CONNECTIONS = 80
"""Of all processes together: below what an embedded PostgreSQL allows (120), with room for the listeners."""


@contextlib.contextmanager
def database_of(config: Config) -> Iterator[Secret]:
    """The database of the config, migrated; the embedded one runs for the length of the block.

    UserError, StorageError where it is not to be had, or is none that will do.
    """
    with contextlib.ExitStack() as stack:
        if config.database_url is not None:
            url = config.database_url
            check_database(url.reveal())
        else:
            url = Secret(stack.enter_context(start(config.data_dir, config.pg_bin)).url)
        with connect(url) as connection:
            migrate(connection)
            hub_epoch(connection, MonotonicIds(system_clock))
        yield url


def blobs_of(config: Config) -> Path | str:
    """Where this server keeps blobs: a folder, or the URL of a bucket."""
    return config.blobs or config.paths.server_blobs_dir


def serve(
    config: Config,
    *,
    host: str,
    port: int,
    workers: int = 1,
    web: WebSettings | None = None,
    mcp: OpenDoor | None = None,
    ready: Callable[[str, str | None], None],
    stopped: threading.Event | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM, or until `stopped` is set.

    `ready` is told the address, and the one-time set-up link where there is no account yet. `port` 0: any. `mcp`: what
    answers agents that speak MCP.
    """
    blobs = blobs_of(config)
    check_blobs(blobs)
    with database_of(config) as url, _bound(host, port) as listening:
        settings = ServerSettings(
            database_url=url,
            blobs=blobs,
            web=web or WebSettings(),
            mcp=mcp,
            pool_size=max(4, min(16, _CONNECTIONS // workers)),
        )
        address = _address(listening)
        with connect(url) as connection:
            link = new_link(connection)
        setup = None if link is None else f"{address}/setup?token={link}"
        told = functools.partial(ready, address, setup)
        if workers == 1:
            _serve_here(settings, listening, told, stopped)
        else:
            _serve_with(settings, listening, workers, told, stopped or threading.Event())


class _Server(uvicorn.Server):
    """A server that says when it is ready."""

    def __init__(self, config: uvicorn.Config, told: Callable[[], None]) -> None:
        super().__init__(config)
        self._told = told

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn does."""
        await super().startup(sockets)
        if self.started:
            self._told()


def _nothing() -> None:
    pass


def _is_of_this_server(record: logging.LogRecord) -> bool:
    """Not what strangers send that is no HTTP: anybody could fill the log with it."""
    return not record.getMessage().startswith("Invalid HTTP request")


def _server(settings: ServerSettings, told: Callable[[], None]) -> _Server:
    logging.getLogger("uvicorn.error").addFilter(_is_of_this_server)
    config = uvicorn.Config(
        make_app(settings),
        http=PacedConnection,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        timeout_graceful_shutdown=_STOP_SECONDS,
        timeout_keep_alive=65,
        limit_concurrency=2_000,
        ws="none",
    )
    return _Server(config, told)


def _serve_here(
    settings: ServerSettings,
    listening: socket.socket,
    told: Callable[[], None],
    stopped: threading.Event | None,
) -> None:
    server = _server(settings, told)
    if stopped is not None:
        threading.Thread(target=_stop_when, args=(server, stopped), daemon=True).start()
    server.run(sockets=[listening])


def _stop_when(server: uvicorn.Server, stopped: threading.Event) -> None:
    stopped.wait()
    server.should_exit = True


def _serve_worker(settings: ServerSettings, listening: socket.socket) -> None:
    """One of several processes on one socket."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    _server(settings, _nothing).run(sockets=[listening])


def _serve_with(
    settings: ServerSettings,
    listening: socket.socket,
    workers: int,
    told: Callable[[], None],
    stopped: threading.Event,
) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    servers = Servers(_serve_worker, (settings, listening), count=workers)
    try:
        told()
        while not stopped.wait(_LOOK_SECONDS):
            servers.replace_dead()
    finally:
        servers.stop()


@contextlib.contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens; StorageError where the address is taken or none of ours."""
    try:
        family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise StorageError(
            f"cannot listen on {host}: {error.strerror or error}", "name another --host"
        ) from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(1024)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        hint = "another server may be there already: `raddle serve --port` takes another one"
        raise StorageError(f"cannot listen on {host}:{port}: {error.strerror}", hint) from error
    with listening:
        yield listening


def _address(listening: socket.socket) -> str:
    host, port, *_ = listening.getsockname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
