"""What a program hands over, as the values that a message keeps: tool calls, usage, results of tools.

Owns which shapes of which model APIs are understood, so that a program need not translate and no two places
translate differently. What is none of them is refused before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from raddle.model.errors import InvalidInput
from raddle.model.threads.message import ToolCall, Usage
from raddle.model.threads.plain_values import is_text, plain_text, plain_value, shown
from raddle.model.tolerant_json import DEEPEST

_IDS = ("id", "call_id")
_NAMES = ("tool_name", "name")
_ARGUMENTS = ("arguments_json", "arguments", "input", "args")
_TOKENS = {
    "input_tokens": "input_tokens",
    "prompt_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "completion_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}

MOST = 10**15
"""More tokens, or dollars, than any response has: a greater number is an error of whoever counted."""

ToolCallLike = ToolCall | Mapping[str, Any]
UsageLike = Usage | Mapping[str, Any]


def tool_calls_of(given: Iterable[ToolCallLike] | None) -> tuple[ToolCall, ...]:
    """Each of `given` as `tool_call_of` reads it; None is no call."""
    if given is None:
        return ()
    if not isinstance(given, Iterable):
        raise InvalidInput(
            f"tool calls are a list, not {type(given).__name__}", "leave them out where there are none"
        )
    return tuple(tool_call_of(call) for call in given)


def tool_call_of(given: ToolCallLike) -> ToolCall:
    """A call, from our own value or from a mapping: ours, OpenAI's (`function` inside) or Anthropic's.

    Arguments may be any JSON value; a text that is a JSON object is read as that object. InvalidInput where
    there is no id or no name.
    """
    if isinstance(given, ToolCall):
        return _checked(given.id, given.tool_name, given.arguments_json)
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"a tool call is a ToolCall or a mapping, not {type(given).__name__}",
            'for example {"id": "call_1", "name": "read_file", "arguments": {"path": "a.py"}}',
        )
    function = given.get("function")
    inside = function if isinstance(function, Mapping) else given
    return _checked(_first(given, _IDS), _first(inside, _NAMES), _first(inside, _ARGUMENTS))


def _checked(call_id: Any, name: Any, arguments: Any) -> ToolCall:
    if not is_text(call_id) or not call_id or not is_text(name):
        raise InvalidInput(
            "a tool call needs an id and a name, both texts",
            'for example {"id": "call_1", "name": "read_file", "arguments": {"path": "a.py"}}',
        )
    call_id, name = plain_text(call_id, "the id of a call"), plain_text(name, "a tool's name")
    return ToolCall(id=call_id, tool_name=name, arguments_json=_arguments(arguments))


def _arguments(given: Any) -> Any:
    if is_text(given):
        given = plain_text(given, "arguments")
    if isinstance(given, str) and given.lstrip()[:1] == "{":
        try:
            return msgspec.json.decode(given)
        except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
            return given
    return plain_json(given)


def _first(given: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((given[name] for name in names if given.get(name) is not None), None)


def usage_of(given: UsageLike | None) -> Usage | None:
    """Tokens of a response, by our names, OpenAI's or Anthropic's; what else stands there is left out.

    InvalidInput where a number is none, or where nothing that is known stands there.
    """
    if given is None:
        return None
    if isinstance(given, Usage):
        for name in Usage.__struct_fields__:
            if getattr(given, name) is not None:
                _number(name, name, getattr(given, name))
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"usage is a Usage or a mapping, not {type(given).__name__}",
            'for example {"input_tokens": 812, "output_tokens": 64}',
        )
    known: dict[str, int | float] = {}
    for name, value in given.items():
        field = _TOKENS.get(name, "cost_usd" if name == "cost_usd" else "")
        if not field or value is None:
            continue
        known.setdefault(field, _number(name, field, value))
    if given and not known:
        raise InvalidInput(
            "usage says nothing that is known here",
            "name input_tokens, output_tokens, cache_read_tokens, cache_write_tokens or cost_usd",
        )
    return Usage(**known) if known else None  # type: ignore[arg-type]


def _number(name: str, field: str, value: Any) -> int | float:
    is_number = not isinstance(value, bool) and isinstance(value, int | float)
    if is_number and 0 <= value <= MOST:  # NaN is in no range
        if field == "cost_usd":
            return float(value)
        if value == int(value):
            return int(value)
    kind = "dollars" if field == "cost_usd" else "a whole number of tokens"
    raise InvalidInput(
        f"usage: {name} is {shown(value)[:60]}, which is not {kind}", "it is a number from 0 on"
    )


def text_of(given: object, what: str) -> str:
    """`given`, which has to be a text; InvalidInput naming `what` it was for."""
    return plain_text(given, what)


def result_text(value: Any) -> str:
    """What a tool gave back, as the text of its message: a text as it is, bytes as UTF-8 with escapes for those that
    are none, all else as JSON."""
    if value is None:
        return ""
    if is_text(value):
        return plain_text(value, "a result")
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "backslashreplace")
    plain = plain_json(value)
    return plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()


def plain_json(value: Any) -> Any:
    """`value` as plain JSON; what JSON has no form for becomes its `repr`, half a character inside its escape."""
    if is_text(value):
        return plain_text(value, "a text")
    try:
        plain = msgspec.json.decode(msgspec.json.encode(value, enc_hook=_hooked))
        return plain_value([[[[plain]]]], "a value")[0][0][0][0]  # as deep as in the call of a message
    except Exception:  # noqa: BLE001  the code of the program's own values is run, and may do anything
        return _piece_by_piece(value, ())


def _hooked(value: Any) -> Any:
    kind = type(value)
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, int):
        return int.__int__(value)
    if issubclass(kind, float):
        return float.__float__(value)
    return dict(value) if isinstance(value, Mapping) else shown(value)


def _piece_by_piece(value: Any, around: tuple[int, ...]) -> Any:
    """For what cannot be encoded in one go: only the part that has no form becomes words. `around`: what it is in."""
    kind = type(value)
    if issubclass(kind, str):
        return _escaped(str.__str__(value))
    within = (*around, id(value))
    if len(within) > DEEPEST - 8 or id(value) in around:
        return _escaped(shown(value))
    if issubclass(kind, dict):
        return {_escaped(shown(key, str)): _piece_by_piece(item, within) for key, item in dict.items(value)}
    if kind in (list, tuple, set, frozenset):
        return [_piece_by_piece(item, within) for item in value]
    try:
        return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_hooked))
    except Exception:  # noqa: BLE001  as above
        return _escaped(shown(value))


def _escaped(text: str) -> str:
    """`text` with halves of characters as the escapes that JSON has for them."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return whole.encode("utf-8", "backslashreplace").decode()


def is_true(value: object) -> bool:
    """Does `value` count as true? So does one that will not say."""
    try:
        return bool(value)
    except Exception:  # noqa: BLE001  the code is the program's
        return True
