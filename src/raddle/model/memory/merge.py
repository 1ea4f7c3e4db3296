"""A merge from end to end: a plan and the contents it asks for become the merged tree, its conflicts and what to say.

Whoever holds the same base, sides and contents gets the same tree: two nodes that merge the same two heads make no
work for each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from raddle.model.memory.merge_artifacts import Move
from raddle.model.memory.merge_files import Contents, MergedFile, check_same_project, merge_file
from raddle.model.memory.merge_sides import Sides
from raddle.model.memory.merge_trees import BothChanged, MergePlan, withheld
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
    moves = [move for _, file in merged for move in file.moves]
    for both, file in merged:
        draft.place(both, file, contents)
    draft.move(moves)
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
        self._trees = {"local": plan.local, "remote": plan.remote}
        self._only = (
            frozenset(plan.local.keys() - plan.remote.keys()),
            frozenset(plan.remote.keys() - plan.local.keys()),
        )
        self._entries = dict(plan.settled)
        self._written: dict[str, bytes] = {}
        self._notes = [Note(kind="kept", path=path) for path in plan.kept]
        self._beside: dict[str, str] = {}

    def place(self, both: BothChanged, file: MergedFile, contents: Mapping[str, bytes]) -> None:
        """Put a merged file at its path, and the version that it does not hold beside it."""
        self._notes += [
            Note(kind="renamed_artifact", path=one.artifact_id, other=one.renamed_to) for one in file.renamed
        ]
        if file.stands is not None:
            self._entries[both.path] = self._trees[file.stands][both.path]
        elif file.content is not None:
            self._written[both.path] = file.content
        if file.beside is not None:
            entry = self._trees[file.beside][both.path]
            ulid = derived_ulid(file.beside_at, both.path.encode(), contents[entry])
            beside = conflict_path(both.path, self._sides.of(file.beside).node_id, ulid)
            self._entries[beside] = entry
            self._beside[both.path] = beside
            self._notes.append(Note(kind="conflict", path=both.path, other=beside, clashes=file.clashes))

    def move(self, moves: Sequence[Move]) -> None:
        """Move the files of artifacts as the index says: it knows whose bytes are meant where."""
        for move in moves:
            entry = self._trees[move.side].get(move.path)
            if entry is None:
                continue
            self._entries[move.moved_to] = entry
            self._notes.append(Note(kind="moved", path=move.path, other=move.moved_to))
            stays = None if move.stays is None else self._trees[move.stays].get(move.path)
            if stays is not None:
                self._entries[move.path] = stays
            elif move.path in self._entries and move.path in self._only[0] | self._only[1]:
                del self._entries[move.path]

        for path in {move.path for move in moves} & self._beside.keys():
            beside = self._beside[path]
            places = {path, *(move.moved_to for move in moves if move.path == path)}
            if self._entries[beside] in {self._entries.get(place) for place in places}:
                del self._entries[beside]  # two files of two artifacts are no two versions of one
                self._notes = [note for note in self._notes if note.other != beside]

    def part_names(self) -> None:
        """Give another name to memories that only the merge brought together, and no file system can hold both.

        A folder has the spelling that was there before, else the first one. A file gives way to a folder, and to
        a file that was there before it. What one side had side by side already stays as it is.
        """
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
                if fold in placed[other] or (fold in sides[other].folders and fold not in sides[own].folders):
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


def _folders(path: str) -> list[str]:
    """The folders above `path`, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]
