"""What a process does to files, event by event: listened to, or cut short by its death at any of them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

some_deaths_or_all = pytest.mark.parametrize(
    "every", [pytest.param(3, id="every third"), pytest.param(1, id="every one", marks=pytest.mark.soak)]
)
"""For a test in which each death costs much: `deaths_of(action, every)`; `make soak` dies all of them."""


def start_child(action: Callable[..., object], *args: object) -> BaseProcess:
    """Run `action` in a child that is a copy of this process, so that it may be any callable."""
    child = multiprocessing.get_context("fork").Process(target=action, args=args, daemon=True)
    with warnings.catch_warnings():
        # Python 3.12 warns of a fork beside other threads; the child takes no lock that they could hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    return child


def lives_through(event_number: int, action: Callable[[], object]) -> bool:
    """Run `action` in a child that is killed at its n-th event on files; did it live?"""

    def child() -> None:
        seen = 0

        def hook(event: str, _: tuple[Any, ...]) -> None:
            nonlocal seen
            if event == "open" or event in {"os.rename", "os.link", "os.remove", "os.truncate", "os.mkdir"}:
                seen += 1
                if seen == event_number:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        action()
        os._exit(0)

    process = start_child(child)
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode == 0


def deaths_of(action: Callable[[], object], every: int = 1) -> Iterator[int]:
    """1, 2, …: `action` died at that event, until it lived through. `every`: only at each n-th, from the first on."""
    for number in range(1, 400, every):
        if lives_through(number, action):
            return
        yield number
    raise AssertionError("it never ends")


class Opened:
    """Paths that are opened while somebody listens; `act` is called just before the n-th of them is."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._listens = False
        self._at = 0
        self._act: Callable[[], object] = list
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._listens or event != "open" or not isinstance(args[0], str | Path):
            return
        self.paths.append(str(args[0]))
        if len(self.paths) == self._at:
            self._listens = False  # what `act` opens is none of the listener's
            self._act()
            self._listens = True

    @contextlib.contextmanager
    def listening(self, at: int = 0, act: Callable[[], object] = list) -> Iterator[None]:
        self.paths.clear()
        self._listens, self._at, self._act = True, at, act
        yield
        self._listens = False


opened = Opened()
