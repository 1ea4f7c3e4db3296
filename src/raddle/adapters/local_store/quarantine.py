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
_SHORT = "only what the journal held of the thread could be brought back"
"""A line of the reason while that is so."""


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


def note_short(paths: Paths, thread_id: str) -> None:
    """Note that the thread now lacks what its files that were set aside held."""
    for kept in _revisions(paths, thread_id):
        reason = reason_of(paths, kept)
        if _SHORT not in reason.splitlines():
            _note(paths, kept, f"{reason}\n{_SHORT}".strip())


def is_short(paths: Paths, thread_id: str) -> bool:
    """Does the thread lack what its files that were set aside held?"""
    return any(
        _SHORT in reason_of(paths, kept).splitlines() for kept in quarantined(paths.threads_dir, thread_id)
    )


def note_whole(paths: Paths, thread_id: str) -> None:
    """What it lacked was brought back from elsewhere."""
    for kept in _revisions(paths, thread_id):
        lines = reason_of(paths, kept).splitlines()
        if _SHORT in lines:
            _note(paths, kept, "\n".join(line for line in lines if line != _SHORT))


def _revisions(paths: Paths, thread_id: str) -> list[Path]:
    """The thread files and last revisions among what was set aside: not the journals."""
    starts = (paths.thread_file(thread_id).name, paths.previous_file(thread_id).name)
    return [kept for kept in quarantined(paths.threads_dir, thread_id) if kept.stem in starts]


def _free_name(paths: Paths, damaged: Path) -> Path:
    names = (paths.quarantine_file(damaged, str(number)) for number in itertools.count(1))
    return next(name for name in names if not name.exists())


def _note(paths: Paths, kept: Path, reason: str) -> None:
    write_atomic(paths.quarantine_reason(kept), f"{reason}\n".encode())
