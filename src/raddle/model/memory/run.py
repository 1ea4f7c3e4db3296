"""A run: one attempt from end to end, what its phases have come to, and the nodes it was on. `runs/<ULID>/run.yaml`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from raddle.model.errors import BrokenFormat
from raddle.model.memory.documents import SCHEMA_VERSION, plain_of, read_fields, read_yaml, text_of
from raddle.model.memory.yaml_text import format_yaml, rewrite_yaml

RUN_STATUSES = ("created", "active", "done", "failed")
PHASE_STATUSES = ("pending", "active", "done", "failed")
"""In the order in which they outweigh each other where two nodes say different things at once."""

_FILE = "run.yaml"


class Stint(Struct, frozen=True, kw_only=True):
    """A node's time on a run. Times are RFC 3339; `left` None: it has not said that it left."""

    node_id: str
    host: str | None = None
    joined: str
    left: str | None = None
    unknown: dict[str, Any] = msgspec.field(default_factory=dict)


class Run(Struct, frozen=True, kw_only=True):
    """`status` is one of RUN_STATUSES, each phase's one of PHASE_STATUSES; any other text is kept as read."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    status: str = "created"
    parent_run_id: str | None = None
    phases: dict[str, str] = {}
    nodes: tuple[Stint, ...] = ()
    created_ts: str = ""
    unknown: dict[str, Any] = msgspec.field(default_factory=dict)


def decode_run(data: bytes) -> Run:
    """The run in `data`; BrokenFormat, OlderFormat or NewerFormat where it cannot be read."""
    return read_fields(read_yaml(data, _FILE), Run, _FILE, {"nodes": _stints, "phases": _phases})


def encode_run(run: Run, old: bytes | None = None) -> bytes:
    """`run` as YAML; what `old` says beside it (comments, order) stays where it can."""
    plain = plain_of(run)
    text = format_yaml(plain) if old is None else rewrite_yaml(text_of(old, _FILE), plain, _FILE)
    return text.encode()


def _stints(plain: Any) -> tuple[Stint, ...]:
    if not isinstance(plain, list):
        raise BrokenFormat(f"{_FILE}: nodes is no list")
    return tuple(read_fields(stint, Stint, f"{_FILE}: a node") for stint in plain)


def _phases(plain: Any) -> dict[str, str]:
    if not isinstance(plain, dict) or not all(isinstance(status, str) for status in plain.values()):
        raise BrokenFormat(f"{_FILE}: phases is no mapping of texts")
    return plain
