"""What the daemon needs of its machine: an eye on the folder of threads, and another process that is it.

Owns what a process that is started as the daemon is given. A second way to start one would work with other settings.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from raddle.adapters.files import make_folder
from raddle.adapters.folder_watch import NoFileEvents, Stop, changes_below
from raddle.adapters.paths import Paths
from raddle.adapters.programs import clean_environment, start_child
from raddle.adapters.workers import never_fork
from raddle.config import Config
from raddle.model.errors import StorageError
from raddle.model.ids import is_thread_id
from raddle.wiring.daemon_state import status_of
from raddle.wiring.standing import identity

_QUIET_MS = 1000
_POLL_SECONDS = 10.0
"""So often something may have changed where there are no file events."""
_START_SECONDS = 20.0
_PAUSE_SECONDS = 0.02


def start_workers_anew() -> None:
    """Imports of this process use workers that share nothing with its other threads."""
    never_fork()


def watch_threads(paths: Paths, changed: Callable[[], None], stop: Stop) -> None:
    """Call `changed` whenever a thread of this machine may have changed, until `stop` is set.

    Once a second it is looked whether the folder is still that one; without file events it is called from time to time.
    """
    while not stop.is_set():
        folder = identity(paths.threads_dir)
        if folder is None:
            time.sleep(_QUIET_MS / 1000)
            continue
        is_first = True
        try:
            for found in changes_below([paths.threads_dir], stop, wait_ms=_QUIET_MS):
                # The first batch, empty as it may be, says that the folder is watched: what came before is unknown.
                if is_first or any(_is_of_thread(path) for path in found):
                    changed()
                is_first = False
                if identity(paths.threads_dir) != folder:
                    break
        except NoFileEvents:
            changed()
            _wait(stop, _POLL_SECONDS)


def _is_of_thread(path: str) -> bool:
    name, _, suffix = os.path.basename(path).partition(".")  # noqa: PTH119  a thousand a second while one imports
    return suffix in {"json", "journal"} and is_thread_id(name)


def _wait(stop: Stop, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not stop.is_set() and time.monotonic() < end:
        time.sleep(min(1.0, seconds))


def daemon_argv() -> list[str]:
    """The command that is this very raddle's daemon."""
    # -P: what lies in the folder that it is started in is no module of ours.
    return [sys.executable, "-P", "-m", "raddle", "daemon"]


def daemon_environment(config: Config) -> dict[str, str]:
    """The variables that make another process work with these settings; no secret is among them."""
    found = {f"RADDLE_{name.upper()}": str(getattr(config, name)) for name in _FOLDERS}
    if config.server and config.origins["server"].source != "file":
        found["RADDLE_SERVER"] = config.server
    if config.is_offline:
        found["RADDLE_OFFLINE"] = "1"
    return {**config.agent_variables, **found}


_FOLDERS = ("data_dir", "config_dir", "state_dir", "cache_dir")


def start_in_background(config: Config) -> int:
    """Start the daemon of these settings, and come back once it is at work; its process id.

    Where one is at work already, that one's. StorageError where it does not start.
    """
    paths = config.paths
    found = status_of(paths)
    if found.pid is not None:
        return found.pid
    environment = clean_environment() | daemon_environment(config)
    if config.token is not None:
        environment["RADDLE_TOKEN"] = config.token.reveal()
    make_folder(paths.state_dir)
    child = start_child(daemon_argv(), env=environment)
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        found = status_of(paths)
        if found.pid is not None and found.state is not None:
            return found.pid
        if not child.is_running:
            raise StorageError("the daemon ended as soon as it began", "`raddle daemon` says why")
        time.sleep(_PAUSE_SECONDS)
    raise StorageError("the daemon does not begin its work", "`raddle daemon` says why")
