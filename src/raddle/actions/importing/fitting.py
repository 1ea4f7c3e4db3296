"""JSON values as Structs, whatever part of them fits: what a strict decoder refused is read as far as it goes.

Owns the making-do with fields of unexpected types, for importers that name only the fields they read. A second
way of it would drop other fields, and one damaged record would be two messages on two days.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

from raddle.actions.importing.records import UNREADABLE
from raddle.model.tolerant_json import DEEPEST, decode_tolerantly

S = TypeVar("S", bound=Struct)
T = TypeVar("T")

Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
"""How many there are of something: JSON knows larger numbers, and no store does."""

NOTHING = Raw(b"null")
"""Stands where a record says nothing."""

encode = msgspec.json.Encoder().encode
_Scalar = str | int | float | bool | None
_decode_flat = msgspec.json.Decoder(dict[str, _Scalar] | _Scalar).decode
_decode_plain = msgspec.json.Decoder().decode


def decoded(data: bytes | str | Raw, kind: type[T]) -> T | None:
    """`data` as a `kind`; None where it is something else."""
    try:
        return msgspec.json.decode(data, type=kind)
    except UNREADABLE:
        return None


def fitting(value: dict[str, Any], kind: type[Struct]) -> dict[str, Any]:
    """The fields of `value` that `kind` takes as they are."""
    return {
        name: value[name]
        for name in kind.__struct_encode_fields__
        if name in value and decoded(encode({name: value[name]}), kind) is not None
    }


def fitted(value: dict[str, Any], kind: type[S]) -> S:
    """A `kind` of the fields of `value` that it takes as they are."""
    return msgspec.json.decode(encode(fitting(value, kind)), type=kind)


def plain_of(raw: Raw) -> tuple[Any, list[str]]:
    """`raw` as plain JSON, cut where it is nested too deeply; and what was repaired."""
    try:
        return _decode_flat(raw), []  # as nearly all arguments of calls are: what is flat needs no cut
    except UNREADABLE:
        data = bytes(raw)
    if data.count(b"[") + data.count(b"{") > DEEPEST:
        return decode_tolerantly(data)
    try:
        return _decode_plain(data), []
    except UNREADABLE:
        return decode_tolerantly(data)
