"""A program of the tests as a process of its own: it listens where another process reaches it, and a test does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Self

_ENDS_WITHIN_SECONDS = 30


class ListeningProgram:
    """`python -m MODULE …`: prints where it listens (`address`), and ends when its stdin does.

    It can be started again, with the same arguments. As a context manager it is stopped at the end.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self._argv = [sys.executable, "-m", module, *arguments]
        self.start()

    def start(self) -> None:
        """Come back when it listens."""
        root = Path(__file__).resolve().parent.parent
        # `-m` finds the tests from the root of the checkout, wherever the test stands.
        self._process = subprocess.Popen(
            self._argv, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        if not self.address:
            self.kill()
            raise AssertionError(f"{self._argv[2]} did not start")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Tell it to end, and wait until it has."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_ENDS_WITHIN_SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """SIGKILL, where it has not ended."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
