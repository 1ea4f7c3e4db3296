"""A server as a process of its own, on a port of this machine: a program of the test can reach it, the test cannot.

`python -m tests.served_program CONNINFO FOLDER [SOCKET]` prints the address, and ends when its stdin does.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.listening_program import ListeningProgram, serve_until_stdin_ends

NEEDED = (
    "raddle.server.app",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "psycopg.types.json",
)
"""What `main` comes to import: it may be there before."""
_INTERVAL_SECONDS = 1


@contextlib.contextmanager
def served_at(conninfo: str, blobs: Path) -> Iterator[str]:
    """The address of a server over that database."""
    with server_program(conninfo, blobs) as program:
        yield program.address


def server_program(conninfo: str, blobs: Path, *socket_path: str) -> ListeningProgram:
    """A server over that database, at a port or at a Unix socket, to be killed and started again."""
    return ListeningProgram("tests.served_program", conninfo, str(blobs), *socket_path)


def main(conninfo: str, blobs: str, socket_path: str = "") -> None:
    """Serve until stdin ends; on a Unix socket where its path is given, so that a sealed test reaches it too."""
    import uvicorn

    from raddle.model.secret import Secret
    from raddle.server.accounts import device_flow
    from raddle.server.app import ServerSettings, make_app

    device_flow.INTERVAL_SECONDS = _INTERVAL_SECONDS  # a test waits for it
    app: Any = make_app(ServerSettings(database_url=Secret(conninfo), blobs=Path(blobs)))
    config = uvicorn.Config(app, ws="none", log_config=None, access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    with socket.socket(socket.AF_UNIX if socket_path else socket.AF_INET) as door:
        if socket_path:
            Path(socket_path).unlink(missing_ok=True)  # of one that was killed
        door.bind(socket_path or ("127.0.0.1", 0))
        door.listen()
        serve_until_stdin_ends(server, door, socket_path or f"http://127.0.0.1:{door.getsockname()[1]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
