"""When the daemon does what: pure, over seconds of a clock that only goes forward and that a test can wind.

Owns every waiting time: the pause after a change here, the back-off, the longest time without a whole sync. Were one
of them decided where the work is done, two causes that come together would make two syncs, or a busy loop.
"""

from __future__ import annotations

from collections.abc import Callable

DEBOUNCE_SECONDS = 1.0
"""From a change here to the sync: an agent writes a turn in several goes."""
GATHER_SECONDS = 0.1
"""From word of a change elsewhere: pages of the feed come together."""
EVERY_SECONDS = 300.0
"""A whole sync at least so often, whatever anybody told."""
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 1.0, 300.0
_LONGEST_DEBOUNCE_SECONDS = 60.0
_PERSISTENT = 3
_SLEPT_SECONDS = 30.0
"""So much later than it should be is no delay any more: the machine slept, or its clock was set."""

Draw = Callable[[], float]
"""Returns a number between 0 and 1, by chance."""


class Backoff:
    """How long to wait after failures in a row: 1 s, doubling to 5 minutes, each a little less by chance."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._failures = 0

    def failed(self) -> float:
        """Seconds to wait after one more failure."""
        wait = min(FIRST_WAIT_SECONDS * float(2 ** min(self._failures, 20)), LONGEST_WAIT_SECONDS)
        self._failures += 1
        return wait * (0.5 + self._draw() / 2)

    def reset(self) -> None:
        """It works again."""
        self._failures = 0

    @property
    def is_persistent(self) -> bool:
        """Did it fail several times in a row? Once is what happens when a server is started anew."""
        return self._failures >= _PERSISTENT


class Agenda:
    """When the next sync is due, and why. Made when the daemon starts: then one is due at once."""

    def __init__(self, now: float, draw: Draw) -> None:
        self._backoff = Backoff(draw)
        self._not_before = now
        self._whole_at = now
        self._here_at: float | None = None
        self._there_at: float | None = None
        self._again_at: float | None = None
        self._is_local = False
        self._in_vain = 0

    @property
    def due_at(self) -> float:
        """When it is."""
        others = (self._here_at, self._there_at, self._again_at)
        return max(self._not_before, min((self._whole_at, *(at for at in others if at is not None))))

    def is_only_local(self, now: float) -> bool:
        """Is a change here all that makes it due? Then a look at the files may show that nothing is to be done."""
        others = (self._whole_at, self._there_at, self._again_at)
        return self._here_at is not None and not any(at is not None and at <= now for at in others)

    def changed_here(self, now: float) -> None:
        """A thread of this machine changed."""
        if self._here_at is None:
            self._here_at = now + min(DEBOUNCE_SECONDS * 2**self._in_vain, _LONGEST_DEBOUNCE_SECONDS)

    def changed_there(self, now: float) -> None:
        """The server told of a change: so it is there, however often it was not."""
        if self._there_at is None:
            self._there_at = now + GATHER_SECONDS
        self._forget_failures(now)

    def woke(self, now: float) -> None:
        """The machine slept: the network may be another one, and much may have happened."""
        self._whole_at = now
        self._forget_failures(now)

    def _forget_failures(self, now: float) -> None:
        self._backoff.reset()
        self._not_before = now

    def nothing_to_do(self, now: float, *, again_in: float | None = None) -> None:
        """The change here was none that the server lacks, or not yet: then `again_in` says when."""
        self._here_at = None
        if again_in is not None:
            self._again_at = now + max(again_in, FIRST_WAIT_SECONDS)

    def began(self, now: float) -> None:
        """A sync begins: what changes from now on is for the next one."""
        self._is_local = self.is_only_local(now)
        self._here_at = self._there_at = self._again_at = None

    def succeeded(self, now: float, *, did_something: bool, again_in: float | None) -> None:
        """It came to its end. `again_in`: seconds until some thread that failed is tried again."""
        # A sync that changes files without need must not call for the next one for ever.
        self._in_vain = min(self._in_vain + 1, 10) if self._is_local and not did_something else 0
        self._forget_failures(now)
        self._whole_at = now + EVERY_SECONDS
        self._again_at = None if again_in is None else now + max(again_in, FIRST_WAIT_SECONDS)

    def failed(self, now: float, *, at_least: float = 0.0) -> float:
        """It did not; the seconds until the next try, at least `at_least`."""
        wait = max(self._backoff.failed(), at_least)
        self._not_before = self._again_at = now + wait
        return wait


class WakeWatch:
    """Notices that the machine slept: the wall's clock went on, or the other one stood still for the process."""

    def __init__(self, now: float, wall_seconds: float) -> None:
        self._now = now
        self._wall = wall_seconds

    def woke(self, now: float, wall_seconds: float, *, waited: float) -> bool:
        """Did it, since the last look? `waited`: the seconds that one meant to wait."""
        jump = (wall_seconds - self._wall) - (now - self._now)
        late = (now - self._now) - waited
        self.look(now, wall_seconds)
        return jump > _SLEPT_SECONDS or late > _SLEPT_SECONDS

    def look(self, now: float, wall_seconds: float) -> None:
        """Take this moment as the one to count from."""
        self._now, self._wall = now, wall_seconds
