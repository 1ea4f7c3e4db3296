"""Conflicts: the other version of what two machines changed at once, kept beside the one that stands, until settled.

Settling commits first, so that a version which is dropped can be had from the history for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from raddle.actions.memory.committing import commit_changes
from raddle.actions.memory.memories import MemoryFiles, Told, changed, check_not_in_the_way, place_named
from raddle.actions.memory.ports import StoreDisk, StoreFiles, StoreHistory, Writer
from raddle.model.clock import format_time
from raddle.model.errors import ConflictError, FormatError, InvalidInput, NotFound
from raddle.model.memory.artifact import decode_index
from raddle.model.memory.entry import decode_entry
from raddle.model.memory.handoff import decode_handoff
from raddle.model.memory.merge import conflicts_in
from raddle.model.memory.names import shown
from raddle.model.memory.project import decode_project
from raddle.model.memory.repo_layout import (
    MEMORY_FOLDER,
    RUNS_FOLDER,
    Kind,
    conflict_path,
    index_file,
    is_safe,
    parse_conflict,
    place_of,
)
from raddle.model.memory.run import decode_run
from raddle.model.memory.ulids import ulid_time

MINE, THEIRS, CURRENT = "mine", "theirs", "current"
_DECODERS: dict[Kind, Callable[[bytes], object]] = {
    "project": decode_project,
    "run": decode_run,
    "index": decode_index,
    "entry": decode_entry,
    "handoff": decode_handoff,
}


class DiskWithKeys(StoreDisk, MemoryFiles, Protocol):
    """A store's disk that also knows which names stand in each other's way."""


class OtherVersion(Struct, frozen=True, kw_only=True):
    """A version that waits to be settled. `path`: its file; `of`: the path that it stands beside, which may hold
    nothing. `node_id`: whose it is (as names have it, 18 characters at most). `at`: RFC 3339, when it was made."""

    path: str
    of: str
    node_id: str
    at: str

    @property
    def name(self) -> str:
        """As it is typed to take it: the name of its file."""
        return self.path.rpartition("/")[2]


class Resolved(Struct, frozen=True, kw_only=True):
    """What settling did: `path` holds what was `taken` (whose version, in words); the versions `dropped` are gone."""

    path: str
    taken: str
    dropped: tuple[str, ...]


def called(path: str) -> str:
    """A path of the store as a person types it: `namespace/key` of a memory, else the path."""
    place = place_of(path)
    return f"{place.namespace}/{place.key}" if place.namespace else path


def other_versions(files: StoreFiles) -> list[OtherVersion]:
    """All that wait, in the order of their paths. The file of an artifact that has an id of its own by now does not."""
    paths = conflicts_in(dict.fromkeys(files.paths()))
    artifacts = [path for path in paths if "/artifacts/" in path and path.startswith(f"{RUNS_FOLDER}/")]
    settled = _pointed_at(files, {path.split("/")[1] for path in artifacts}) if artifacts else frozenset()
    return [_version(path) for path in paths if path not in settled]


def versions_beside(files: StoreFiles, path: str) -> list[OtherVersion]:
    """Those that stand beside one path."""
    folder = path.rpartition("/")[0]
    paths = (f"{folder}/{name}" for name in files.names(folder) if ".conflict-" in name)
    return [_version(one) for one in paths if (found := parse_conflict(one)) is not None and found.of == path]


def resolve(
    disk: DiskWithKeys,
    history: StoreHistory,
    writer: Writer,
    what: str,
    *,
    take: str = "",
    text: str | None = None,
) -> Resolved:
    """Settle the conflict of `what` (`namespace/key`, a path, or a version's own): it holds what is taken from now on.

    `take`: `mine` (this machine's), `theirs`, `current` (what stands there now), or the name of a version; or else
    `text`. NotFound: nothing waits there. ConflictError: a version is in no commit, so that it would be lost.
    """
    path = _meant(what)
    with disk.locked():
        waiting = [version for version in other_versions(disk) if version.of == path]
        if not waiting:
            raise NotFound("conflict of", what, "`raddle memory resolve` lists those that wait")
        if not take and text is None:
            raise InvalidInput(f"{shown(called(path))} has {_how_many(waiting)}", _how_to_take(waiting))
        chosen = None if text is not None else _chosen(waiting, take, writer.node_id)
        _check_committed(disk, history, writer, [path, *(version.path for version in waiting)])
        data = _data(disk, chosen) if text is None else _of_text(disk, writer, path, text)
        if data is not None:
            _check_readable(path, data)
            _check_room(disk, path)
            disk.change(path, lambda _: data)
        for version in waiting:
            disk.change(version.path, lambda _: None)
    taken = "your text" if text is not None else f"that of {chosen.node_id}" if chosen else "what stood there"
    return Resolved(path=path, taken=taken, dropped=tuple(version.path for version in waiting))


def _meant(what: str) -> str:
    """The path whose conflict is meant: by its name, its path, or those of one of its versions."""
    path = what.removeprefix("./")
    is_path = path.partition("/")[0] in (MEMORY_FOLDER, RUNS_FOLDER) or "/" not in path
    if not (is_path and is_safe(path) and place_of(path).kind != "other"):
        path = place_named(what).path
    conflict = parse_conflict(path)
    return path if conflict is None else conflict.of


def _version(path: str) -> OtherVersion:
    conflict = parse_conflict(path)
    assert conflict is not None
    return OtherVersion(
        path=path,
        of=conflict.of,
        node_id=conflict.node_id,
        at=format_time(ulid_time(conflict.conflict_id)),
    )


def _pointed_at(files: StoreFiles, run_ids: Iterable[str]) -> frozenset[str]:
    """The files of artifacts that these runs' pointers lead to."""
    found: set[str] = set()
    for run_id in run_ids:
        try:
            index = decode_index(files.read(index_file(run_id)) or b"")
        except (FormatError, InvalidInput):  # then nobody knows, and nothing counts as settled
            continue
        found.update(artifact.path for artifact in index.artifacts.values() if artifact.path)
    return frozenset(found)


def _chosen(waiting: Sequence[OtherVersion], take: str, node_id: str) -> OtherVersion | None:
    """The version that `take` names; None: what stands there."""
    mine = [version for version in waiting if version.node_id == _as_in_names(node_id)]
    others = [version for version in waiting if version not in mine]
    if take == CURRENT:
        return None
    if take == MINE:
        if not mine and len(waiting) > 1:
            raise InvalidInput("this machine wrote none of the versions that wait", _how_to_take(waiting))
        return _only(mine, waiting, take) if mine else None
    if take == THEIRS:
        return _only(others, waiting, take) if others else None
    found = [version for version in waiting if take in (version.name, version.path, called(version.path))]
    if not found:
        raise InvalidInput(f"{shown(take)} is no version of it", _how_to_take(waiting))
    return found[0]


def _only(found: Sequence[OtherVersion], waiting: Sequence[OtherVersion], take: str) -> OtherVersion:
    if len(found) > 1:
        raise InvalidInput(f"{take!r} may be any of {len(found)} versions", _how_to_take(waiting))
    return found[0]


def _as_in_names(node_id: str) -> str:
    """A node's id as the names of conflicts have it."""
    conflict = parse_conflict(conflict_path("x", node_id, "0" * 26))
    return conflict.node_id if conflict is not None else node_id


def _how_many(waiting: Sequence[OtherVersion]) -> str:
    return "another version" if len(waiting) == 1 else f"{len(waiting)} other versions"


def _how_to_take(waiting: Sequence[OtherVersion]) -> str:
    names = ", ".join(version.name for version in waiting[:4])
    return f"--take mine, theirs, current or the name of one ({names}); or --text"


def _check_committed(disk: DiskWithKeys, history: StoreHistory, writer: Writer, paths: Iterable[str]) -> None:
    """ConflictError where one of the versions is not in the history once all is committed."""
    blocked = commit_changes(disk, history, writer).blocked
    for path in paths:
        if path in blocked:
            raise ConflictError(
                f"{shown(path)} is in no commit ({blocked[path]}), so it would be lost",
                "copy it elsewhere, or make it fit to be committed",
            )


def _data(disk: DiskWithKeys, chosen: OtherVersion | None) -> bytes | None:
    """The bytes that are taken; None: what stands there stays."""
    if chosen is None:
        return None
    data = disk.read(chosen.path)
    if data is None:
        raise NotFound("version", chosen.name, "`raddle memory resolve` lists those that wait")
    return data


def _of_text(disk: DiskWithKeys, writer: Writer, path: str, text: str) -> bytes:
    """A text as the file's bytes; a memory keeps what is told of it."""
    if place_of(path).kind == "memory":
        return changed(disk.read(path), text, Told(), writer)
    return (text if text.endswith("\n") or not text else f"{text}\n").encode()


def _check_readable(path: str, data: bytes) -> None:
    """InvalidInput where a record could not be read any more."""
    decode = _DECODERS.get(place_of(path).kind)
    if decode is not None:
        try:
            decode(data)
        except FormatError as error:
            raise InvalidInput(
                f"that cannot stand there: {error.message}", error.hint or "take another"
            ) from error
    if place_of(path).kind == "artifact":
        raise InvalidInput(
            "an artifact never changes, so only what stands there can be kept",
            "--take current; the other version can be added under an id of its own first",
        )


def _check_room(disk: DiskWithKeys, path: str) -> None:
    """InvalidInput where another memory took the name meanwhile, in other letters or as a folder."""
    place = place_of(path)
    if place.kind == "memory" and disk.read(path) is None:
        try:
            check_not_in_the_way(disk, place.namespace, place.key)
        except InvalidInput as error:
            raise InvalidInput(
                error.message, "write it to another key (`raddle memory set`), then --take current"
            ) from error
