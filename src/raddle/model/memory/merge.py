"""A merge from end to end: a plan and the contents it asks for become the merged tree, its conflicts and what to say.

Whoever holds the same base, sides and contents gets the same tree: two nodes that merge the same two heads make no
work for each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from raddle.model.memory.merge_artifacts import Double, Placed
from raddle.model.memory.merge_files import Contents, MergedFile, check_same_project, merge_file
from raddle.model.memory.merge_sides import SideName, Sides
from raddle.model.memory.merge_trees import BothChanged, MergePlan, Tree, withheld
from raddle.model.memory.names import folded
from raddle.model.memory.repo_layout import MEMORY_FOLDER, conflict_path, is_safe, place_of
from raddle.model.memory.ulids import derived_ulid

NoteKind = Literal["conflict", "kept", "moved", "renamed_artifact", "withheld"]


class Note(Struct, frozen=True, kw_only=True, order=True):
    """What a person should know of a merge. `other`: the path (an artifact's: the id) where the rest is now.

    conflict: two versions, the other one beside · kept: removed there, changed here · moved: another name, two could
    not stand side by side · renamed_artifact: `path` is the id it had · withheld: in the tree, never on a disk.
    """

    path: str
    kind: NoteKind
    other: str = ""
    clashes: tuple[str, ...] = ()


class MergedTree(Struct, frozen=True, kw_only=True):
    """`entries`: path -> the id of a content that is there already. `written`: path -> bytes that are new."""

    entries: dict[str, str]
    written: dict[str, bytes]
    notes: tuple[Note, ...] = ()

    @property
    def paths(self) -> frozenset[str]:
        """All of them."""
        return frozenset(self.entries) | frozenset(self.written)


def merge_contents(plan: MergePlan, contents: Mapping[str, bytes], sides: Sides) -> MergedTree:
    """The merged tree. `contents`: id -> bytes, for every id of `plan.wanted`.

    NewerFormat: a store from the future. ConflictError: the two sides are two projects.
    """
    check_same_project(*(contents.get(entry or "") for entry in plan.projects))
    draft = _Draft(plan, sides)
    merged = [(both, merge_file(both, _contents(both, contents, sides))) for both in plan.both_changed]
    for both, file in merged:
        draft.place(both, file, contents)
    draft.place_artifacts([placed for _, file in merged for placed in file.placed])
    draft.keep_artifacts([both for both in plan.both_changed if _is_artifact(both.path)], contents)
    draft.drop([double for _, file in merged for double in file.doubles])
    draft.part_names()
    return draft.finished()


def conflicts_in(paths: Mapping[str, object]) -> tuple[str, ...]:
    """The paths of a tree that are one side of a clash, in order; `place_of` tells of what."""
    return tuple(sorted(path for path in paths if ".conflict-" in path and place_of(path).kind == "conflict"))


def _contents(both: BothChanged, contents: Mapping[str, bytes], sides: Sides) -> Contents:
    return Contents(
        base=contents[both.base] if both.base else None,
        local=contents[both.local],
        remote=contents[both.remote],
        sides=sides,
    )


class _Draft:
    """The merged tree while it is put together."""

    def __init__(self, plan: MergePlan, sides: Sides) -> None:
        self._plan = plan
        self._sides = sides
        self._trees: dict[SideName, Tree] = {"local": plan.local, "remote": plan.remote}
        self._only = (
            frozenset(plan.local.keys() - plan.remote.keys()),
            frozenset(plan.remote.keys() - plan.local.keys()),
        )
        self._entries = dict(plan.settled)
        self._written: dict[str, bytes] = {}
        self._notes = [Note(kind="kept", path=path) for path in plan.kept]

    def place(self, both: BothChanged, file: MergedFile, contents: Mapping[str, bytes]) -> None:
        """Put a merged file at its path, and the version that it does not hold beside it."""
        self._notes += [
            Note(kind="renamed_artifact", path=one.artifact_id, other=one.renamed_to) for one in file.renamed
        ]
        if file.stands is not None:
            self._entries[both.path] = self._trees[file.stands][both.path]
        elif file.content is not None:
            self._written[both.path] = file.content
        if file.beside is not None and not _is_artifact(both.path):
            self._keep_beside(both.path, file.beside, file.beside_at, contents, file.clashes)

    def _keep_beside(
        self, path: str, side: SideName, at: int, contents: Mapping[str, bytes], clashes: tuple[str, ...]
    ) -> None:
        entry = self._trees[side][path]
        ulid = derived_ulid(at, path.encode(), contents[entry])
        beside = conflict_path(path, self._sides.of(side).node_id, ulid)
        self._entries[beside] = entry
        self._notes.append(Note(kind="conflict", path=path, other=beside, clashes=clashes))

    def place_artifacts(self, placed: Sequence[Placed]) -> None:
        """Put the files of artifacts where the merged index says: it knows whose bytes are meant."""
        left = {one.path for one in placed if one.at != one.path} - {one.at for one in placed}
        for one in placed:
            entry = self._trees[one.side].get(one.path)
            if entry is not None:
                self._entries[one.at] = entry
                self._notes += [Note(kind="moved", path=one.path, other=one.at)] * (one.at != one.path)
        for path in left & (self._only[0] | self._only[1]):
            self._entries.pop(path, None)

    def keep_artifacts(self, files: Sequence[BothChanged], contents: Mapping[str, bytes]) -> None:
        """Of a file that both changed, keep what stands nowhere beside it: no pointer says what it is."""
        standing = set(self._entries.values()) if files else set()
        for both in files:
            sides: tuple[SideName, SideName] = ("local", "remote")
            for side in sides:
                if self._trees[side][both.path] not in standing:
                    self._keep_beside(both.path, side, self._sides.of(side).at, contents, ("content",))

    def drop(self, doubles: Sequence[Double]) -> None:
        """Take out the files of artifacts that are there once more, to the byte, where the pointer leads."""
        for double in doubles:
            if double.path in self._entries and self._entries[double.path] == self._entries.get(double.of):
                del self._entries[double.path]
                self._notes.append(Note(kind="moved", path=double.path, other=double.of))

    def part_names(self) -> None:
        """Give another name to memories that only the merge brought together, and no file system can hold both.

        A folder has the spelling that was there before, else the first one. A file gives way to a folder, and to
        a file that was there before it. What one side had side by side already stays as it is.
        """
        if not all(any(path.startswith(f"{MEMORY_FOLDER}/") for path in only) for only in self._only):
            return  # neither can stand in the other's way
        paths = [path for path in (*self._entries, *self._written) if path.startswith(f"{MEMORY_FOLDER}/")]
        paths = sorted(filter(is_safe, paths), key=lambda path: (path not in self._plan.base, path))
        sides = _Names(paths, self._only[1]), _Names(paths, self._only[0])
        placed: tuple[set[str], set[str]] = (set(), set())
        for path in paths:
            for own, other in ((0, 1), (1, 0)):
                if path not in self._only[own]:
                    continue
                name = sides[own].respelled(path, sides[other])
                fold = folded(name)
                is_folder = fold in sides[other].folders and fold not in sides[own].folders
                is_taken = name != path and (name in self._entries or name in self._written)
                if fold in placed[other] or is_folder or is_taken:
                    name = self._renamed(name, path)
                if name != path:
                    self._rename(path, name)
                placed[own].add(folded(name))

    def _renamed(self, name: str, path: str) -> str:
        who = self._sides.of("remote" if path in self._only[1] else "local")
        content = self._entries[path].encode() if path in self._entries else self._written[path]
        return conflict_path(name, who.node_id, derived_ulid(who.at, name.encode(), content))

    def _rename(self, path: str, name: str) -> None:
        if path in self._entries:
            self._entries[name] = self._entries.pop(path)
        else:
            self._written[name] = self._written.pop(path)
        self._notes.append(Note(kind="moved", path=path, other=name))

    def finished(self) -> MergedTree:
        """The tree, and the notes in order."""
        notes = [*self._notes, *(Note(kind="withheld", path=path) for path in withheld(self._entries))]
        return MergedTree(entries=self._entries, written=self._written, notes=tuple(sorted(set(notes))))


class _Names:
    """The folders above one side's memories, as it spells them: all of `paths` but those of the other side alone."""

    def __init__(self, paths: Sequence[str], but: frozenset[str]) -> None:
        self.folders: dict[str, tuple[int, str]] = {}
        self._spellings: set[str] = set()
        for rank, path in enumerate(paths):
            for folder in () if path in but else _folders(path):
                self._spellings.add(folder)
                self.folders.setdefault(folded(folder), (rank, folder))

    def respelled(self, path: str, other: _Names) -> str:
        """`path` with each of its folders as the other side spells it, where that one was there first."""
        name, *parts = path.split("/")
        for part in parts:
            fold = folded(name)
            theirs = other.folders.get(fold)
            if (
                theirs is not None
                and theirs < self.folders.get(fold, theirs)
                and theirs[1] not in self._spellings
            ):
                name = theirs[1]
            name = f"{name}/{part}"
        return name


def _is_artifact(path: str) -> bool:
    return place_of(path).kind == "artifact"


def _folders(path: str) -> list[str]:
    """The folders above `path`, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]
