"""The daemon's ear: keeps a connection on which the server tells of changes as they happen, and hands them on.

Nothing depends on it but how soon a change is here: whatever it misses, the next sync takes in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from raddle.apps.daemon.agenda import Backoff, Draw
from raddle.apps.daemon.board import Board
from raddle.model.errors import NetworkError, RaddleError
from raddle.model.protocol.hub import Changes
from raddle.wiring.daemon_sync import LiveFeed

_LASTED_SECONDS = 30.0
"""A connection that held so long, or that told anything, was a good one."""

OpenFeed = Callable[[str], AbstractContextManager[LiveFeed]]


class Listener:
    """Listens once a sync said from where on, and again whenever the connection ends. Close it from another thread."""

    def __init__(
        self,
        open_feed: OpenFeed,
        board: Board,
        *,
        seconds: Callable[[], float],
        draw: Draw,
    ) -> None:
        self._open_feed = open_feed
        self._board = board
        self._seconds = seconds
        self._backoff = Backoff(draw)
        self._told = threading.Condition()
        self._cursor: str | None = None
        self._feed: LiveFeed | None = None
        self._is_over = False
        self._is_hurried = False
        self._began = 0.0

    def in_step(self, cursor: str, is_back: bool) -> None:
        """A sync took in the feed as far as `cursor`; `is_back`: the one before had failed."""
        with self._told:
            self._cursor = cursor
            self._is_hurried = self._is_hurried or (is_back and self._feed is None)
            self._told.notify()
            is_good = self._feed is not None and self._seconds() - self._began >= _LASTED_SECONDS
        if is_good:
            self._board.works("events")

    def begin_anew(self) -> None:
        """The machine slept: the connection, if it still seems to be one, is none."""
        with self._told:
            self._is_hurried = True
            self._told.notify()
            feed = self._feed
        if feed is not None:
            feed.close()

    def close(self) -> None:
        """End it."""
        with self._told:
            self._is_over = True
            self._told.notify()
            feed = self._feed
        if feed is not None:
            feed.close()

    def run(self, heard: Callable[[Changes], object]) -> None:
        """Listen until it is closed; `heard` is handed each page."""
        while True:
            with self._told:
                self._told.wait_for(lambda: self._is_over or self._cursor is not None)
                if self._is_over:
                    return
                cursor, self._is_hurried = self._cursor or "", False
            wait = self._listen(cursor, heard)
            with self._told:
                self._told.wait_for(lambda: self._is_over or self._is_hurried, wait)

    def _listen(self, cursor: str, heard: Callable[[Changes], object]) -> float:
        """One connection, to its end; the seconds until the next."""
        self._began = self._seconds()
        error: Exception = NetworkError("the server ended the connection on which it tells of changes")
        try:
            self._hear(cursor, heard)
        except RaddleError as reason:
            error = reason
        except Exception as reason:  # noqa: BLE001  a bug of ours must not end what only a person would start again
            error = reason
        self._board.change(is_listening=False)
        if self._seconds() - self._began >= _LASTED_SECONDS:
            self._backoff.reset()
        wait = self._backoff.failed()
        if not self._is_over and self._backoff.is_persistent:
            self._board.failed("events", error, again_in=wait)
        return wait

    def _hear(self, cursor: str, heard: Callable[[Changes], object]) -> None:
        with self._open_feed(cursor) as feed:
            with self._told:
                if self._is_over:
                    return
                self._feed = feed
            try:
                self._board.change(is_listening=True)
                for page in feed:
                    self._backoff.reset()
                    self._board.works("events")
                    heard(page)
                    with self._told:
                        self._cursor = page.cursor
            finally:
                with self._told:
                    self._feed = None
                feed.close()
