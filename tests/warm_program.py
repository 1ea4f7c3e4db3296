"""raddle, and a server of it, as processes of their own, forked from one that has imported them.

What such a process costs is its work and not its imports. Owns how it gets its own streams, folder and environment. A
worker has one to fork from (`python -m tests.warm_program FD`, which never sees a test's threads, seal or modules). How
raddle starts from nothing, and what it imports for which command, is the affair of those tests that start `python -m
raddle`.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

_ROOT = Path(__file__).resolve().parent.parent
_PACKAGES = ("raddle.apps.cli", "raddle.wiring", "raddle.adapters", "raddle.actions", "raddle.model")
_LENGTH = struct.Struct("!Q")
_NUMBER = struct.Struct("q")
"""Of a process, and how it ended: both may be there before the first one is read, and must not run into each other."""
"""Before a request, and with it the numbers of the streams."""
_one_at_a_time = threading.Lock()
_PATIENCE_SECONDS = 60
_STREAMS = ("stdin", "stdout", "stderr")


class WarmProcess:
    """`python -m MODULE ARGUMENTS` in the folder of the test: what `subprocess.Popen` is to a program from nothing.

    `streams`: the numbers of its three; who gives them closes them. `on_terminal`: they are one, which becomes its own.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        streams: tuple[int, int, int],
        *,
        env: Mapping[str, str],
        on_terminal: bool = False,
    ) -> None:
        self.args = [module, *arguments]
        self.returncode: int | None = None
        told = {"module": module, "arguments": arguments, "env": dict(env), "is_on_terminal": on_terminal}
        request = json.dumps({**told, "folder": str(Path.cwd())}).encode()
        self._ended, theirs = os.pipe()
        try:
            with _one_at_a_time:
                socket.send_fds(_warm(), [_LENGTH.pack(len(request))], [*streams, theirs])
                _warm().sendall(request)
        finally:
            os.close(theirs)
        (self.pid,) = _NUMBER.unpack(os.read(self._ended, _NUMBER.size))

    def poll(self) -> int | None:
        """Its exit code, where it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended; `subprocess.TimeoutExpired` where it does not within these seconds."""
        if self.returncode is None:
            if not select.select([self._ended], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            told = os.read(self._ended, _NUMBER.size)
            os.close(self._ended)
            self.returncode = _NUMBER.unpack(told)[0] if told else -signal.SIGKILL
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, where it has not ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, where it has not ended."""
        self.send_signal(signal.SIGKILL)


class Ran(NamedTuple):
    """How a call ended, as `subprocess.CompletedProcess` says it."""

    returncode: int
    stdout: bytes
    stderr: bytes


def run_warm(
    arguments: tuple[str, ...], *, stdin: bytes | None, env: Mapping[str, str], timeout: float
) -> Ran:
    """`raddle ARGUMENTS` with this environment, in the folder of the test. `stdin`: None for /dev/null.

    Raises `subprocess.TimeoutExpired` where it takes longer than `timeout` seconds; then it was killed.
    """
    with contextlib.ExitStack() as ours:
        with contextlib.ExitStack() as theirs:
            out, out_there = _pipe(ours, theirs)
            err, err_there = _pipe(ours, theirs)
            fed = os.open(os.devnull, os.O_RDONLY)
            feed = -1
            if stdin is not None:
                os.close(fed)
                fed, feed = os.pipe()
                os.set_blocking(feed, False)
            theirs.callback(os.close, fed)
            process = WarmProcess("raddle", arguments, (fed, out_there, err_there), env=env)
        try:
            told = _talked(feed, stdin or b"", (out, err), time.monotonic() + timeout)
            return Ran(process.wait(timeout), *told)
        finally:
            process.kill()
            process.wait()


def _pipe(ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[int, int]:
    read, write = os.pipe()
    ours.callback(os.close, read)
    theirs.callback(os.close, write)
    return read, write


def _talked(feed: int, stdin: bytes, outs: tuple[int, int], end: float) -> tuple[bytes, bytes]:
    """Write all of its stdin, and read both of its other streams to their ends, until that time."""
    told = dict.fromkeys(outs, b"")
    is_open = set(outs)
    feeds = [feed] if feed >= 0 else []
    try:
        while is_open or feeds:
            readable, writable, _ = select.select(is_open, feeds, [], max(end - time.monotonic(), 0))
            if not readable and not writable:
                raise subprocess.TimeoutExpired("raddle", 0)
            for number in readable:
                piece = os.read(number, 1 << 16)
                told[number] += piece
                is_open -= set() if piece else {number}
            if writable:
                stdin = _fed(feed, stdin)
                if not stdin:
                    os.close(feeds.pop())
    finally:
        for number in feeds:
            os.close(number)
    return told[outs[0]], told[outs[1]]


def _fed(feed: int, stdin: bytes) -> bytes:
    """What is left to be written; nothing where nobody reads."""
    try:
        return stdin[os.write(feed, stdin[: 1 << 16]) :] if stdin else b""
    except BrokenPipeError:
        return b""


@functools.cache
def _warm() -> socket.socket:
    """The way to this worker's process to fork from, which is started now and ends with the worker."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )

    def end() -> None:
        ours.close()
        process.wait(_PATIENCE_SECONDS)

    atexit.register(end)
    return ours


def main(number: int) -> str:
    """Fork for each request until nobody can send one. Comes back in each fork: the module that it has to be."""
    _import_commands()
    with socket.socket(fileno=number) as way:
        while True:
            length, numbers, _, _ = socket.recv_fds(way, _LENGTH.size, 4)
            if not length:
                sys.exit()
            (size,) = _LENGTH.unpack(length)
            request = json.loads(way.recv(size, socket.MSG_WAITALL))
            if request["module"] != "raddle":
                for name in getattr(importlib.import_module(request["module"]), "NEEDED", ()):
                    importlib.import_module(name)
            gc.freeze()
            if os.fork() == 0:
                break
            for each in numbers:
                os.close(each)
            _bury()
    _become(request, numbers)
    return str(request["module"])


def _bury() -> None:
    """Take leave of those processes between that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue


def _import_commands() -> None:
    """What commands import when they run."""
    for name in _PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(getattr(package, "__path__", []), f"{name}."):
            importlib.import_module(found.name)
    importlib.import_module("httpx")


def _become(request: dict[str, Any], numbers: list[int]) -> None:
    *streams, ended = numbers
    pid = os.fork()
    if pid:
        _report(pid, ended, streams)
    if request["is_on_terminal"]:
        os.setsid()
        fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
    for place, each in enumerate(streams):
        os.dup2(each, place)
    for each in numbers:
        os.close(each)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    for place, name in enumerate(_STREAMS):
        was = getattr(sys, name)
        mode, buffering = "w" if place else "r", 1 if name == "stderr" else -1
        stream = os.fdopen(place, mode, buffering, was.encoding, was.errors, closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv = [request["module"], *request["arguments"]]


def _report(pid: int, ended: int, others: list[int]) -> NoReturn:
    """Say which process it is, and how it ended."""
    for each in (*others, 0, 1, 2):
        os.close(each)
    os.write(ended, _NUMBER.pack(pid))
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(BrokenPipeError):  # nobody waits for that any more
        os.write(ended, _NUMBER.pack(os.waitstatus_to_exitcode(status)))
    os._exit(0)


def _be(module: str) -> NoReturn:
    code: Any = None
    try:
        if module == "raddle":
            from raddle.apps.cli.main import run

            run()
        importlib.import_module(module).main(*sys.argv[1:])
    except SystemExit as end:
        code = end.code
    # As the interpreter does at its end; to take down what was imported would take longer than most calls.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code or 0))


if __name__ == "__main__":
    _be(main(int(sys.argv[1])))
