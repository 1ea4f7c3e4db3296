"""What becomes of Ctrl-C, SIGTERM and SIGHUP while a session is recorded.

The one place in the library that sets signal handlers. Two would each put back what the other had set. A
signal never falls into the middle of a write: it waits for the end of it, then goes to whoever had been
listening before. Where nobody had (the process would die at once), the sessions first write where they are.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Protocol

_Heard = Callable[[int, FrameType | None], Any] | int

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_IMPATIENT_AFTER_SECONDS = 2.0
"""A second signal that comes so much later than one that waits is not made to wait: a write may hang."""


class Live(Protocol):
    """Something that is recorded now."""

    def stop(self, why: str) -> None:
        """Write where it stands, since the process ends; raise nothing."""


class Interruptions:
    """The sessions of this process, and the signals that would end it.

    Handlers are set while a session is there that was begun in the main thread, the only one that Python lets
    set them. They are called in that thread, so none of this needs a lock.
    """

    def __init__(self) -> None:
        self._live: list[Live] = []
        self._before: dict[int, _Heard] = {}
        self._is_set = False
        self._depth = 0
        self._deferred: list[tuple[int, float]] = []
        self._mask = _Mask()
        os.register_at_fork(
            before=self._before_fork, after_in_parent=self._mask.restore, after_in_child=self._in_child
        )

    def add(self, session: Live) -> None:
        """A session has begun."""
        self._live.append(session)
        self._set_or_put_back()

    def remove(self, session: Live) -> None:
        """It has ended; nothing happens where it was not there."""
        with contextlib.suppress(ValueError):
            self._live.remove(session)
        self._set_or_put_back()

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Let signals wait until the block, which is short, is over."""
        if not _is_main_thread():
            yield
            return
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            while self._deferred and not self._depth:
                number, _ = self._deferred.pop(0)
                self._pass_on(number, None)

    def _before_fork(self) -> None:
        # Python forgets a signal that a child hears before it is set up: blocked, it waits for the handler.
        if self._is_set:
            self._mask.block()

    def _in_child(self) -> None:
        """A fork inherits the sessions of its parent and owns none of them."""
        self._live.clear()
        self._deferred.clear()
        self._depth = 0
        self._set_or_put_back()
        self._mask.restore()

    def _set_or_put_back(self) -> None:
        if not _is_main_thread():
            return
        if self._live and not self._is_set:
            self._is_set = True
            for number in _SIGNALS:
                before = signal.getsignal(number)
                # What is ignored (`nohup`) stays so, and what C code has set cannot be called from here.
                if before not in (signal.SIG_IGN, None, self._hear):
                    self._before[number] = before
                    signal.signal(number, self._hear)
        elif not self._live and self._is_set:
            self._is_set = False
            for heard, former in self._before.items():
                if signal.getsignal(heard) == self._hear:  # else the program has set another meanwhile
                    signal.signal(heard, former)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self._depth:
            now = time.monotonic()
            is_impatient = bool(self._deferred) and now - self._deferred[0][1] > _IMPATIENT_AFTER_SECONDS
            if not is_impatient:
                self._deferred.append((number, now))
                return
            self._deferred.clear()
            self._pass_on(number, frame, tells=False)
            return
        self._pass_on(number, frame)

    def _pass_on(self, number: int, frame: FrameType | None, *, tells: bool = True) -> None:
        before = self._before.get(number, signal.SIG_DFL)
        if callable(before):
            before(number, frame)
            return
        if tells:
            for session in list(self._live):
                session.stop(signal.Signals(number).name)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)


class _Mask(threading.local):
    """The signals that this thread keeps out while it forks."""

    def __init__(self) -> None:
        self._former: set[signal.Signals | int] | None = None

    def block(self) -> None:
        self._former = set(signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS))

    def restore(self) -> None:
        if self._former is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._former)
            self._former = None


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


interruptions = Interruptions()
"""Of this process: a handler belongs to a process, not to a session."""
