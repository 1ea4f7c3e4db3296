"""Agents that come to the daemon: let in, counted, and shown out when it ends.

Whatever goes wrong with one of them ends that one's connection, and nothing else of the daemon.
"""

from __future__ import annotations

import contextlib
import functools
import select
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Protocol

from raddle.apps.daemon.board import Board
from raddle.config import Config
from raddle.model.errors import RaddleError
from raddle.wiring.mcp_door import Caller, Doorway, caller_at

_MOST_AT_ONCE = 100
_LOOK_SECONDS = 5.0
"""So often it is looked whether the socket is still there, and tried again where it cannot be."""
_FLUSH_SECONDS = 0.2
"""What was written last the daemon's own look at the memories sends out too."""


class AgentServer(Protocol):
    """Serves agents; for any thread."""

    def renew(self, config: Config) -> None:
        """The settings are these from now on."""

    def serve(self, connection: socket.socket, caller: Caller) -> None:
        """Serve one until it goes."""

    def close(self, seconds: float) -> None:
        """Nobody is served any more; what is left to do takes no longer than that."""


class Doorkeeper:
    """The door of one daemon. `open_doorway` listens, or raises a StorageError."""

    def __init__(self, open_doorway: Callable[[], Doorway], board: Board, service: AgentServer) -> None:
        self._open_doorway = open_doorway
        self._board = board
        self._service = service
        self._lock = threading.Lock()
        self._config: Config | None = None
        self._inside: set[socket.socket] = set()
        self._is_over = False

    @contextlib.contextmanager
    def at_the_door(self) -> Iterator[None]:
        """Agents are let in during the block. Nobody is inside once it is over, and no socket is left."""
        self._is_over = False
        tell, told = socket.socketpair()
        keeping = threading.Thread(target=self._keep, args=(told,), name="agents", daemon=True)
        keeping.start()
        try:
            yield
        finally:
            self._is_over = True
            tell.close()
            keeping.join()
            with self._lock:
                inside = list(self._inside)
            for connection in inside:
                _hang_up(connection)
            self._service.close(_FLUSH_SECONDS)

    @contextlib.contextmanager
    def serving(self, config: Config) -> Iterator[None]:
        """During the block with these settings; nobody is let in without any."""
        self._service.renew(config)
        self._config = config
        try:
            yield
        finally:
            self._config = None

    def _keep(self, told: socket.socket) -> None:
        doorway: Doorway | None = None
        try:
            while not self._is_over:
                if doorway is None or not doorway.is_there():
                    doorway = self._opened(doorway)
                watched = [told] if doorway is None else [told, doorway.listening]
                ready = select.select(watched, [], [], _LOOK_SECONDS)[0]
                if doorway is not None and doorway.listening in ready and not self._is_over:
                    self._let_in(doorway.listening, told)
        finally:
            told.close()
            if doorway is not None:
                with contextlib.suppress(OSError):
                    doorway.close()

    def _opened(self, last: Doorway | None) -> Doorway | None:
        if last is not None:
            last.listening.close()
        try:
            found = self._open_doorway()
        except RaddleError as error:
            self._board.failed("agents", error, again_in=_LOOK_SECONDS)
            return None
        self._board.works("agents")
        return found

    def _let_in(self, listening: socket.socket, told: socket.socket) -> None:
        try:
            connection, _ = listening.accept()
        except OSError:  # it went again; or no more can be open, until somebody goes
            select.select([told], [], [], 0.1)
            return
        with self._lock:
            is_full = len(self._inside) >= _MOST_AT_ONCE
            if not is_full:
                self._inside.add(connection)
        if is_full:
            connection.close()
            return
        work = functools.partial(self._serve, connection)
        threading.Thread(target=work, name="agent", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        is_counted = False
        try:
            caller = caller_at(connection, None if self._is_over else self._config)
            if caller is not None:
                is_counted = True
                self._count(1)
                self._service.serve(connection, caller)
        except Exception as error:  # noqa: BLE001  whatever it is, it is this one agent's
            self._board.failed("agents", error)
        finally:
            with self._lock:
                self._inside.discard(connection)
            connection.close()
            if is_counted:
                self._count(-1)

    def _count(self, more: int) -> None:
        with self._lock:
            self._board.change(agents=self._board.state.agents + more)


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
