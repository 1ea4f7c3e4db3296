"""The further fields of a message, as a caller names them: each of its field's type, or InvalidInput.

Owns which fields those are. Another list would let a caller set what only an append may (a place in the order of
the thread, the device that wrote it).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from raddle.model.errors import InvalidInput
from raddle.model.threads.message import Message
from raddle.model.threads.plain_values import plain_as, plain_text

_SET_BY_THE_APPEND = frozenset({"id", "parent_id", "branch_id", "role", "content", "ts", "seq", "device"})
_TYPES: Mapping[str, Any] = {
    field.name: field.type
    for field in msgspec.structs.fields(Message)
    if field.name not in _SET_BY_THE_APPEND
}


def given_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """`fields` as the message keeps them; those that an append sets itself are none of them."""
    return {name: _given(name, value) for name, value in fields.items()}


def _given(name: str, value: object) -> Any:
    kind = _TYPES.get(name)
    if kind is None:
        raise InvalidInput(
            f"a message is given no {name[:60]!r}", f"it may be given {', '.join(sorted(_TYPES))}"
        )
    if kind is str:
        return plain_text(value, name)
    return plain_as(kind, value, name)
