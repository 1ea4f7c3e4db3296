"""The one door to other processes of ours: a few workers that turn tasks into streams of answers.

Each worker is handed one task (bytes) at a time and sends any number of answers (bytes) for it. The parent
reads them as they come, so that it can write while they work. A worker that dies takes its task with it and
nothing else: the parent says so; what it had sent stays valid.
"""

from __future__ import annotations

import gc
import multiprocessing
import multiprocessing.connection
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from raddle.model.errors import StorageError

Work = Callable[[bytes, Callable[[bytes], None]], None]
"""Does one task and hands each answer to the callable; a top-level function or a `functools.partial` of one (it
is pickled on macOS)."""

_DONE = b""


def answers(work: Work, tasks: Iterable[bytes], *, processes: int) -> Iterator[bytes]:
    """The answers of all tasks, in the order they arrive; an answer is never empty. Tasks are given out in order.

    With no `processes` the work is done in this one, task by task.
    """
    if not processes:
        yield from _here(work, tasks)
        return
    forks = sys.platform == "linux"
    context = multiprocessing.get_context("fork") if forks else multiprocessing.get_context("spawn")
    waiting = iter(tasks)
    workers: dict[Connection, BaseProcess] = {}
    try:
        for _ in range(processes):
            task = next(waiting, None)
            if task is None:
                break
            here, there = context.Pipe()
            process = context.Process(
                target=_serve, args=(there, work, [*workers, here] if forks else []), daemon=True
            )
            process.start()
            there.close()
            here.send_bytes(task)
            workers[here] = process
        yield from _collect(workers, waiting)
    finally:
        for connection, worker in workers.items():
            connection.close()
            worker.terminate()
            worker.join()


def _here(work: Work, tasks: Iterable[bytes]) -> Iterator[bytes]:
    for task in tasks:
        given: list[bytes] = []
        work(task, given.append)
        yield from given


def _collect(workers: dict[Connection, BaseProcess], waiting: Iterator[bytes]) -> Iterator[bytes]:
    busy = list(workers)
    while busy:
        for ready in multiprocessing.connection.wait(busy):
            assert isinstance(ready, Connection)
            try:
                answer = ready.recv_bytes()
            except (EOFError, OSError) as error:
                raise _died(workers[ready]) from error
            if answer != _DONE:
                yield answer
                continue
            task = next(waiting, None)
            if task is None:
                busy.remove(ready)
            else:
                ready.send_bytes(task)


def _died(process: BaseProcess) -> StorageError:
    process.join(1)
    return StorageError(
        f"a worker process ended before its work was done (exit code {process.exitcode})",
        "run it again: what was read stays, the rest is read then",
    )


def _serve(connection: Connection, work: Work, inherited: list[Connection]) -> None:
    """A worker's life. It holds no reference cycles that matter, so the collector would only cost time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle: it closes the pipe
    for other in inherited:
        other.close()
    gc.disable()
    while True:
        try:
            task = connection.recv_bytes()
        except EOFError:
            return
        work(task, connection.send_bytes)
        connection.send_bytes(_DONE)
        gc.collect(0)
