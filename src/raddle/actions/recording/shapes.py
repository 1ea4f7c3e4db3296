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

ToolCallLike = ToolCall | Mapping[str, Any]
UsageLike = Usage | Mapping[str, Any]


def tool_calls_of(given: Iterable[ToolCallLike]) -> tuple[ToolCall, ...]:
    """Each of `given` as `tool_call_of` reads it."""
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
    if not isinstance(call_id, str) or not call_id or not isinstance(name, str):
        raise InvalidInput(
            "a tool call needs an id and a name, both texts",
            'for example {"id": "call_1", "name": "read_file", "arguments": {"path": "a.py"}}',
        )
    return ToolCall(id=call_id, tool_name=name, arguments_json=_arguments(arguments))


def _arguments(given: Any) -> Any:
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
    if given is None or isinstance(given, Usage):
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
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidInput(f"usage: {name} is {value!r}, which is no number")
        known.setdefault(field, float(value) if field == "cost_usd" else int(value))
    if given and not known:
        raise InvalidInput(
            "usage says nothing that is known here",
            "name input_tokens, output_tokens, cache_read_tokens, cache_write_tokens or cost_usd",
        )
    return Usage(**known) if known else None  # type: ignore[arg-type]


def text_of(given: object, what: str) -> str:
    """`given`, which has to be a text; InvalidInput naming `what` it was for."""
    if not isinstance(given, str):
        raise InvalidInput(f"{what} is a text, not {type(given).__name__}", "str() makes a text of a value")
    return given


def result_text(value: Any) -> str:
    """What a tool gave back, as the text of its message: a text as it is, bytes as UTF-8, all else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    plain = plain_json(value)
    return plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()


def plain_json(value: Any) -> Any:
    """`value` as plain JSON; what JSON has no form for becomes its `repr`."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value, enc_hook=repr))
    except UnicodeEncodeError:  # half a character somewhere: the store mends it, and says so
        return value if isinstance(value, str) else repr(value).encode("utf-8", "replace").decode()
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError, OverflowError):
        return _shown(value)


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except RecursionError:
        return f"<{type(value).__name__} that is nested too deeply>"
