"""What a look at a store's folder hashed before, so that the next one reads only what changed. Derived: it may go.

A file counts as unchanged while its size, its times (nanoseconds) and its inode are. A file that was written just
before it was looked at is not noted: a second write in the same tick of the clock would not show.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from raddle.adapters.files import find_bytes, make_folder, write_note
from raddle.adapters.memory_repo.folder_look import Facts
from raddle.model.errors import StorageError


class HashedFolder(NamedTuple):
    """The files right in a folder, in the order in which the system told them. `ids`: of their contents; empty where
    the content has to be read each time."""

    names: list[str]
    facts: list[Facts]
    ids: list[str]


Known = dict[str, HashedFolder]
"""By folder; the store's own is the empty text."""

_decode = msgspec.msgpack.Decoder(Known).decode


class ScanCache:
    """One file of notes; a damaged or missing one is an empty one."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def load(self) -> Known:
        """What was hashed before."""
        try:
            data = find_bytes(self._file)
            known = _decode(data) if data else {}
        except (msgspec.MsgspecError, StorageError):
            return {}
        is_whole = all(len(one.names) == len(one.facts) == len(one.ids) for one in known.values())
        return known if is_whole else {}

    def save(self, known: Mapping[str, HashedFolder], seen: Mapping[str, HashedFolder]) -> None:
        """Note what was seen, where it is another than was known. A disk that does not take it costs time only."""
        if seen == known:
            return
        try:
            make_folder(self._file.parent)
            write_note(self._file, msgspec.msgpack.encode(seen))
        except StorageError:
            return
