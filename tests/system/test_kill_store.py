"""Processes that write to one store are killed at any moment: what was acknowledged is there and readable."""

from __future__ import annotations

import os
import random
import selectors
import signal
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from raddle.actions.ports import Finding
from raddle.adapters.local_store.doctor import examine
from raddle.adapters.local_store.quarantine import quarantined
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.adapters.locks import LockFiles
from raddle.model.clock import system_clock
from raddle.model.ids import MonotonicIds
from raddle.model.threads.agent_state import AgentState
from raddle.model.threads.edits import Author, Editor
from tests.builders_store import a_store, paths_in
from tests.file_events import start_child

DEVICE = "aaaaaaaa"
WRITERS = 4
THREADS = 5
"""So few that the writers are always in each other's way."""


def an_open_store(folder: Path, found: list[Finding]) -> ThreadFiles:
    author = Author(device=DEVICE, now=system_clock, new_id=MonotonicIds())
    return a_store(folder, author, report=found.append)


def write_for_ever(folder: Path, seed: int, acknowledgements: int) -> None:
    """Edits at random; a line `thread id, kind, name` into the pipe after each, once it returned."""
    chance = random.Random(seed)  # noqa: S311
    store = an_open_store(folder, [])
    for number in range(1_000_000):
        for thread_id, kind, name in _write_once(store, chance, f"{seed}-{number}"):
            os.write(acknowledgements, f"{thread_id} {kind} {name}\n".encode())


def _write_once(store: ThreadFiles, chance: random.Random, name: str) -> Iterator[tuple[str, str, str]]:
    ids = store.ids()
    what = chance.random()
    if len(ids) < THREADS or what < 0.02:
        with store.create() as editor:
            first = editor.append("user", f"first {name}")
        yield editor.thread.id, "message", first.id
        return
    thread_id = chance.choice(ids[-THREADS:])
    content = f"turn {name} " + "x" * chance.choice((0, 100, 3_000, 20_000))
    if what < 0.55:
        yield thread_id, "message", store.append(thread_id, "user", content).id
    elif what < 0.7:
        state = AgentState(kind="error", last_error=name)
        yield (
            thread_id,
            "message",
            store.apply(thread_id, lambda editor: _turn_and_state(editor, content, state)),
        )
    elif what < 0.85:
        with store.edit(thread_id) as editor:
            editor.tag(name)
        yield thread_id, "tag", name
    elif what < 0.92:
        seen = store.load(thread_id)
        elsewhere = Editor(seen, Author(device="bbbbbbbb", now=system_clock, new_id=MonotonicIds()))
        turn = elsewhere.append("assistant", content)
        elsewhere.delta()
        store.save(seen)
        yield thread_id, "message", turn.id
    else:
        store.fold(thread_id, anyway=what > 0.96)


def _turn_and_state(editor: Editor, content: str, state: AgentState) -> str:
    editor.set_agent_state(state)
    return editor.append("assistant", content).id


class Writers:
    """Processes at work, and what each acknowledged."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._seed = seed
        self._selector = selectors.DefaultSelector()
        self._running: dict[int, BaseProcess] = {}
        self._half: dict[int, bytes] = {}
        self.acknowledged: dict[str, set[tuple[str, str]]] = {}
        self.count = 0

    def start(self) -> None:
        read, write = os.pipe()
        os.set_blocking(read, False)
        self._seed += 1
        process = start_child(write_for_ever, self._folder, self._seed, write)
        os.close(write)
        self._running[read] = process
        self._half[read] = b""
        self._selector.register(read, selectors.EVENT_READ)

    def hear(self, seconds: float) -> None:
        """Take in acknowledgements for so long, or until there are some."""
        for key, _ in self._selector.select(seconds):
            self._take(key.fd)

    def _take(self, read: int) -> bool:
        try:
            data = os.read(read, 1 << 16)
        except BlockingIOError:
            return False
        *lines, self._half[read] = (self._half[read] + data).split(b"\n")
        for line in lines:
            thread_id, kind, name = line.decode().split(" ", 2)
            self.acknowledged.setdefault(thread_id, set()).add((kind, name))
            self.count += 1
        return bool(data)

    def kill(self, chance: random.Random) -> None:
        read = chance.choice(list(self._running))
        process = self._running.pop(read)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert process.exitcode == -signal.SIGKILL, "it died of something else before"
        while self._take(read):
            pass
        self._selector.unregister(read)
        os.close(read)

    def kill_all(self, chance: random.Random) -> None:
        while self._running:
            self.kill(chance)


def must_hold(folder: Path, acknowledged: dict[str, set[tuple[str, str]]]) -> None:
    """Every acknowledged write is there, in threads that read without a word of complaint."""
    found: list[Finding] = []
    store = an_open_store(folder, found)
    assert acknowledged.keys() <= set(store.ids())
    for thread_id, wanted in acknowledged.items():
        thread = store.load(thread_id)
        there = {("message", message.id) for message in thread.tree} | {("tag", tag) for tag in thread.tags}
        assert wanted - there == set()
        assert thread.tree.lost() == []
    assert found == []
    assert list(quarantined(paths_in(folder).threads_dir)) == []


def kill_often(folder: Path, seed: int, kills: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    writers = Writers(folder, seed * 1_000)
    for _ in range(WRITERS):
        writers.start()
    try:
        for _ in range(kills):
            enough = writers.count + chance.randrange(5, 60)
            while writers.count < enough:
                writers.hear(5)
            writers.hear(chance.random() / 300)
            writers.kill(chance)
            must_hold(folder, {name: set(wanted) for name, wanted in writers.acknowledged.items()})
            writers.start()
    finally:
        writers.kill_all(chance)
    must_hold(folder, writers.acknowledged)

    paths = paths_in(folder)
    author = Author(device=DEVICE, now=system_clock, new_id=MonotonicIds())
    examine(paths, LockFiles(paths.locks_dir), author, fix=True)
    must_hold(folder, writers.acknowledged)
    assert examine(paths, LockFiles(paths.locks_dir), author) == []


def test_killed_writers_lose_nothing_that_they_acknowledged(tmp_path: Path) -> None:
    kill_often(tmp_path, seed=1, kills=8)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 6))
def test_writers_killed_two_hundred_times_lose_nothing(tmp_path: Path, seed: int) -> None:
    kill_often(tmp_path, seed=seed, kills=50)
