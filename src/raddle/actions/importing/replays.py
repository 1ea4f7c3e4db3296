"""Records that say again what was said: agents write a part of their history anew, under new names.

Owns how far back that is known. A state is bounded, so a later reading must notice where it cannot tell any more
whether it met a copy: then only a reading from the start can.
"""

from __future__ import annotations

import hashlib
from collections import deque

from msgspec import Raw, Struct

_BEFORE_ALL = -(1 << 62)


class Told(Struct, array_like=True):
    """A `Replays` as plain values, for a state: (time, digest) of the last records, the time of what is forgotten."""

    recent: list[tuple[int, int]]
    horizon: int


class Replays:
    """Everything a file has said, by a digest of eight bytes a record.

    A state holds those of the last `most`, and the time up to which a record may repeat one that is forgotten.
    """

    def __init__(self, most: int) -> None:
        self.is_in_doubt = False
        """Did a record come that may or may not be a copy? Then only a reading from the start can tell."""
        self._most = most
        self._told: set[int] = set()
        self._recent: deque[tuple[int, int]] = deque()
        self._horizon = _BEFORE_ALL
        self._forgotten = _BEFORE_ALL

    def is_copy(self, digest: int, at: int | None) -> bool:
        """Did the same come before? From now on it did. `at`: when it was written, in microseconds, if that is told."""
        if digest in self._told:
            return True
        if at is None:
            at = _BEFORE_ALL
        elif at <= self._forgotten:
            self.is_in_doubt = True
        self._told.add(digest)
        self._recent.append((at, digest))
        if len(self._recent) > self._most:
            self._horizon = max(self._horizon, self._recent.popleft()[0])
        return False

    def memory(self) -> Told:
        """What a later reading needs."""
        return Told(list(self._recent), max(self._horizon, self._forgotten))

    def recall(self, told: Told) -> None:
        """Go on where `told` was taken."""
        self._recent = deque(told.recent)
        self._told = {digest for _, digest in told.recent}
        self._horizon = self._forgotten = told.horizon


def digest_of(text: str, content: bytes | Raw = b"") -> int:
    """Eight bytes, as a signed number, of what tells a record from all others."""
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=8)
    digest.update(content)
    return int.from_bytes(digest.digest(), "big", signed=True)
