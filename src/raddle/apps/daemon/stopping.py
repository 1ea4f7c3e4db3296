"""How the daemon is told to end: SIGTERM, SIGINT or SIGHUP, at any moment, and it is over within two seconds.

What is stored is whole at any instant, so that whoever does not tidy up in time is left behind. A second way to stop
would wait for a network, or for an import.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PATIENCE_SECONDS = 1.5
"""So long everything has to tidy up."""


class Told(BaseException):
    """The daemon is told to end: raised in the main thread, wherever that is."""


@contextlib.contextmanager
def until_told() -> Iterator[threading.Event]:
    """An event that is set once a signal comes; the block ends with it. For the main thread of a process of its own:
    where the block does not end in time, the process does.

    A signal that is ignored (`nohup`) stays so.
    """
    stop, ended = threading.Event(), threading.Event()
    told_here, told_there = os.pipe()
    # Python's own handler runs between two steps of the main thread, which may be in a long one: a thread of control
    # that hears of the signal by this pipe does not depend on it.
    os.set_blocking(told_there, False)
    watch = threading.Thread(target=_watch, args=(told_here, stop, ended), name="stop", daemon=True)
    former_fd = signal.set_wakeup_fd(told_there, warn_on_full_buffer=False)
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    is_told = False

    def tell(_number: int, _frame: FrameType | None) -> None:
        nonlocal is_told
        if not is_told:
            is_told = True
            raise Told

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, tell)
    # A worker process is told to end by the same signal, which is none of ours.
    os.register_at_fork(after_in_child=_hear_no_more)
    watch.start()
    try:
        yield stop
    except BaseException:
        # Whatever came of it: it was told to end, and what is stored is whole.
        if not is_told:
            raise
    finally:
        is_told = True
        ended.set()
        signal.set_wakeup_fd(former_fd)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(told_there)
        watch.join()
        os.close(told_here)


def _hear_no_more() -> None:
    with contextlib.suppress(ValueError):  # it is not the main thread that lives on
        signal.set_wakeup_fd(-1)


def _watch(told: int, stop: threading.Event, ended: threading.Event) -> None:
    while True:
        data = os.read(told, 64)
        if not data:
            return
        if any(number in _SIGNALS for number in data):
            break
    stop.set()
    if not ended.wait(PATIENCE_SECONDS):
        os._exit(0)
