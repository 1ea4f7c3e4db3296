"""The one door to other programs: no shell, a clean environment, an end in time, bounded output.

A second door would forget one of these, and a program that waits for a password, floods the memory or
sees our tokens would be nobody's fault. The environment is read here only to be handed on; what raddle
itself is set to is `raddle.config`'s.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import IO, TypedDict

from msgspec import Struct

from raddle.model.errors import InvalidInput, NotFound, StorageError

_SECRETS = frozenset({"RADDLE_TOKEN", "RADDLE_DATABASE_URL"})
"""Nobody else's."""
_KEPT_BACK = _SECRETS | {"LANGUAGE", "LC_ALL"}
"""The language of messages is ours to choose where we read them."""
_CHUNK_BYTES = 64 * 1024
_LOOK_AGAIN_SECONDS = 0.1
_GRACE_SECONDS = 1.0
"""From the request to stop, at which git removes its lock files, to the kill."""


class Completed(Struct, frozen=True, kw_only=True):
    """What a program said. `code` is its exit code; minus the signal's number where one ended it."""

    stdout: bytes
    stderr: bytes
    code: int
    is_timed_out: bool = False
    """It was stopped because its time was up; the output is what had come."""
    is_cut: bool = False
    """It was stopped because it said more than was allowed; the output is the beginning."""


class Account(Struct, frozen=True, kw_only=True):
    """Another user of this machine, under whom root may run a program."""

    name: str
    uid: int
    gid: int


def clean_environment() -> dict[str, str]:
    """This process's environment as other programs may see it: without our secrets, messages in English."""
    kept = {name: value for name, value in os.environ.items() if name not in _KEPT_BACK}
    return kept | {"LC_ALL": "C"}


def ordinary_environment() -> dict[str, str]:
    """The same for a program that speaks to the person: in the person's own language."""
    return {name: value for name, value in os.environ.items() if name not in _SECRETS}


def find_program(name: str, env: Mapping[str, str] | None = None) -> str | None:
    """The absolute path of the program `name` on the PATH of `env` (None: ours); None where there is none.

    Relative entries of PATH are passed over: what lies in somebody's workspace is not a program of ours.
    """
    if os.sep in name:
        candidates = [Path(name)]
    else:
        path = (os.environ if env is None else env).get("PATH", os.defpath)
        candidates = [Path(folder, name) for folder in path.split(os.pathsep)]
    return next((str(candidate) for candidate in candidates if _is_program(candidate)), None)


def _is_program(path: Path) -> bool:
    return path.is_absolute() and path.is_file() and os.access(path, os.X_OK)


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    input: bytes = b"",  # noqa: A002  # the word that subprocess uses for it
    timeout: float = 60.0,
    env: Mapping[str, str] | None = None,
    limit_bytes: int = 64 * 1024 * 1024,
    account: Account | None = None,
) -> Completed:
    """Run a program to its end, without a shell, and give back what it said.

    `argv[0]` is a name or an absolute path. `env` is its whole environment (None: `clean_environment()`).
    After `timeout` seconds, or past `limit_bytes` of output, it is stopped with everything it started;
    the answer says so. `account` is whom it runs as (None: us). NotFound where there is no such program or
    folder, StorageError where the system will not start it.
    """
    deadline = time.monotonic() + timeout
    process = _start(argv, cwd=cwd, env=env, account=account)
    try:
        return _Conversation(process, input, limit_bytes).complete(deadline)
    finally:
        # Also at Ctrl-C, which in a session of its own the program does not hear.
        if process.returncode is None:
            _stop(process)
        _close_pipes(process)


def stream(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    input: bytes = b"",  # noqa: A002
    quiet_seconds: float = 60.0,
    env: Mapping[str, str] | None = None,
    limit_bytes: int = 64 * 1024 * 1024,
) -> Generator[bytes, None, Completed]:
    """Run a program as `run` does, and give what it prints as it comes.

    Returned at its end: `stdout` empty, of `stderr` the last 64 KiB. It is stopped after `quiet_seconds` without a word
    of it; and when the generator is closed, with everything it started.
    """
    process = _start(argv, cwd=cwd, env=env, account=None)
    is_over = False
    try:
        done = yield from _Conversation(process, input, limit_bytes).pieces(quiet_seconds)
        is_over = True
        return done
    finally:
        if not is_over:
            _stop(process)
        _close_pipes(process)


def start_alone(
    argv: Sequence[str],
    *,
    input: bytes = b"",  # noqa: A002
    wait_seconds: float = 0.0,
    output: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> int:
    """Start another raddle that goes on when this one has ended, and hears no key or hang-up of our terminal; its
    process id. `input` (at most 64 KiB) is its stdin; what it says is added to `output`, 0600 (None: goes nowhere).
    Come back when it has ended, or `wait_seconds` are over.

    Its environment is ours, secrets included, and `variables` on top. StorageError where the system will not start it.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    try:
        said = os.open(output or os.devnull, flags, 0o600)
        try:
            process = subprocess.Popen(
                argv,
                cwd="/",
                env=None if variables is None else {**os.environ, **variables},
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        finally:
            os.close(said)
    except OSError as error:
        raise StorageError(f"cannot start {argv[0]}: {error.strerror}") from error
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(input[:_CHUNK_BYTES])
        process.stdin.close()
    try:
        process.wait(wait_seconds)
    except subprocess.TimeoutExpired:
        process.returncode = 0  # nobody waits for it any more, which is no mistake
    return process.pid


class Child:
    """A program that goes on beside us, in a session of its own: no key and no hang-up of our terminal reaches it.

    It is waited for from the start, so that it never stays a zombie, whoever forgets it.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._waiting = threading.Thread(target=process.wait, name=f"wait-{process.pid}", daemon=True)
        self._waiting.start()

    @property
    def pid(self) -> int:
        """Its process id, which is another's once it has ended."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Has it not ended?"""
        return self._waiting.is_alive()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal; none where it has ended."""
        if self.is_running:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def ends_within(self, seconds: float) -> bool:
        """Wait until it has ended, at most so long; has it?"""
        self._waiting.join(seconds)
        return not self.is_running


def start_child(
    argv: Sequence[str],
    *,
    output: Path | None = None,
    env: Mapping[str, str] | None = None,
    account: Account | None = None,
) -> Child:
    """Start a program that goes on beside us until it is told to end; what it prints is added to `output`, 0600.

    `argv[0]` is an absolute path. Without `output` it prints to nobody. `env` and `account` as for `run`.
    StorageError where the system will not start it.
    """
    environment = clean_environment() if env is None else dict(env)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    try:
        said = os.open(output or os.devnull, flags, 0o600)
        try:
            process = subprocess.Popen(
                argv,
                cwd="/",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
                **_identity(account),
            )
        finally:
            os.close(said)
    except OSError as error:
        raise StorageError(f"cannot start {argv[0]}: {error.strerror}") from error
    return Child(process)


class _Identity(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]
    umask: int


def _identity(account: Account | None) -> _Identity:
    """What makes a program run as `account`: without our groups, its files for itself alone."""
    if account is None:
        return {}
    return {"user": account.uid, "group": account.gid, "extra_groups": [], "umask": 0o077}


def _start(
    argv: Sequence[str], *, cwd: Path | None, env: Mapping[str, str] | None, account: Account | None
) -> subprocess.Popen[bytes]:
    environment = clean_environment() if env is None else dict(env)
    program = find_program(argv[0], environment)
    if program is None:
        raise NotFound("program", argv[0], "install it, or check that its folder is on PATH")
    if cwd is not None and not cwd.is_dir():
        raise NotFound("folder", str(cwd))
    try:
        return subprocess.Popen(
            [program, *argv[1:]],
            cwd=cwd,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            **_identity(account),
        )
    except OSError as error:
        raise StorageError(f"cannot start {program}: {error.strerror}") from error
    except ValueError as error:  # a NUL in an argument
        raise InvalidInput(f"cannot start {program}: {error}") from error


class _Conversation:
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

    def complete(self, deadline: float) -> Completed:
        """Talk until the program has ended, its time is up, or it has said too much."""
        with self._selector:
            self._register()
            while self._selector.get_map() and self._left >= 0:
                left = deadline - time.monotonic()
                if left <= 0 or not self._take_turn(left):
                    break
        return self._end(deadline)

    def pieces(self, quiet_seconds: float) -> Generator[bytes, None, Completed]:
        """The same, giving its output away as it comes; its time is up when it says nothing for so long."""
        said, errors = self._heard[self._process.stdout], self._heard[self._process.stderr]
        deadline = time.monotonic() + quiet_seconds
        with self._selector:
            self._register()
            while self._selector.get_map() and self._left >= 0:
                left, left_before = deadline - time.monotonic(), self._left
                if left <= 0 or not self._take_turn(left):
                    break
                del errors[:-_CHUNK_BYTES]
                if said:
                    yield bytes(said)
                    said.clear()
                if self._left != left_before:
                    deadline = time.monotonic() + quiet_seconds
        return self._end(deadline)

    def _end(self, deadline: float) -> Completed:
        is_cut = self._left < 0
        is_timed_out = not is_cut and not self._ends_by(deadline)
        if is_cut or is_timed_out:
            _stop(self._process)
        return Completed(
            stdout=bytes(self._heard[self._process.stdout]),
            stderr=bytes(self._heard[self._process.stderr]),
            code=self._process.wait(),
            is_timed_out=is_timed_out,
            is_cut=is_cut,
        )

    def _register(self) -> None:
        for pipe in self._heard:
            assert pipe is not None  # _start asked for it
            self._selector.register(pipe, selectors.EVENT_READ)
        stdin = self._process.stdin
        assert stdin is not None  # _start asked for it
        if self._to_say:
            os.set_blocking(stdin.fileno(), False)
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
            written = os.write(stdin.fileno(), self._to_say[:_CHUNK_BYTES])
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not want to hear the rest, which its exit code explains
            written = len(self._to_say)
        self._to_say = self._to_say[written:]
        if not self._to_say:
            self._selector.unregister(stdin)
            stdin.close()

    def _hear(self, fd: int, pipe: object) -> None:
        chunk = os.read(fd, _CHUNK_BYTES)
        if not chunk:
            self._selector.unregister(fd)
            return
        self._heard[pipe] += chunk[: self._left]  # type: ignore[index]
        self._left -= len(chunk)

    def _ends_by(self, deadline: float) -> bool:
        """Did the program end in time? It may have closed its output and gone on."""
        try:
            self._process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            return False
        return True


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the program and whatever it started: asked first, then killed."""
    _signal_all(process, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_SECONDS)
    _signal_all(process, signal.SIGKILL)
    process.wait()


def _signal_all(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # all of them have ended, or are about to
        os.killpg(process.pid, number)
