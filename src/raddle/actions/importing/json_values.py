"""Where one JSON value ends in bytes that go on after it.

Owns the finding of a value's end without making the value: for files that are one array of many megabytes, and for
what is left of a document that was damaged. A second place that counted brackets would count them otherwise.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw

_decode_raw = msgspec.json.Decoder(Raw).decode
_PLACE = re.compile(r"\(byte (\d+)\)\Z")
_TRAILING, _TRUNCATED = "trailing characters", "truncated"
TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)
"""A text, or what is there of it, or a bracket."""
_OPENS = {ord("{"): ord("}"), ord("["): ord("]")}

UNENDED, MALFORMED = 0, -1
"""What `end_of_value` says where there is no end: more bytes are needed, or no more bytes will help."""


def end_of_value(data: bytes | bytearray | memoryview) -> int:
    """Where the value that `data` begins with ends; UNENDED or MALFORMED where it does not.

    One pass of the strict decoder, to the end of the value and no farther, however much follows.
    """
    try:
        _decode_raw(data)
    except msgspec.DecodeError as error:
        told = str(error)
        found = _PLACE.search(told)
        place = int(found.group(1)) if found is not None else 0  # it counts from 1
        if _TRAILING in told:
            return place - 1
        # A number that is cut after its point is called malformed, at the last byte.
        return UNENDED if _TRUNCATED in told or place == len(data) else MALFORMED
    except RecursionError:
        return MALFORMED
    return len(data)


def end_of_brackets(data: bytes | bytearray | memoryview) -> int:
    """Where the brackets of the object or list that `data` begins with are closed again; 0 where they are not.

    For values that a strict decoder refuses: what stands between brackets and quotes may be anything.
    """
    awaited: list[int] = []
    for token in TOKEN.finditer(data):
        mark = token.group()[0]
        if mark in _OPENS:
            awaited.append(_OPENS[mark])
        elif mark != ord('"'):
            if not awaited or awaited.pop() != mark:
                return 0
            if not awaited:
                return token.end()
        if not awaited:
            return 0
    return 0
