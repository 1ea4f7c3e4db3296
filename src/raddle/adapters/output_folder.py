"""A folder that is written again and again: what was written there before is replaced, and nothing else is touched.

Owns the note of what is ours (`.raddle-present.json`): each path with the hashes of what was written there. A file that
is not on it, or that somebody has changed since, is theirs. Whatever moment a process dies at, the note names every
file of ours that is there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from raddle.adapters.file_batches import FileBatch
from raddle.adapters.files import find_bytes, make_folder, storage_error, write_atomic
from raddle.adapters.temporaries import sweep_temporaries
from raddle.model.errors import ConflictError, InvalidInput
from raddle.model.memory.repo_layout import is_safe

NOTE = ".raddle-present.json"
_VERSION = 1


class Replaced(NamedTuple):
    """Paths below the folder: those written now or there already just so; those taken away, since nothing writes them
    any more; and those that would have been, but that somebody has changed."""

    files: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]


class _Ours(NamedTuple):
    part: str
    hashes: frozenset[str]


def replace_output(
    folder: Path, parts: Mapping[str, Mapping[str, bytes]], *, may_overwrite: bool = False
) -> Replaced:
    """Have these files in the folder, in place of what was written there for the same parts before.

    `parts`: name of a part -> path -> bytes. The parts that are not named stay as they are. ConflictError, before
    anything is touched, where a file is there that is not ours, or not any more, unless it `may_overwrite` it.
    The caller holds a lock on the folder.
    """
    wanted = {path: data for files in parts.values() for path, data in files.items()}
    part_of = {path: part for part, files in parts.items() for path in files}
    ours = _read_note(folder)
    _check(folder, wanted, ours, may_overwrite=may_overwrite)
    hashes = {path: _hash(data) for path, data in wanted.items()}
    stale = [path for path, one in ours.items() if one.part in parts and path not in wanted]
    mode = _mode_around(folder)
    _make_readable(folder, mode)
    # What is there and what will be, so that who comes after a crash knows both for ours.
    both = dict(ours)
    for path, digest in hashes.items():
        before = ours[path].hashes if path in ours else frozenset[str]()
        both[path] = _Ours(part_of[path], before | {digest})
    _write_note(folder, both)
    with FileBatch() as batch:
        for path, data in wanted.items():
            if not _holds(folder / path, data):
                _make_readable((folder / path).parent, mode)
                batch.write(folder / path, data, mode=mode & 0o666)
    for inside in {(folder / path).parent for path in wanted}:
        sweep_temporaries(inside)
    removed, kept = [], []
    for path in sorted(stale):
        target = folder / path
        if not _is_ours(target, ours[path]):
            if os.path.lexists(target):
                kept.append(path)
            continue
        _remove(folder, target)
        removed.append(path)
    left = {path: one for path, one in ours.items() if one.part not in parts}
    _write_note(
        folder,
        {**left, **{path: _Ours(part_of[path], frozenset({digest})) for path, digest in hashes.items()}},
    )
    return Replaced(tuple(wanted), tuple(removed), tuple(kept))


def _mode_around(folder: Path) -> int:
    """Who may read what is made there: whoever may read the nearest folder that is there, and nobody else writes."""
    try:
        around = next(place for place in (folder, *folder.parents) if place.exists())
        return (around.stat().st_mode & 0o755) | 0o700
    except (OSError, StopIteration) as error:
        raise storage_error(_os_error(error), folder, "write in") from error


def _os_error(error: Exception) -> OSError:
    return error if isinstance(error, OSError) else OSError(str(error))


def _make_readable(folder: Path, mode: int) -> None:
    """Make a folder and what is missing above it, so that others may read it; one that is there keeps its mode."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    make_folder(folder)
    for place in missing:
        place.chmod(mode)


def _check(
    folder: Path, wanted: Mapping[str, bytes], ours: Mapping[str, _Ours], *, may_overwrite: bool
) -> None:
    foreign = []
    for path, data in wanted.items():
        target = folder / path
        _refuse_links(folder, target)
        if target.is_dir() and not target.is_symlink():
            raise ConflictError(
                f"{target} is a folder, and a file is to go there", "name another folder: --out"
            )
        if not os.path.lexists(target) or (path in ours and _is_ours(target, ours[path])):
            continue
        if not _holds(target, data):
            foreign.append(path)
    if foreign and not may_overwrite:
        changed = "was changed since" if foreign[0] in ours else "was not written by this command"
        more = f" (and so were {len(foreign) - 1} more)" if len(foreign) > 1 else ""
        raise ConflictError(
            f"{folder / foreign[0]} {changed}{more}",
            "name another folder with --out, or say --force to write over it",
        )


def _refuse_links(folder: Path, target: Path) -> None:
    """A link among the folders on the way leads where nobody said that files go."""
    for above in target.relative_to(folder).parents:
        if (folder / above).is_symlink() and above != Path():
            raise InvalidInput(
                f"{folder / above} is a link, and what it leads to would be written to",
                "name another folder: --out",
            )


def _is_ours(target: Path, ours: _Ours) -> bool:
    if target.is_symlink() or not target.is_file():
        return False
    data = find_bytes(target)
    return data is not None and _hash(data) in ours.hashes


def _holds(target: Path, data: bytes) -> bool:
    """Is it a file, and neither a link nor a pipe, with these bytes?"""
    return not target.is_symlink() and target.is_file() and find_bytes(target) == data


def _remove(folder: Path, target: Path) -> None:
    try:
        target.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, target, "remove") from error
    with contextlib.suppress(OSError):  # somebody else's file is in it
        for above in target.relative_to(folder).parents:
            if above != Path():
                (folder / above).rmdir()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read_note(folder: Path) -> dict[str, _Ours]:
    """Path -> what is known of it. A note that cannot be read claims nothing: what is there is somebody else's then."""
    note = folder / NOTE
    if note.is_symlink():
        return {}
    try:
        plain: Any = json.loads(find_bytes(note) or b"{}")
        if plain.get("schema_version") != _VERSION:
            return {}
        found = {
            str(path): _Ours(str(one["part"]), frozenset(map(str, one["sha256"])))
            for path, one in plain["files"].items()
        }
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return {}
    return {path: one for path, one in found.items() if is_safe(path) and not _leaves(folder, path)}


def _leaves(folder: Path, path: str) -> bool:
    """Is a link on the way, which a note that came with a clone could lead us through?"""
    return any(
        (folder / above).is_symlink()
        for above in (folder / path).relative_to(folder).parents
        if above != Path()
    )


def _write_note(folder: Path, ours: Mapping[str, _Ours]) -> None:
    files = {path: {"part": one.part, "sha256": sorted(one.hashes)} for path, one in sorted(ours.items())}
    data = json.dumps({"schema_version": _VERSION, "files": files}, indent=2, ensure_ascii=False) + "\n"
    if find_bytes(folder / NOTE) != data.encode():
        write_atomic(folder / NOTE, data.encode())
