"""The daemon of a machine as a process of its own, and how a test waits for what it does."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

from raddle.apps.cli.commands.daemon import as_plain
from raddle.wiring.daemon_state import status_of
from tests.builders_import import Machine
from tests.command_line import PROGRAM, Answer
from tests.warm_program import run_warm

PATIENCE_SECONDS = 30.0


def called(
    machine: Machine,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    patience: float = PATIENCE_SECONDS,
) -> Answer:
    """`raddle …` on that machine, as a process of its own."""
    environment = {**os.environ, **machine.environment, **(env or {})}
    ran = run_warm(arguments, stdin=None, env=environment, timeout=patience)
    return Answer(ran.returncode, ran.stdout, ran.stderr.decode())


def status(machine: Machine) -> dict[str, Any]:
    """What `raddle daemon status --json` says there, asked in this process."""
    with machine.stores() as stores:
        return as_plain(status_of(stores.paths))


class DaemonProcess:
    """`raddle daemon` on a machine. As a context manager it is killed at the end, where it is still there."""

    def __init__(self, machine: Machine, env: Mapping[str, str] | None = None) -> None:
        self.machine = machine
        self._told = ""
        self.process = subprocess.Popen(
            [*PROGRAM, "daemon"],
            env={**os.environ, **machine.environment, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def until(self, holds: Callable[[], object]) -> None:
        """Wait until that holds."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert self.process.poll() is None, f"it ended: {self.told()}"
            assert time.monotonic() < end, f"it did not come to that: {status(self.machine)} {self.log()}"
            self.pause(0.05)

    def pause(self, seconds: float) -> None:
        """Let it work for so long."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    def until_at_work(self) -> None:
        """Wait until it has looked at everything once."""
        self.until(lambda: (found := status(self.machine))["is_running"] and found["last_import"])

    def end(self, number: signal.Signals = signal.SIGTERM) -> float:
        """Tell it to end; the seconds that it took. Its exit code is 0."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(PATIENCE_SECONDS)
        assert self.process.returncode == 0, self.told()
        return time.monotonic() - began

    def kill(self) -> None:
        """SIGKILL for it and what it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.told()

    def told(self) -> str:
        """What it said to a person, once it has ended."""
        if self.process.stderr is not None and not self.process.stderr.closed:
            self._told = self.process.communicate()[1].decode()
        return self._told

    def log(self) -> list[dict[str, Any]]:
        """Its log."""
        files = sorted((self.machine.folder / "state").glob("daemon-*.log"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]
