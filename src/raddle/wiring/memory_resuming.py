"""A run taken up on this machine: the memory brought here, the newest of it fetched, the run joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from raddle.model.errors import InvalidInput, NotFound
from raddle.wiring import Stores
from raddle.wiring.memory import ProjectMemory, open_memory
from raddle.wiring.memory_places import is_store, workspace_of
from raddle.wiring.memory_sites import chosen_folder, full_address

if TYPE_CHECKING:
    from raddle.actions.memory.run_overview import RunOverview
    from raddle.wiring.memory_making import StoreMade


class TakenUp(Struct, frozen=True, kw_only=True):
    """What to know of the run, which this node works on now. `why_not_fetched`: empty where the memory is in step."""

    overview: RunOverview
    why_not_fetched: str = ""


def bring_here(
    stores: Stores,
    *,
    remote: str | None = None,
    worktree_repo: str | None = None,
    branch: str | None = None,
    store: str | None = None,
) -> tuple[ProjectMemory, StoreMade | None]:
    """The memory that is meant, opened; and how it came here, where it was not here before.

    `remote`, `worktree_repo`: where it is, as a person says it. Else the store that is found, or the one that the
    nearest marker names, which is attached; a clone of an address that only the marker names is not made.
    """
    from raddle.wiring.memory_making import attach_branch, attach_store, clone_store  # noqa: PLC0415

    if remote is not None:
        root = chosen_folder(stores, store)
        if is_store(root):
            return _from_there(
                ProjectMemory(stores, root), full_address(remote, workspace_of(stores.config))
            ), None
        made = clone_store(stores, remote, store=store)
    elif worktree_repo is not None:
        made = attach_branch(stores, worktree_repo=worktree_repo, branch=branch, store=store)
    else:
        try:
            return open_memory(stores, store), None
        except NotFound:
            made = attach_store(stores, store=store)
    return ProjectMemory(stores, made.root, host=made.host), made if made.done != "there" else None


def take_up(memory: ProjectMemory, run: str) -> TakenUp:
    """Fetch what others wrote, join the run that `run` begins, and say what to know of it. NotFound, Ambiguous."""
    from raddle.actions.memory.run_overview import overview  # noqa: PLC0415
    from raddle.actions.memory.runs import join_run, resolve_run  # noqa: PLC0415
    from raddle.wiring.memory_shelf import open_shelf  # noqa: PLC0415
    from raddle.wiring.memory_syncing import sync_memory  # noqa: PLC0415

    report = sync_memory(memory)
    found = resolve_run(memory.files, run)
    join_run(memory.files, memory.writer(), found.run_id)
    is_current = report.state in ("in_step", "kept_here", "no_remote")
    with open_shelf(memory) as shelf:
        told = overview(memory.files, shelf, found.run_id)
    return TakenUp(
        overview=told,
        why_not_fetched="" if is_current else report.why or "nobody has said yet that it may be synced",
    )


def _from_there(memory: ProjectMemory, address: str) -> ProjectMemory:
    """`memory`, where it is from that address; InvalidInput where it is another."""
    url = memory.repository.url()
    if url != address:
        raise InvalidInput(
            f"{memory.root} holds the memory of {memory.project.project_id}, which is from {url or 'nowhere'}",
            "leave --remote out to take that one, or name another folder with --store",
        )
    return memory
