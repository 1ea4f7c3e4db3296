"""Pointers to artifacts: what they are and where their bytes lie, never the bytes. `artifacts.index.json` of a run."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

from raddle.model.errors import BrokenFormat, FormatError, InvalidInput
from raddle.model.memory.documents import (
    SCHEMA_VERSION,
    checked,
    plain_of,
    read_fields,
    read_json,
    write_json,
)
from raddle.model.memory.repo_layout import is_safe, place_of

INLINE = "inline"
BACKENDS = (INLINE, "rsync", "s3", "minio", "gitlfs")
"""What is written: the peer reads no other. `rsync` is its word for any store of blobs that has a name."""
INLINE_BELOW = 256 * 1024
"""Bytes, unless set otherwise: what is larger, or no text, goes to a store of blobs."""

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_BLOB_URI = re.compile(r"[a-z][a-z0-9+.-]*://([A-Za-z0-9][A-Za-z0-9._-]{0,63})/([0-9a-f]{64})\Z", re.ASCII)


class Artifact(Struct, frozen=True, kw_only=True):
    """A pointer; immutable. `uri`: a path of the store (backend `inline`), or `rsync://<name>/<sha256>`."""

    schema_version: int = SCHEMA_VERSION
    artifact_id: str
    kind: str
    sha256: str
    size_bytes: int
    backend: str
    uri: str
    produced_by_phase: str
    created_ts: str = ""
    unknown: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def path(self) -> str | None:
        """The file of the store that holds the bytes; None where they are elsewhere, or the file may not be read."""
        if (
            self.backend != INLINE
            or not is_safe(self.uri)
            or place_of(self.uri).kind not in ("artifact", "conflict")
        ):
            return None
        return self.uri


class ArtifactIndex(Struct, frozen=True, kw_only=True):
    """All pointers of a run by their ids. `unread`: pointers that this version cannot read, kept as they stand."""

    schema_version: int = SCHEMA_VERSION
    run_id: str
    artifacts: dict[str, Artifact] = {}
    unread: dict[str, Any] = {}
    unknown: dict[str, Any] = msgspec.field(default_factory=dict)


def decode_index(data: bytes) -> ArtifactIndex:
    """The index in `data`; BrokenFormat, OlderFormat or NewerFormat where it cannot be read as a whole."""
    what = "artifacts.index.json"
    plain = read_json(data, what)
    pointers = plain.get("artifacts", {})
    if not isinstance(pointers, dict):
        raise BrokenFormat(f"{what}: artifacts is no mapping")
    rest = {name: value for name, value in plain.items() if name not in ("artifacts", "unread")}
    index = read_fields(rest, ArtifactIndex, what)
    artifacts: dict[str, Artifact] = {}
    unread: dict[str, Any] = {}
    for artifact_id, pointer in pointers.items():
        try:
            artifacts[artifact_id] = decode_artifact(artifact_id, pointer)
        except FormatError:
            unread[artifact_id] = pointer
    unknown = index.unknown | ({"unread": plain["unread"]} if "unread" in plain else {})
    return msgspec.structs.replace(index, artifacts=artifacts, unread=unread, unknown=unknown)


def decode_artifact(artifact_id: str, pointer: Any) -> Artifact:
    """A pointer of an index, as plain JSON; BrokenFormat, OlderFormat or NewerFormat where it cannot be read."""
    what = f"artifact {artifact_id[:60]!r}"
    artifact = read_fields(checked(pointer, what), Artifact, what)
    if artifact.artifact_id != artifact_id:
        raise BrokenFormat(f"{what} names itself {artifact.artifact_id[:60]!r}")
    if _SHA256.match(artifact.sha256) is None or artifact.size_bytes < 0:
        raise BrokenFormat(f"{what} has no SHA-256 or no size")
    return artifact


def unread_reason(artifact_id: str, pointer: Any) -> str:
    """Why a pointer of an index is among the unread ones, in words."""
    try:
        decode_artifact(artifact_id, pointer)
    except FormatError as error:
        return error.message
    return ""


def encode_index(index: ArtifactIndex) -> bytes:
    """`index` as JSON, pointers that were not read among the others."""
    return write_json(
        _IndexFile(
            run_id=index.run_id,
            schema_version=index.schema_version,
            artifacts=pointers_of(index),
            unknown=index.unknown,
        )
    )


def pointers_of(index: ArtifactIndex) -> dict[str, Any]:
    """Every pointer as plain JSON, read or not."""
    return {
        artifact_id: plain_of(artifact) for artifact_id, artifact in index.artifacts.items()
    } | index.unread


def blob_uri(name: str, sha256: str) -> str:
    """The address of a blob in the store of blobs called `name` in the project; the peer finds it by the same."""
    uri = f"rsync://{name}/{sha256}"
    if _BLOB_URI.match(uri) is None:
        raise InvalidInput(
            f"{name[:60]!r} cannot name a store of blobs", "use letters, digits, `-`, `_` and `.`"
        )
    return uri


def parse_blob_uri(uri: str) -> tuple[str, str] | None:
    """(name of the store of blobs, sha256), whatever the scheme; None where `uri` is no such address."""
    found = _BLOB_URI.match(uri)
    return None if found is None else (found[1], found[2])


class _IndexFile(Struct, frozen=True, kw_only=True):
    """The index as it stands in its file."""

    schema_version: int
    run_id: str
    artifacts: dict[str, Any]
    unknown: dict[str, Any]
