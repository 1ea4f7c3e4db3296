"""Ids: time-ordered ones for what is new, derived ones for what must be equal on every machine.

A new thread or message has a UUIDv7; a thread's wears the prefix `T-`. A derived id is a UUIDv8 made of
the first 128 bits of a SHA-256, so that the same session imported on two machines is one thread.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from raddle.model.clock import Clock, system_clock
from raddle.model.errors import InvalidInput

NewId = Callable[[], str]
"""Returns a fresh UUIDv7 as text, greater than every one it returned before."""

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_THREAD_ID = re.compile(r"T-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_THREAD_PREFIX = re.compile(r"T?-?[0-9a-f-]{1,36}\Z")
_MESSAGE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}\Z")
_TAIL_BITS = 74
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


class MonotonicIds:
    """A source of UUIDv7 text, strictly increasing inside one process.

    Within one millisecond, and while the clock stands or steps back, the 74 bits after the time count up
    from their last value instead of being drawn anew. Thread-safe.
    """

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._millisecond = -1
        self._tail = 0

    def __call__(self) -> str:
        """A fresh id."""
        with self._lock:
            now = max(self._clock() // 1000, 0)  # a clock before 1970 must not make the greatest id of all
            if now > self._millisecond:
                self._millisecond, self._tail = now, secrets.randbits(_TAIL_BITS - 1)
            else:
                self._tail += 1 + secrets.randbits(32)
                if self._tail >> _TAIL_BITS:
                    self._millisecond += 1
                    self._tail = secrets.randbits(_TAIL_BITS - 1)
            return _as_uuid(self._millisecond, self._tail, version=7)


def _as_uuid(millisecond: int, tail: int, *, version: int) -> str:
    """48 bits of time, 4 of version, 12 + 62 bits of tail around the variant, as lower-case text."""
    number = (
        (millisecond & (1 << 48) - 1) << 80
        | version << 76
        | (tail >> 62) << 64
        | 0b10 << 62
        | tail & (1 << 62) - 1
    )
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def new_token() -> str:
    """A secret of 256 random bits, as 43 characters that fit into a URL and a header."""
    return secrets.token_urlsafe(32)


def derived_id(*parts: Any) -> str:
    """A UUIDv8 that depends on nothing but `parts` (a JSON array: kind first), the same on every machine."""
    number = int.from_bytes(hashlib.sha256(_encode_sorted(parts)).digest()[:16], "big")
    number = number & ~(0xF << 76) & ~(0b11 << 62) | 8 << 76 | 0b10 << 62
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def derived_thread_id(microseconds: int | None, *parts: Any) -> str:
    """A thread id for a session of another agent: UUIDv7 in shape, its time bits from `microseconds`
    (None: from the hash), all else from `parts`."""
    digest = int.from_bytes(hashlib.sha256(_encode_sorted(parts)).digest()[:16], "big")
    millisecond = digest >> 80 if microseconds is None else max(microseconds, 0) // 1000
    return "T-" + _as_uuid(millisecond, digest & (1 << _TAIL_BITS) - 1, version=7)


def is_thread_id(text: str) -> bool:
    """Is `text` a whole, well-formed thread id (lower case)?"""
    return _THREAD_ID.match(text) is not None


def parse_thread_id(text: str) -> str:
    """The canonical id in `text` (prefix `T-` optional, any case); InvalidInput where it is none.

    Every path and every query is made from what this returns, never from the text itself.
    """
    lower = text.strip().lower()
    bare = lower.removeprefix("t-")
    if _UUID.match(bare) is None:
        raise InvalidInput(
            f"{text[:60]!r} is not a thread id", "thread ids look like T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c"
        )
    return "T-" + bare


def parse_thread_id_prefix(text: str) -> str:
    """The canonical prefix (`T-018e2b`) that `text` spells, with or without `T-`; InvalidInput where it is none."""
    lower = text.strip().lower()
    bare = lower.removeprefix("t-")
    if not bare or _THREAD_PREFIX.match(bare) is None:
        raise InvalidInput(
            f"{text[:60]!r} is not a thread id or the start of one", "ids are listed by `raddle list`"
        )
    return "T-" + bare


def parse_message_id(text: str) -> str:
    """`text` itself where it can be a message id (letters, digits, `_.:-`, at most 200); else InvalidInput."""
    if _MESSAGE_ID.match(text) is None:
        raise InvalidInput(
            f"{text[:60]!r} is not a message id", "message ids are shown by `raddle show ID --tree`"
        )
    return text


def canonical_json(value: Any) -> bytes:
    """`value` as compact UTF-8 JSON with sorted keys: what stamps and hashes compare."""
    return _encode_sorted(value)
