"""The commit plan: what a tree holds after a merge, as far as the names of contents say, and which files must be read.

A tree is a mapping of paths to the ids of their contents (git's blob ids). An entry that is no regular file (a
link, another repository) has an id with a space in it (`120000 <id>`): it is carried along, and never followed.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from raddle.model.memory.repo_layout import PROJECT_FILE, is_safe

Tree = Mapping[str, str]


class BothChanged(Struct, frozen=True, kw_only=True):
    """A file that both sides changed, each to another content; `base` None: both added it."""

    path: str
    base: str | None
    local: str
    remote: str


class MergePlan(Struct, frozen=True, kw_only=True):
    """The three trees, and what comes of them. `settled`: what stands without a look inside. `kept`: files that one
    side removed and the other changed; they are among the settled."""

    base: Tree
    local: Tree
    remote: Tree
    settled: dict[str, str]
    both_changed: tuple[BothChanged, ...]
    kept: tuple[str, ...]

    @property
    def projects(self) -> tuple[str | None, str | None]:
        """The ids of the local and the remote `project.yaml`."""
        return self.local.get(PROJECT_FILE), self.remote.get(PROJECT_FILE)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The ids of the contents that `merge_files` asks for, each once."""
        ids = [part for both in self.both_changed for part in (both.base, both.local, both.remote)]
        return tuple(
            dict.fromkeys(wanted for wanted in [*self.projects, *ids] if wanted and is_regular(wanted))
        )


class DiskStep(Struct, frozen=True, kw_only=True):
    """A file on the disk that is to hold `becomes` (None: to go) if it still holds `expects` (None: is not there)."""

    path: str
    expects: str | None
    becomes: str | None


def plan_merge(base: Tree, local: Tree, remote: Tree) -> MergePlan:
    """What stands where only one side changed it or both agree, and what both changed.

    A change outweighs a removal: nobody's text goes because somebody else no longer wanted the older one.
    """
    settled: dict[str, str] = {}
    both_changed: list[BothChanged] = []
    kept: list[str] = []
    for path in sorted(base.keys() | local.keys() | remote.keys()):
        before, here, there = base.get(path), local.get(path), remote.get(path)
        if here in (there, before) or there == before:
            stands = there if here == before else here
        elif here is None or there is None:
            stands = here or there
            kept.append(path)
        elif not (is_regular(here) and is_regular(there) and is_safe(path)):
            stands = max(here, there, key=lambda entry: (is_regular(entry), entry))
        else:
            older = before if before and is_regular(before) else None
            both_changed.append(BothChanged(path=path, base=older, local=here, remote=there))
            continue
        if stands is not None:
            settled[path] = stands
    return MergePlan(
        base=base,
        local=local,
        remote=remote,
        settled=settled,
        both_changed=tuple(both_changed),
        kept=tuple(kept),
    )


def changed_paths(before: Tree, after: Tree) -> dict[str, str | None]:
    """Path -> what it holds after; None: nothing any more. In the order of the paths."""
    return {
        path: after.get(path)
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
    }


def disk_steps(held: Tree, merged: Tree) -> tuple[DiskStep, ...]:
    """What brings a folder that holds `held` to `merged`: removals first, for a file may become a folder.

    What may not be on a disk (`withheld`) is in no step.
    """
    steps = [
        DiskStep(path=path, expects=held.get(path), becomes=becomes)
        for path, becomes in changed_paths(held, merged).items()
        if _may_be_on_disk(path, becomes) and _may_be_on_disk(path, held.get(path))
    ]
    return tuple(sorted(steps, key=lambda step: step.becomes is not None))


def withheld(tree: Tree) -> dict[str, str]:
    """The entries of `tree` that are never written to a disk: dangerous paths, links, other repositories."""
    return {path: entry for path, entry in tree.items() if not _may_be_on_disk(path, entry)}


def tree_of(on_disk: Tree, head: Tree) -> dict[str, str]:
    """The tree that a folder stands for: what it holds, and what of `head` cannot be in it."""
    return {**withheld(head), **on_disk}


def is_regular(entry: str) -> bool:
    """Is it a file, and no link or other repository?"""
    return " " not in entry


def _may_be_on_disk(path: str, entry: str | None) -> bool:
    return is_safe(path) and (entry is None or is_regular(entry))
