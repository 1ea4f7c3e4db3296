"""Work of an `async with` that takes longer than a step: done in a worker thread, so that the loop goes on.

Owns what a cancellation means for such work: it is done all the same, for what it does is tell the truth.
"""

from __future__ import annotations

from collections.abc import Callable


async def aside(work: Callable[[], None], *, at_any_rate: bool = True) -> None:
    """Do `work` in a worker thread of asyncio; at once under another loop, which has threads of its own.

    `at_any_rate`: cancelled meanwhile, the work is done before the cancellation goes on; so it has to do nothing
    the second time it is called.
    """
    import asyncio  # noqa: PLC0415  a program without a loop does not pay for one

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        work()
        return
    try:
        await asyncio.to_thread(work)
    except asyncio.CancelledError:
        if at_any_rate:
            work()  # the worker thread may never have begun
        raise
