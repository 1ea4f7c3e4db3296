"""Lines that say again what was said: copies with a new uuid, written after a compaction or a resume.

Owns how a copy is known: the same kind of line, the same time, the same content.
"""

from __future__ import annotations

import hashlib
from collections import deque

from msgspec import Raw, Struct

_KEPT = 384
_BEFORE_ALL = -(1 << 62)


class Told(Struct, array_like=True):
    """A `Replays` as plain values, for a state."""

    recent: list[tuple[int, int]]
    horizon: int


class Replays:
    """Everything a file has said, by a digest of eight bytes a line.

    A state holds those of the last lines, and the time up to which a line may repeat one that is forgotten.
    """

    def __init__(self) -> None:
        self.is_in_doubt = False
        """Did a line come that may or may not be a copy? Then only a reading from the start can tell."""
        self._told: set[int] = set()
        self._recent: deque[tuple[int, int]] = deque()
        self._horizon = _BEFORE_ALL
        self._forgotten = _BEFORE_ALL

    def is_copy(self, kind: str, at: int | None, uuid: str, content: Raw) -> bool:
        """Was this said before, at the same time? `at`: in microseconds; without one, by the same `uuid`."""
        digest = hashlib.blake2b(
            f"{kind} {uuid if at is None else at} ".encode(errors="replace"), digest_size=8
        )
        digest.update(content)
        key = int.from_bytes(digest.digest(), "big", signed=True)
        if key in self._told:
            return True
        if at is not None and at <= self._forgotten:
            self.is_in_doubt = True
        self._told.add(key)
        self._recent.append((_BEFORE_ALL if at is None else at, key))
        if len(self._recent) > _KEPT:
            self._horizon = max(self._horizon, self._recent.popleft()[0])
        return False

    def memory(self) -> Told:
        """What a later reading needs."""
        return Told(list(self._recent), max(self._horizon, self._forgotten))

    def recall(self, told: Told) -> None:
        """Go on where `told` was taken."""
        self._recent = deque(told.recent)
        self._told = {key for _, key in told.recent}
        self._horizon = self._forgotten = told.horizon
