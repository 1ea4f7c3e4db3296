"""A store with a project in it, and who writes there, for the tests of runs and of what they hold."""

from __future__ import annotations

from pathlib import Path

from raddle.actions.memory.ports import Writer
from raddle.actions.memory.runs import start_run
from raddle.adapters.locks import LockFiles
from raddle.adapters.memory_repo.folder import StoreFolder
from raddle.model.clock import Clock
from raddle.model.ids import MonotonicIds
from raddle.model.memory.project import Project, encode_project
from raddle.model.memory.repo_layout import PROJECT_FILE
from raddle.model.memory.run import Run
from tests.builders import WoundClock

PHASES = ("build", "test", "present")


def a_store(folder: Path, *, phases: tuple[str, ...] = PHASES) -> StoreFolder:
    """The files of a store that holds its project and nothing else."""
    root = folder / "store"
    root.mkdir()
    files = StoreFolder(root, LockFiles(folder / "locks", stripes=1))
    files.add({PROJECT_FILE: encode_project(Project(project_id="loom", phases=phases))})
    return files


def a_writer(node_id: str = "aaaaaaaa", clock: Clock | None = None, *, author: str = "") -> Writer:
    """Somebody who writes there."""
    clock = clock or WoundClock()
    return Writer(node_id=node_id, now=clock, new_id=MonotonicIds(clock), host="desk", author=author)


def a_run(files: StoreFolder, writer: Writer | None = None) -> Run:
    """A run of the project's phases."""
    return start_run(files, writer or a_writer())
