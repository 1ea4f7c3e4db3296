"""A server as a process of its own, on a port of this machine: a program of the test can reach it, the test cannot.

`python -m tests.served_program CONNINFO FOLDER [SOCKET]` prints the address, and ends when its stdin does.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_INTERVAL_SECONDS = 1


@contextlib.contextmanager
def served_at(conninfo: str, blobs: Path) -> Iterator[str]:
    """The address of a server over that database."""
    command = [sys.executable, "-m", "tests.served_program", conninfo, str(blobs)]
    root = Path(__file__).resolve().parent.parent
    # `-m` finds the tests from the root of the checkout, wherever the test stands.
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        address = process.stdout.readline().strip()
        assert address, "the server did not start"
        try:
            yield address
        finally:
            process.stdin.close()
            process.wait(30)


def main(conninfo: str, blobs: str, socket_path: str = "") -> None:
    """Serve until stdin ends; on a Unix socket where its path is given, so that a sealed test reaches it too."""
    import uvicorn

    from raddle.config import Secret
    from raddle.server.accounts import device_flow
    from raddle.server.app import ServerSettings, make_app

    device_flow.INTERVAL_SECONDS = _INTERVAL_SECONDS  # a test waits for it
    app: Any = make_app(ServerSettings(database_url=Secret(conninfo), blobs=Path(blobs)))
    config = uvicorn.Config(app, ws="none", log_config=None, access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    with socket.socket(socket.AF_UNIX if socket_path else socket.AF_INET) as door:
        door.bind(socket_path or ("127.0.0.1", 0))
        door.listen()
        threading.Thread(target=_end_with_stdin, args=(server,), daemon=True).start()
        sys.stdout.write(f"{socket_path or f'http://127.0.0.1:{door.getsockname()[1]}'}\n")
        sys.stdout.flush()
        server.run(sockets=[door])


def _end_with_stdin(server: Any) -> None:
    while os.read(0, 1):
        continue
    server.should_exit = True


if __name__ == "__main__":
    main(*sys.argv[1:])
