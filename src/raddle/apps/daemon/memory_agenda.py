"""When a memory is brought into step: pure, over seconds of a clock that only goes forward.

Owns the waiting times of memories. Decided where the work is done, each write of an agent would be a commit and a push.
"""

from __future__ import annotations

from collections.abc import Callable

from raddle.apps.daemon.agenda import Backoff

QUIET_SECONDS = 5.0
"""From the last write to the sync."""
LONGEST_SECONDS = 15.0
"""From the first write to the sync, however long others follow."""
PULL_SECONDS = 60.0
"""So often others are asked for what they wrote."""


class MemoryAgenda:
    """When the next sync of one memory is due. Made when it is found: then one is due at once."""

    def __init__(self, now: float, draw: Callable[[], float]) -> None:
        self._backoff = Backoff(draw)
        self._pull_at = now
        self._first: float | None = None
        self._last = now
        self._not_before = now

    @property
    def due_at(self) -> float:
        """When it is."""
        written = self._pull_at
        if self._first is not None:
            written = min(self._last + QUIET_SECONDS, self._first + LONGEST_SECONDS)
        return max(self._not_before, min(written, self._pull_at))

    @property
    def is_written_to(self) -> bool:
        """Was something written since the last sync began?"""
        return self._first is not None

    def changed(self, now: float) -> None:
        """A file of it was written."""
        self._first = now if self._first is None else self._first
        self._last = now

    def began(self) -> None:
        """A sync begins: what is written from now on is for the next one."""
        self._first = None

    def succeeded(self, now: float) -> None:
        """It came to its end."""
        self._backoff.reset()
        self._pull_at = now + PULL_SECONDS
        self._not_before = now

    def failed(self, now: float) -> float:
        """It did not, or the network is away; the seconds until the next try."""
        wait = self._backoff.failed()
        self._not_before = self._pull_at = now + wait
        return wait
