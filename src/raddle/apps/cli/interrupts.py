"""How a long command is stopped: Ctrl-C, SIGTERM and SIGHUP end it as an error would, so that it tidies up.

Owns the exit codes of that (128 and the number of the signal). Without it SIGTERM would leave what is half-made.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from types import FrameType

import click

from raddle.apps.cli import diagnostics

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_IMPATIENT_AFTER_SECONDS = 2.0
"""A signal that comes so much later than the first ends the process at once; a sooner one is the same key twice."""


class _Stopped(BaseException):
    """The first signal. No KeyboardInterrupt, which says nothing of which it was."""


@contextlib.contextmanager
def stopped_in_order(told: str) -> Iterator[None]:
    """Say `told` where the block is stopped by a signal, once it has tidied up, and leave with its exit code.

    A signal that is ignored (`nohup`) stays so. For the main thread.
    """
    heard: list[tuple[int, float]] = []

    def stop(number: int, _: FrameType | None) -> None:
        if heard:
            if time.monotonic() - heard[0][1] > _IMPATIENT_AFTER_SECONDS:
                signal.signal(number, signal.SIG_DFL)
                signal.raise_signal(number)
            return
        heard.append((number, time.monotonic()))
        raise _Stopped

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    except BaseException:
        if not heard:
            raise
        # Whatever came of it in the end: it was stopped, and what is stored is whole.
        diagnostics.say(told)
        raise click.exceptions.Exit(128 + heard[0][0]) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
