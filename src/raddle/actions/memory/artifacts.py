"""A run's artifacts: bytes first, then the pointer, which never changes after that.

The one place that decides where the bytes of an artifact go, and that they are the ones that were named. A second one
would write a pointer to bytes that are not there, or put a large file into git.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from raddle.actions.memory.blob_ports import ArtifactSource, StoresOfBlobs
from raddle.actions.memory.entries import add_entry
from raddle.actions.memory.ports import StoreFiles, Writer
from raddle.actions.memory.putting_back import put_back
from raddle.actions.memory.runs import known_phase, read_run
from raddle.model.clock import format_time
from raddle.model.errors import BrokenFormat, ConflictError, FormatError, InvalidInput, NotFound
from raddle.model.memory.artifact import (
    INLINE,
    INLINE_BELOW,
    Artifact,
    ArtifactIndex,
    blob_uri,
    decode_index,
    encode_index,
    parse_blob_uri,
    unread_reason,
)
from raddle.model.memory.names import shown
from raddle.model.memory.repo_layout import (
    artifact_file,
    check_artifact_id,
    index_file,
    phase_folder,
    twin_of,
)
from raddle.model.memory.ulids import parse_ulid

MOST_INLINE = 4 << 20
"""Bytes: however the limit is set, what is larger is no part of git."""
_LONGEST_KIND = 64
_SUFFIX = re.compile(r".\.([A-Za-z0-9]{1,16})\Z", re.ASCII | re.DOTALL)
_VERIFY = "`raddle store sync` may bring it; `raddle store verify` looks at all of them"


class Added(NamedTuple):
    """A pointer. `is_new`: it was not there before. `is_mended`: it was, and its bytes were lost or damaged, and are
    whole now."""

    artifact: Artifact
    is_new: bool
    is_mended: bool = False


class Listed(NamedTuple):
    """What an index holds: pointers by age, and why each of the others cannot be read, by their ids."""

    artifacts: tuple[Artifact, ...]
    unread: dict[str, str]


class _Measured(NamedTuple):
    """`data`: all bytes, where they are small and text."""

    sha256: str
    size: int
    data: bytes | None


def add_artifact(
    files: StoreFiles,
    blobs: StoresOfBlobs,
    writer: Writer,
    *,
    run_id: str,
    phase: str,
    artifact_id: str,
    kind: str,
    source: ArtifactSource,
    inline_below: int = INLINE_BELOW,
) -> Added:
    """Keep a file under an id of the run: small text in the store itself, anything else in a store of blobs.

    Text of at most `inline_below` bytes counts as small. The same bytes under the same id are nothing new, and are put
    back where they are missing or damaged. ConflictError, before anything is touched, where the id has other bytes. An
    entry (`artifact_ref`) tells of a new one.
    """
    artifact_id, kind = check_artifact_id(artifact_id), check_kind(kind)
    run = read_run(files, run_id)
    run_id, phase = run.run_id, known_phase(files, run, phase)
    measured = _measured(source, min(inline_below, MOST_INLINE))
    there = _settled(_index(files, run_id), artifact_id, measured.sha256)
    if there is not None:
        return Added(there, is_new=False, is_mended=put_back(files, blobs, there, source))
    pointer = Artifact(
        artifact_id=artifact_id,
        kind=kind,
        sha256=measured.sha256,
        size_bytes=measured.size,
        backend=INLINE,
        uri="",
        produced_by_phase=phase,
        created_ts=format_time(writer.now()),
    )
    if measured.data is not None:
        with files.locked():
            added = _add_inline(files, run_id, pointer, measured.data, _suffix(source.name, artifact_id))
    else:
        name = blobs.chosen()
        pointer = replace(pointer, backend="rsync", uri=blob_uri(name, measured.sha256))
        blobs.for_writing(name).put(measured.sha256, measured.size, source.pieces())
        added = _point(files, run_id, pointer)
    if added.is_new:
        _tell(files, writer, run_id, added.artifact)
    return added


def list_artifacts(files: StoreFiles, run_id: str, *, phase: str = "", kind: str = "") -> Listed:
    """The artifacts of a run, the oldest first; of a phase or a kind only, where one is named."""
    index = _index(files, parse_ulid(run_id, "run id"))
    wanted = [
        artifact
        for artifact in index.artifacts.values()
        if (not phase or artifact.produced_by_phase == phase) and (not kind or artifact.kind == kind)
    ]
    wanted.sort(key=lambda artifact: (artifact.created_ts, artifact.artifact_id))
    unread = {name: unread_reason(name, pointer) for name, pointer in sorted(index.unread.items())}
    return Listed(tuple(wanted), unread)


def find_artifact(files: StoreFiles, run_id: str, artifact_id: str) -> Artifact:
    """The pointer of that id. NotFound; BrokenFormat where it is there and cannot be read."""
    index = _index(files, parse_ulid(run_id, "run id"))
    if artifact_id in index.unread:
        raise BrokenFormat(
            unread_reason(artifact_id, index.unread[artifact_id]), "upgrade raddle, or add it anew"
        )
    if artifact_id not in index.artifacts:
        known = ", ".join(sorted(index.artifacts)[:8]) or "none"
        raise NotFound("artifact", artifact_id[:80], f"this run has: {known}")
    return index.artifacts[artifact_id]


def get_artifact(
    files: StoreFiles, blobs: StoresOfBlobs, artifact: Artifact, start: int = 0, end: int | None = None
) -> Iterator[bytes]:
    """Its bytes, or those from `start` up to `end` as a slice has them, in pieces.

    Of the whole the last piece comes only after the check of its hash: BrokenFormat. Of a part that lies in a store of
    blobs nothing can be checked. NotFound where the bytes are not to be had.
    """
    end = artifact.size_bytes if end is None else min(end, artifact.size_bytes)
    if artifact.backend == INLINE:
        data = _inline_bytes(files, artifact)
        return iter((data[start:end],))
    name, sha256 = blob_of(artifact)
    pieces = blobs.for_reading(name).pieces(sha256, start, end)
    return _checked(pieces, artifact) if (start, end) == (0, artifact.size_bytes) else pieces


def blob_of(artifact: Artifact) -> tuple[str, str]:
    """(Name of the store of blobs, SHA-256) of an artifact that is not inline; BrokenFormat where it names none."""
    place = parse_blob_uri(artifact.uri)
    if place is None or place[1] != artifact.sha256:
        raise BrokenFormat(
            f"artifact {shown(artifact.artifact_id)} lies where this raddle does not reach: {shown(artifact.uri)}",
            "it was made by another program; fetch it with that, and add it again under another id",
        )
    return place


def check_kind(text: str) -> str:
    """`text` as a kind of artifact: a word or two on one line."""
    kind = text.strip()
    if not kind or len(kind) > _LONGEST_KIND or not kind.isprintable() or ".." in kind or "\\" in kind:
        raise InvalidInput(
            f"{shown(text)} is no kind of artifact",
            f"a kind is a word or two, {_LONGEST_KIND} characters at most: report, figure, checkpoint …",
        )
    return kind


def artifact_id_of(name: str) -> str:
    """The id that a file of that name gets where none is given: the name without its ending."""
    found = _SUFFIX.search(name)
    return name if found is None else name[: found.start(1) - 1]


def _measured(source: ArtifactSource, inline_below: int) -> _Measured:
    digest, size = hashlib.sha256(), 0
    held: list[bytes] = []
    for piece in source.pieces():
        digest.update(piece)
        size += len(piece)
        if size <= inline_below:
            held.append(piece)
        else:
            held.clear()
    data = b"".join(held) if size <= inline_below else None
    return _Measured(digest.hexdigest(), size, data if data is not None and _is_text(data) else None)


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def _suffix(name: str, artifact_id: str) -> str:
    """The ending of a file, with its dot; none where the id ends so already."""
    found = _SUFFIX.search(name)
    suffix = f".{found[1]}" if found is not None else ""
    return "" if artifact_id.lower().endswith(suffix.lower()) else suffix


def _index(files: StoreFiles, run_id: str) -> ArtifactIndex:
    return _decoded(files.read(index_file(run_id)), run_id)


def _decoded(data: bytes | None, run_id: str) -> ArtifactIndex:
    try:
        return ArtifactIndex(run_id=run_id) if data is None else decode_index(data)
    except FormatError as error:
        error.hint = error.hint or "`raddle store verify` looks at it; nothing was changed"
        raise


def _settled(index: ArtifactIndex, artifact_id: str, sha256: str) -> Artifact | None:
    """The pointer that has these very bytes under this id; an error where the id cannot be had, None where it can."""
    twin = twin_of(artifact_id, (*index.artifacts, *index.unread))
    if twin is None:
        return None
    if twin != artifact_id:
        raise InvalidInput(
            f"artifact id {shown(artifact_id)} differs from {shown(twin)} only in case or Unicode form",
            "choose another id",
        )
    there = index.artifacts.get(artifact_id)
    if there is not None and there.sha256 == sha256:
        return there
    raise ConflictError(
        f"artifact {shown(artifact_id)} is there already, with other bytes",
        "artifacts never change: choose another id",
    )


def _point(files: StoreFiles, run_id: str, pointer: Artifact) -> Added:
    """Add the pointer, unless the same stands there by now."""
    there: list[Artifact] = []

    def change(old: bytes | None) -> bytes | None:
        index = _decoded(old, run_id)
        found = _settled(index, pointer.artifact_id, pointer.sha256)
        if found is not None:
            there.append(found)
            return old
        return encode_index(replace(index, artifacts=index.artifacts | {pointer.artifact_id: pointer}))

    files.change(index_file(run_id), change)
    return Added(there[0], is_new=False) if there else Added(pointer, is_new=True)


def _add_inline(files: StoreFiles, run_id: str, pointer: Artifact, data: bytes, suffix: str) -> Added:
    """The caller holds the store's lock: who else adds this id sees all of it or nothing."""
    there = _settled(_index(files, run_id), pointer.artifact_id, pointer.sha256)
    if there is not None:
        return Added(there, is_new=False)
    path = _free_path(files, run_id, pointer, data, suffix)
    if files.read(path) is None:
        files.add({path: data})
    return _point(files, run_id, replace(pointer, uri=path))


def _tell(files: StoreFiles, writer: Writer, run_id: str, artifact: Artifact) -> None:
    payload = {"artifact_id": artifact.artifact_id, "kind": artifact.kind, "sha256": artifact.sha256}
    add_entry(files, writer, run_id, artifact.produced_by_phase, type="artifact_ref", payload=payload)


def _free_path(files: StoreFiles, run_id: str, pointer: Artifact, data: bytes, suffix: str) -> str:
    """Where the bytes are, or can be: a file that somebody left there without a pointer is not written over."""
    phase, artifact_id = pointer.produced_by_phase, pointer.artifact_id
    others = files.names(f"{phase_folder(run_id, phase)}/artifacts")
    for name in (artifact_id, f"{artifact_id}-{pointer.sha256[:12]}"):
        path = artifact_file(run_id, phase, name, suffix)
        own_name = path.rpartition("/")[2]
        twin = twin_of(own_name, others)
        if twin is None or (twin == own_name and files.read(path) == data):
            return path
    raise ConflictError(
        f"the file of artifact {shown(artifact_id)} is there already, with other bytes", "choose another id"
    )


def _inline_bytes(files: StoreFiles, artifact: Artifact) -> bytes:
    name = shown(artifact.artifact_id)
    path = artifact.path
    if path is None:
        raise BrokenFormat(
            f"artifact {name} says that it lies at {shown(artifact.uri)}, which is no place of one",
            "add the file again under another id",
        )
    data = files.read(path)
    if data is None:
        raise NotFound("file of artifact", artifact.artifact_id[:80], _VERIFY)
    if hashlib.sha256(data).hexdigest() != artifact.sha256:
        raise BrokenFormat(
            f"artifact {name} is damaged: its bytes are not those of its hash",
            "`raddle store verify --fix` brings an earlier version back, and so does adding the file again",
        )
    return data


def _checked(pieces: Iterator[bytes], artifact: Artifact) -> Iterator[bytes]:
    digest = hashlib.sha256()
    held = b""
    for piece in pieces:
        digest.update(piece)
        if held:
            yield held
        held = piece
    if digest.hexdigest() != artifact.sha256:
        raise BrokenFormat(
            f"artifact {shown(artifact.artifact_id)} is damaged where it lies: its bytes are not those of its hash",
            "add the file again under the same id: that puts the bytes back",
        )
    yield held
