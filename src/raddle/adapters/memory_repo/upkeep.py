"""What gathers in a store's repository, and how it is tidied: by git's own maintenance, at limits that are ours.

Owns when a commit may leave a pack of its own, which is written twice as fast as single objects, and by when they are
packed together. Were one of the two decided elsewhere, they would gather until each git looked through hundreds.
"""

from __future__ import annotations

import os
from pathlib import Path

from raddle.adapters.memory_repo.store_git import run_store_git
from raddle.model.clock import system_clock

OBJECTS_AT, PACKS_AT = 2_000, 30
"""So many objects that lie about singly (as git guesses their number), or packs, and they are packed together."""
MOST_PACKS = 60
"""No commit adds a pack to so many: where nobody tidies, objects that lie about singly cost others less."""
MANY_OBJECTS = 100
"""As git decides it for what it fetches."""
_UPKEEP_SECONDS = 600.0
_PACKING = {"pack.threads": "1"}
"""Each thread packs a part by itself, and where two parts meet a folder is kept whole: 50 bytes of each commit."""
_KEPT_BY_THE_DEAD_SECONDS = 3600.0
_KEPT_BY_GIT = (b"fetch-pack ", b"fast-import")
"""What git writes into it; a person's own says something else, or nothing."""


def may_leave_a_pack(root: Path, objects: int) -> bool:
    """May a commit leave what it made as a pack? Else it is taken apart into single objects, which takes longer the
    more there are: at `MANY_OBJECTS` it always may."""
    return objects >= MANY_OBJECTS or 0 <= _packs_in(root) < MOST_PACKS


def maintain(root: Path) -> None:
    """Have git pack what has gathered, where it finds it worth it. Not where the store is a branch of the code's
    repository, which the person's own git looks after, nor where they switched it off."""
    if not (root / ".git").is_dir():
        return
    # The last one is that of our own command line.
    *theirs, _ = run_store_git(root, ["config", "--get-all", "gc.auto"]).stdout.split()
    if theirs[-1:] == [b"0"]:
        return
    _let_go(root)
    settings = {"gc.auto": OBJECTS_AT, "gc.autoPackLimit": PACKS_AT, "gc.autoDetach": "false", **_PACKING}
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    run_store_git(root, [*options, "gc", "--auto", "--quiet"], timeout=_UPKEEP_SECONDS)


def _packs_in(root: Path) -> int:
    """How many packs there are; -1 in a repository that is not the store's own."""
    folder = root / ".git"
    if not folder.is_dir():
        return -1
    try:
        return sum(name.endswith(".pack") for name in os.listdir(folder / "objects" / "pack"))
    except OSError:
        return 0


def _let_go(root: Path) -> None:
    """A fetch that was killed between its pack and its ref leaves a note that keeps the pack for ever."""
    for keep in (root / ".git" / "objects" / "pack").glob("*.keep"):
        try:
            is_old = system_clock() / 1e6 - keep.stat().st_mtime > _KEPT_BY_THE_DEAD_SECONDS
            if is_old and keep.read_bytes().startswith(_KEPT_BY_GIT):
                keep.unlink()
        except OSError:
            continue
