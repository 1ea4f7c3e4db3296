"""A server in a thread of the test's own process, and links to it. It listens on a Unix socket: the seal has no other.

What is asked goes through uvicorn and the whole application, byte for byte as over a network.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from psycopg import Connection

from raddle.adapters.remote.http_link import HttpLink, Patience
from raddle.model.secret import Secret
from raddle.server.accounts.devices import mint
from raddle.server.app import ServerSettings, make_app
from raddle.server.http.pace import BODY_SECONDS, PacedConnection
from raddle.server.routes.mcp import OpenDoor
from tests.builders_server import a_person, new_id

ADDRESS = "http://localhost"
_PATIENCE_SECONDS = 30


def a_token(connection: Connection, name: str = "ada") -> str:
    """The token of a device of somebody new."""
    return mint(connection, a_person(connection, name).user, "laptop", ["threads"], new_id=new_id)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_ready.set()


class Served:
    """A server that can be stopped and started again; `socket_path` stays."""

    def __init__(
        self,
        conninfo: str,
        blobs: Path | str,
        socket_path: Path,
        *,
        body_seconds: float = BODY_SECONDS,
        mcp: OpenDoor | None = None,
    ) -> None:
        self.conninfo = conninfo
        self._body_seconds = body_seconds
        self._mcp = mcp
        self.socket_path = socket_path
        self._blobs = blobs

    def start(self) -> None:
        """Come back when it listens."""
        settings = ServerSettings(
            database_url=Secret(self.conninfo),
            blobs=self._blobs,
            body_seconds=self._body_seconds,
            mcp=self._mcp,
        )
        app: Any = make_app(settings)  # uvicorn has a type of its own for the same shape
        config = uvicorn.Config(
            app,
            uds=str(self.socket_path),
            http=PacedConnection,
            loop="asyncio",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._server.run, name="served", daemon=True)
        self._thread.start()
        assert self._server.is_ready.wait(_PATIENCE_SECONDS), "the server did not start"

    def stop(self) -> None:
        """Come back when it is gone."""
        self._server.should_exit = True
        self._thread.join(_PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the server does not stop"

    def link(self, token: str = "", *, patience: Patience | None = None) -> HttpLink:
        """A way to it, as a device has one."""
        return HttpLink(
            ADDRESS, token, patience=patience or Patience(5, _PATIENCE_SECONDS), socket_path=self.socket_path
        )


@contextlib.contextmanager
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for the name of a socket (104 bytes on a Mac)."""
    folder = Path(tempfile.mkdtemp(prefix="rdl-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def serving(
    conninfo: str, blobs: Path | str, *, body_seconds: float = BODY_SECONDS, mcp: OpenDoor | None = None
) -> Iterator[Served]:
    """A server over that database."""
    with short_folder() as folder:
        served = Served(conninfo, blobs, folder / "s", body_seconds=body_seconds, mcp=mcp)
        served.start()
        try:
            yield served
        finally:
            served.stop()
