"""Which memory was just written to: file events below the stores that this machine knows, hints as ever."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from raddle.adapters.folder_watch import NoFileEvents, changes_below
from raddle.adapters.paths import Paths
from raddle.wiring.memory_places import known_stores

_LOOK_MS = 1000
_POLL_SECONDS = 5.0


class _Until:
    """Over when the daemon is, or when there are other stores to watch than at the start."""

    def __init__(self, is_over: Callable[[], bool], paths: Paths, roots: list[Path]) -> None:
        self._is_over = is_over
        self._paths = paths
        self._roots = roots

    def is_set(self) -> bool:
        """Is it?"""
        return self._is_over() or known_stores(self._paths) != self._roots


def watch_memories(
    paths: Paths, changed: Callable[[Path], None], *, is_over: Callable[[], bool], stop: threading.Event
) -> None:
    """Call `changed` with the root of each store that may have been written to, until `is_over`.

    Where there are no file events it is called from time to time.
    """
    while not is_over():
        roots = known_stores(paths)
        if not roots:
            stop.wait(_LOOK_MS / 1000)
            continue
        try:
            for found in changes_below(roots, _Until(is_over, paths, roots), wait_ms=_LOOK_MS):
                for root in roots:
                    if any(_is_of(root, path) for path in found):
                        changed(root)
        except NoFileEvents:
            for root in roots:
                changed(root)
            stop.wait(_POLL_SECONDS)


def _is_of(root: Path, path: str) -> bool:
    """Is it a file of the store, and none of git's or half-made?"""
    inside = path.removeprefix(f"{root}{os.sep}")
    return inside != path and not inside.startswith(".git") and f"{os.sep}.raddle-" not in f"{os.sep}{inside}"
