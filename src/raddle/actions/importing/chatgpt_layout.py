"""A ChatGPT conversation, one object of JSON, as lines: its header, then the nodes of its tree.

Owns the order of the lines and their bytes: equal conversations give equal lines on every machine, a parent stands
before its children, and for the rest what was said first comes first. Damage is found node by node, so that it
costs the node it is in: a node that cannot be read becomes a line that the reader of lines mends or reports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from raddle.actions.importing.fitting import NOTHING
from raddle.actions.importing.json_values import end_of_brackets, end_of_value
from raddle.actions.importing.records import UNREADABLE
from raddle.model.errors import BrokenFormat
from raddle.model.tolerant_json import decode_tolerantly

CAPTURED = "raw_provider_payload"
"""Where a browser's capture of a page has the conversation as ChatGPT's own server gave it."""

_decode_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_plain = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(order="sorted").encode
_LATEST = 253_402_300_800.0
"""Seconds; the year 10000."""
_ENTRY = re.compile(rb'[\s,\0]*"((?:[^"\\]|\\.)*)"\s*:\s*(?=\{)')
_NEXT_ENTRY = re.compile(rb'"([^"\\]{1,200})"\s*:\s*(?=\{\s*"id"\s*:\s*"\1"\s*,)')
_MAPPING = re.compile(rb'"mapping"\s*:\s*(?=\{)')
_SCALAR = rb'"(%s)"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|null|true|false)'
_HEADER_FIELD = re.compile(
    _SCALAR % b"title|conversation_id|id|create_time|update_time|current_node|default_model_slug|gizmo_id"
)


class _Node(Struct, frozen=True, gc=False):
    """A node's line, and what its place depends on. `at`: microseconds, or 0."""

    key: str
    parent: str | None
    children: list[Any]
    at: int
    line: bytes


class _Raws(NamedTuple):
    """A conversation taken apart: header fields, and (key, bytes) of each node."""

    header: dict[str, Any]
    nodes: list[tuple[str, bytes | Raw]]


def microseconds(seconds: float | None) -> int | None:
    """A time of the export in microseconds since 1970; None where it is none."""
    if seconds is None or not 0 < seconds < _LATEST:
        return None
    return round(seconds * 1e6)


def conversation_lines(data: bytes) -> list[bytes]:
    """The lines of the conversation that `data` is. BrokenFormat where nothing in it can be one."""
    raws = _apart(data) or _apart_damaged(data)
    if raws is None:
        raise BrokenFormat("no conversation of ChatGPT")
    nodes = [node for key, raw in raws.nodes if (node := _node(key, raw)) is not None]
    return [_header_line(raws.header), *(node.line for node in _in_order(nodes))]


def _apart(data: bytes | Raw) -> _Raws | None:
    """The parts of a conversation whose own brackets and names are sound; None where they are not."""
    try:
        fields = _decode_fields(data)
        if "mapping" not in fields and CAPTURED in fields:
            fields = _decode_fields(fields[CAPTURED])
        nodes = _decode_fields(fields.pop("mapping", NOTHING))
        header = {name: _decode_plain(raw) for name, raw in fields.items()}
    except UNREADABLE:
        return None
    return _Raws(header, list(nodes.items()))


def _header_line(header: dict[str, Any]) -> bytes:
    session = header.get("conversation_id") or header.get("id")
    rest = {name: value for name, value in header.items() if name != "conversation_id"}
    return _joined({"conversation_id": session}, rest)


def _node(key: str, raw: bytes | Raw) -> _Node | None:
    """The node of `raw`, which stands under `key`; None where there is nothing to read."""
    try:
        value = _decode_plain(raw)
    except UNREADABLE:
        return _damaged_node(key, bytes(raw))
    if not isinstance(value, dict):
        return None
    parent = value.pop("parent", None)
    value.pop("id", None)
    return _made(key, parent, value, _joined({"id": key, "parent": parent}, value))


def _damaged_node(key: str, raw: bytes) -> _Node:
    r"""Such a node goes on as it stands, on one line: a raw `\n` in it is white space, or damage."""
    value: Any = None
    try:
        value, _ = decode_tolerantly(raw.replace(b"\0", b""))
    except (BrokenFormat, RecursionError):
        value = None
    known = value if isinstance(value, dict) else {}
    return _made(key, known.get("parent"), known, raw.replace(b"\r", b" ").replace(b"\n", b" "))


def _made(key: str, parent: Any, node: dict[str, Any], line: bytes) -> _Node:
    children = node.get("children")
    return _Node(
        key,
        parent if isinstance(parent, str) else None,
        children if isinstance(children, list) else [],
        _time_of(node),
        line,
    )


def _time_of(node: dict[str, Any]) -> int:
    said = node.get("message")
    seconds = said.get("create_time") if isinstance(said, dict) else None
    return microseconds(seconds if isinstance(seconds, int | float) else None) or 0


def _joined(first: dict[str, Any], rest: dict[str, Any]) -> bytes:
    """An object that begins with `first`, so that a line is known by its beginning."""
    if not rest:
        return _encode(first)
    return _encode(first)[:-1] + b"," + _encode(rest)[1:]


def _in_order(nodes: list[_Node]) -> list[_Node]:
    """Parents first, then by time, then as their parent lists them.

    A node without a time, or with one before its parent's, follows its parent.
    """
    known = {node.key: node for node in nodes}
    ranks = {
        child: rank for node in nodes for rank, child in enumerate(node.children) if isinstance(child, str)
    }
    moments: dict[str, int] = {}
    for node in nodes:
        path: dict[str, _Node] = {}
        at: _Node | None = node
        while at is not None and at.key not in moments and at.key not in path:
            path[at.key] = at
            at = known.get(at.parent) if at.parent is not None else None
        moment = moments.get(at.key, 0) if at is not None else 0
        for one in reversed(path.values()):
            moment = moments[one.key] = max(one.at, moment + 1)
    return sorted(known.values(), key=lambda node: (moments[node.key], ranks.get(node.key, 0), node.key))


def _apart_damaged(data: bytes) -> _Raws | None:
    """The parts of a conversation that is damaged somewhere: each node that can be told from its neighbours."""
    found = _MAPPING.search(data)
    if found is None:
        return None
    nodes: list[tuple[str, bytes | Raw]] = []
    end = found.end() + 1
    for key, start, after in _entries(data, end):
        nodes.append((key, data[start:after].rstrip(b" \t\r\n,")))
        end = after
    header = _damaged_header(data[: found.start()] + data[end:])
    return _Raws(header, nodes) if nodes else None


def _entries(data: bytes, at: int) -> Iterator[tuple[str, int, int]]:
    """(key, start, end) of the nodes from `at` on: a sound one ends where it ends, a damaged one before the next."""
    while (entry := _ENTRY.match(data, at)) is not None or (
        entry := _NEXT_ENTRY.search(data, at)
    ) is not None:
        start = entry.end()
        at = _end_of_entry(data, start, _NEXT_ENTRY.search(data, start))
        yield entry.group(1).decode(errors="replace"), start, at


def _end_of_entry(data: bytes, start: int, following: re.Match[bytes] | None) -> int:
    """Where a node ends. One that lost its last bracket goes on as if those after it were its fields."""
    view = memoryview(data)
    size = end_of_value(view[start:])
    if size > 0:
        if following is None or start + size <= following.start():
            return start + size
        if not _has_field(view[start : start + size], following.group(1)):
            return start + size
    most = following.start() if following is not None else len(data)
    return start + (end_of_brackets(view[start:most]) or most - start)


def _has_field(view: memoryview, name: bytes) -> bool:
    """Has an object a field of that name? One whose names cannot be read may have it."""
    try:
        return name.decode(errors="replace") in _decode_fields(view)
    except UNREADABLE:
        return True


def _damaged_header(data: bytes) -> dict[str, Any]:
    """The few facts that a thread is made of, wherever they stand outside the tree."""
    header: dict[str, Any] = {}
    for found in _HEADER_FIELD.finditer(data):
        try:
            value, _ = decode_tolerantly(found.group(2))
        except BrokenFormat:
            continue
        header.setdefault(found.group(1).decode(), value)
    return header
