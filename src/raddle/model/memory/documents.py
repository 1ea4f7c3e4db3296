"""A store's files as plain values and back: JSON or YAML, UTF-8, with their format's number; three errors told apart.

The number is looked at before anything else is, so that a file from the future is never half-understood. Fields
that this version does not know are kept at every level (`unknown`), and come back where the file is written again.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from raddle.model.errors import BrokenFormat, InvalidInput, NewerFormat, OlderFormat
from raddle.model.memory.yaml_text import parse_yaml
from raddle.model.tolerant_json import decode_tolerantly

SCHEMA_VERSION = 1

AnyStruct = TypeVar("AnyStruct", bound=Struct)
Read = Callable[[Any], Any]
_UNKNOWN = "unknown"
_PLAIN = frozenset({str, int, float, bool, type(None)})
_SILENT: tuple[Any, ...] = ("", (), {})


def read_json(data: bytes, what: str) -> dict[str, Any]:
    """The object in `data`, of a format that we read; else BrokenFormat, OlderFormat or NewerFormat."""
    try:
        plain = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        try:
            plain, _ = decode_tolerantly(data)
        except BrokenFormat as error:
            raise BrokenFormat(f"{what} is {error.message}") from error
    return checked(plain, what)


def read_yaml(data: bytes, what: str) -> dict[str, Any]:
    """The same of a YAML document."""
    return checked(parse_yaml(text_of(data, what), what), what)


def text_of(data: bytes, what: str) -> str:
    """`data` as text; BrokenFormat where it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BrokenFormat(f"{what} is not UTF-8 (byte {error.start})") from error


def checked(plain: Any, what: str) -> dict[str, Any]:
    """`plain` where it is a mapping of a format that we read; a mapping that names none has the first one."""
    if not isinstance(plain, dict):
        raise BrokenFormat(f"{what} holds no fields")
    version = plain.get("schema_version", SCHEMA_VERSION)
    if not isinstance(version, int) or isinstance(version, bool):
        raise BrokenFormat(f"{what} has no number as its schema_version")
    if version > SCHEMA_VERSION:
        raise NewerFormat(what, version, SCHEMA_VERSION)
    if version < SCHEMA_VERSION:
        raise OlderFormat(f"{what} has format {version}, which is no longer read")
    return plain


def write_json(value: Struct) -> bytes:
    """`value` as UTF-8 JSON, two spaces a level, a newline at the end; InvalidInput where a text is no Unicode."""
    try:
        return msgspec.json.format(msgspec.json.encode(plain_of(value)), indent=2) + b"\n"
    except (UnicodeEncodeError, msgspec.MsgspecError, TypeError) as error:
        raise InvalidInput(f"cannot be written as JSON: {error}") from error


def read_fields(
    plain: Any, kind: type[AnyStruct], what: str, nested: Mapping[str, Read] | None = None
) -> AnyStruct:
    """A mapping as a `kind`. A field that does not fit is BrokenFormat where `kind` cannot do without it or `nested`
    reads it, else it counts as unknown and is kept as it stands."""
    if not isinstance(plain, dict):
        raise BrokenFormat(f"{what} holds no fields")
    fields: dict[str, Any] = {}
    unknown: dict[str, Any] = {}
    specs = _fields(kind)
    for name, value in plain.items():
        if name not in specs:
            unknown[name] = value
        elif nested and name in nested and value is not None:
            fields[name] = nested[name](value)
        else:
            try:
                fields[name] = msgspec.convert(value, specs[name].type)
            except msgspec.ValidationError as error:
                if specs[name].required:
                    raise BrokenFormat(f"{what}: {name} is no {_type_name(specs[name].type)}") from error
                unknown[name] = value
    missing = [name for name, spec in specs.items() if spec.required and name not in fields]
    if missing:
        raise BrokenFormat(f"{what} has no {missing[0]}")
    return kind(**fields, **{_UNKNOWN: unknown})


def plain_of(value: Any) -> Any:
    """`value` as plain JSON types: fields in their order, those of its LEFT_OUT only where they say something, then
    what was unknown. What did not fit a field comes back unless the field was set since."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Struct):
        unknown: dict[str, Any] = getattr(value, _UNKNOWN)
        plain: dict[str, Any] = {}
        for name, is_required, may_be_left_out in _written(type(value)):
            field = getattr(value, name)
            is_silent = not is_required and (field is None or field in _SILENT)
            if is_silent and name in unknown:
                plain[name] = unknown[name]
            elif not (is_silent and may_be_left_out):
                plain[name] = field if type(field) in _PLAIN else plain_of(field)
        return plain | {name: kept for name, kept in unknown.items() if name not in plain}
    if isinstance(value, dict):
        return {key: part if type(part) in _PLAIN else plain_of(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [part if type(part) in _PLAIN else plain_of(part) for part in value]
    return value


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts that somebody wrote by hand: one text alone is a list of one, numbers are their text."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and not any(isinstance(part, dict | list) or part is None for part in value):
        return tuple(part if isinstance(part, str) else msgspec.json.encode(part).decode() for part in value)
    raise BrokenFormat("not a list of texts")


@functools.cache
def _fields(kind: type[Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """The fields of a kind of file but for `unknown`; to work them out takes longer than to write a file."""
    return {field.name: field for field in msgspec.structs.fields(kind) if field.name != _UNKNOWN}


@functools.cache
def _written(kind: type[Struct]) -> list[tuple[str, bool, bool]]:
    """(name, is required, is left out where it says nothing) of each field, in their order."""
    left_out: frozenset[str] = getattr(kind, "LEFT_OUT", frozenset())
    return [(name, spec.required, name in left_out) for name, spec in _fields(kind).items()]


def _type_name(kind: Any) -> str:
    words = {str: "text", int: "whole number", bool: "yes or no"}
    return words.get(kind) or re.sub(r"[\[\]., ]+", " ", getattr(kind, "__name__", str(kind))).strip()
