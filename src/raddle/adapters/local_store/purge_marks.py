"""Which threads were purged here, in a small readable file of its own beside the threads.

What a person erased stays erased because this file says so, so it is no part of anything that is derived: were
it kept in the import ledger alone, losing the ledger would bring everything back. It is only ever added to, one
line an event, and the last line about a thread holds. A line that a crash tore costs that line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from raddle.adapters.files import append_durable, find_bytes, make_folder
from raddle.adapters.locks import LockFiles
from raddle.model.ids import parse_thread_id

_LOCK = "purge marks"
_PURGED, _TURNS, _REVIVED = "purged", "purged-turns", "revived"
_EVENT = re.compile(
    rb"\b(purged-turns|purged|revived) (T-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?![0-9a-f-])"
)
_HEADER = (
    b"# Threads that were purged here: no import brings them back (`raddle import --revive` does).\n"
    b"# Of those with purged-turns only some turns were, and no source bytes are kept. The last line holds.\n"
)


class PurgeMarks:
    """The marks of one data folder, made with the first of them. `locks` keep two writers apart.

    What the disk refuses is a StorageError: a file that cannot be read does not count as one without marks.
    """

    def __init__(self, path: Path, locks: LockFiles) -> None:
        self._path = path
        self._locks = locks

    @property
    def path(self) -> Path:
        """Where they are written down."""
        return self._path

    def whole(self) -> set[str]:
        """Threads that are to stay gone."""
        return {thread_id for thread_id, is_whole in self._standing().items() if is_whole}

    def in_part(self) -> set[str]:
        """Threads of which some turns were purged: of their sources no byte is kept any more."""
        return {thread_id for thread_id, is_whole in self._standing().items() if not is_whole}

    def note(self, marks: Mapping[str, bool]) -> None:
        """Thread id -> is all of it purged? One that is purged whole stays so. Durable when the call returns."""
        self._add(
            f"{_PURGED if is_whole else _TURNS} {parse_thread_id(thread_id)}"
            for thread_id, is_whole in marks.items()
        )

    def revive(self, thread_id: str) -> None:
        """Forget that it was purged."""
        self._add([f"{_REVIVED} {parse_thread_id(thread_id)}"])

    def unreadable(self) -> int:
        """How many lines say nothing that could be read: each may have named a thread."""
        lines = (find_bytes(self._path) or b"").splitlines()
        return sum(not line.startswith(b"#") and not _EVENT.search(line) for line in lines if line.strip())

    def _standing(self) -> dict[str, bool]:
        """Found wherever they stand in a line: a crash may have left bytes before them."""
        standing: dict[str, bool] = {}
        for found in _EVENT.finditer(find_bytes(self._path) or b""):
            event, thread_id = (part.decode() for part in found.groups())
            if event == _REVIVED:
                standing.pop(thread_id, None)
            else:
                standing[thread_id] = event == _PURGED or standing.get(thread_id, False)
        return standing

    def _add(self, events: Iterable[str]) -> None:
        lines = "".join(f"{event}\n" for event in events).encode()
        if not lines:
            return
        make_folder(self._path.parent)
        with self._locks.held(_LOCK):
            before = find_bytes(self._path)
            start = _HEADER if not before else b"" if before.endswith(b"\n") else b"\n"
            append_durable(self._path, start + lines)
