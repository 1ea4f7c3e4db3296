"""Where a page of hits ended, as opaque text: the next page starts after it, whatever was added meanwhile."""

from __future__ import annotations

import base64
import binascii
import zlib

import msgspec
from msgspec import Struct

from raddle.model.errors import InvalidInput
from raddle.model.threads.query import Query

Key = tuple[int, float, int, str]
"""Sorts hits: scored ones (0) before others (1), by -score, then by -activity, then by id."""


class Cursor(Struct, frozen=True, array_like=True):
    """`now` of the first page (scores and times like `7d` are of that moment), the key of the last hit, and a
    check that the cursor is used with the query it was made for."""

    now: int
    key: Key
    check: int

    def must_fit(self, query: Query) -> None:
        """InvalidInput where it was made for another query."""
        if self.check != check_of(query):
            raise InvalidInput(
                "this cursor belongs to another query", "leave it out to begin at the first page"
            )


def check_of(query: Query) -> int:
    """A short mark of what a query asks for."""
    # The terms too: the same text has others while it is being typed. Of filters the text alone: `7d` is another
    # moment on each page.
    asked = (query.text, query.terms, [one.text for one in query.filters])
    return zlib.crc32(msgspec.msgpack.encode(asked))


def format_cursor(cursor: Cursor) -> str:
    """The cursor as text, safe in a URL."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(cursor)).decode().rstrip("=")


def parse_cursor(text: str) -> Cursor:
    """The cursor that `text` is; InvalidInput where it is none."""
    try:
        padded = text + "=" * (-len(text) % 4)
        return msgspec.msgpack.decode(
            base64.b64decode(padded.encode(), altchars=b"-_", validate=True), type=Cursor
        )
    except (ValueError, binascii.Error, msgspec.DecodeError) as error:
        raise InvalidInput(
            f"{text[:40]!r} is not a cursor", "leave it out to begin at the first page"
        ) from error
