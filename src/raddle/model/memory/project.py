"""The project: what a store is about, its phases in order, whether it may be published. `project.yaml`."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from raddle.model.errors import BrokenFormat
from raddle.model.memory.documents import SCHEMA_VERSION, plain_of, read_fields, read_yaml, text_of
from raddle.model.memory.repo_layout import PROJECT_FILE
from raddle.model.memory.yaml_text import format_yaml, rewrite_yaml


class Project(Struct, frozen=True, kw_only=True):
    """A long-lived body of work. `created_ts`: RFC 3339."""

    LEFT_OUT = frozenset({"blobs"})

    schema_version: int = SCHEMA_VERSION
    project_id: str
    name: str | None = None
    phases: tuple[str, ...]
    created_ts: str = ""
    publish: bool | None = None
    """None: nobody has said; False: it stays on this machine."""
    blobs: dict[str, str] = {}
    """Where large artifacts are: a name that pointers use, and the URL of a blob store."""
    unknown: dict[str, Any] = msgspec.field(default_factory=dict)


def decode_project(data: bytes) -> Project:
    """The project in `data`; BrokenFormat, OlderFormat or NewerFormat where it cannot be read.

    What `publish` says must be understood or the file is broken: read past, it would send out what was to stay.
    """
    project = read_fields(read_yaml(data, PROJECT_FILE), Project, PROJECT_FILE)
    if "publish" in project.unknown:
        raise BrokenFormat(f"{PROJECT_FILE}: publish is neither true nor false")
    if not project.phases or len(set(project.phases)) != len(project.phases):
        raise BrokenFormat(f"{PROJECT_FILE}: phases are none, or one is named twice")
    return project


def encode_project(project: Project, old: bytes | None = None) -> bytes:
    """`project` as YAML; what `old` says beside it (comments, order) stays where it can."""
    plain = plain_of(project)
    text = (
        format_yaml(plain) if old is None else rewrite_yaml(text_of(old, PROJECT_FILE), plain, PROJECT_FILE)
    )
    return text.encode()
