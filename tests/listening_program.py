"""A program of the tests as a process of its own: it listens where another process reaches it, and a test does not."""

from __future__ import annotations

import os
import socket
import sys
import threading
from typing import Any, Self

from tests.warm_program import WarmProcess

_ENDS_WITHIN_SECONDS = 30


class ListeningProgram:
    """`python -m MODULE …`: prints where it listens (`address`), and ends when its stdin does.

    It can be started again, with the same arguments. As a context manager it is stopped at the end.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self._module, self._arguments = module, arguments
        self.start()

    def start(self) -> None:
        """Come back when it listens."""
        stdin, self._stdin = os.pipe()
        told, stdout = os.pipe()
        try:
            self._process = WarmProcess(self._module, self._arguments, (stdin, stdout, 2), env=os.environ)
        finally:
            os.close(stdin)
            os.close(stdout)
        with os.fdopen(told, encoding="utf-8") as lines:
            self.address = lines.readline().strip()
        if not self.address:
            self.kill()
            raise AssertionError(f"{self._module} did not start")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Tell it to end, and wait until it has."""
        self._close_stdin()
        try:
            self._process.wait(_ENDS_WITHIN_SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """SIGKILL, where it has not ended."""
        self._process.kill()
        self._process.wait(_ENDS_WITHIN_SECONDS)
        self._close_stdin()

    def _close_stdin(self) -> None:
        if self._stdin >= 0:
            os.close(self._stdin)
        self._stdin = -1


def serve_until_stdin_ends(server: Any, door: socket.socket, address: str) -> None:
    """In such a program: tell the address, and be this uvicorn server at that socket."""

    def end() -> None:
        while os.read(0, 1):
            continue
        server.should_exit = True

    threading.Thread(target=end, daemon=True).start()
    sys.stdout.write(f"{address}\n")
    sys.stdout.flush()
    server.run(sockets=[door])
