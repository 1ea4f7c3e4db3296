"""What a project's memory holds of a thread: the entries that rest on it, where there is a store to ask."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from raddle.model.errors import NotFound
from raddle.wiring import Stores

if TYPE_CHECKING:
    from raddle.config import Config
    from raddle.model.memory.entry import ContextEntry

SIGNS = (".raddle.yaml", ".redthread.yaml", "project.yaml")
"""What a folder holds that is a store or names one. `repo_layout` owns these names; to load it, and what finds a store,
takes 20 ms, which nobody pays who reads a thread where there is none. A test compares."""


def entries_on(stores: Stores, thread_id: str) -> list[ContextEntry]:
    """The entries that rest on a thread, the newest last, by the store that this folder or RADDLE_STORE leads to.

    None of them where neither leads to one. Another RaddleError than NotFound where the one that is meant cannot be
    read.
    """
    if not _may_be_near(stores.config):
        return []
    from raddle.wiring.memory import open_memory  # noqa: PLC0415

    try:
        memory = open_memory(stores)
    except NotFound:
        return []
    from raddle.wiring.memory_shelf import open_shelf  # noqa: PLC0415

    with open_shelf(memory) as shelf:
        return shelf.resting_on(thread_id).entries


def _may_be_near(config: Config) -> bool:
    """Is a store named, or a sign of one at or above the workspace?"""
    if config.store:
        return True
    try:
        start = os.path.realpath(config.workspace or Path.cwd())
    except OSError:  # it is gone
        return False
    return any(
        os.path.lexists(f"{folder}/{name}")
        for folder in (start, *map(str, Path(start).parents))
        for name in SIGNS
    )
