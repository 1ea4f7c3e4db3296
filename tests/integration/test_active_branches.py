"""The branch that this device reads is remembered beside the threads, by any number of processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from raddle.adapters.local_store.active_branches import ActiveBranches
from raddle.adapters.locks import LockFiles
from tests.file_events import start_child


@pytest.fixture
def active(tmp_path: Path) -> ActiveBranches:
    return ActiveBranches(tmp_path / "active.json", LockFiles(tmp_path / "locks"))


def test_a_choice_stays_until_it_is_taken_back(tmp_path: Path, active: ActiveBranches) -> None:
    assert active.get("T-1") == ""
    active.set("T-1", "")
    assert not (tmp_path / "active.json").exists()
    active.set("T-1", "leaf")
    active.set("T-2", "other")
    again = ActiveBranches(tmp_path / "active.json", LockFiles(tmp_path / "locks"))
    assert (again.get("T-1"), again.get("T-2")) == ("leaf", "other")
    again.set("T-1", "")
    assert (active.get("T-1"), active.get("T-2")) == ("", "other")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"T-1": 7}', b"\xff"])
def test_a_file_that_cannot_be_read_is_no_choice_and_no_obstacle(
    tmp_path: Path, active: ActiveBranches, data: bytes
) -> None:
    (tmp_path / "active.json").write_bytes(data)
    assert active.get("T-1") == ""
    active.set("T-1", "leaf")
    assert active.get("T-1") == "leaf"


def test_processes_do_not_write_over_each_others_choices(active: ActiveBranches) -> None:
    def choose(number: int) -> None:
        for turn in range(10):
            active.set(f"T-{number}-{turn}", "leaf")

    children = [start_child(choose, number) for number in range(4)]
    for child in children:
        child.join()
    assert all(active.get(f"T-{number}-{turn}") == "leaf" for number in range(4) for turn in range(10))
