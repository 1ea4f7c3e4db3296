"""What the daemon tells of itself: the state that `raddle daemon status` reads, and the log.

Owns when the state is written: often enough to be true, seldom enough to cost nothing while an agent is busy. Into the
log go events, counts, ids and codes; no word of a thread, no title, no path of a session, no token.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from raddle.model.clock import Clock
from raddle.model.errors import RaddleError
from raddle.wiring.daemon_state import DaemonState, DaemonTrouble, Part

_LEAST_MICROSECONDS = 1_000_000


class Log(Protocol):
    """Takes events."""

    def write(self, event: str, **fields: Any) -> None:
        """One line; never fails."""


class Board:
    """The state of one daemon, for all its threads. `save` writes it and answers whether it could."""

    def __init__(
        self, state: DaemonState, *, save: Callable[[DaemonState], bool], log: Log, clock: Clock
    ) -> None:
        self._state = state
        self._save = save
        self._log = log
        self._clock = clock
        self._lock = threading.Condition(threading.RLock())
        self._saved_at = 0
        self._is_saved = False
        self._last_told: dict[Part, tuple[str, str]] = {}

    @property
    def state(self) -> DaemonState:
        """As it is now."""
        return self._state

    def note(self, event: str, **fields: Any) -> None:
        """A line of the log."""
        self._log.write(event, **fields)

    def change(self, **fields: Any) -> None:
        """Give the state other values. They are written at once, or a second later where that was just done."""
        with self._lock:
            changed = msgspec.structs.replace(self._state, **fields)
            if changed == self._state:
                return
            self._state, self._is_saved = changed, False
            if abs(self._clock() - self._saved_at) >= _LEAST_MICROSECONDS:
                self.flush()
            else:
                self._lock.notify_all()

    def flush(self) -> None:
        """Write what was not written yet."""
        with self._lock:
            if not self._is_saved:
                self._saved_at = self._clock()
                self._is_saved = self._save(self._state)

    def keep_saved(self) -> None:
        """Write what `change` left for later, for ever. In a thread of control that nothing else makes wait."""
        while True:
            with self._lock:
                self._lock.wait_for(lambda: not self._is_saved)
                self._lock.wait(_LEAST_MICROSECONDS / 1e6)
                self.flush()

    def failed(self, part: Part, error: Exception, *, again_in: float | None = None) -> None:
        """A part of the daemon could not do its work. The log has it once, however often it is tried."""
        if isinstance(error, RaddleError):
            code, message, hint = error.code, error.message, error.hint
        else:
            # Nothing but its kind and its place: what a bug says may quote a conversation.
            code, message, hint = "bug", f"raddle made a mistake ({type(error).__name__})", "please report it"
        trouble = DaemonTrouble(part=part, code=code, message=message, hint=hint, at=self._clock())
        with self._lock:
            is_news = self._last_told.get(part) != (code, message)
            self._last_told[part] = (code, message)
            self.change(last_error=trouble)
        if is_news:
            fields: dict[str, Any] = {} if again_in is None else {"again_in": round(again_in, 1)}
            place = None if isinstance(error, RaddleError) else _place(error)
            self._log.write(
                "error", part=part, code=code, **fields, **({} if place is None else {"place": place})
            )

    def works(self, part: Part) -> None:
        """That part did its work."""
        with self._lock:
            if self._last_told.pop(part, None) is not None:
                self._log.write("works_again", part=part)
            error = self._state.last_error
            if error is not None and error.part == part and not error.is_over:
                self.change(last_error=msgspec.structs.replace(error, is_over=True))


def _place(error: Exception) -> str:
    """The innermost line of ours: `wiring/importing.py:120`."""
    place, frame = "", error.__traceback__
    while frame is not None:
        file = frame.tb_frame.f_code.co_filename
        _, found, below = file.rpartition("/raddle/")
        if found:
            place = f"{below}:{frame.tb_lineno}"
        frame = frame.tb_next
    return place
