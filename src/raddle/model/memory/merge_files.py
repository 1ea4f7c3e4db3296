"""The files that both sides changed, merged each by its own rules, and the tree that comes of it.

Every clash ends the same way: the value at the path, the other version whole under another name beside it, both
listed. A rule of its own somewhere else would be a version lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from raddle.model.clock import parse_time
from raddle.model.errors import FormatError, NewerFormat
from raddle.model.memory.artifact import decode_index, encode_index
from raddle.model.memory.documents import plain_of
from raddle.model.memory.handoff import decode_handoff
from raddle.model.memory.merge_artifacts import Double, Placed, Renamed, merge_indexes
from raddle.model.memory.merge_records import merge_projects, merge_runs
from raddle.model.memory.merge_sides import Settled, SideName, Sides, Version, later_side, other_side
from raddle.model.memory.merge_texts import merge_memories, time_of_memory
from raddle.model.memory.merge_trees import BothChanged
from raddle.model.memory.project import decode_project, encode_project
from raddle.model.memory.repo_layout import ATTRIBUTES, Kind, place_of
from raddle.model.memory.run import decode_run, encode_run
from raddle.model.three_way import merge_texts, same


class MergedFile(Struct, frozen=True, kw_only=True):
    """What stands at the path: the whole of one side (`stands`), or `content`. `beside`: the side whose version is
    kept under another name; `beside_at`: its time, in microseconds. `clashes`: what the two do not agree on."""

    stands: SideName | None = None
    content: bytes | None = None
    beside: SideName | None = None
    beside_at: int = 0
    clashes: tuple[str, ...] = ()
    placed: tuple[Placed, ...] = ()
    doubles: tuple[Double, ...] = ()
    renamed: tuple[Renamed, ...] = ()


class Contents(Struct, frozen=True, kw_only=True):
    """A file's bytes at the base (None: it was not there) and on both sides, and who these are."""

    base: bytes | None
    local: bytes
    remote: bytes
    sides: Sides

    def version(self, side: SideName, at: int | None = None) -> Version:
        """What orders this side's bytes among the two; `at`: a better time than its commit's."""
        who = self.sides.of(side)
        content = self.local if side == "local" else self.remote
        return Version(who.at if at is None else at, who.node_id, content)


def merge_file(both: BothChanged, contents: Contents) -> MergedFile:
    """The two versions of a file as one, by the rules of what it is. ConflictError: the sides are two projects."""
    merge = _RULES.get(place_of(both.path).kind, _merge_other)
    try:
        merged = merge(contents)
    except FormatError:
        merged = _unread(merge, contents)
    if merged.content == contents.local:
        return _standing(merged, "local")
    if merged.content == contents.remote:
        return _standing(merged, "remote")
    return merged


def check_same_project(local: bytes | None, remote: bytes | None) -> None:
    """NewerFormat where either store is from the future, ConflictError where they are of two projects.

    Asked before anything is merged; a project file that is damaged is told by who opens the store.
    """
    projects = []
    for data in (local, remote):
        try:
            projects.append(decode_project(data) if data is not None else None)
        except NewerFormat:
            raise
        except FormatError:
            projects.append(None)
    if projects[0] and projects[1]:
        merge_projects(None, projects[0], projects[1], Settled(later="local"))


def _standing(merged: MergedFile, side: SideName) -> MergedFile:
    """The same with one side's own bytes named as such; they need no other file beside them than the other's."""
    beside = None if merged.beside == side else merged.beside
    return msgspec.structs.replace(merged, stands=side, content=None, beside=beside)


def _unread(merge: Callable[[Contents], MergedFile], contents: Contents) -> MergedFile:
    """One of the two cannot be read: the one that a newer raddle wrote stands, else the one that can be read."""
    local, remote = (_readability(merge, data, contents.sides) for data in (contents.local, contents.remote))
    if local == remote == 1:  # it is the base that cannot be read
        return merge(_without_base(contents))
    if local == remote:
        return _one_stands(contents.version("local"), contents.version("remote"))
    stands: SideName = "local" if local > remote else "remote"
    loser = other_side(stands)
    return MergedFile(
        stands=stands, beside=loser, beside_at=contents.sides.of(loser).at, clashes=("unreadable",)
    )


def _readability(merge: Callable[[Contents], MergedFile], data: bytes, sides: Sides) -> int:
    """2: from the future, 1: read, 0: broken."""
    try:
        merge(Contents(base=None, local=data, remote=data, sides=sides))
    except NewerFormat:
        return 2
    except FormatError:
        return 0
    return 1


def _without_base(contents: Contents) -> Contents:
    return Contents(base=None, local=contents.local, remote=contents.remote, sides=contents.sides)


def _one_stands(local: Version, remote: Version, *clashes: str) -> MergedFile:
    """The later version stands whole, the other one is kept beside it."""
    stands = later_side(local, remote)
    loser = remote if stands == "local" else local
    return MergedFile(
        stands=stands, beside=other_side(stands), beside_at=loser.at, clashes=clashes or ("content",)
    )


def _by_fields(contents: Contents, content: Callable[[Settled], bytes]) -> MergedFile:
    """What a merge by fields comes to: with a clash among them, the earlier side's file is kept as well."""
    later = later_side(contents.version("local"), contents.version("remote"))
    settle = Settled(later=later)
    merged = content(settle)
    beside = other_side(later) if settle.clashes else None
    return MergedFile(
        content=merged,
        beside=beside,
        beside_at=contents.sides.of(other_side(later)).at,
        clashes=tuple(settle.clashes),
    )


def _template(contents: Contents, settle: Settled) -> bytes:
    """The file whose comments and order of fields are kept: the later side's."""
    return contents.local if settle.later == "local" else contents.remote


def _merge_run(contents: Contents) -> MergedFile:
    base = None if contents.base is None else decode_run(contents.base)
    local, remote = decode_run(contents.local), decode_run(contents.remote)
    return _by_fields(
        contents,
        lambda settle: encode_run(merge_runs(base, local, remote, settle), _template(contents, settle)),
    )


def _merge_project(contents: Contents) -> MergedFile:
    base = None if contents.base is None else decode_project(contents.base)
    local, remote = decode_project(contents.local), decode_project(contents.remote)
    return _by_fields(
        contents,
        lambda settle: encode_project(
            merge_projects(base, local, remote, settle), _template(contents, settle)
        ),
    )


def _merge_index(contents: Contents) -> MergedFile:
    base = None if contents.base is None else decode_index(contents.base)
    local, remote = decode_index(contents.local), decode_index(contents.remote)
    more: dict[str, Any] = {}

    def content(settle: Settled) -> bytes:
        merged = merge_indexes(base, local, remote, contents.sides, settle)
        more.update(placed=merged.placed, doubles=merged.doubles, renamed=merged.renamed)
        return encode_index(merged.index)

    return msgspec.structs.replace(_by_fields(contents, content), **more)


def _merge_handoff(contents: Contents) -> MergedFile:
    local, remote = decode_handoff(contents.local), decode_handoff(contents.remote)
    here = contents.version("local", parse_time(local.published_ts))
    there = contents.version("remote", parse_time(remote.published_ts))
    if same(plain_of(local), plain_of(remote)):
        return MergedFile(stands=later_side(here, there))
    return _one_stands(here, there, "handoff")


def _merge_summary(contents: Contents) -> MergedFile:
    return _merge_lines(contents, contents.version("local"), contents.version("remote"))


def _merge_memory(contents: Contents) -> MergedFile:
    texts = _texts(contents)
    if texts is None:
        return _one_stands(contents.version("local"), contents.version("remote"))
    base, local, remote = texts
    times = time_of_memory(local), time_of_memory(remote)
    if None in times:  # a time of a memory's own and one of a commit say nothing about each other
        times = None, None
    versions = contents.version("local", times[0]), contents.version("remote", times[1])
    merged = merge_memories(base, local, remote, later_side(*versions))
    return MergedFile(content=merged.encode()) if merged is not None else _one_stands(*versions)


def _merge_attributes(contents: Contents) -> MergedFile:
    """Bytes as they are, where either side has come to that."""
    is_ours = ATTRIBUTES in (contents.local, contents.remote)
    return MergedFile(content=ATTRIBUTES) if is_ours else _merge_summary(contents)


def _merge_lines(contents: Contents, local: Version, remote: Version) -> MergedFile:
    texts = _texts(contents)
    merged = None if texts is None else merge_texts(texts[0] or "", texts[1], texts[2])
    return MergedFile(content=merged.encode()) if merged is not None else _one_stands(local, remote)


def _texts(contents: Contents) -> tuple[str | None, str, str] | None:
    """All three as texts; None where one is none."""
    try:
        base = None if contents.base is None else contents.base.decode()
        texts = base, contents.local.decode(), contents.remote.decode()
    except UnicodeDecodeError:
        return None
    return None if any("\0" in (text or "") for text in texts) else texts


def _merge_whole(contents: Contents) -> MergedFile:
    """What is never changed, or has no lines of its own."""
    return _one_stands(contents.version("local"), contents.version("remote"))


_merge_other = _merge_summary

_RULES: Mapping[Kind, Callable[[Contents], MergedFile]] = {
    "project": _merge_project,
    "run": _merge_run,
    "index": _merge_index,
    "entry": _merge_whole,
    "artifact": _merge_whole,
    "summary": _merge_summary,
    "handoff": _merge_handoff,
    "memory": _merge_memory,
    "attributes": _merge_attributes,
    "conflict": _merge_whole,
}
