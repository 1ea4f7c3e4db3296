"""Bytes between this process's streams and a socket: what `raddle mcp-serve` is, whoever serves at the other end.

Owns how such a process ends: with its client, with its server, or by a signal. Knows no protocol and imports none, so
that an agent's start waits for nothing.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from enum import Enum, auto

_PIECE_BYTES = 1 << 16
_LAST_WORDS_SECONDS = 2.0
"""So long the server may go on to answer once the client is gone, or a signal came."""
_ANSWERS_SECONDS = 35.0
"""And so long where the client has only said its last, and listens."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Ending(Enum):
    """What ended it."""

    CLIENT = auto()
    SIGNAL = auto()
    SERVER = auto()
    """Nobody asked it to."""


def relay(connection: socket.socket, incoming: int, outgoing: int) -> Ending:
    """Carry what comes from the stream `incoming` to the socket, and what comes from there to `outgoing`, until either
    side ends or a signal says so. For the main thread. Each way waits where its reader does.

    The socket is closed for reading when this comes back: whoever serves at its other end hears that it is over.
    """
    done, tell = os.pipe()
    ended: list[Ending] = []

    def over(ending: Ending) -> None:
        ended.append(ending)
        with contextlib.suppress(OSError):
            os.write(tell, b"x")

    def carry_in() -> None:
        is_read = _copy(lambda: os.read(incoming, _PIECE_BYTES), connection.sendall)
        over(Ending.CLIENT if is_read else Ending.SERVER)

    def carry_out() -> None:
        is_read = _copy(lambda: connection.recv(_PIECE_BYTES), lambda piece: _write_all(outgoing, piece))
        over(Ending.SERVER if is_read else Ending.CLIENT)

    with _signals_to(tell):
        out = threading.Thread(target=carry_out, name="relay-out", daemon=True)
        out.start()
        threading.Thread(target=carry_in, name="relay-in", daemon=True).start()
        select.select([done], [], [])
        ending = ended[0] if ended else Ending.SIGNAL
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        if ending is Ending.CLIENT:
            _wait_for_answers(done, outgoing)
        out.join(_LAST_WORDS_SECONDS)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
    return ending


def _wait_for_answers(done: int, outgoing: int) -> None:
    """Until the server has said all, a signal comes, or nobody listens any more, at most so long."""
    if len(os.read(done, 16)) > 1:  # besides the client's end
        return
    waited = select.poll()
    waited.register(done, select.POLLIN)
    waited.register(outgoing, 0)  # an end that nobody reads tells so unasked
    waited.poll(_ANSWERS_SECONDS * 1000)


def _copy(read: Callable[[], bytes], write: Callable[[bytes], object]) -> bool:
    """Until there is no more (True), or nobody who takes it."""
    while True:
        try:
            piece = read()
        except OSError:
            return True
        if not piece:
            return True
        try:
            write(piece)
        except OSError:
            return False


def _write_all(number: int, piece: bytes) -> None:
    left = memoryview(piece)
    while left:
        try:
            left = left[os.write(number, left) :]
        except BlockingIOError:  # somebody who shares the stream made it so
            select.select([], [number], [])


@contextlib.contextmanager
def _signals_to(tell: int) -> Iterator[None]:
    """A signal writes to that pipe instead of ending the process; one that is ignored (`nohup`) stays so. They stay
    caught once the block is over: what follows is short, and has to come to its end."""
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.set_wakeup_fd(-1)
