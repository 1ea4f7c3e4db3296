"""A watcher that is killed at any moment loses nothing and doubles nothing, while the agent goes on writing."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from raddle.adapters.local_store.doctor import examine
from tests.builders_claude_code import ClaudeSession
from tests.builders_import import Machine, add
from tests.system.test_kill_import import state_of

SESSIONS = 4


class Writer:
    """An agent that goes on: turns into one session after the other, some lines in two goes."""

    def __init__(self, machine: Machine, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311
        self._sessions = [
            ClaudeSession(f"{number:08d}-0000-4000-8000-000000000000") for number in range(SESSIONS)
        ]
        for session in self._sessions:
            session.user("a first word " + session.session)
        self._paths = [machine.keep(session) for session in self._sessions]
        self._turn = 0

    def write(self) -> None:
        """One more question or answer."""
        self._turn += 1
        at = self._turn % SESSIONS
        session, before = self._sessions[at], len(self._sessions[at].data)
        if self._turn // SESSIONS % 2:
            session.user(f"question {self._turn}")
        else:
            session.says(f"answer {self._turn} " + "of clay " * 50, message=f"msg_{self._turn}")
        more = session.data[before:]
        cut = self._chance.randrange(len(more))
        add(self._paths[at], more[:cut])
        add(self._paths[at], more[cut:])


def started(machine: Machine) -> subprocess.Popen[bytes]:
    """`raddle import --watch` in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "raddle", "import", "--watch"],
        env={**os.environ, **machine.environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_often(folder: Path, *, seed: int, kills: int) -> None:
    """Watchers one after the other, each killed while the agent writes; then everything is there, once."""
    machine, chance = Machine(folder / "killed"), random.Random(seed)  # noqa: S311
    writer = Writer(machine, seed)
    for _ in range(kills):
        child = started(machine)
        end = time.monotonic() + 0.3 + chance.random() * 1.2
        while time.monotonic() < end:
            writer.write()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(chance.random() * 0.03)
        assert child.poll() is None, "it ended by itself"
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    machine.bring_in()
    expected = Machine(folder / "expected", home=machine.home)
    expected.bring_in()
    assert {thread.id: thread.whole().messages for thread in machine.threads()} == {
        thread_id: whole.messages for thread_id, whole in state_of(expected).items()
    }
    with machine.stores() as stores:
        assert stores.index.verify() == []
        assert examine(stores.paths, stores.locks, stores.author) == []
    assert machine.finds("question") == expected.finds("question")


def test_a_watcher_that_is_killed_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    kill_often(tmp_path, seed=1, kills=5)


@pytest.mark.soak
def test_a_watcher_killed_a_hundred_times_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    kill_often(tmp_path, seed=2, kills=100)
