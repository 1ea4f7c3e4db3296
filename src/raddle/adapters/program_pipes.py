"""What is said to a program and heard of it, over pipes that either side may leave unread, and the end of both.

Under `programs`, which starts every program: what it hears is bounded here, and what it stops is stopped with all its
children.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Generator
from typing import IO, NamedTuple

CHUNK_BYTES = 64 * 1024
_WIDE_BYTES = 1024 * 1024
_LOOK_AGAIN_SECONDS = 0.1
_GRACE_SECONDS = 1.0
"""From the request to stop, at which git removes its lock files, to the kill."""


class Heard(NamedTuple):
    """What a program that has ended said; `is_timed_out`, `is_cut`: it was stopped for it."""

    stdout: bytes
    stderr: bytes
    is_timed_out: bool
    is_cut: bool


class Conversation:
    """Feeds a program its input and takes its output, whichever it is ready for."""

    def __init__(self, process: subprocess.Popen[bytes], to_say: bytes, limit_bytes: int) -> None:
        self._process = process
        self._to_say = memoryview(to_say)
        self._left = limit_bytes
        self._heard: dict[IO[bytes] | None, bytearray] = {
            process.stdout: bytearray(),
            process.stderr: bytearray(),
        }
        self._selector = selectors.DefaultSelector()

    def complete(self, deadline: float) -> Heard:
        """Talk until the program has ended, its time is up, or it has said too much."""
        with self._selector:
            self._register()
            while self._selector.get_map() and self._left >= 0:
                left = deadline - time.monotonic()
                if left <= 0 or not self._take_turn(left):
                    break
        return self._end(deadline)

    def pieces(self, quiet_seconds: float) -> Generator[bytes, None, Heard]:
        """The same, giving its output away as it comes; its time is up when it says nothing for so long."""
        said, errors = self._heard[self._process.stdout], self._heard[self._process.stderr]
        deadline = time.monotonic() + quiet_seconds
        with self._selector:
            self._register()
            while self._selector.get_map() and self._left >= 0:
                left, left_before = deadline - time.monotonic(), self._left
                if left <= 0 or not self._take_turn(left):
                    break
                del errors[:-CHUNK_BYTES]
                if said:
                    yield bytes(said)
                    said.clear()
                if self._left != left_before:
                    deadline = time.monotonic() + quiet_seconds
        return self._end(deadline)

    def _end(self, deadline: float) -> Heard:
        is_cut = self._left < 0
        is_timed_out = not is_cut and not self._ends_by(deadline)
        if is_cut or is_timed_out:
            stop(self._process)
        self._process.wait()
        return Heard(
            stdout=bytes(self._heard[self._process.stdout]),
            stderr=bytes(self._heard[self._process.stderr]),
            is_timed_out=is_timed_out,
            is_cut=is_cut,
        )

    def _register(self) -> None:
        for pipe in self._heard:
            assert pipe is not None  # _start asked for it
            self._selector.register(pipe, selectors.EVENT_READ)
        assert self._process.stdout is not None
        _widen(self._process.stdout)
        stdin = self._process.stdin
        assert stdin is not None  # _start asked for it
        if self._to_say:
            os.set_blocking(stdin.fileno(), False)
            if len(self._to_say) > CHUNK_BYTES:
                _widen(stdin)
            self._selector.register(stdin, selectors.EVENT_WRITE)
        else:
            stdin.close()

    def _take_turn(self, seconds: float) -> bool:
        """Hear and say what can be, waiting at most so long; False where there is nothing more to come."""
        ready = self._selector.select(min(seconds, _LOOK_AGAIN_SECONDS))
        if not ready and self._process.poll() is not None:
            # It has ended, and something it left running (a credential cache) holds the pipe open.
            return False
        for key, _ in ready:
            if key.fileobj is self._process.stdin:
                self._say(self._process.stdin)
            else:
                self._hear(key.fd, key.fileobj)
        return True

    def _say(self, stdin: IO[bytes]) -> None:
        try:
            written = os.write(stdin.fileno(), self._to_say[:_WIDE_BYTES])
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not want to hear the rest, which its exit code explains
            written = len(self._to_say)
        self._to_say = self._to_say[written:]
        if not self._to_say:
            self._selector.unregister(stdin)
            stdin.close()

    def _hear(self, fd: int, pipe: object) -> None:
        chunk = os.read(fd, _WIDE_BYTES)
        if not chunk:
            self._selector.unregister(fd)
            return
        self._heard[pipe] += chunk[: self._left]  # type: ignore[index]
        self._left -= len(chunk)

    def _ends_by(self, deadline: float) -> bool:
        """Did the program end in time? It may have closed its output and gone on."""
        left = max(deadline - time.monotonic(), 0)
        if self._process.poll() is None and hasattr(os, "pidfd_open"):
            # Told at the moment it ends: `wait` looks again every millisecond, and some programs take no longer.
            with contextlib.suppress(OSError):
                _wait_for(os.pidfd_open(self._process.pid), left)
        try:
            self._process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            return False
        return True


def _wait_for(pidfd: int, seconds: float) -> None:
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(pidfd, selectors.EVENT_READ)
            selector.select(seconds)
    finally:
        os.close(pidfd)


def _widen(pipe: IO[bytes]) -> None:
    """Let a pipe hold more than 64 KiB, or both sides wait for each other ten times for a large answer."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):  # this user has many wide ones already
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _WIDE_BYTES)


def close_pipes(process: subprocess.Popen[bytes]) -> None:
    """Close our ends of its pipes."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the program and whatever it started: asked first, then killed."""
    _signal_all(process, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_SECONDS)
    _signal_all(process, signal.SIGKILL)
    process.wait()


def _signal_all(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # all of them have ended, or are about to
        os.killpg(process.pid, number)
