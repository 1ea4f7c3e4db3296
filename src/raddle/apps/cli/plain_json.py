"""Values as the JSON that programs read: always UTF-8, always one document, whatever the text inside holds.

Both streams write JSON (data on stdout, errors on stderr). With a second encoder, one of the two would fail on
the name of a file that is not UTF-8.
"""

from __future__ import annotations

import re
from typing import Any

_HALF = re.compile("[\ud800-\udfff]")


def encoded(value: Any) -> bytes:
    """`value` as compact JSON; what is no character (in a file name that is not UTF-8) becomes U+FFFD."""
    import msgspec  # noqa: PLC0415  not needed for a help text

    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_mended(msgspec.to_builtins(value)))


def mended(text: str) -> str:
    """`text` with U+FFFD for what is no character: bytes of an argument or a path that are not UTF-8."""
    return text if text.isascii() else _HALF.sub("\ufffd", text)


def _mended(value: Any) -> Any:
    match value:
        case str():
            return mended(value)
        case dict():
            return {_mended(key): _mended(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_mended(inner) for inner in value]
        case _:
            return value
