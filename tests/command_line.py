"""raddle's command line as tests call it: in this process with streams of its own, as a program, or on a terminal.

Owns how the streams are made, so that every test sees the bytes a shell would see.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import select
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Self

from raddle.apps.cli.main import main
from tests.warm_program import WarmProcess, run_warm

PROGRAM = (sys.executable, "-m", "raddle")
_PATIENCE_SECONDS = 60


class Answer(NamedTuple):
    """What a command did: its exit code, and what it wrote on either stream."""

    code: int
    data: bytes
    err: str

    @property
    def out(self) -> str:
        """The data as text."""
        return self.data.decode("utf-8")

    @property
    def lines(self) -> list[str]:
        """The data, line by line."""
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        """The data as one JSON document."""
        return json.loads(self.data)

    @property
    def error(self) -> dict[str, str]:
        """The error that `--json` writes on stderr: its last line."""
        told = json.loads(self.err.splitlines()[-1])
        assert told.keys() == {"error"}
        found: dict[str, str] = told["error"]
        assert found.keys() == {"code", "message", "hint"}
        return found


class _Stream(io.TextIOWrapper):
    """A stream over bytes that outlives its wrapper."""

    def __init__(self, data: bytes = b"") -> None:
        self.bytes = io.BytesIO(data)
        super().__init__(self.bytes, encoding="utf-8", errors="replace", write_through=True)


def raddle(*arguments: str, stdin: bytes = b"") -> Answer:
    """Run a command in this process."""
    out, err = _Stream(), _Stream()
    with _streams(_Stream(stdin), out, err):
        code = main(list(arguments))
    return Answer(code, out.bytes.getvalue(), err.bytes.getvalue().decode("utf-8"))


def done(*arguments: str, stdin: bytes = b"") -> Answer:
    """The same for a command that has to succeed."""
    answer = raddle(*arguments, stdin=stdin)
    assert answer.code == 0, answer
    return answer


@contextlib.contextmanager
def _streams(stdin: io.TextIOWrapper, out: io.TextIOWrapper, err: io.TextIOWrapper) -> Iterator[None]:
    kept = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = stdin, out, err
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = kept


def new(text: str = "hello", *arguments: str) -> str:
    """The id of a new thread."""
    return done("new", text, *arguments).out.strip()


def program(*arguments: str, stdin: bytes = b"", **options: Any) -> Answer:
    """Run a command as a process of its own; with `options`, which go to `subprocess.run`, one from nothing."""
    if not options:
        warm = run_warm(arguments, stdin=stdin, env=os.environ, timeout=_PATIENCE_SECONDS)
        return Answer(warm.returncode, warm.stdout, warm.stderr.decode("utf-8", "replace"))
    ran = subprocess.run(
        [*PROGRAM, *arguments],
        input=stdin,
        capture_output=True,
        timeout=_PATIENCE_SECONDS,
        check=False,
        **options,
    )
    return Answer(ran.returncode, ran.stdout, ran.stderr.decode("utf-8", "replace"))


class Terminal:
    """A process whose three streams are one terminal of a given size; what it draws is `shown`.

    `env` is added to the test's own environment. Use as a context manager.
    """

    def __init__(
        self,
        argv: tuple[str, ...],
        *,
        columns: int = 80,
        rows: int = 24,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (rows, columns))
        seen = {**os.environ, "TERM": "xterm-256color", **(env or {})}
        self.process = _on_terminal(argv, theirs, seen)
        os.close(theirs)
        self.shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def interrupt(self) -> int:
        """Press Ctrl-C until it is heard (one that comes just before a read waits for the next); the exit code."""
        while self.process.poll() is None:
            self.type("\x03")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1)
        return self.end()

    def wait_for(self, text: str) -> None:
        """Read what is drawn until `text` is there."""
        self._read(lambda: text in self.shown)
        assert text in self.shown, self.shown

    def end(self) -> int:
        """Read to the end; the exit code."""
        self._read(lambda: False)
        return self.process.wait(_PATIENCE_SECONDS)

    def _read(self, is_enough: Callable[[], bool]) -> None:
        while not is_enough():
            ready, _, _ = select.select([self._ours], [], [], _PATIENCE_SECONDS)
            assert ready, f"nothing more came after {self.shown!r}"
            try:
                data = os.read(self._ours, 1 << 16)
            except OSError:  # Linux says so at the end
                return
            if not data:
                return
            self.shown += data.decode("utf-8", "replace").replace("\r\n", "\n")


def _on_terminal(
    argv: tuple[str, ...], theirs: int, env: Mapping[str, str]
) -> subprocess.Popen[bytes] | WarmProcess:
    streams = (theirs, theirs, theirs)
    if argv[: len(PROGRAM)] == PROGRAM:
        return WarmProcess("raddle", argv[len(PROGRAM) :], streams, env=env, on_terminal=True)
    return subprocess.Popen(
        argv,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env=env,
        preexec_fn=lambda: _take_terminal(theirs),  # noqa: PLW1509  no other thread runs here
    )


def _take_terminal(theirs: int) -> None:
    """Make the terminal the one that Ctrl-C reaches this process by."""
    import fcntl

    fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)


def terminal(*arguments: str, columns: int = 80, rows: int = 24, **env: str) -> Terminal:
    """A command on a terminal."""
    return Terminal((*PROGRAM, *arguments), columns=columns, rows=rows, env=env)


def seen(*arguments: str, columns: int = 80, rows: int = 60, **env: str) -> str:
    """What a command that succeeds draws on a terminal large enough to need no pager."""
    with terminal(*arguments, columns=columns, rows=rows, **env) as screen:
        assert screen.end() == 0, screen.shown
        return screen.shown
