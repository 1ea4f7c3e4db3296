"""A server that answers what a test says, byte for byte, on a Unix socket: what no honest server sends.

Each connection gets the next of its answers (the last one again and again), after its request was read; then it is
closed, or left open and silent.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from raddle.adapters.remote.http_link import HttpLink, Patience
from tests.builders_served import short_folder

IMPATIENT = Patience(connect_seconds=0.5, read_seconds=0.5)


class Says(NamedTuple):
    """What is sent, piece by piece. `then_hangs`: the connection stays open, and nothing comes."""

    pieces: Iterable[bytes]
    then_hangs: bool = False


def answer(body: bytes, status: str = "200 OK", kind: str = "application/json", **headers: str) -> Says:
    """A well-formed answer; `headers` by name with _ for -."""
    named = {"Content-Type": kind, "Content-Length": str(len(body))} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items() if value)
    return Says([f"HTTP/1.1 {status}\r\n{head}Connection: close\r\n\r\n".encode() + body])


class HostileServer:
    """Use `hostile`. `requests`: the heads (and what came with them) of all requests so far."""

    def __init__(self, socket_path: Path, answers: list[Says]) -> None:
        self.socket_path = socket_path
        self.requests: list[bytes] = []
        self.answers = answers
        self.is_over = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(socket_path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._run, name="hostile", daemon=True)
        self._thread.start()

    def link(self, token: str = "", *, most_bytes: int = 1 << 20, patience: Patience = IMPATIENT) -> HttpLink:
        """A way to it that waits for half a second at most."""
        return HttpLink(
            "http://localhost", token, patience=patience, most_bytes=most_bytes, socket_path=self.socket_path
        )

    def stop(self) -> None:
        """End every connection."""
        self.is_over.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _run(self) -> None:
        number = 0
        while not self.is_over.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                says = self.answers[min(number, len(self.answers) - 1)]
                number += 1
                self._serve(connection, says)

    def _serve(self, connection: socket.socket, says: Says) -> None:
        with contextlib.suppress(OSError):  # the client has heard enough
            connection.settimeout(10)
            self.requests.append(_request(connection))
            for piece in says.pieces:
                if self.is_over.is_set():
                    return
                connection.sendall(piece)
            if says.then_hangs:
                connection.settimeout(None)
                connection.recv(1)


def _request(connection: socket.socket) -> bytes:
    """A head, and as much of a body as it promises."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(1 << 16)
        if not piece:
            return data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (
            int(line.partition(b":")[2])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        ),
        0,
    )
    while len(body) < length:
        piece = connection.recv(1 << 16)
        if not piece:
            break
        body += piece
    return head + b"\r\n\r\n" + body


@contextlib.contextmanager
def hostile(*answers: Says) -> Iterator[HostileServer]:
    """A server that answers so."""
    with short_folder() as folder:
        server = HostileServer(folder / "s", list(answers))
        try:
            yield server
        finally:
            server.stop()
