"""Bytes that a pointer names and that are lost or damaged, whole again because somebody gives the same file once more.

The one place that decides what counts as whole: bytes that were read and hashed, never a name that is there.
"""

from __future__ import annotations

import hashlib

from raddle.actions.memory.blob_ports import ArtifactSource, StoreOfBlobs, StoresOfBlobs
from raddle.actions.memory.ports import StoreFiles
from raddle.model.errors import BrokenFormat, ConflictError, NetworkError, NotFound, StorageError
from raddle.model.memory.artifact import INLINE, Artifact, parse_blob_uri


def put_back(files: StoreFiles, blobs: StoresOfBlobs, artifact: Artifact, source: ArtifactSource) -> bool:
    """Have the bytes of an artifact whole where they are read, from a source that gave them; were they not?

    UserError where they would have to be written to where bytes may not go; ConflictError where the source gives
    others by now.
    """
    if artifact.backend == INLINE:
        return _put_back_inline(files, artifact, source)
    place = parse_blob_uri(artifact.uri)
    if place is None:
        return False
    own = blobs.own()
    # What this machine has itself is read before anything else: damaged, it hides what is whole elsewhere.
    store = own if own.size(artifact.sha256) is not None else blobs.for_reading(place[0])
    if _is_whole(store, artifact):
        return False
    target = own if store is own else blobs.for_writing(place[0])
    target.put(artifact.sha256, artifact.size_bytes, source.pieces())
    return True


def _put_back_inline(files: StoreFiles, artifact: Artifact, source: ArtifactSource) -> bool:
    path = artifact.path
    if path is None or _has_hash(files.read(path), artifact):
        return False
    data = b"".join(source.pieces())
    if not _has_hash(data, artifact):
        raise ConflictError(
            "the file changed while it was read", "wait until nobody writes to it, then add it again"
        )
    files.change(path, lambda old: old if _has_hash(old, artifact) else data)
    return True


def _has_hash(data: bytes | None, artifact: Artifact) -> bool:
    return data is not None and hashlib.sha256(data).hexdigest() == artifact.sha256


def _is_whole(store: StoreOfBlobs, artifact: Artifact) -> bool:
    """Are the very bytes there? Reads all of them."""
    digest = hashlib.sha256()
    try:
        if store.size(artifact.sha256) != artifact.size_bytes:
            return False
        for piece in store.pieces(artifact.sha256, 0, artifact.size_bytes):
            digest.update(piece)
    except (
        NotFound,
        BrokenFormat,
        NetworkError,
        StorageError,
    ):  # where nobody answers at all, the putting says so
        return False
    return digest.hexdigest() == artifact.sha256
