"""How a store stands: what is not committed, what is not pushed, whether it may leave this machine, what is to settle.

No network is asked; what the remote is said to have is what it was last known to have.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from raddle.model.clock import format_time, parse_time
from raddle.wiring.memory import ProjectMemory

if TYPE_CHECKING:
    from raddle.adapters.memory_repo.commit_log import LoggedCommit

Publishing = Literal["published", "not_agreed", "no_remote", "kept_here"]


class StoreStatus(Struct, frozen=True, kw_only=True):
    """`publishing`: published: it goes to `remote` · not_agreed: nobody said yet that it may · no_remote · kept_here:
    `publish: false`. `changes`: paths that the next commit changes. `unpushed`: commits that the remote was not known
    to have. `last_sync`: when it was last in step, in microseconds; None where that is not known. `conflicts`: files
    that stand beside another version. `blocked`: path -> why it is not taken in. `apart`: in which way the store is not
    what the marker says, in words; empty where it is."""

    project_id: str
    name: str | None
    root: str
    host: str | None
    mode: Literal["worktree", "repo"]
    branch: str
    remote: str | None
    publishing: Publishing
    changes: tuple[str, ...]
    unpushed: int
    last_sync: int | None
    conflicts: tuple[str, ...]
    blocked: dict[str, str]
    apart: str = ""


def store_status(memory: ProjectMemory) -> StoreStatus:
    """How it stands now. BrokenFormat where its git was left in the middle of something."""
    from raddle.actions.memory.committing import pending_changes  # noqa: PLC0415
    from raddle.model.memory.merge import conflicts_in  # noqa: PLC0415

    repository = memory.repository
    branch = repository.branch()
    scan = memory.files.scan()
    return StoreStatus(
        project_id=memory.project.project_id,
        name=memory.project.name,
        root=str(memory.root),
        host=None if memory.host is None else str(memory.host),
        mode="worktree" if (memory.root / ".git").is_file() else "repo",
        branch=branch,
        remote=repository.url(),
        publishing=_publishing(memory),
        changes=pending_changes(memory.files, repository),
        unpushed=_unpushed(memory),
        last_sync=last_sync(memory),
        conflicts=conflicts_in(scan.files),
        blocked=dict(sorted(scan.blocked.items())),
        apart=_apart(memory),
    )


def store_log(memory: ProjectMemory, limit: int) -> list[LoggedCommit]:
    """The newest commits, the newest first."""
    from raddle.adapters.memory_repo.commit_log import read_log  # noqa: PLC0415

    return read_log(memory.root, limit)


def note_sync(memory: ProjectMemory) -> None:
    """Note that the store and its remote are in step now."""
    from raddle.adapters.files import make_folder, write_note  # noqa: PLC0415

    make_folder(memory.own_folder)
    write_note(memory.own_folder / "synced", format_time(memory.stores.clock()).encode())


def last_sync(memory: ProjectMemory) -> int | None:
    """When that was last noted, in microseconds since 1970; None: never."""
    from raddle.adapters.files import find_bytes  # noqa: PLC0415

    with contextlib.suppress(UnicodeDecodeError):
        return parse_time((find_bytes(memory.own_folder / "synced") or b"").decode())
    return None


def _apart(memory: ProjectMemory) -> str:
    from raddle.adapters.memory_repo.markers import place_outside, read_marker  # noqa: PLC0415
    from raddle.wiring.memory_homes import apart_from_marker  # noqa: PLC0415

    found = read_marker(memory.host) if memory.host is not None else None
    if found is None or place_outside(found) != memory.root:  # checked out beside another working tree
        return ""
    return apart_from_marker(memory.root, found)


def _publishing(memory: ProjectMemory) -> Publishing:
    if memory.project.publish is False:
        return "kept_here"
    if memory.repository.url() is None:
        return "no_remote"
    return "published" if memory.repository.is_agreed() else "not_agreed"


def _unpushed(memory: ProjectMemory) -> int:
    from raddle.adapters.git import commits_ahead  # noqa: PLC0415
    from raddle.adapters.memory_repo.store_git import answer_of  # noqa: PLC0415

    head = memory.repository.head()
    if head is None:
        return 0
    known = memory.repository.known()
    if known is not None:
        return commits_ahead(memory.root, known, head.id) or 0
    return int(answer_of(memory.root, ["rev-list", "--count", head.id]))
