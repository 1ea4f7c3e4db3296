"""Which branch of a thread this device reads and goes on with: a choice of the device, never part of the thread."""

from __future__ import annotations

from pathlib import Path

import msgspec

from raddle.adapters.files import find_bytes, write_atomic
from raddle.adapters.locks import LockFiles

_LOCK = "active branches"


class ActiveBranches:
    """Thread id -> the leaf that was switched to. A file that cannot be read counts as no choice made.

    All choices stand in one file: `locks` keep two processes from writing over each other's.
    """

    def __init__(self, path: Path, locks: LockFiles) -> None:
        self._path = path
        self._locks = locks

    def get(self, thread_id: str) -> str:
        """The leaf that was switched to; empty: the newest turn."""
        return self._read().get(thread_id, "")

    def set(self, thread_id: str, leaf: str) -> None:
        """Switch to a leaf; empty goes back to the newest turn."""
        with self._locks.held(_LOCK):
            chosen = self._read()
            if leaf:
                chosen[thread_id] = leaf
            elif chosen.pop(thread_id, None) is None:
                return
            write_atomic(self._path, msgspec.json.format(msgspec.json.encode(chosen), indent=2) + b"\n")

    def _read(self) -> dict[str, str]:
        data = find_bytes(self._path)
        try:
            return {} if data is None else msgspec.json.decode(data, type=dict[str, str])
        except msgspec.MsgspecError:
            return {}
