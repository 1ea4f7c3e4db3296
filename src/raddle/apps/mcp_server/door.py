"""Agents served by a process that stays: a session for each, and one thing that keeps their memories in step.

What the command line hands to the daemon. The SDK is 45 MB, which a daemon of a machine without agents is spared: it is
imported when the first agent comes, and from then on with the daemon, so that no agent waits for it again.
"""

from __future__ import annotations

import contextlib
import socket
import threading

from raddle.apps.mcp_server.freshness import Freshness
from raddle.apps.mcp_server.relay import Ending, relay
from raddle.apps.mcp_server.session import Access, Session
from raddle.config import Config
from raddle.wiring.mcp_door import Caller, agents_came, note_agents_came


class Door:
    """Serves callers side by side, each in the thread that calls `serve`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._config: Config | None = None
        self._freshness = Freshness()
        self._served: dict[Session, Caller] = {}
        self.is_ready = False

    def renew(self, config: Config) -> None:
        """The settings are these from now on, for those who are served already too."""
        with self._lock:
            if config == self._config:
                return
            self._config = config
            if not self.is_ready and agents_came(config.paths):
                threading.Thread(target=self._get_ready, name="agents-soon", daemon=True).start()
            last, self._freshness = self._freshness, Freshness()
            for session, caller in self._served.items():
                session.config, session.freshness = caller.settings(config), self._freshness
        threading.Thread(target=last.close, name="memory-sync-end", daemon=True).start()

    def _get_ready(self) -> None:
        with contextlib.suppress(ImportError):
            from raddle.apps.mcp_server import connection  # noqa: F401, PLC0415

            self.is_ready = True

    def serve(self, connection: socket.socket, caller: Caller) -> None:
        """Be the server of this caller until it goes."""
        from raddle.apps.mcp_server.connection import serve_connection  # noqa: PLC0415

        with self._lock:
            config = self._config
            if config is None:
                return
            session = Session(
                caller.settings(config),
                access=Access(
                    all_repositories=caller.all_repositories, include_private=caller.include_private
                ),
                freshness=self._freshness,
            )
            self._served[session] = caller
        try:
            if not self.is_ready:
                self.is_ready = True
                note_agents_came(config.paths)
            session.warm_up()
            serve_connection(connection, session)
        finally:
            with self._lock:
                del self._served[session]

    def close(self, seconds: float) -> None:
        """Let what was written last go out, as far as that takes no longer than so long."""
        with self._lock:
            last, self._freshness = self._freshness, Freshness()
        last.close(seconds)


def serve_here(session: Session, incoming: int, outgoing: int) -> Ending:
    """Be the server of the one client at these streams, in this process, and come back when that is over and what was
    written last has gone out, as far as that takes seconds. For the main thread."""
    ours, theirs = socket.socketpair()
    failed: list[Exception] = []

    def work() -> None:
        with theirs:
            try:
                from raddle.apps.mcp_server.connection import serve_connection  # noqa: PLC0415

                session.warm_up()
                serve_connection(theirs, session)
            except Exception as error:  # noqa: BLE001  raised again where somebody says it
                failed.append(error)

    serving = threading.Thread(target=work, name="mcp", daemon=True)
    serving.start()
    try:
        with ours:
            ending = relay(ours, incoming, outgoing)
    finally:
        session.freshness.close()
    if failed:
        raise failed[0]
    return ending
