"""Memories kept in step with their remotes while a server runs: what was written goes out, what others wrote comes in.

The daemon does the same for a machine; an agent's server may be all that runs here. Nothing of it ever makes a call
wait, but one that asks to, and for no longer than it says.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from raddle.config import Config
from raddle.model.errors import RaddleError
from raddle.wiring import open_stores

_LOG = logging.getLogger(__name__)
_AFTER_WRITE, _EACH = 0.3, 30.0
"""Seconds from a write to its push, and between two looks at the remote."""
_LONGEST_PAUSE = 300.0
_STATES = {
    "in_step": "",
    "kept_here": "it stays on this machine: the project says so",
    "no_remote": "it stays on this machine: its repository has no remote",
    "not_agreed": "it stays on this machine until a person says `raddle store sync --publish`",
    "emptied": "the remote has it no more: a person has to say `raddle store sync --publish`",
    "pending": "others pushed at the same time: it goes out with the next try",
}


class Freshness:
    """Syncs memories in threads of its own, one for each. `sync` brings the memory at a folder into step."""

    def __init__(self, sync: Callable[[Path, Config], str] | None = None) -> None:
        self._sync = sync or _sync
        self._kept: dict[Path, _Kept] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    def keep(self, root: Path, config: Config) -> None:
        """Keep the memory at `root` in step from now on."""
        if config.is_offline:
            return
        with self._lock:
            if root not in self._kept and not self._is_closed:
                self._kept[root] = _Kept(root, config, self._sync)

    def wrote(self, root: Path) -> None:
        """Something was written there: it is to go out soon."""
        kept = self._kept.get(root)
        if kept is not None:
            kept.wanted(_AFTER_WRITE)

    def come_into_step(self, root: Path, seconds: float) -> str:
        """Wait for a sync that begins now, at most so long; how it went, in a word or a line. Empty: it was in step a
        moment ago; `offline` where nothing is kept in step."""
        kept = self._kept.get(root)
        return "offline" if kept is None else kept.come_into_step(seconds)

    def close(self, seconds: float = 5.0) -> None:
        """Let what was written last go out, as far as that takes no longer than `seconds`, then end."""
        with self._lock:
            self._is_closed = True
            kept = list(self._kept.values())
            self._kept.clear()
        end = time.monotonic() + seconds
        for one in kept:
            one.end()
        for one in kept:
            one.join(max(end - time.monotonic(), 0.0))


class _Kept:
    """One memory that is kept in step."""

    def __init__(self, root: Path, config: Config, sync: Callable[[Path, Config], str]) -> None:
        self._root, self._config, self._sync = root, config, sync
        self._changed = threading.Condition()
        self._due = time.monotonic()
        self._begun = self._done = 0
        self._done_at = -_LONGEST_PAUSE
        self._state = ""
        self._is_ending = False
        self._failed = 0
        self._has_news = False
        self._thread = threading.Thread(target=self._run, name="memory-sync", daemon=True)
        self._thread.start()

    def wanted(self, seconds: float) -> None:
        with self._changed:
            self._has_news = True
            self._due = min(self._due, time.monotonic() + seconds)
            self._changed.notify_all()

    def come_into_step(self, seconds: float) -> str:
        end = time.monotonic() + seconds
        with self._changed:
            if time.monotonic() - self._done_at < 1.0 and not self._has_news:
                return self._state
            wanted = self._begun + 1
            self._due = time.monotonic()
            self._changed.notify_all()
            while self._done < wanted:
                left = end - time.monotonic()
                if left <= 0 or self._is_ending:
                    return "the remote has not answered yet: this is what this machine has"
                self._changed.wait(left)
            return self._state

    def end(self) -> None:
        with self._changed:
            self._is_ending = True
            self._changed.notify_all()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        while self._wait_until_due():
            try:
                state = self._sync(self._root, self._config)
                self._failed = 0
            except RaddleError as error:
                state = error.message
                self._failed += 1
            except Exception as error:  # noqa: BLE001  it is tried again, and the server goes on
                state = f"the sync failed: {type(error).__name__}"
                self._failed += 1
            if self._failed == 1:
                _LOG.warning("memory at %s: %s", self._root, state)
            with self._changed:
                self._state = state
                self._done = self._begun
                self._done_at = time.monotonic()
                pause = min(_EACH * 2 ** min(self._failed, 4), _LONGEST_PAUSE)
                self._due = min(self._due, self._done_at + pause)
                self._changed.notify_all()

    def _wait_until_due(self) -> bool:
        """False once it is over, and nothing that was written waits."""
        with self._changed:
            while not self._is_ending and (left := self._due - time.monotonic()) > 0:
                self._changed.wait(left)
            if self._is_ending and not self._has_news:
                return False
            self._has_news = False
            self._begun += 1
            self._due = float("inf")
            return True


def _sync(root: Path, config: Config) -> str:
    """How the sync went where there is something to say: empty once all is in step."""
    from raddle.wiring.memory import ProjectMemory  # noqa: PLC0415
    from raddle.wiring.memory_syncing import sync_and_keep  # noqa: PLC0415

    with open_stores(config) as stores:
        report = sync_and_keep(ProjectMemory(stores, root))
    return report.why or _STATES.get(report.state, report.state)
