"""Clones of one project's memory that meet at a bare repository, for the tests of what many of them come to."""

from __future__ import annotations

import subprocess
from pathlib import Path

from raddle.actions.memory.committing import Removals
from raddle.actions.memory.ports import Scan, Writer
from raddle.actions.memory.syncing import SyncReport, sync
from raddle.adapters.locks import LockFiles
from raddle.adapters.memory_repo.folder import StoreFolder
from raddle.adapters.memory_repo.repository import StoreRepository
from raddle.adapters.memory_repo.scan_cache import ScanCache
from raddle.model.clock import Clock, system_clock
from raddle.model.ids import MonotonicIds
from raddle.model.memory.project import Project, encode_project
from raddle.model.memory.repo_layout import ATTRIBUTES, ATTRIBUTES_FILE, KEPT_FOLDERS, PROJECT_FILE

BRANCH = "main"


def git(*arguments: str, cwd: Path) -> str:
    """What git prints, run as a person runs it."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=cwd,
        check=True,
        capture_output=True,
        text=True,
        errors="surrogateescape",
    )
    return done.stdout


def make_hub(folder: Path) -> Path:
    """A bare repository that clones meet at."""
    folder.mkdir(parents=True)
    git("init", "--quiet", "--bare", f"--initial-branch={BRANCH}", ".", cwd=folder)
    return folder


class Clone:
    """One node with its clone. `hub` None: it has no remote."""

    def __init__(
        self, root: Path, hub: Path | None, *, node_id: str = "", clock: Clock = system_clock
    ) -> None:
        self.root = root
        root.mkdir(parents=True)
        git("init", "--quiet", f"--initial-branch={BRANCH}", ".", cwd=root)
        if hub is not None:
            git("remote", "add", "origin", str(hub), cwd=root)
        self.open(node_id or root.name, clock)

    def open(self, node_id: str, clock: Clock = system_clock, *, own: Path | None = None) -> None:
        """As a process that has just started. `own`: where raddle keeps what is this machine's."""
        own = own or self.root / ".git" / "raddle"
        locks = LockFiles(own / "locks", stripes=1)
        self.files = StoreFolder(self.root, locks, cache=ScanCache(own / "scan.msgpack"))
        self.repository = StoreRepository(self.root, own)
        self.writer = Writer(node_id=node_id, now=clock, new_id=MonotonicIds(clock))

    def begin(self, *phases: str, project_id: str = "loom", publish: bool | None = None) -> None:
        """Lay down a project."""
        project = Project(project_id=project_id, phases=phases or ("build", "test"), publish=publish)
        self.files.add(
            {
                PROJECT_FILE: encode_project(project),
                ATTRIBUTES_FILE: ATTRIBUTES,
                **dict.fromkeys(KEPT_FOLDERS, b""),
            }
        )

    def write(self, path: str, text: str) -> None:
        """Write a file as our own writers do."""
        self.files.change(path, lambda _: text.encode())

    def text(self, path: str) -> str:
        """What a file holds; it is there."""
        data = self.files.read(path)
        assert data is not None, path
        return data.decode()

    def sync(
        self,
        *,
        may_publish: bool = True,
        may_refill: bool = False,
        removals: Removals = "few",
        is_offline: bool = False,
    ) -> SyncReport:
        """Bring it and the hub into step."""
        return sync(
            self.files,
            self.repository,
            self.repository,
            self.writer,
            pause=lambda _: None,
            may_publish=may_publish,
            may_refill=may_refill,
            removals=removals,
            is_offline=is_offline,
        )

    def scan(self) -> Scan:
        """What its folder holds."""
        return self.files.scan()


def settle(clones: list[Clone]) -> None:
    """Sync all of them until nobody has anything new."""
    for _ in range(len(clones) + 2):
        reports = [clone.sync() for clone in clones]
        assert all(report.state == "in_step" for report in reports), reports
        if not any(report.committed or report.pulled or report.is_pushed for report in reports):
            return
    raise AssertionError("the clones make work for each other")


def paths(clone: Clone) -> set[str]:
    """The files of its folder, but for those that only keep folders."""
    return {path for path in clone.files.paths() if not path.endswith(".gitkeep")}
