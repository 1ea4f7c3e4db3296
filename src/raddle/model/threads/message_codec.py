"""Messages to and from plain JSON: the fast way for what raddle wrote, a forgiving way for all else.

Fields that this version does not know survive (`Message.unknown`), and so does a field of a type it does not
expect: neither costs the message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from raddle.model.errors import BrokenFormat
from raddle.model.threads.message import Attachment, Message, ToolCall, Usage

_FIELDS = frozenset(Message.__struct_fields__) - {"unknown"}
_TYPES: Mapping[str, Any] = {field.name: field.type for field in msgspec.structs.fields(Message)}
_REQUIRED = frozenset({"id", "role"})
_MIXED = frozenset({"tool_calls", "attachments", "usage"})
"""Fields whose parts may hold keys that we do not know: read, and also kept as they were read."""
_MISFIT = object()


def encode_message(message: Message) -> Any:
    """What a JSON encoder writes for `message`: itself, or a dict where it carries unknown fields."""
    if not message.unknown:
        return message
    known: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(message, unknown={}))
    return known | {
        name: value for name, value in message.unknown.items() if name not in known or name in _MIXED
    }


def decode_message(plain: Any) -> Message:
    """Plain JSON as a message; BrokenFormat only where it is no object, or names no id or role."""
    if not isinstance(plain, dict):
        raise BrokenFormat("a message is not a JSON object")
    try:
        return msgspec.convert(plain, Message)
    except msgspec.ValidationError:
        return _decode_field_by_field(plain)


def misfits(message: Message) -> list[str]:
    """The fields that hold something else than they should: kept as they were read, and read by nobody.

    null says that there is nothing, and fits everywhere.
    """
    return [
        name
        for name, value in message.unknown.items()
        if name in _FIELDS
        and value is not None
        and (name not in _MIXED or not isinstance(value, dict if name == "usage" else list))
    ]


def _decode_field_by_field(plain: dict[str, Any]) -> Message:
    for name in _REQUIRED:
        if not isinstance(plain.get(name), str):
            raise BrokenFormat(f"a message has no {name}")
    fields: dict[str, Any] = {}
    unknown: dict[str, Any] = {}
    for name, value in plain.items():
        fitted = _fit(name, value) if name in _FIELDS else _MISFIT
        if fitted is not _MISFIT:
            fields[name] = fitted
        if fitted is _MISFIT or name in _MIXED:
            unknown[name] = value
    return Message(**fields, unknown=unknown)


def _fit(name: str, value: Any) -> Any:
    """`value` as the field `name` wants it, or _MISFIT."""
    if name in ("tool_calls", "attachments") and isinstance(value, list):
        kind = ToolCall if name == "tool_calls" else Attachment
        items = [_convert(_only_known(item, kind), kind) for item in value]
        return tuple(item for item in items if item is not _MISFIT)
    if name == "usage":
        return _convert(_only_known(value, Usage), Usage)
    return _convert(value, _TYPES[name])


def _only_known(value: Any, kind: type[msgspec.Struct]) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: part for key, part in value.items() if key in kind.__struct_fields__}


def _convert(value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return _MISFIT
