"""A context entry: the smallest thing a run remembers, one file, never changed. `entries/<seq>-<ULID>.json`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from raddle.model.errors import NewerFormat
from raddle.model.memory.documents import SCHEMA_VERSION, read_fields, read_json, texts, write_json

ENTRY_TYPES = ("metric", "decision", "code_change", "artifact_ref", "error", "milestone", "note")
"""What is written; the peer reads no other. Any text is kept as read."""


class Provenance(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an entry came from: told, never used as an address. `thread_id` and `message_id`: what it rests on."""

    LEFT_OUT = frozenset({"thread_id", "message_id"})

    node_id: str
    host: str | None = None
    agent: str | None = None
    project_git_sha: str | None = None
    thread_id: str | None = None
    message_id: str | None = None
    unknown: dict[str, Any] = msgspec.field(default_factory=dict, name="~unknown")


class ContextEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Entries are in the order of their ULIDs. `ts`: RFC 3339. `links`: anything that can be looked up."""

    schema_version: int = SCHEMA_VERSION
    entry_id: str
    run_id: str
    phase: str
    type: str
    ts: str = ""
    provenance: Provenance
    payload: dict[str, Any] = {}
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    unknown: dict[str, Any] = msgspec.field(default_factory=dict, name="~unknown")


_decode = msgspec.json.Decoder(ContextEntry).decode


def decode_entry(data: bytes) -> ContextEntry:
    """The entry in `data`; BrokenFormat, OlderFormat or NewerFormat where it cannot be read."""
    try:
        entry = _decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return _decode_field_by_field(data)
    if entry.schema_version == SCHEMA_VERSION:
        return entry
    if entry.schema_version > SCHEMA_VERSION:
        raise NewerFormat("an entry", entry.schema_version, SCHEMA_VERSION)
    return _decode_field_by_field(data)


def encode_entry(entry: ContextEntry) -> bytes:
    """`entry` as JSON; InvalidInput where it holds what no file can."""
    return write_json(entry)


def _decode_field_by_field(data: bytes) -> ContextEntry:
    plain = read_json(data, "an entry")
    return read_fields(
        plain,
        ContextEntry,
        "an entry",
        {
            "provenance": lambda value: read_fields(value, Provenance, "an entry's provenance"),
            "tags": texts,
            "links": texts,
        },
    )
