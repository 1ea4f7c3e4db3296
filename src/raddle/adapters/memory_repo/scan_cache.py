"""What a look at a store's folder hashed before, so that the next one reads only what changed. Derived: it may go.

A file counts as unchanged while its size, its times (nanoseconds) and its inode are. A file that was written just
before it was looked at is not noted: a second write in the same tick of the clock would not show.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from raddle.adapters.files import find_bytes, make_folder, write_atomic
from raddle.model.clock import system_clock
from raddle.model.errors import StorageError

Mark = tuple[int, int, int, int]
"""Size, mtime and ctime in nanoseconds, inode."""
Known = dict[str, tuple[Mark, str]]

_SETTLED_NS = 50_000_000
"""Longer than a tick of any file system's clock that we met (10 ms; FAT's 2 s only makes a look slower)."""
_decode = msgspec.msgpack.Decoder(Known).decode


class ScanCache:
    """One file of notes; a damaged or missing one is an empty one."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def load(self) -> Known:
        """Path -> what marks the file, and the id of its content."""
        try:
            data = find_bytes(self._file)
            return _decode(data) if data else {}
        except (msgspec.MsgspecError, StorageError):
            return {}

    def save(self, known: Mapping[str, tuple[Mark, str]], seen: Mapping[str, tuple[Mark, str]]) -> None:
        """Note what was seen, where it is another than was known. A disk that does not take it costs time only."""
        newest = system_clock() * 1_000 - _SETTLED_NS
        settled = {path: note for path, note in seen.items() if max(note[0][1], note[0][2]) < newest}
        if settled == known:
            return
        try:
            make_folder(self._file.parent)
            write_atomic(self._file, msgspec.msgpack.encode(settled))
        except StorageError:
            return
