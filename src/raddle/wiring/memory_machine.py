"""The memories of this machine: every folder that one was made, attached or adopted in, or that put a blob here.

Owns when one counts as away. Who took a damaged memory, or a disk that does not answer, for one that is away, would let
go of what it needs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from raddle.model.errors import RaddleError
from raddle.model.memory.repo_layout import PROJECT_FILE
from raddle.wiring import Stores
from raddle.wiring.memory import ProjectMemory, read_project
from raddle.wiring.memory_places import host_of, noted_stores

if TYPE_CHECKING:
    from raddle.adapters.paths import Paths

State = Literal["whole", "damaged", "away"]


class MemoryHere(Struct, frozen=True, kw_only=True):
    """`state`: whole: it can be opened · damaged: it is there and cannot, `why` says why · away: its folder is not
    there now, or is something else. `project_id`: empty where nobody can tell. `last_sync`: in microseconds; None:
    never, or not known."""

    root: Path
    state: State
    project_id: str = ""
    host: Path | None = None
    mode: Literal["worktree", "repo"] | None = None
    branch: str = ""
    remote: str | None = None
    last_sync: int | None = None
    why: str = ""


def places_here(paths: Paths) -> list[Path]:
    """Where they are, or were, in the order of their paths."""
    from raddle.adapters.blobs.own_directory import claims  # noqa: PLC0415

    claimed = (claim.place for claim in claims(paths.memory_blobs_dir))
    return sorted({*claimed, *noted_stores(paths)})


def memories_here(stores: Stores) -> list[MemoryHere]:
    """Each of them, and how it stands; no network is asked."""
    return [_looked_at(stores, place) for place in places_here(stores.paths)]


def is_away(place: Path) -> bool:
    """Is there no memory at `place` now, not even a damaged one? False where nobody can tell."""
    from raddle.adapters.memory_repo.links import git_folder_of  # noqa: PLC0415

    try:
        if not place.is_dir():
            return True
        if os.path.lexists(place / PROJECT_FILE):
            return False
        git_folder = git_folder_of(place)
        if git_folder is not None:  # another repository may be in its place by now
            return not (git_folder / "raddle").is_dir()
        return not os.path.lexists(place / ".git")
    except (OSError, RaddleError):  # a disk that does not answer, a folder that we may not look into
        return False


def _looked_at(stores: Stores, place: Path) -> MemoryHere:
    if is_away(place):
        return MemoryHere(root=place, state="away", host=host_of(place, stores.paths))
    found = MemoryHere(
        root=place, state="damaged", project_id=project_id_of(place) or "", host=host_of(place, stores.paths)
    )
    try:
        return _opened(ProjectMemory(stores, place, host=found.host), found)
    except RaddleError as error:
        return _with(found, why=error.message)
    except OSError as error:
        return _with(found, why=error.strerror or "it cannot be read")


def _opened(memory: ProjectMemory, found: MemoryHere) -> MemoryHere:
    from raddle.wiring.memory_status import last_sync  # noqa: PLC0415

    return _with(
        found,
        state="whole",
        mode="worktree" if (memory.root / ".git").is_file() else "repo",
        branch=memory.repository.branch(),
        remote=memory.repository.url(),
        last_sync=last_sync(memory),
    )


def _with(found: MemoryHere, **changes: object) -> MemoryHere:
    from msgspec.structs import replace  # noqa: PLC0415

    return replace(found, **changes)


def project_id_of(place: Path) -> str | None:
    """Whose memory it is, by its folder; None where that cannot be read."""
    try:
        return read_project(place).project_id
    except (RaddleError, OSError):
        return None
