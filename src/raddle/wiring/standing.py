"""What a process that stays stands on: the settings, the sign-in and the data folder it was started with.

Whoever stays and remembered them would store what a rule of now keeps away. Everything here is asked over and over for
weeks; nothing is remembered but what tells one state from another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from raddle.adapters.paths import Paths
from raddle.config import Config, load_config
from raddle.model.errors import RaddleError

LOOK_SECONDS = 1.0

Identity = tuple[int, ...] | None


class Ground(NamedTuple):
    """What one stands on, for equality. `data`: None where the data folder is not there."""

    settings: tuple[Identity, ...]
    data: Identity


def ground_of(paths: Paths) -> Ground:
    """It, now: another one once the settings, the sign-in or the data folder are others. Costs three looks."""
    files = (paths.config_file, paths.credentials_file)
    return Ground(tuple(_state(path) for path in files), identity(paths.data_dir))


def rules_of(paths: Paths) -> Ground:
    """The same of the settings alone: what an import asks."""
    return Ground((_state(paths.config_file),), None)


def identity(folder: Path) -> Identity:
    """Tells a folder from another one of its name."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _state(path: Path) -> Identity:
    """Tells a file from a changed one."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class Standing:
    """The ground that a process began to stand on. `is_set` says that it has to begin anew, or to end: asked often,
    it looks once a second."""

    def __init__(
        self, look: Callable[[], Ground], stop: threading.Event, seconds: Callable[[], float]
    ) -> None:
        self._look = look
        self._stop = stop
        self._seconds = seconds
        self.ground = look()
        self._looked = seconds()
        self._is_over = False

    def is_set(self) -> bool:
        """Is it another one, is everything over, or was this ended?"""
        if not self._is_over and self._seconds() - self._looked >= LOOK_SECONDS:
            self._looked = self._seconds()
            self._is_over = self._look() != self.ground
        return self._is_over or self._stop.is_set()

    def end(self) -> None:
        """Nothing stands on it any more."""
        self._is_over = True

    def settings(
        self, unreadable: Callable[[RaddleError], None], load: Callable[[], Config] = load_config
    ) -> Config | None:
        """The settings as they are here. Where they cannot be read, that is told and waited out, and None comes once
        `is_set`: a rule that cannot be read keeps nothing private, so nothing is done without."""
        try:
            return load()
        except RaddleError as error:
            unreadable(error)
        while not self.is_set():
            self._stop.wait(LOOK_SECONDS)
        return None
