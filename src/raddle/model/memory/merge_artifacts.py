"""Two indexes of a run's artifacts as one: every pointer of either side, and no bytes that two of them fight over.

A pointer is immutable, so an id that names two contents names none: the later one gets an id of its own, and its
file, if the store holds it, another path. Both are worked out together, or a pointer would lead to the other's bytes.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from raddle.model.clock import parse_time
from raddle.model.errors import FormatError
from raddle.model.memory.artifact import Artifact, ArtifactIndex, decode_artifact, pointers_of
from raddle.model.memory.merge_sides import (
    Settled,
    SideName,
    Sides,
    earliest,
    other_side,
    replaced,
    settled_field,
)
from raddle.model.memory.names import folded
from raddle.model.memory.repo_layout import moved_artifact_id, moved_artifact_path
from raddle.model.memory.ulids import derived_ulid
from raddle.model.three_way import MISSING, keys_of_both, merge_mappings, merge_values, same


class Placed(Struct, frozen=True, kw_only=True):
    """One side's file at `path` is what stands at `at` in the merged tree; mostly the same path."""

    side: SideName
    path: str
    at: str


class Double(Struct, frozen=True, kw_only=True):
    """The file at `path` is the one at `of` once more: both sides added one content, and one pointer is left."""

    path: str
    of: str


class Renamed(Struct, frozen=True, kw_only=True):
    """An artifact that has another id now, because another one has its own."""

    artifact_id: str
    renamed_to: str
    side: SideName


class MergedIndex(Struct, frozen=True, kw_only=True):
    """The index of both, whose bytes stand where because of it, and who was renamed."""

    index: ArtifactIndex
    placed: tuple[Placed, ...] = ()
    doubles: tuple[Double, ...] = ()
    renamed: tuple[Renamed, ...] = ()


def merge_indexes(
    base: ArtifactIndex | None, local: ArtifactIndex, remote: ArtifactIndex, sides: Sides, settle: Settled
) -> MergedIndex:
    """Every pointer of either side; of two contents with one id the earlier keeps it."""
    union = _Union(sides, settle)
    before, here, there = pointers_of(base) if base else {}, pointers_of(local), pointers_of(remote)
    for artifact_id in keys_of_both(before, here, there):
        union.add(
            artifact_id,
            before.get(artifact_id, MISSING),
            here.get(artifact_id, MISSING),
            there.get(artifact_id, MISSING),
        )
    union.part_files()
    index = replaced(
        local,
        run_id=settled_field(settle, "run_id", base and base.run_id, local.run_id, remote.run_id),
        artifacts=union.artifacts,
        unread=union.unread,
        unknown=merge_mappings(base.unknown if base else {}, local.unknown, remote.unknown, settle),
    )
    return MergedIndex(
        index=index,
        placed=tuple(union.placed()),
        doubles=tuple(union.told_doubles()),
        renamed=tuple(union.renamed),
    )


class _Union:
    """The pointers of both sides while they are put together."""

    def __init__(self, sides: Sides, settle: Settled) -> None:
        self._sides = sides
        self._settle = settle
        self._owners: dict[str, SideName] = {}
        self.artifacts: dict[str, Artifact] = {}
        self.unread: dict[str, Any] = {}
        self._moved_from: dict[tuple[SideName, str], str] = {}
        self._doubles: list[Double] = []
        self.renamed: list[Renamed] = []

    def add(self, artifact_id: str, base: Any, local: Any, remote: Any) -> None:
        """What the three say of one id; MISSING: nothing."""
        if local is MISSING or remote is MISSING:
            self._owners[artifact_id] = "remote" if local is MISSING else "local"
            self._keep(artifact_id, remote if local is MISSING else local)
        elif same(local, remote) or same(remote, base):
            self._keep(artifact_id, local)
        elif same(local, base):
            self._keep(artifact_id, remote)
        else:
            self._add_both(artifact_id, base, local, remote)

    def _add_both(self, artifact_id: str, base: Any, local: Any, remote: Any) -> None:
        here, there = _readable(artifact_id, local), _readable(artifact_id, remote)
        where = ("artifacts", artifact_id)
        if here is not None and there is not None and here.sha256 == there.sha256:
            told = self._told_once(artifact_id, here, there)
            self._keep(artifact_id, merge_values(base, local | told, remote | told, self._settle, where))
        elif here is not None and (there is None or _age(here) > _age(there)):
            self._keep(artifact_id, remote)
            self._rename(here, "local")
        elif there is not None:
            self._keep(artifact_id, local)
            self._rename(there, "remote")
        else:
            self._keep(artifact_id, self._settle(where, base, local, remote))

    def _told_once(self, artifact_id: str, local: Artifact, remote: Artifact) -> dict[str, Any]:
        """What stands of one content that both sides told of: when it was first told of, and one file of the two."""
        told = {"created_ts": earliest(local.created_ts, remote.created_ts)}
        first, second = sorted((local, remote), key=lambda artifact: (*_age(artifact), artifact.uri))
        if first.path is not None and second.path is not None:
            told["uri"] = first.path
            if first.path != second.path:
                self._doubles.append(Double(path=second.path, of=first.path))
                self._owners[artifact_id] = "local" if first is local else "remote"
        return told

    def _rename(self, artifact: Artifact, side: SideName) -> None:
        """Another artifact has its id: an older one, or one that cannot be read and so cannot be renamed."""
        apart = self._apart(artifact, side)
        self.artifacts[apart.artifact_id] = apart
        self._owners[apart.artifact_id] = side
        self._owners[artifact.artifact_id] = other_side(side)
        self.renamed.append(
            Renamed(artifact_id=artifact.artifact_id, renamed_to=apart.artifact_id, side=side)
        )

    def _keep(self, artifact_id: str, pointer: Any) -> None:
        artifact = _readable(artifact_id, pointer)
        if artifact is None:
            self.unread[artifact_id] = pointer
        else:
            self.artifacts[artifact_id] = artifact

    def _apart(self, artifact: Artifact, side: SideName, *, with_id: bool = True) -> Artifact:
        """The artifact under a path (and an id) of its own, the same wherever it is worked out."""
        node_id = self._sides.of(side).node_id
        ulid = derived_ulid(_age(artifact)[0], artifact.artifact_id.encode(), artifact.sha256.encode())
        artifact_id = (
            moved_artifact_id(artifact.artifact_id, node_id, ulid) if with_id else artifact.artifact_id
        )
        if artifact.path is None:
            return replaced(artifact, artifact_id=artifact_id)
        path = moved_artifact_path(artifact.path, node_id, ulid)
        self._moved_from[side, path] = artifact.path
        return replaced(artifact, artifact_id=artifact_id, uri=path)

    def part_files(self) -> None:
        """Give a file of its own to each artifact whose path, but not whose content, the other side's has too."""
        first: dict[str, Artifact] = {}
        oldest_first = sorted(
            self.artifacts.values(), key=lambda artifact: (*_age(artifact), artifact.artifact_id)
        )
        for artifact in oldest_first:
            if artifact.path is None:
                continue
            holder = first.setdefault(folded(artifact.path), artifact)
            side = self._owners.get(artifact.artifact_id)
            is_of_both_sides = side != self._owners.get(holder.artifact_id)
            if holder.sha256 != artifact.sha256 and side is not None and is_of_both_sides:
                self.artifacts[artifact.artifact_id] = self._apart(artifact, side, with_id=False)

    def told_doubles(self) -> list[Double]:
        """The files that no pointer leads to any more, for there is another one of the same content."""
        paths = {artifact.path for artifact in self.artifacts.values()}
        return [double for double in self._doubles if double.path not in paths]

    def placed(self) -> list[Placed]:
        """For each inline artifact that one side alone means: its file on that side, and where that stands now."""
        return [
            Placed(
                side=owner, path=self._moved_from.get((owner, artifact.path), artifact.path), at=artifact.path
            )
            for artifact_id, artifact in sorted(self.artifacts.items())
            if artifact.path is not None and (owner := self._owners.get(artifact_id)) is not None
        ]


def _readable(artifact_id: str, pointer: Any) -> Artifact | None:
    try:
        return decode_artifact(artifact_id, pointer)
    except FormatError:
        return None


def _age(artifact: Artifact) -> tuple[int, str]:
    return parse_time(artifact.created_ts) or 0, artifact.sha256
