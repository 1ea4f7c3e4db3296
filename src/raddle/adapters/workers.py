"""The one door to other processes of ours: a few workers that turn tasks into streams of answers.

Each worker is handed one task (bytes) at a time and sends any number of answers (bytes) for it. The parent
reads them as they come, so that it can write while they work. A worker that dies takes its task with it and
nothing else: the parent says so; what it had sent stays valid. A parent that dies takes its workers with it.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, NoReturn

from raddle.model.errors import StorageError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

Work = Callable[[bytes, Callable[[bytes], None]], None]
"""Does one task and hands each answer to the callable; a top-level function or a `functools.partial` of one (it
is pickled on macOS)."""

_DONE = b""
_SIGNALS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_PATIENCE_SECONDS = 5.0
"""So long a worker may take to tidy up."""
_TASKS_AT_HAND = 2
"""How many tasks a worker is given ahead, so that it never waits for a parent that is writing."""
_ANSWERS_AT_HAND = 4
"""How many answers of a worker may wait for the parent before the worker does."""


_never_forks = threading.Event()


def never_fork() -> None:
    """Start workers anew instead, in this process from now on: for one whose other threads hold locks, which a fork
    would inherit and wait for for ever."""
    _never_forks.set()


def answers(work: Work, tasks: Iterable[bytes], *, processes: int) -> Generator[bytes, None, None]:
    """The answers of all tasks, in the order they arrive; an answer is never empty. Tasks are given out in order.

    With no `processes` the work is done in this one, task by task. StorageError where a worker ended before
    its work was done. Closing the generator ends the workers.
    """
    if not processes:
        yield from _here(work, tasks)
        return
    forks = sys.platform == "linux" and not _never_forks.is_set()
    import multiprocessing  # most imports find nothing new, and start nobody  # noqa: PLC0415

    context = multiprocessing.get_context("fork") if forks else multiprocessing.get_context("spawn")
    waiting = iter(tasks)
    workers: dict[Connection, BaseProcess] = {}
    given: dict[Connection, int] = {}
    try:
        for task in itertools.islice(waiting, processes):
            with _signals_kept_waiting():
                here, there = context.Pipe()
                process = context.Process(
                    target=_serve, args=(there, work, [*workers, here] if forks else []), daemon=True
                )
                process.start()
                there.close()
                workers[here] = process
            _hand_over(here, task, process)
            given[here] = 1
        for _ in range(1, _TASKS_AT_HAND):
            for connection, task in zip(workers, waiting, strict=False):
                _hand_over(connection, task, workers[connection])
                given[connection] += 1
        yield from _collect(workers, given, waiting)
    finally:
        _end(workers)


def _end(workers: dict[Connection, BaseProcess]) -> None:
    """End them, together. Told before the pipe is closed: else the signal would meet them while they tidy up."""
    for worker in workers.values():
        worker.terminate()
    for connection in workers:
        connection.close()
    for worker in workers.values():
        worker.join(_PATIENCE_SECONDS)
        if worker.exitcode is None:
            worker.kill()
            worker.join()


@contextlib.contextmanager
def _signals_kept_waiting() -> Iterator[None]:
    """Until a worker that is being started is known here, and has said what it does when it is told to end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _here(work: Work, tasks: Iterable[bytes]) -> Iterator[bytes]:
    for task in tasks:
        given: list[bytes] = []
        work(task, given.append)
        yield from given


def _collect(
    workers: dict[Connection, BaseProcess], given: dict[Connection, int], waiting: Iterator[bytes]
) -> Iterator[bytes]:
    """Answers as they come; `given` counts the tasks each worker has in hand."""
    from multiprocessing.connection import Connection, wait  # noqa: PLC0415

    while busy := [connection for connection, count in given.items() if count]:
        for ready in wait(busy):
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
                given[ready] -= 1
            else:
                _hand_over(ready, task, workers[ready])


def _hand_over(connection: Connection, task: bytes, process: BaseProcess) -> None:
    try:
        connection.send_bytes(task)
    except OSError as error:
        raise _died(process) from error


def _died(process: BaseProcess) -> StorageError:
    process.join(1)
    code = process.exitcode
    how = f"killed by signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    return StorageError(
        f"a worker process ended before its work was done ({how})",
        "run it again: what was finished stays, the rest is done then",
    )


def _serve(connection: Connection, work: Work, inherited: list[Connection]) -> None:
    """A worker's life. It holds no reference cycles that matter, so the collector would only cost time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what a terminal says is the parent's to handle:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # it ends its workers
    signal.signal(signal.SIGTERM, _leave)
    for other in inherited:
        other.close()
    if inherited:
        _let_go_of_all_but(connection.fileno())
    gc.disable()
    os.nice(5)
    outbox = _Outbox(connection)
    outbox.start()
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        while True:
            task = connection.recv_bytes()
            work(task, outbox.send)
            outbox.send(_DONE)
            gc.collect(0)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the parent is gone, or wants no more
    except _ToldToEnd:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)


class _ToldToEnd(BaseException):
    """Ends a worker's task as any error would, so that what it has half-made goes."""


def _leave(number: int, _: object) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # once is enough: it is tidying up
    raise _ToldToEnd


class _Outbox(threading.Thread):
    """Sends a worker's answers, so that it goes on while the parent is busy with those before.

    Without it both workers stand still whenever the parent writes, and one of two cores has nothing to do.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(daemon=True)
        self._connection = connection
        self._waiting: queue.Queue[bytes] = queue.Queue(_ANSWERS_AT_HAND)
        self._is_broken = False

    def send(self, answer: bytes) -> None:
        """Send it soon. BrokenPipeError where the parent wants no more."""
        while not self._is_broken:
            try:
                self._waiting.put(answer, timeout=1)
            except queue.Full:
                continue
            return
        raise BrokenPipeError

    def run(self) -> None:
        """Send what waits, until the parent is gone."""
        try:
            while True:
                self._connection.send_bytes(self._waiting.get())
        except OSError:
            self._is_broken = True


def _let_go_of_all_but(kept: int) -> None:
    """Close what a fork inherits of its parent's files: a lock would be held for as long as a worker lives."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in (0, 1, 2, kept):
            with contextlib.suppress(OSError):  # the listing's own, which is gone
                os.close(int(name))


class Servers:
    """Processes that all run `target(*arguments)` until they are told to end; one that dies is replaced.

    `target` is a top-level function; it and its arguments are pickled, an open socket too. It ends by itself at
    SIGTERM, and when its parent is gone.
    """

    def __init__(self, target: Callable[..., None], arguments: tuple[object, ...], *, count: int) -> None:
        import multiprocessing  # noqa: PLC0415

        self._context = multiprocessing.get_context("spawn")
        self._target = target
        self._arguments = arguments
        self._running = [self._start() for _ in range(count)]

    def _start(self) -> BaseProcess:
        process = self._context.Process(
            target=_serve_until_orphaned, args=(self._target, self._arguments, os.getpid()), daemon=True
        )
        process.start()
        return process

    def replace_dead(self) -> int:
        """Start another for each that has ended; how many had."""
        dead = [at for at, process in enumerate(self._running) if process.exitcode is not None]
        for at in dead:
            self._running[at].close()
            self._running[at] = self._start()
        return len(dead)

    def stop(self) -> None:
        """Tell all to end; kill what does not in time."""
        for process in self._running:
            if process.exitcode is None:
                process.terminate()
        for process in self._running:
            process.join(_PATIENCE_SECONDS)
            if process.exitcode is None:
                process.kill()
                process.join()


def _serve_until_orphaned(target: Callable[..., None], arguments: tuple[object, ...], parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what a terminal says is the parent's to handle
    threading.Thread(target=_end_without, args=(parent,), daemon=True).start()
    target(*arguments)


def _end_without(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
