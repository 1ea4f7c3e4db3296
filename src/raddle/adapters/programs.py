"""The one door to other programs: no shell, a clean environment, an end in time, bounded output.

A second door would forget one of these, and a program that waits for a password, floods the memory or
sees our tokens would be nobody's fault. The environment is read here only to be handed on; what raddle
itself is set to is `raddle.config`'s.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from msgspec import Struct

from raddle.adapters.program_pipes import CHUNK_BYTES, Conversation, Heard, close_pipes, stop
from raddle.model.errors import InvalidInput, NotFound, StorageError

_SECRETS = frozenset({"RADDLE_TOKEN", "RADDLE_DATABASE_URL"})
"""Nobody else's."""
_KEPT_BACK = _SECRETS | {"LANGUAGE", "LC_ALL"}
"""The language of messages is ours to choose where we read them."""


_running: set[subprocess.Popen[bytes]] = set()


@atexit.register
def _stop_those_left() -> None:
    """At our end, what a thread still waits for: no thread of that kind ends by itself, and nobody would hear it."""
    for process in list(_running):
        if process.poll() is None:
            stop(process)


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
    _running.add(process)
    try:
        return _completed(process, Conversation(process, input, limit_bytes).complete(deadline))
    finally:
        # Also at Ctrl-C, which in a session of its own the program does not hear.
        if process.returncode is None:
            stop(process)
        _running.discard(process)
        close_pipes(process)


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
        heard = yield from Conversation(process, input, limit_bytes).pieces(quiet_seconds)
        is_over = True
        return _completed(process, heard)
    finally:
        if not is_over:
            stop(process)
        close_pipes(process)


def _completed(process: subprocess.Popen[bytes], heard: Heard) -> Completed:
    return Completed(
        stdout=heard.stdout,
        stderr=heard.stderr,
        code=process.wait(),
        is_timed_out=heard.is_timed_out,
        is_cut=heard.is_cut,
    )


def run_here(argv: Sequence[str], *, cwd: Path) -> int:
    """Run a program for the person at our terminal, to its end; its exit code, minus a signal's number where one ended
    it.

    NotFound where there is no such program or folder, StorageError where the system will not start it.
    """
    environment = ordinary_environment()
    program = find_program(argv[0], environment)
    if program is None:
        raise NotFound("program", argv[0], "install it, or check that its folder is on PATH")
    if not cwd.is_dir():
        raise NotFound("folder", str(cwd))
    # Ctrl-C is meant for the program; it decides what that means, and we wait for its end.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = subprocess.Popen(
            [program, *argv[1:]],
            cwd=cwd,
            env=environment,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  no thread runs here
        )
        return process.wait()
    except OSError as error:
        raise StorageError(f"cannot start {argv[0]}: {error.strerror}") from error
    finally:
        signal.signal(signal.SIGINT, before)


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
        process.stdin.write(input[:CHUNK_BYTES])
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
