"""The daemon's loop over memories: it commits, pushes and pulls, outlives a network and a damaged store."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from raddle.apps.daemon.board import Board
from raddle.apps.daemon.memory_agenda import PULL_SECONDS, QUIET_SECONDS
from raddle.apps.daemon.memory_loop import MemoryLoop
from raddle.config import load_config
from raddle.model.clock import system_clock
from raddle.model.memory.project import Project, encode_project
from raddle.model.memory.repo_layout import PROJECT_FILE
from raddle.wiring.daemon_state import DaemonState
from raddle.wiring.memory_places import note_store
from tests.builders_daemon import DaemonProcess
from tests.builders_import import Machine
from tests.memory_clones import BRANCH, Clone, git, make_hub, settle

PLAN = "memory/team/plan"


class Lines:
    """A log."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write(self, event: str, **fields: Any) -> None:
        self.events.append({"event": event, **fields})


class Daemon:
    """The loop with a clock that a test winds."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.log = Lines()
        config = load_config()
        state = DaemonState(pid=1, since=0, version="0")
        self.board = Board(state, save=lambda _: True, log=self.log, clock=system_clock)
        self.stop = threading.Event()
        self.loop = MemoryLoop(
            config,
            self.board,
            is_over=self.stop.is_set,
            stop=self.stop,
            seconds=lambda: self.now,
            clock=system_clock,
            draw=lambda: 0.5,
            beside=lambda work: work(),
        )

    def after(self, seconds: float) -> None:
        self.now += seconds
        self.loop.look()


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return make_hub(tmp_path / "hub.git")


@pytest.fixture
def ada(tmp_path: Path, hub: Path) -> Clone:
    """A store of this machine that the daemon knows."""
    clone = Clone(tmp_path / "ada", hub)
    clone.begin()
    clone.sync()
    note_store(load_config().paths, clone.root)
    return clone


@pytest.fixture
def bob(tmp_path: Path, hub: Path, ada: Clone) -> Clone:
    clone = Clone(tmp_path / "bob", hub)
    clone.sync()
    return clone


def test_what_others_push_comes_within_a_minute_and_what_is_written_goes_when_it_is_quiet(
    ada: Clone, bob: Clone
) -> None:
    daemon = Daemon()
    daemon.after(0)
    bob.write(PLAN, "from bob\n")
    bob.sync()
    daemon.after(PULL_SECONDS)
    assert ada.text(PLAN) == "from bob\n"
    ada.write("memory/team/ours", "from ada\n")
    daemon.loop.changed(ada.root)
    daemon.after(QUIET_SECONDS / 2)
    assert bob.sync().pulled == ()
    daemon.after(QUIET_SECONDS / 2)
    assert bob.sync().pulled == ("memory/team/ours",)
    assert daemon.board.state.last_memory_sync is not None


def test_a_network_that_is_away_for_days_is_told_once_and_then_it_works_again(
    ada: Clone, bob: Clone, hub: Path
) -> None:
    daemon = Daemon()
    away = hub.rename(hub.with_name("away.git"))
    for day in range(3):
        ada.write(f"memory/team/{day}", "offline\n")
        daemon.loop.changed(ada.root)
        daemon.after(86_400)
    assert [line["event"] for line in daemon.log.events] == ["error"]
    assert git("status", "--porcelain", cwd=ada.root) == ""
    away.rename(hub)
    daemon.after(86_400)
    assert len(bob.sync().pulled) == 3
    assert [line["event"] for line in daemon.log.events] == ["error", "works_again", "memory"]


def test_a_project_that_says_so_while_the_daemon_runs_stays_here(ada: Clone, hub: Path) -> None:
    daemon = Daemon()
    daemon.after(0)
    before = git("rev-parse", BRANCH, cwd=hub)
    project = Project(project_id="loom", phases=("build",), publish=False)
    ada.write(PROJECT_FILE, encode_project(project).decode())
    ada.write(PLAN, "for us alone\n")
    daemon.loop.changed(ada.root)
    daemon.after(PULL_SECONDS)
    assert git("rev-parse", BRANCH, cwd=hub) == before
    assert git("show", f"{BRANCH}:{PLAN}", cwd=ada.root) == "for us alone\n"


def test_a_damaged_store_holds_no_other_up(ada: Clone, bob: Clone, tmp_path: Path) -> None:
    broken = Clone(tmp_path / "broken", None)
    broken.begin()
    note_store(load_config().paths, broken.root)
    (broken.root / ".git/HEAD").write_text("nonsense\n")
    daemon = Daemon()
    bob.write(PLAN, "from bob\n")
    bob.sync()
    daemon.after(0)
    assert ada.text(PLAN) == "from bob\n"
    assert "error" in [line["event"] for line in daemon.log.events]


def test_told_to_end_it_pushes_what_was_written_last(tmp_path: Path, hub: Path) -> None:
    machine = Machine(tmp_path / "machine")
    ada = Clone(tmp_path / "ada", hub)
    ada.begin()
    ada.sync()
    with machine.stores() as stores:
        note_store(stores.paths, ada.root)
    with DaemonProcess(machine) as daemon:
        daemon.until_at_work()
        daemon.until(lambda: any(line["event"] == "memory" for line in daemon.log()))
        daemon.pause(0.5)
        ada.write(PLAN, "written last\n")
        daemon.pause(0.5)
        daemon.end()
    bob = Clone(tmp_path / "bob", hub)
    settle([bob])
    assert bob.text(PLAN) == "written last\n"
