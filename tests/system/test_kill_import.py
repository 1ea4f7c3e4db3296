"""An import that is killed at any moment, with or without its workers, costs the work of reading again."""

from __future__ import annotations

import multiprocessing
import random
import shutil
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from raddle.actions.importing import run
from raddle.adapters.local_store.doctor import examine
from raddle.model.ids import derived_id
from raddle.model.threads.delta import Delta
from raddle.wiring import import_desk
from tests.builders_claude_code import (
    OTHER_SESSION,
    ClaudeSession,
    a_session_with_everything,
    a_short_session,
    a_sub_agent,
    picture,
)
from tests.builders_import import Machine, add
from tests.builders_store import grow_old
from tests.file_events import deaths_of, some_deaths_or_all


def a_home(machine: Machine, sessions: int, turns: int) -> None:
    """Sessions of a few hundred kilobytes, some with a picture or a sub-agent."""
    for number in range(sessions):
        talk = ClaudeSession(f"{number:08d}-0000-4000-8000-000000000000")
        for turn in range(turns):
            talk.user(f"question {number}.{turn} " + "kiln and clay " * 40)
            talk.says(f"answer {number}.{turn} " + "clay and kiln " * 80, message=f"msg_{number}_{turn}")
        if not number % 3:
            talk.user([picture("aGVsbG8" * (number + 1)), {"type": "text", "text": "like this"}])
        machine.keep(talk)
    machine.keep(a_session_with_everything())
    machine.keep(a_sub_agent())


def grow(machine: Machine) -> None:
    """Every second session goes on, and there is a new one."""
    for path in sorted(machine.claude.rglob("*.jsonl"))[::2]:
        more = ClaudeSession(path.stem, start=1_800_000_000_000_000)
        more.user(f"again in {path.name}", uuid=derived_id("more", path.name))
        add(path, more.data)
    talk = ClaudeSession(OTHER_SESSION)
    talk.user("something new")
    machine.keep(talk)


def state_of(machine: Machine) -> dict[str, Delta]:
    """What is stored: every thread with all it holds."""
    return {thread.id: thread.whole() for thread in machine.threads()}


def must_be_whole(machine: Machine, expected: dict[str, Delta]) -> None:
    """Everything is there, and nothing else: no thread, no blob, no temporary file too many."""
    found = state_of(machine)
    assert found.keys() == expected.keys()
    for thread_id, whole in expected.items():
        assert found[thread_id].messages == whole.messages
        assert found[thread_id].registers == whole.registers
    assert machine.orphans() == set()
    with machine.stores() as stores:
        assert stores.index.verify() == []
        assert {row.id: row.message_count for row in stores.listed(limit=None)} == {
            thread_id: len(whole.messages) for thread_id, whole in expected.items()
        }
        assert examine(stores.paths, stores.locks, stores.author) == []
        entries = stores.ledger.entries()
    for path in machine.claude.rglob("*.jsonl"):
        assert machine.source_of(path) == [path.read_bytes()], path
        assert entries[str(path)].read_to == path.stat().st_size


def must_leave_nothing_half_made(machine: Machine) -> None:
    """Once they are old, what the killed left half-made is swept by the next import."""
    data = machine.folder / "data"
    for path in (*data.rglob(".raddle-*.tmp"), data / "threads" / ".swept"):
        if path.exists():
            grow_old(path)
    machine.bring_in()
    assert list(data.rglob(".raddle-*.tmp")) == []


def started(action: Callable[[], object]) -> BaseProcess:
    """`action` in a process that may have workers of its own."""
    child = multiprocessing.get_context("fork").Process(target=action)
    child.start()
    return child


class Killer:
    """Kills imports at random moments, more and more evenly over the time they take."""

    def __init__(self, seed: int) -> None:
        self.kills = 0
        self._chance = random.Random(seed)  # noqa: S311
        self._seconds = 1.0

    def bring_in(self, machine: Machine) -> None:
        """One import that is killed, unless it is done before."""
        child = started(machine.bring_in)
        child.join(self._chance.random() * self._seconds)
        if child.is_alive():
            child.kill()
            self.kills += 1
            self._seconds *= 1.05
        else:
            self._seconds *= 0.7
        child.join()


def kill_often(folder: Path, *, seed: int, kills: int, sessions: int, turns: int) -> None:
    """New sessions, then grown ones, on one machine after the other, until so many imports were killed."""
    expected = Machine(folder / "expected")
    a_home(expected, sessions, turns)
    expected.bring_in()
    before = state_of(expected)
    grow(expected)
    expected.bring_in()
    after = state_of(expected)
    killer = Killer(seed)
    for number in range(kills):
        machine = Machine(folder / f"killed {number}")
        a_home(machine, sessions, turns)
        for whole in (before, after):
            for _ in range(2):
                killer.bring_in(machine)
            machine.bring_in()
            must_be_whole(machine, whole)
            grow(machine)
        must_leave_nothing_half_made(machine)
        shutil.rmtree(machine.folder)
        if killer.kills >= kills:
            return
    raise AssertionError(f"only {killer.kills} imports were killed")


def test_killed_imports_are_made_good_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_desk, "SMALL_BYTES", 0)  # workers, though there is little to do
    kill_often(tmp_path, seed=1, kills=6, sessions=12, turns=60)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 6))
def test_a_hundred_killed_imports_are_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(import_desk, "SMALL_BYTES", 0)
    monkeypatch.setattr(run, "BATCH_BYTES", 2 << 20)
    kill_often(tmp_path, seed=seed, kills=25, sessions=30, turns=150)


@some_deaths_or_all
def test_a_death_at_any_touch_of_a_file_is_made_good(tmp_path: Path, every: int) -> None:
    """Without workers, so that every event is in one process. What the death left is searched at once; every
    second time the index is lost besides."""
    machine = Machine(tmp_path / "killed")
    expected = Machine(tmp_path / "expected", home=machine.home)
    talk = a_short_session()
    talk.user([picture("aGVsbG8"), {"type": "text", "text": "like this"}])
    machine.keep(talk)
    machine.keep(a_sub_agent())
    expected.bring_in()
    whole = state_of(expected)
    deaths = 0
    for _ in deaths_of(machine.bring_in, every):
        deaths += every
        if deaths % 2:
            shutil.rmtree(machine.folder / "cache", ignore_errors=True)
        for thread in machine.threads():
            assert machine.finds("relay") == [thread.id]
        machine.bring_in()
        must_be_whole(machine, whole)
        must_leave_nothing_half_made(machine)
        for name in ("data", "cache", "state"):
            shutil.rmtree(machine.folder / name, ignore_errors=True)
    assert deaths > 20


@some_deaths_or_all
def test_a_death_at_any_touch_of_a_file_while_sessions_grow_is_made_good(tmp_path: Path, every: int) -> None:
    machine = Machine(tmp_path / "killed")
    expected = Machine(tmp_path / "expected", home=machine.home)
    machine.keep(a_short_session())
    machine.keep(a_sub_agent())
    for one in (machine, expected):
        one.bring_in()
    folders = {
        name: (machine.folder / name, tmp_path / f"kept {name}") for name in ("data", "cache", "state")
    }
    for folder, kept in folders.values():
        shutil.copytree(folder, kept)
    grow(machine)
    expected.bring_in()
    whole = state_of(expected)
    deaths = 0
    for _ in deaths_of(machine.bring_in, every):
        deaths += every
        machine.bring_in()
        must_be_whole(machine, whole)
        for folder, kept in folders.values():
            shutil.rmtree(folder)
            shutil.copytree(kept, folder)
    assert deaths > 20
