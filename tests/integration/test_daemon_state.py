"""What is known of a daemon from outside: its lock, its state, its log; and the ground that it stands on."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from raddle.actions.sync.ports import Note
from raddle.adapters.local_store.hub_bases import HubBases
from raddle.adapters.local_store.thread_marks import ThreadMarks
from raddle.adapters.paths import Paths
from raddle.config import load_config
from raddle.model.clock import system_clock
from raddle.model.errors import NotFound, StorageError
from raddle.model.protocol.hub import GONE, Change, Changes
from raddle.model.threads.delta import Delta
from raddle.wiring import Stores
from raddle.wiring.daemon import start_in_background, watch_threads
from raddle.wiring.daemon_state import (
    DaemonLog,
    DaemonRuns,
    DaemonState,
    DaemonTrouble,
    only_daemon,
    save_state,
    status_of,
    stop_daemon,
)
from raddle.wiring.daemon_sync import DaemonSync
from raddle.wiring.standing import ground_of
from tests.builders import THREAD_ID, WoundClock
from tests.builders_claude_code import a_short_session
from tests.builders_import import Machine

SERVER = "https://raddle.example.org"
PATIENCE_SECONDS = 20.0


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def paths(machine: Machine) -> Paths:
    with machine.stores() as stores:
        return stores.paths


def a_state(pid: int = 1) -> DaemonState:
    trouble = DaemonTrouble(part="sync", code="network", message="not there", at=5)
    return DaemonState(pid=pid, since=1, version="1", server=SERVER, pending=3, last_error=trouble)


def held_in_a_child(paths: Paths) -> tuple[int, int]:
    """(Process id of a child that is the daemon here, what lets it end when it is closed)."""
    ready_here, ready_there = os.pipe()
    end_here, end_there = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(end_there)
        with only_daemon(paths):
            os.write(ready_there, b"1")
            os.read(end_here, 1)
        os._exit(0)
    os.close(end_here)
    os.read(ready_here, 1)
    return pid, end_there


def test_where_none_ever_ran_there_is_no_state_and_nothing_is_made(machine: Machine, paths: Paths) -> None:
    found = status_of(paths)
    assert (found.is_running, found.pid, found.state) == (False, None, None)
    assert not paths.data_dir.exists()
    with pytest.raises(NotFound):
        stop_daemon(paths)


def test_the_state_is_read_as_it_was_written(paths: Paths) -> None:
    assert save_state(paths, a_state())
    assert status_of(paths).state == a_state()


def test_a_state_that_cannot_be_read_is_none(paths: Paths) -> None:
    assert save_state(paths, a_state())
    (file,) = paths.state_dir.glob("daemon-*.json")
    file.write_bytes(b'{"pid": "x"')
    assert status_of(paths).state is None


def test_a_state_that_cannot_be_written_is_no_error(paths: Paths) -> None:
    paths.state_dir.write_text("a file in the way")
    assert not save_state(paths, a_state())
    DaemonLog(paths, system_clock).write("started")


def test_the_lock_says_who_is_the_daemon(paths: Paths) -> None:
    pid, end = held_in_a_child(paths)
    save_state(paths, a_state(pid))
    found = status_of(paths)
    assert (found.is_running, found.pid, found.state) == (True, pid, a_state(pid))
    with pytest.raises(DaemonRuns, match=f"process {pid}"), only_daemon(paths):
        raise AssertionError("two daemons")
    os.close(end)
    os.waitpid(pid, 0)
    assert not status_of(paths).is_running


def test_nobody_is_ended_whom_the_state_of_this_machine_does_not_name(paths: Paths) -> None:
    pid, end = held_in_a_child(paths)
    save_state(paths, a_state(os.getpid()))
    assert status_of(paths).state is None
    with pytest.raises(StorageError, match="of this machine"):
        stop_daemon(paths, wait_seconds=0.2)
    os.close(end)
    assert os.waitpid(pid, 0) == (pid, 0)


def test_who_asks_for_the_status_keeps_no_daemon_from_starting(paths: Paths) -> None:
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            status_of(paths)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(20):
            with only_daemon(paths):
                assert paths.data_dir.exists()
    finally:
        stop.set()
        asking.join()


def test_the_log_is_lines_of_json_and_bounded(paths: Paths) -> None:
    log = DaemonLog(paths, lambda: 0, most_bytes=1000)
    for number in range(200):
        log.write("sync", pushed=number)
    files = sorted(paths.state_dir.glob("daemon-*.log*"))
    assert len(files) == 2
    assert sum(file.stat().st_size for file in files) < 2200
    last = json.loads(files[0].read_text().splitlines()[-1])
    assert last == {"at": "1970-01-01T00:00:00.000000Z", "event": "sync", "pushed": 199}


def test_the_ground_is_another_one_once_settings_sign_in_or_data_folder_are(
    machine: Machine, paths: Paths
) -> None:
    seen = [ground_of(paths)]
    assert seen[0].data is None
    paths.data_dir.mkdir()
    seen.append(ground_of(paths))
    machine.configure("")
    seen.append(ground_of(paths))
    paths.state_dir.mkdir()
    paths.credentials_file.write_text("{}")
    seen.append(ground_of(paths))
    paths.data_dir.rename(machine.folder / "moved away")
    paths.data_dir.mkdir()
    seen.append(ground_of(paths))
    assert len(set(seen)) == len(seen)
    assert ground_of(paths) == seen[-1]


def test_a_write_to_a_thread_is_noticed_and_other_files_are_not(machine: Machine, paths: Paths) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    stop, told, count = threading.Event(), threading.Condition(), 0

    def changed() -> None:
        nonlocal count
        with told:
            count += 1
            told.notify_all()

    watcher = threading.Thread(target=watch_threads, args=(paths, changed, stop), daemon=True)
    watcher.start()
    with told:
        assert told.wait_for(lambda: count >= 1, PATIENCE_SECONDS)
    paths.threads_dir.joinpath("notes.txt").write_text("no thread")
    (thread,) = machine.threads()
    seen = count
    with machine.stores() as stores:
        stores.threads.apply(thread.id, lambda editor: editor.rename("another title"))
    with told:
        assert told.wait_for(lambda: count > seen, PATIENCE_SECONDS)
    stop.set()
    watcher.join(PATIENCE_SECONDS)
    assert not watcher.is_alive()


def signed(machine: Machine, **variables: str) -> Stores:
    environment = {**machine.environment, "RADDLE_SERVER": SERVER, "RADDLE_TOKEN": "t" * 40, **variables}
    return Stores(load_config(environment), clock=machine.clock)


def test_a_look_counts_what_the_server_lacks_and_leaves_alone_what_rests(machine: Machine) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    (thread,) = machine.threads()
    with signed(machine) as stores:
        work = DaemonSync(stores)
        seen = work.look()
        assert (seen.pending, seen.is_due, seen.again_in, seen.cursor) == (1, True, None, "")
        bases = HubBases(stores.paths.hub_bases(SERVER))
        bases.note(thread.id, Note(code="network", reason="", next_attempt_at=stores.clock() + 60_000_000))
        seen = work.look()
        assert (seen.pending, seen.is_due) == (1, False)
        assert seen.again_in is not None
        assert 0 < seen.again_in <= 60
        bases.note(thread.id, Note(code="purged", reason="", is_final=True))
        seen = work.look()
        assert (seen.pending, seen.is_due, seen.again_in) == (0, False, None)
        bases.close()


def test_what_somebody_only_types_is_sent_every_half_minute_and_what_they_say_at_once(
    machine: Machine,
) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    (thread,) = machine.threads()
    clock = machine.clock
    assert isinstance(clock, WoundClock)
    with signed(machine) as stores:
        bases = HubBases(stores.paths.hub_bases(SERVER))
        bases.replace(thread.id, Delta(version=3), "e")
        bases.settle(thread.id, ThreadMarks(stores.paths).mark(thread.id), is_private=False)
        work = DaemonSync(stores)
        seen = work.look()
        assert not seen.is_due
        for text in ("a", "a thou", "a thought"):
            stores.threads.apply(thread.id, lambda editor, text=text: editor.set_draft(None, text))  # type: ignore[misc]
            seen = work.look()
            assert (seen.pending, seen.is_due) == (1, False)
            clock.wind(9_000_000)
        assert seen.again_in is not None
        assert 0 < seen.again_in <= 30
        clock.wind(4_000_000)
        assert work.look().is_due
        bases.settle(thread.id, ThreadMarks(stores.paths).mark(thread.id), is_private=False)
        assert not work.look().is_due
        stores.threads.apply(thread.id, lambda editor: editor.set_draft(None, "a thought, more"))
        assert not work.look().is_due
        stores.threads.append(thread.id, "user", "said")
        assert work.look().is_due
        bases.close()


def test_an_echo_is_told_from_news(machine: Machine) -> None:
    def page(**change: object) -> Changes:
        return Changes(
            changes=(Change(**{"thread_id": THREAD_ID, "version": 3, **change}),),  # type: ignore[arg-type]
            cursor="c",
            hub_epoch="e",
        )

    with signed(machine) as stores:
        work = DaemonSync(stores)
        assert work.is_news(page())
        bases = HubBases(stores.paths.hub_bases(SERVER))
        bases.replace(THREAD_ID, Delta(version=3), "e")
        bases.close()
        assert not work.is_news(page())
        assert work.is_news(page(version=4))
        assert work.is_news(page(kind=GONE))


def test_it_starts_in_the_background_once_and_is_ended_from_outside(machine: Machine, paths: Paths) -> None:
    machine.keep(a_short_session())
    config = load_config(machine.environment)
    pid = start_in_background(config)
    try:
        assert start_in_background(config) == pid
        assert status_of(paths).pid == pid
    finally:
        assert stop_daemon(paths) == pid
