"""What in this machine's own store of blobs no memory names any more, across all memories that put blobs there.

A memory that cannot be read stops nothing but what concerns it: what it may need stays, and that is more than what it
put there itself, for a clone of it on this machine may have done so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from raddle.model.errors import RaddleError
from raddle.wiring.memory_machine import is_away, places_here, project_id_of
from raddle.wiring.memory_places import forget_stores, noted_stores

if TYPE_CHECKING:
    from raddle.adapters.blobs.own_directory import Claim, Unnamed
    from raddle.adapters.paths import Paths


class Unread(NamedTuple):
    """A memory that is there and does not tell what it names: `why`; and what is kept for it."""

    why: str
    blobs: int
    size: int


class LeftOver(NamedTuple):
    """`blobs`: what may go. `gone`: memories that are not where they were (their disk may be somewhere else today), and
    what is kept for each: (blobs, bytes). `unread`: those that are there and cannot be read."""

    blobs: list[Unnamed]
    gone: dict[Path, tuple[int, int]]
    unread: dict[Path, Unread]


class _Damaged(NamedTuple):
    """`project_id`: None where nobody can tell. `named`: by its files; None where they cannot be read either."""

    why: str
    project_id: str | None
    named: frozenset[str] | None


def find_left_over(paths: Paths, here: Path | None = None, *, forgets_gone: bool = False) -> LeftOver:
    """Look at every memory of this machine, and the one at `here`. `forgets_gone`: nothing is kept for a memory that is
    gone."""
    from raddle.adapters.blobs.own_directory import claims, unnamed_blobs  # noqa: PLC0415

    noted = claims(paths.memory_blobs_dir)
    named: set[str] = set()
    readable: dict[Path, str | None] = {}
    damaged: dict[Path, _Damaged] = {}
    for place in sorted({*places_here(paths), *([] if here is None else [here])}):
        if is_away(place):
            continue
        told = _named_by(place)
        if isinstance(told, _Damaged):
            damaged[place] = told
        else:
            named |= told
            readable[place] = project_id_of(place)
    candidates = unnamed_blobs(paths.memory_blobs_dir, frozenset(named))
    gone = {} if forgets_gone else _kept_for_gone(candidates, noted)
    kept = {place: _kept_for(one, candidates, noted, readable) for place, one in damaged.items()}
    held = {blob.sha256 for blobs in (*gone.values(), *kept.values()) for blob in blobs}
    return LeftOver(
        blobs=[blob for blob in candidates if blob.sha256 not in held],
        gone={place: (len(blobs), _size(blobs)) for place, blobs in gone.items()},
        unread={
            place: Unread(one.why, len(kept[place]), _size(kept[place])) for place, one in damaged.items()
        },
    )


def remove_left_over(paths: Paths, left_over: LeftOver, *, forgets_gone: bool = False) -> list[Unnamed]:
    """Remove it, but for what somebody put there anew meanwhile; what went. What killed processes left goes too."""
    from raddle.adapters.blobs.own_directory import claims, forget_claim, remove_unnamed  # noqa: PLC0415

    removed = remove_unnamed(paths.memory_blobs_dir, left_over.blobs)
    if forgets_gone:
        for claim in claims(paths.memory_blobs_dir):
            if is_away(claim.place):
                forget_claim(claim)
        forget_stores(paths, [place for place in noted_stores(paths) if is_away(place)])
    return removed


def _named_by(place: Path) -> frozenset[str] | _Damaged:
    from raddle.adapters.memory_repo.mentions import named_blobs, named_in_files  # noqa: PLC0415

    try:
        return named_blobs(place)
    except RaddleError as error:
        why = error.message
    except OSError as error:
        why = f"{place}: {error.strerror or 'it cannot be read'}"
    try:
        in_files = named_in_files(place)
    except (RaddleError, OSError):
        in_files = None
    return _Damaged(why, project_id_of(place), in_files)


def _kept_for_gone(candidates: Iterable[Unnamed], noted: Iterable[Claim]) -> dict[Path, list[Unnamed]]:
    wanted = {
        claim.place: [blob for blob in candidates if blob.sha256 in claim.hashes]
        for claim in noted
        if is_away(claim.place)
    }
    return {place: blobs for place, blobs in wanted.items() if blobs}


def _kept_for(
    damaged: _Damaged,
    candidates: Iterable[Unnamed],
    noted: Iterable[Claim],
    readable: Mapping[Path, str | None],
) -> list[Unnamed]:
    """All but what only memories of other projects put there, which can be read, and name it no more."""

    def is_for_others(sha256: str) -> bool:
        if damaged.project_id is None or damaged.named is None or sha256 in damaged.named:
            return False
        projects = [readable.get(claim.place) for claim in noted if sha256 in claim.hashes]
        return bool(projects) and all(one not in (None, damaged.project_id) for one in projects)

    return [blob for blob in candidates if not is_for_others(blob.sha256)]


def _size(blobs: Iterable[Unnamed]) -> int:
    return sum(blob.size for blob in blobs)
