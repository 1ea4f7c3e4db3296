"""ULIDs: the ids of runs, entries and conflicts; 26 characters that sort by the time they were made.

They are made from the house's one source of time-ordered ids, so they never go back within a process. A
second source beside it could give an entry an id below the one before.
"""

from __future__ import annotations

import hashlib
import re

from raddle.model.errors import InvalidInput
from raddle.model.ids import NewId

ULID_PATTERN = "[0-7][0-9A-HJKMNP-TV-Z]{25}"
_ULID = re.compile(rf"{ULID_PATTERN}\Z", re.ASCII)
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES = {character: value for value, character in enumerate(_ALPHABET)}
_RANDOM_BITS = 80
_LATEST = (1 << 48) - 1


def new_ulid(new_id: NewId) -> str:
    """A fresh ULID, greater than every one made from `new_id` before: its milliseconds, and the 74 bits after them."""
    number = int(new_id().replace("-", ""), 16)
    tail = (number >> 64 & 0xFFF) << 62 | number & (1 << 62) - 1
    return _as_text(number >> 80 << _RANDOM_BITS | tail)


def derived_ulid(microseconds: int, *parts: bytes) -> str:
    """A ULID of that time whose other bits depend on nothing but `parts`: the same wherever it is made."""
    digest = hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).digest()
    millisecond = min(max(microseconds // 1000, 0), _LATEST)
    return _as_text(millisecond << _RANDOM_BITS | int.from_bytes(digest[:10], "big"))


def is_ulid(text: str) -> bool:
    """Is `text` a whole ULID as it is written: upper case, no letter that could be mistaken for a digit?"""
    return _ULID.match(text) is not None


def parse_ulid(text: str, what: str = "id") -> str:
    """The ULID that `text` spells, in upper case; InvalidInput names `what` where it spells none."""
    upper = text.strip().upper()
    if not is_ulid(upper):
        raise InvalidInput(
            f"{text[:60]!r} is not a {what}",
            f"a {what} has 26 characters and looks like 01M8PZKM3KMAB0SYRHJ485PAMY",
        )
    return upper


def ulid_time(ulid: str) -> int:
    """When it was made, in microseconds since 1970 (whole milliseconds)."""
    number = 0
    for character in ulid[:10]:
        number = number << 5 | _VALUES[character]
    return number * 1000


def _as_text(number: int) -> str:
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))
