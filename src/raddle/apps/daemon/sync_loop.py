"""The daemon's syncs: one thread of control that waits for what makes one due, and does it.

Others tell it of changes from their own threads; what is to be done, and when, is decided here alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from raddle.apps.daemon.agenda import LONGEST_WAIT_SECONDS, Agenda, Draw, WakeWatch
from raddle.apps.daemon.board import Board
from raddle.model.clock import Clock
from raddle.model.errors import ConflictError, RaddleError, TooManyRequests, UserError
from raddle.model.protocol.hub import Changes
from raddle.wiring.daemon_sync import Interrupted, Look, Synced
from raddle.wiring.syncing import SyncIsRunning

LOOK_SECONDS = 5.0
"""At most so long it waits before it looks at the clock: the machine may have slept."""
_MOST_PAGES = 200
"""More of them are not looked at one by one."""


class Work(Protocol):
    """What it does: `wiring.daemon_sync.DaemonSync`."""

    def sync(self, is_over: Callable[[], bool]) -> Synced:
        """All that is due."""

    def look(self) -> Look:
        """What is pending, as far as this machine knows."""

    def is_news(self, page: Changes) -> bool:
        """Is there anything in it that did not come from here?"""


class SyncLoop:
    """The syncs of one data folder with one server.

    `seconds`: a clock that only goes forward; `clock`: the wall's. `in_step` is told the cursor after each sync,
    and whether the one before had failed; `woke`, that the machine slept.
    """

    def __init__(
        self,
        work: Work,
        board: Board,
        *,
        is_over: Callable[[], bool],
        seconds: Callable[[], float],
        clock: Clock,
        draw: Draw,
        in_step: Callable[[str, bool], object],
        woke: Callable[[], object],
    ) -> None:
        self._work = work
        self._board = board
        self._is_over = is_over
        self._seconds = seconds
        self._clock = clock
        self._in_step = in_step
        self._woke = woke
        self._agenda = Agenda(seconds(), draw)
        self._sleep = WakeWatch(seconds(), clock() / 1e6)
        self._waited = 0.0
        self._has_failed = False
        self._told = threading.Condition()
        self._is_changed = False
        self._pages: list[Changes] = []

    def changed_here(self) -> None:
        """A thread of this machine may have changed. From any thread of control."""
        with self._told:
            self._is_changed = True
            self._told.notify()

    def heard(self, page: Changes) -> None:
        """The server told of changes. From any thread of control."""
        with self._told:
            if len(self._pages) < _MOST_PAGES:
                self._pages.append(page)
            self._told.notify()

    def wake(self) -> None:
        """Look at once whether it is over. From any thread of control."""
        with self._told:
            self._told.notify()

    def run(self) -> None:
        """Sync until it is over."""
        while not self._is_over():
            seconds = self.step()
            with self._told:
                if not self._is_changed and not self._pages and not self._is_over():
                    self._told.wait(seconds)

    def step(self) -> float:
        """Do what is due; the seconds until the next look, where nobody tells of a change before."""
        now = self._seconds()
        if self._sleep.woke(now, self._clock() / 1e6, waited=self._waited):
            self._board.note("woke")
            self._agenda.woke(now)
            self._woke()
        try:
            self._take_in(now)
            if now >= self._agenda.due_at and self._is_needed(now):
                self._sync(now)
        except Interrupted:
            pass  # it is over
        except Exception as error:  # noqa: BLE001  a bug of ours must not end what only a person would start again
            self._failed(error)
        now = self._seconds()
        self._sleep.look(now, self._clock() / 1e6)
        self._waited = min(max(self._agenda.due_at - now, 0.0), LOOK_SECONDS)
        return self._waited

    def _take_in(self, now: float) -> None:
        with self._told:
            is_changed, pages = self._is_changed, self._pages
            self._is_changed, self._pages = False, []
        if is_changed:
            self._agenda.changed_here(now)
        if len(pages) >= _MOST_PAGES or any(self._work.is_news(page) for page in pages):
            self._agenda.changed_there(now)

    def _is_needed(self, now: float) -> bool:
        if not self._agenda.is_only_local(now):
            return True
        look = self._work.look()
        self._board.change(pending=look.pending)
        if not look.is_due:
            self._agenda.nothing_to_do(now, again_in=look.again_in)
        return look.is_due

    def _sync(self, now: float) -> None:
        self._agenda.began(now)
        done = self._work.sync(self._is_over)
        look = self._work.look()
        self._agenda.succeeded(
            self._seconds(), did_something=bool(done.pulled or done.pushed), again_in=look.again_in
        )
        if done.pulled or done.pushed or done.trouble:
            self._board.note("sync", pulled=done.pulled, pushed=done.pushed, trouble=done.trouble)
        self._board.works("sync")
        self._board.change(last_sync=self._clock(), pending=look.pending)
        self._in_step(look.cursor, self._has_failed)
        self._has_failed = False

    def _failed(self, error: Exception) -> None:
        """Not to be tried again too soon; a refusal that stays one, seldom."""
        at_least = 0.0
        if isinstance(error, TooManyRequests):
            at_least = error.retry_after
        elif isinstance(error, UserError):
            at_least = LONGEST_WAIT_SECONDS  # who signs in makes the daemon begin anew, at once
        elif isinstance(error, ConflictError) or not isinstance(error, RaddleError):
            at_least = LONGEST_WAIT_SECONDS / 5
        wait = self._agenda.failed(self._seconds(), at_least=at_least)
        if isinstance(error, SyncIsRunning):
            return  # it does what is to be done here
        self._has_failed = True
        self._board.failed("sync", error, again_in=wait)
