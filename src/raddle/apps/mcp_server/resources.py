"""What a client may read by address: the project, a memory, a thread, a handoff."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import msgspec

from raddle.apps.mcp_server.memory_tools import MemoryRead, memory_read
from raddle.apps.mcp_server.phase_tools import OfPhase, handoff_get
from raddle.apps.mcp_server.run_tools import ContextBootstrap, context_bootstrap
from raddle.apps.mcp_server.session import Session
from raddle.apps.mcp_server.thread_tools import ThreadRead, thread_read
from raddle.apps.mcp_server.tools import Call
from raddle.model.errors import NotFound

JSON = "application/json"
RESOURCES: tuple[dict[str, Any], ...] = (
    {
        "uri": "raddle://project",
        "name": "project",
        "description": "The project, its current run and the index of its memory.",
        "mime_type": JSON,
    },
)
TEMPLATES: tuple[dict[str, Any], ...] = (
    {
        "uri_template": "raddle://memory/{namespace}/{+key}",
        "name": "memory",
        "description": "One memory; a key may be nested.",
        "mime_type": JSON,
    },
    {
        "uri_template": "raddle://thread/{id}",
        "name": "thread",
        "description": "The end of a conversation.",
        "mime_type": JSON,
    },
    {
        "uri_template": "raddle://handoff/{run}/{phase}",
        "name": "handoff",
        "description": "What a phase handed over.",
        "mime_type": JSON,
    },
)

_Reader = Callable[[Session, tuple[str, ...], Call], dict[str, Any]]


def _project(session: Session, parts: tuple[str, ...], call: Call) -> dict[str, Any]:
    return context_bootstrap(session, ContextBootstrap(), call)


def _memory(session: Session, parts: tuple[str, ...], call: Call) -> dict[str, Any]:
    told = memory_read(session, MemoryRead(namespace=parts[0], key=parts[1]), call)
    while (offset := told.pop("next_offset", None)) is not None:  # who asks by address wants all of it
        more = memory_read(session, MemoryRead(namespace=parts[0], key=parts[1], offset=offset), call)
        told["content"] += more["content"]
        told |= {name: value for name, value in more.items() if name == "next_offset"}
    return told


def _thread(session: Session, parts: tuple[str, ...], call: Call) -> dict[str, Any]:
    return thread_read(session, ThreadRead(thread_id=parts[0]), call)


def _handoff(session: Session, parts: tuple[str, ...], call: Call) -> dict[str, Any]:
    return handoff_get(session, OfPhase(run_id=parts[0], phase=parts[1]), call)


_READERS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (re.compile(r"raddle://project/?"), _project),
    (re.compile(r"raddle://memory/([^/?#]+)/([^?#]+)"), _memory),
    (re.compile(r"raddle://thread/([^/?#]+)"), _thread),
    (re.compile(r"raddle://handoff/([^/?#]+)/([^/?#]+)"), _handoff),
)


def read_resource(session: Session, uri: str, call: Call) -> tuple[str, str]:
    """(media type, text) of what is at `uri`; NotFound where nothing can be, and what its tool raises."""
    for pattern, read in _READERS:
        found = pattern.fullmatch(uri)
        if found is not None:
            parts = tuple(unquote(part) for part in found.groups())
            told = msgspec.to_builtins(read(session, parts, call), str_keys=True, enc_hook=str)
            return JSON, msgspec.json.format(msgspec.json.encode(told), indent=1).decode()
    raise NotFound("resource", uri[:200], "resources/templates/list shows the forms that there are")
