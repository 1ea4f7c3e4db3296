"""The bytes that a reading leaves for the next one, as a value again.

Owns what is no state: bytes that are damaged, and those of another version. A reader that took one of them for its
own would go on from a place it never was at.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

encode_state = msgspec.msgpack.Encoder().encode


class Versioned(Protocol):
    """A state of any importer, an `array_like` Struct that begins with its version."""

    version: int


S = TypeVar("S", bound=Versioned)


def decode_state(state: bytes, kind: type[S], version: int) -> S | None:
    """A state as a value; None where it is damaged, or of another version."""
    try:
        found = msgspec.msgpack.decode(state, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if found.version == version else None
