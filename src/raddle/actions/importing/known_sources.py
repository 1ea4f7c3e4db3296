"""What the ledger knows of source files, by path; of those whose thread was purged it knows a digest of the path alone.

Owns how a path is hidden: what a person erased is to leave no path behind, and a file that did not change is not to be
opened for all that. A second way of hiding would find nothing again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from raddle.actions.importing.run_plan import SourceEntry

_HIDDEN = "purged "


def is_hidden(path: str) -> bool:
    """Is it a digest, and no path?"""
    return path.startswith(_HIDDEN)


def hidden(entry: SourceEntry) -> SourceEntry:
    """The entry as it is kept once its thread is purged: it knows its file again, and tells nothing of it."""
    if is_hidden(entry.path):
        return entry
    return replace(
        entry,
        path=_digest(entry.path),
        session="",
        read_to=0,
        lines=0,
        head="",
        tail="",
        is_unplaced=False,
        base="",
    )


class KnownSources(dict[str, SourceEntry]):
    """Path -> what is known of it. A hidden entry comes to light when its path is asked for."""

    def __init__(self, entries: Mapping[str, SourceEntry]) -> None:
        super().__init__((path, entry) for path, entry in entries.items() if not is_hidden(path))
        self._hidden = {path: entry for path, entry in entries.items() if is_hidden(path)}

    def get(self, path: str, default: Any = None) -> Any:
        """The entry of a path; `default` where none is known."""
        found = super().get(path)
        if found is None and self._hidden:
            found = self._hidden.get(_digest(path))
            if found is not None:
                found = self[path] = replace(found, path=path)
        return default if found is None else found

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self.get(path) is not None


def _digest(path: str) -> str:
    return _HIDDEN + hashlib.blake2b(path.encode(errors="surrogateescape"), digest_size=16).hexdigest()
