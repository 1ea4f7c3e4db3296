"""Files that go with a turn: kept as blobs, named in the message, given back as they were.

Owns what of a file is kept: its bytes, its name without its folder, its type.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Iterable
from pathlib import Path

from raddle.model.errors import InvalidInput, StorageError, TooLarge
from raddle.model.threads.message import Attachment
from raddle.wiring import Stores

MOST_BYTES = 64 << 20
"""A larger file is no part of a conversation."""


def attachments_of(stores: Stores, paths: Iterable[str]) -> tuple[Attachment, ...]:
    """Keep these files; as a message names them. InvalidInput, and nothing was kept of it, for what is no file."""
    return tuple(_attachment(stores, Path(path).expanduser()) for path in paths)


def _attachment(stores: Stores, path: Path) -> Attachment:
    try:
        if not path.is_file():
            what = "a folder" if path.is_dir() else "no file"
            raise InvalidInput(f"{path} is {what}", "name a file to attach")
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise TooLarge(
                f"{path} is {size / 1e6:,.0f} MB", f"attach files of at most {MOST_BYTES >> 20} MiB"
            )
        data = path.read_bytes()
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}", "check its name and its mode") from error
    name = path.name.encode("utf-8", "replace").decode()
    return Attachment(
        sha256=stores.blobs.put(data, compress=True),
        media_type=mimetypes.guess_type(name)[0] or "application/octet-stream",
        name=name,
        size=len(data),
    )
