"""What may be written into a record's open fields (payloads, key results, tags, links): JSON that every reader takes.

An encoder alone does not refuse enough: it makes null of NaN, and whoever reads the file is told of no value
where there was a wrong one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from raddle.model.errors import BrokenFormat, InvalidInput, TooLarge
from raddle.model.memory.documents import texts
from raddle.model.memory.names import shown

DEEPEST = 100
"""Levels of nesting, as in the YAML of a store."""
LARGEST = 1024 * 1024
"""Bytes of one record: what is larger is an artifact, and git would hold each version of it for good."""
LONGEST_TAG = 200
LONGEST_LINK = 2000
_MOST_DIGITS = 300
"""Of a whole number; a reader that takes them for floats holds no more."""


def check_payload(value: Any, what: str) -> dict[str, Any]:
    """`value` where it is an object that JSON can hold as it stands; InvalidInput says what in it cannot."""
    if not isinstance(value, dict):
        raise InvalidInput(f"{what} is no JSON object", 'it looks like {"name": "value"}')
    waiting: list[tuple[Any, int]] = [(value, 1)]
    while waiting:
        part, depth = waiting.pop()
        inner = _inner(part, what)
        if inner and depth > DEEPEST:
            raise InvalidInput(f"{what} is nested more than {DEEPEST} levels deep", "make it flatter")
        waiting += ((each, depth + 1) for each in inner)
    return value


def _inner(part: Any, what: str) -> list[Any]:
    """What a container holds; InvalidInput where `part` is nothing that JSON has."""
    match part:
        case dict():
            for key in part:
                if not isinstance(key, str):
                    raise InvalidInput(
                        f"{what} has a key that is no text: {shown(str(key))}", "make it a text"
                    )
            return [*part, *part.values()]
        case list() | tuple():
            return list(part)
        case str():
            _check_text(part, what)
        case None | bool():
            pass
        case int() | float():
            _check_number(part, what)
        case _:
            raise InvalidInput(
                f"{what} holds a {type(part).__name__}, which JSON does not have", "make it a text"
            )
    return []


def _check_number(number: Any, what: str) -> None:
    if isinstance(number, float) and not math.isfinite(number):
        raise InvalidInput(f"{what} holds {number}, which JSON has no number for", "give null, or a text")
    if isinstance(number, int) and abs(number) >= 10**_MOST_DIGITS:
        raise InvalidInput(f"{what} holds a number of more than {_MOST_DIGITS} digits", "give it as a text")


def _check_text(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{what} holds half a character: {shown(text)}", "give it as whole Unicode"
        ) from error


def check_texts(values: str | Iterable[str], what: str, longest: int) -> tuple[str, ...]:
    """Each of `values` once, without white space around it; one text alone is a list of one.

    InvalidInput for one that is empty, too long, no Unicode or more than a line.
    """
    try:
        given = texts(values if isinstance(values, str) else list(values))
    except (BrokenFormat, TypeError) as error:
        raise InvalidInput(f"{what}s are no list of texts", "give each as a text") from error
    checked = [text.strip() for text in given]
    for text in checked:
        if not text:
            raise InvalidInput(f"a {what} is empty", "leave it out")
        if len(text) > longest:
            raise InvalidInput(f"{what} {shown(text)} is longer than {longest} characters", "shorten it")
        if not text.isprintable():
            raise InvalidInput(f"{what} {shown(text)} holds a character that cannot be seen", "take it out")
    return tuple(dict.fromkeys(checked))


def check_size(data: bytes, what: str) -> bytes:
    """`data` where it is not too large for a record; else TooLarge."""
    if len(data) > LARGEST:
        raise TooLarge(
            f"{what} has {len(data):,} bytes; {LARGEST:,} are the most",
            "keep it as an artifact, `raddle artifact add`, and name that here",
        )
    return data
