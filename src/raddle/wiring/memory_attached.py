"""A project's memory for an agent: found, or fetched first where a marker names one that is not here yet.

A branch of the code's own repository is fetched without asking, which crosses no boundary; another repository is never
cloned because a committed file says so.
"""

from __future__ import annotations

from raddle.model.errors import NotFound
from raddle.wiring import Stores
from raddle.wiring.memory import ProjectMemory, open_memory


def open_attached(stores: Stores) -> ProjectMemory:
    """The memory of the workspace. NotFound says how to make one, or how to say that it may be cloned."""
    try:
        return open_memory(stores)
    except NotFound:
        if not _is_marked(stores):
            raise
    from raddle.wiring.memory_making import attach_store  # noqa: PLC0415  once on a machine

    made = attach_store(stores)
    return ProjectMemory(stores, made.root, host=made.host)


def _is_marked(stores: Stores) -> bool:
    """Does a marker at or above the workspace name a store?"""
    from raddle.adapters.memory_repo.markers import marker_above  # noqa: PLC0415
    from raddle.wiring.memory_places import workspace_of  # noqa: PLC0415

    return stores.config.store is None and marker_above(workspace_of(stores.config)) is not None
