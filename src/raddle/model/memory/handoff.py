"""A handoff: what a phase publishes for the ones after it, all that they read of it. `phases/<phase>/handoff.json`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from raddle.model.errors import BrokenFormat
from raddle.model.memory.documents import SCHEMA_VERSION, read_fields, read_json, texts, write_json


class Evidence(Struct, frozen=True, kw_only=True):
    """A message of a thread that a handoff rests on; without a message, the thread."""

    LEFT_OUT = frozenset({"message_id"})

    thread_id: str
    message_id: str | None = None
    unknown: dict[str, Any] = msgspec.field(default_factory=dict)


class Handoff(Struct, frozen=True, kw_only=True):
    """`best_artifacts` and `figures` are artifact ids of the run. `published_ts`: RFC 3339; empty in the peer's."""

    LEFT_OUT = frozenset({"published_ts", "author", "evidence"})

    schema_version: int = SCHEMA_VERSION
    from_phase: str
    run_id: str
    headline: str
    key_results: dict[str, Any] = {}
    best_artifacts: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    published_ts: str = ""
    author: str | None = None
    evidence: tuple[Evidence, ...] = ()
    unknown: dict[str, Any] = msgspec.field(default_factory=dict)


def decode_handoff(data: bytes) -> Handoff:
    """The handoff in `data`; BrokenFormat, OlderFormat or NewerFormat where it cannot be read."""
    lists = dict.fromkeys(("best_artifacts", "decisions", "open_questions", "figures"), texts)
    return read_fields(read_json(data, "a handoff"), Handoff, "a handoff", {**lists, "evidence": _evidence})


def encode_handoff(handoff: Handoff) -> bytes:
    """`handoff` as JSON; InvalidInput where it holds what no file can."""
    return write_json(handoff)


def _evidence(plain: Any) -> tuple[Evidence, ...]:
    if not isinstance(plain, list):
        raise BrokenFormat("a handoff: evidence is no list")
    return tuple(read_fields(piece, Evidence, "a handoff's evidence") for piece in plain)
