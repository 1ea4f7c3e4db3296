"""The order of hits, here and on the server: what a score is made of, the key that sorts, the cursor of the next page.

Both engines ask this module. If one of them had weights or a key of its own, the same threads would come in another
order on the other side. How an engine finds what it scores, and how many, is its own.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from raddle.model.errors import InvalidInput
from raddle.model.threads.query import Query
from raddle.model.threads.search_fields import OUTPUT

WEIGHTS = (8.0, 6.0, 4.0, 3.0, 2.0)
"""Of the fields, in the order of `FIELDS`."""
HEADER_WEIGHT = 12.0
_DAY = 86_400_000_000
_FRESHNESS = 0.5
"""What being of today adds to a score, as a part of it; halved every `_HALF_LIFE_DAYS`."""
_HALF_LIFE_DAYS = 30.0
_FROM_THE_START = "leave it out to begin at the first page"

Key = tuple[int, float, int, str]
"""Sorts hits: scored ones (0) before others (1), by -score, then by -activity, then by what tells threads apart."""
_T = TypeVar("_T")


class Place(NamedTuple):
    """A found thread in the order of hits; `thread`: the number that its index knows it by."""

    key: Key
    thread: int

    @property
    def score(self) -> float:
        """0.0 where it was not scored."""
        return -self.key[1]


def key_of(activity: int, name: str, *, score: float | None = None) -> Key:
    """The key of a thread last active at `activity` (microseconds); `name` settles a tie; None: it is not scored."""
    return (1, 0.0, -activity, name) if score is None else (0, -score, -activity, name)


def score_of(*, terms: int, covered: int, level: int, age: int) -> float:
    """The score of a thread. Of the `terms` asked for its header has `covered`, and the rest stand in the field
    `level` of a message; `age`: microseconds since its last activity."""
    weight = 1.0
    if terms:
        weight = (covered * HEADER_WEIGHT + (terms - covered) * WEIGHTS[level]) / terms
    days = max(age, 0) / _DAY
    return weight * (1 + _FRESHNESS * float(2 ** (-days / _HALF_LIFE_DAYS)))


def heaviest_of(fields: int) -> int:
    """The level of a message with these fields (bits, as in `FIELDS`), all of which have the words."""
    return (fields & -fields).bit_length() - 1 if fields else OUTPUT


def lightest_of(fields: int) -> int:
    """The level of a message with these fields that is safe to say, whichever of them has the words."""
    return fields.bit_length() - 1 if fields else OUTPUT


class Cursor(Struct, frozen=True, array_like=True):
    """`now` of the first page (scores and times like `7d` are of that moment), the key of the last hit, and a
    check that the cursor is used with the query it was made for: the next page starts after that hit, whatever
    was added meanwhile."""

    now: int
    key: Key
    check: int

    def must_fit(self, query: Query) -> None:
        """InvalidInput where it was made for another query."""
        if self.check != check_of(query):
            raise InvalidInput("this cursor belongs to another query", _FROM_THE_START)


def check_of(query: Query) -> int:
    """A short mark of what a query asks for."""
    # The terms too: the same text has others while it is being typed. Of filters the text alone: `7d` is another
    # moment on each page.
    asked = (query.text, query.terms, [one.text for one in query.filters])
    return zlib.crc32(msgspec.msgpack.encode(asked))


def format_cursor(value: Any) -> str:
    """A Cursor, or what else a list goes on from, as opaque text that is safe in a URL."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(value)).decode().rstrip("=")


def parse_cursor(text: str, kind: type[_T]) -> _T:
    """The value of that type which `format_cursor` made `text` of; InvalidInput where it did not."""
    try:
        padded = text + "=" * (-len(text) % 4)
        return msgspec.msgpack.decode(
            base64.b64decode(padded.encode(), altchars=b"-_", validate=True), type=kind
        )
    except (ValueError, binascii.Error, msgspec.DecodeError) as error:
        raise no_cursor(text) from error


def no_cursor(text: str) -> InvalidInput:
    """What is raised for a text that no list gave out."""
    return InvalidInput(f"{text[:40]!r} is not a cursor", _FROM_THE_START)
