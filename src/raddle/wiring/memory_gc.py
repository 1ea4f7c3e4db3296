"""What in this machine's own store of blobs no memory names any more, across all memories that put blobs there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from raddle.wiring.memory import ProjectMemory
from raddle.wiring.memory_places import known_stores

if TYPE_CHECKING:
    from raddle.adapters.blobs.own_directory import Unnamed


class LeftOver(NamedTuple):
    """`blobs`: what may go. `gone`: memories that are not where they were (their disk may be somewhere else today), and
    what is kept for each: (blobs, bytes)."""

    blobs: list[Unnamed]
    gone: dict[Path, tuple[int, int]]


def find_left_over(memory: ProjectMemory, *, forgets_gone: bool = False) -> LeftOver:
    """Look at every memory of this machine. `forgets_gone`: nothing is kept for a memory that is gone.

    StorageError or a FormatError where one of them does not tell what it names: then nobody knows.
    """
    from raddle.adapters.blobs.own_directory import claims, unnamed_blobs  # noqa: PLC0415
    from raddle.adapters.memory_repo.mentions import named_blobs  # noqa: PLC0415

    folder = memory.stores.paths.memory_blobs_dir
    noted = claims(folder)
    named = named_blobs(memory.root)
    for place in sorted(
        {*(claim.place for claim in noted), *known_stores(memory.stores.paths)} - {memory.root}
    ):
        if _is_store(place):
            named |= named_blobs(place)
    candidates = unnamed_blobs(folder, named)
    gone: dict[Path, tuple[int, int]] = {}
    kept: set[str] = set()
    for claim in noted:
        wanted = [blob for blob in candidates if blob.sha256 in claim.hashes]
        if wanted and not _is_store(claim.place) and not forgets_gone:
            gone[claim.place] = len(wanted), sum(blob.size for blob in wanted)
            kept.update(blob.sha256 for blob in wanted)
    return LeftOver([blob for blob in candidates if blob.sha256 not in kept], gone)


def remove_left_over(
    memory: ProjectMemory, left_over: LeftOver, *, forgets_gone: bool = False
) -> list[Unnamed]:
    """Remove it, but for what somebody put there anew meanwhile; what went."""
    from raddle.adapters.blobs.own_directory import claims, forget_claim, remove_unnamed  # noqa: PLC0415

    folder = memory.stores.paths.memory_blobs_dir
    removed = remove_unnamed(folder, left_over.blobs)
    if forgets_gone:
        for claim in claims(folder):
            if not _is_store(claim.place):
                forget_claim(claim)
    return removed


def _is_store(place: Path) -> bool:
    return (place / ".git").exists() and (place / "project.yaml").exists()
