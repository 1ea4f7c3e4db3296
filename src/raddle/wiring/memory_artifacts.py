"""Files that become artifacts, and artifacts that become files: none in the memory, whose next sync would push it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from raddle.model.errors import ConflictError, InvalidInput, NetworkError, StorageError
from raddle.wiring import write_pieces
from raddle.wiring.memory_blobs import MemoryBlobs, is_inside

if TYPE_CHECKING:
    from raddle.actions.memory.blob_ports import ArtifactSource
    from raddle.model.memory.artifact import Artifact
    from raddle.wiring.memory import ProjectMemory


class Fetched(NamedTuple):
    """Where the bytes are now, and how many of them were there already, from a try that broke off."""

    path: Path
    had: int


@contextlib.contextmanager
def artifact_source(memory: ProjectMemory, file: str) -> Iterator[ArtifactSource]:
    """The file that is to become an artifact; `-`: what stdin gives."""
    from raddle.adapters.blobs.files_of_artifacts import file_source, spooled  # noqa: PLC0415

    folder = memory.stores.paths.memory_blobs_dir
    source = spooled(sys.stdin.buffer, folder) if file == "-" else file_source(Path(file), folder)
    with source as found:
        yield found


def fetch_artifact(
    memory: ProjectMemory,
    blobs: MemoryBlobs,
    artifact: Artifact,
    path: Path,
    part: tuple[int, int] | None = None,
    *,
    may_replace: bool = False,
) -> Fetched:
    """Write an artifact, or a part of it, to a file that a person named; into a folder under a name of its own.

    What breaks off is gone on with the next time. InvalidInput where the file would lie in the memory; ConflictError
    where one is there with other bytes, unless it `may_replace` it.
    """
    from raddle.actions.memory.artifacts import blob_of, get_artifact  # noqa: PLC0415
    from raddle.adapters.blobs.files_of_artifacts import fetch, holds  # noqa: PLC0415
    from raddle.model.memory.artifact import INLINE  # noqa: PLC0415

    target = _target(memory, artifact, path)
    is_special = target.exists() and not target.is_file()
    if part is None and holds(target, artifact.sha256, artifact.size_bytes):
        return Fetched(target, artifact.size_bytes)
    if os.path.lexists(target) and not is_special and not may_replace:
        what = "is there already" if part is not None else "is there already, and holds other bytes"
        raise ConflictError(f"{target} {what}", "name another file, or say --force to replace it")
    if part is not None or artifact.backend == INLINE or is_special:
        start, end = part or (0, artifact.size_bytes)
        write_pieces(target, get_artifact(memory.files, blobs, artifact, start, end))
        return Fetched(target, 0)
    name, sha256 = blob_of(artifact)
    store = blobs.for_reading(name)
    try:
        had = fetch(
            target,
            sha256,
            artifact.size_bytes,
            lambda start: store.pieces(sha256, start, artifact.size_bytes),
        )
    except (NetworkError, StorageError) as error:
        error.hint = f"{error.hint}; the same command goes on where it stopped" if error.hint else "try again"
        raise
    return Fetched(target, had)


def _target(memory: ProjectMemory, artifact: Artifact, path: Path) -> Path:
    try:
        target = path.expanduser().absolute()
        if target.is_dir():
            target /= _file_name(artifact)
        target = target.resolve()
    except (RuntimeError, ValueError, OSError) as error:  # links in a circle, no home folder, a NUL
        raise InvalidInput(f"{path} is no path to write to: {error}", "name another") from error
    if is_inside(target, memory.root) or is_inside(target, memory.own_folder.parent):
        raise InvalidInput(
            f"{target} lies in the memory itself: it would be committed and pushed",
            "name a file outside of it",
        )
    return target


def _file_name(artifact: Artifact) -> str:
    """A file's name that every system can hold; InvalidInput where somebody made an id of which none can be made."""
    from raddle.model.memory.artifact import INLINE  # noqa: PLC0415
    from raddle.model.memory.names import check_name  # noqa: PLC0415

    name = artifact.uri.rpartition("/")[2] if artifact.backend == INLINE else artifact.artifact_id
    return check_name(name, "file")
