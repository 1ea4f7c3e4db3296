"""What a program hands over, made plain: exactly the types that a thread file holds, or InvalidInput.

Owns the door between any Python value and what may be stored. A second one would let through what no reader of a
thread takes, and the edit that was acknowledged would be lost with the line it stands in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from raddle.model.errors import InvalidInput
from raddle.model.tolerant_json import DEEPEST

Kind = TypeVar("Kind")

_LONGEST_SHOWN = 60
_JSON_TYPES = (bool, int, float)


def shown(value: object, how: Callable[[Any], str] = repr) -> str:
    """`value` in words, as `how` makes them: an exact str, and never an error, whatever its own code does."""
    try:
        return str.__str__(how(value))
    except Exception:  # noqa: BLE001  the code is the program's, and its words are asked for while it fails already
        if type(value) is int:
            return hex(value)  # past the digits that Python will print
        return f"<{type(value).__name__} that says nothing of itself>"


def is_text(value: object) -> bool:
    """Is it a text, of whatever class? What only claims to be one (a proxy) is none."""
    return issubclass(type(value), str)


def plain_text(value: object, what: str) -> str:
    """`value` as an exact str, also where it is of a class made from that; InvalidInput naming `what` it was for."""
    if type(value) is str:
        return value
    if not is_text(value):
        raise InvalidInput(f"{what} is a text, not {type(value).__name__}", "str() makes a text of a value")
    return str.__str__(value)


def plain_text_or_none(value: object, what: str) -> str | None:
    """The same, where None says that there is none."""
    return None if value is None else plain_text(value, what)


def named(value: object, what: str) -> str:
    """A text that names something, and so is not empty."""
    text = plain_text(value, what)
    if not text:
        raise InvalidInput(f"{what} is an empty text", "it has to name something")
    return text


def flag(value: object, what: str) -> bool:
    """True or False and nothing that only counts as one: `"no"` would be a yes."""
    if type(value) is not bool:
        raise InvalidInput(f"{what} is True or False, not {_brief(value)}", "bool() makes one of a value")
    return value


def count(value: object, what: str) -> int:
    """A whole number."""
    if type(value) is bool or not issubclass(type(value), int):
        raise InvalidInput(f"{what} is a whole number, not {_brief(value)}", "for example: 1")
    return int.__int__(value)  # type: ignore[arg-type]


def plain_value(value: object, what: str, *, is_any_depth: bool = False) -> Any:
    """`value` as plain JSON: tuples as lists, values of ours as objects, classes made from str, int and float as
    those. InvalidInput for all that would not read back as what it was, NaN included.

    `is_any_depth`: what was read once is taken, however deeply it is nested.
    """
    try:
        return _plain(value, what, -1_000_000 if is_any_depth else 0)
    except RecursionError as error:
        raise _too_deep(what) from error


def _too_deep(what: str) -> InvalidInput:
    return InvalidInput(f"{what} is nested too deeply", f"at most {DEEPEST} levels are kept")


def _plain(value: Any, what: str, depth: int) -> Any:
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if depth > DEEPEST:
        raise _too_deep(what)
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, _JSON_TYPES):
        return _plain_number(value, what)
    if issubclass(kind, dict):
        return {
            plain_text(key, f"a key in {what}"): _plain(item, what, depth + 1)
            for key, item in dict.items(value)
        }
    if issubclass(kind, list | tuple):
        return [_plain(item, what, depth + 1) for item in kind.__iter__(value)]
    if issubclass(kind, Struct):
        return {name: _plain(getattr(value, name), what, depth + 1) for name in kind.__struct_fields__}
    raise InvalidInput(
        f"{what} holds a value of {kind.__name__}, which JSON has no form for",
        "texts, numbers, True, False, None, lists and objects of these are kept",
    )


def _plain_number(value: Any, what: str) -> int | float:
    if issubclass(type(value), float):
        number = float.__float__(value)
        if not math.isfinite(number):
            raise InvalidInput(
                f"{what} holds {number}, which JSON has no form for", "None says that there is none"
            )
        return number
    whole = int.__int__(value)
    try:
        str(whole)
    except ValueError as error:
        raise InvalidInput(
            f"{what} holds a number of too many digits", "str() in hex makes a text of it"
        ) from error
    return whole


def plain_as(kind: type[Kind] | Any, value: object, what: str) -> Any:
    """`value` as the type `kind`, every part of it checked; InvalidInput where it does not fit."""
    plain = plain_value(value, what)
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise InvalidInput(
            f"{what} does not fit: {error}", "the reference says what it is made of"
        ) from error


def _brief(value: object) -> str:
    words = shown(value)
    return words if len(words) <= _LONGEST_SHOWN else f"{words[:_LONGEST_SHOWN]}…"
