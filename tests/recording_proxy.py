"""A proxy that keeps every byte it passes on: a program of its own, since a sealed test speaks no TCP.

`python -m tests.recording_proxy ADDRESS FILE` prints its own address, and ends when its stdin does.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import zstandard

from tests.listening_program import ListeningProgram

_MAGIC = b"\x28\xb5\x2f\xfd"


@contextlib.contextmanager
def recorded(address: str, file: Path) -> Iterator[str]:
    """The address of a proxy before the server at `address`; what it passed on is in `file` when the block ends."""
    with ListeningProgram("tests.recording_proxy", address, str(file)) as program:
        yield program.address


def texts_of(file: Path) -> bytes:
    """What was said, as it came over the wire and once more with every zstd frame in it expanded."""
    data = file.read_bytes()
    found = [data]
    at = data.find(_MAGIC)
    while at >= 0:
        with contextlib.suppress(zstandard.ZstdError):
            found.append(zstandard.ZstdDecompressor().decompressobj().decompress(data[at:]))
        at = data.find(_MAGIC, at + 1)
    return b"\n".join(found)


def main(address: str, file: str) -> None:
    """Pass on until stdin ends."""
    there = urlsplit(address)
    lock = threading.Lock()
    with socket.socket() as door, Path(file).open("ab", buffering=0) as kept:
        door.bind(("127.0.0.1", 0))
        door.listen()
        sys.stdout.write(f"http://127.0.0.1:{door.getsockname()[1]}\n")
        sys.stdout.flush()

        def keep(data: bytes) -> None:
            with lock:
                kept.write(data)

        def serve() -> None:
            while True:
                ours, _ = door.accept()
                theirs = socket.create_connection((there.hostname or "", there.port or 80))
                for source, target in ((ours, theirs), (theirs, ours)):
                    threading.Thread(target=_pass_on, args=(source, target, keep), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        while os.read(0, 1):
            continue


def _pass_on(source: socket.socket, target: socket.socket, keep: Callable[[bytes], None]) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            keep(data)
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main(*sys.argv[1:])
