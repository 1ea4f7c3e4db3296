"""Damaged files set aside: kept beside where they lay, with the reason, out of the way of every reader.

The one place that moves a damaged file: a second one might write a good revision over the only bytes from
which a person could still save something.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from raddle.adapters.files import find_bytes, storage_error, write_atomic
from raddle.adapters.paths import Paths

_MARK = ".broken-"


def set_aside(paths: Paths, damaged: Path, reason: str) -> Path:
    """Move `damaged` to `<name>.broken-<n>` and note why; its new path. The caller holds the lock."""
    kept = _free_name(paths, damaged)
    try:
        damaged.rename(kept)
    except OSError as error:
        raise storage_error(error, damaged, "set aside") from error
    _note(paths, kept, reason)
    return kept


def keep_copy(paths: Paths, damaged: Path, reason: str) -> Path:
    """Copy `damaged`, whose good parts live on, to `<name>.broken-<n>` and note why; the copy's path."""
    kept = _free_name(paths, damaged)
    write_atomic(kept, find_bytes(damaged) or b"")
    _note(paths, kept, reason)
    return kept


def quarantined(folder: Path, of: str = "") -> Iterator[Path]:
    """Every file of `folder` that was set aside, by name; `of`: only those of one thread."""
    if folder.is_dir():
        for path in sorted(folder.glob(f"{of}*{_MARK}*")):
            if path.suffix.startswith(_MARK):
                yield path


def reason_of(paths: Paths, kept: Path) -> str:
    """Why it was set aside; empty where the note is gone."""
    return (find_bytes(paths.quarantine_reason(kept)) or b"").decode(errors="replace").strip()


def _free_name(paths: Paths, damaged: Path) -> Path:
    names = (paths.quarantine_file(damaged, str(number)) for number in itertools.count(1))
    return next(name for name in names if not name.exists())


def _note(paths: Paths, kept: Path, reason: str) -> None:
    write_atomic(paths.quarantine_reason(kept), f"{reason}\n".encode())
