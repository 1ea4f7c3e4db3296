"""Turns that were sent and are not waited for, settled as time goes by: answers land with nobody looking on."""

from __future__ import annotations

import threading
from collections.abc import Callable

from raddle.actions.answering.reconciling import KEPT
from raddle.apps.daemon.board import Board
from raddle.config import Config
from raddle.wiring import Stores
from raddle.wiring.answering import settle

EVERY_SECONDS = 10.0


class JobLoop:
    """Looks at the launches of one data folder until `is_over`. `landed`: told when a thread has changed."""

    def __init__(
        self,
        config: Config,
        board: Board,
        *,
        is_over: Callable[[], bool],
        stop: threading.Event,
        landed: Callable[[], None],
    ) -> None:
        self._config = config
        self._board = board
        self._is_over = is_over
        self._stop = stop
        self._landed = landed

    def run(self) -> None:
        """Look again and again; what goes wrong is told, and tried again."""
        while not self._is_over():
            try:
                self.look()
                self._board.works("jobs")
            except Exception as error:  # noqa: BLE001  imports and syncs go on
                self._board.failed("jobs", error, again_in=EVERY_SECONDS)
            left = EVERY_SECONDS
            while left > 0 and not self._is_over():
                self._stop.wait(1.0)
                left -= 1.0

    def look(self) -> None:
        """Once. A folder without launches costs one look at it."""
        with Stores(self._config) as stores:
            for settled in settle(stores):
                if settled.what != KEPT:
                    self._board.note("job", thread=settled.thread_id, job=settled.job_id, what=settled.what)
                    self._landed()
