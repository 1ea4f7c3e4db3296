"""Many devices of one person, two server processes, and everything dies once: no turn is lost or doubled."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from raddle.actions.sync.one_thread import Place
from raddle.actions.sync.run import carry_out, make_plan
from raddle.adapters.blobs.directory import BlobDirectory
from raddle.adapters.local_store.hub_bases import HubBases
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.adapters.local_store.thread_marks import ThreadMarks
from raddle.adapters.locks import LockFiles
from raddle.adapters.paths import Paths
from raddle.adapters.remote.http_hub import HttpHub
from raddle.adapters.remote.http_link import HttpLink, Patience
from raddle.model.clock import system_clock
from raddle.model.errors import NetworkError, TooManyRequests
from raddle.model.ids import MonotonicIds
from raddle.model.protocol.sources import SourceSegment
from raddle.server.accounts.devices import mint
from raddle.server.embedded_pg.running import Running, start
from tests.builders import an_author
from tests.builders_server import a_person, connected, new_id, prepare
from tests.listening_program import ListeningProgram
from tests.served_program import server_program

# httpcore leaves the socket of a connection that was cut while it was being made to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

SHARED = 3
"""Threads that every device writes to."""


class NoSources:
    """A `SourceShelf` of a device on which nothing was imported."""

    def __init__(self, device: str) -> None:
        self.device = device

    def digests(self) -> dict[str, str]:
        return {}

    def segments(self, thread_id: str) -> list[SourceSegment]:
        return []

    def sharing(self, thread_id: str) -> dict[str, frozenset[str]]:
        return {}


class Device:
    """A data folder that syncs with whichever of the servers answers. `acknowledged`: what it held after a sync."""

    def __init__(self, folder: Path, number: int, token: str, servers: list[ListeningProgram]) -> None:
        paths = Paths(
            data_dir=folder / "data",
            config_dir=folder / "config",
            state_dir=folder / "state",
            cache_dir=folder / "cache",
        )
        self.threads = ThreadFiles(
            paths,
            LockFiles(paths.locks_dir),
            an_author(f"{number:08x}", system_clock, new_id=MonotonicIds(system_clock)),
        )
        self._marks = ThreadMarks(paths)
        self._bases = HubBases(folder / "bases.sqlite3")
        self._blobs = BlobDirectory(paths.blobs_dir)
        self._sources = NoSources(f"{number:08x}")
        self._token = token
        self._servers = servers
        self._chance = random.Random(number)  # noqa: S311  which server is asked, and when
        self.number = number
        self.said = 0
        self.acknowledged: set[str] = set()

    def say(self, shared: list[str]) -> None:
        """A turn in a thread of its own, or in one of everybody's."""
        self.said += 1
        text = f"device {self.number} says {self.said}"
        known = set(self.threads.ids())
        mine = [name for name in shared if name in known]
        if mine and self._chance.random() < 0.7:
            self.threads.append(self._chance.choice(mine), "user", text)
        else:
            with self.threads.create() as editor:
                editor.reply(None, "user", text)

    def sync(self) -> bool:
        """A whole sync with one of the servers; did it come to its end?"""
        server = self._chance.choice(self._servers)
        with HttpLink(
            "http://localhost", self._token, patience=Patience(5, 60), socket_path=Path(server.address)
        ) as link:
            hub = HttpHub(link)
            before = self._held()
            place = Place(self.threads, self._marks, self._bases, hub, self._blobs, self._sources)
            try:
                plan = make_plan(place, system_clock, is_deleted=lambda _: False, anyway=True)
                done = carry_out(place, plan, system_clock, self._chance.random)
            except (NetworkError, TooManyRequests):
                return False
            if done.trouble:
                return False
        self.acknowledged |= before
        return True

    def _held(self) -> set[str]:
        return {message.id for name in self.threads.ids() for message in self.threads.load(name).tree}

    def close(self) -> None:
        self._bases.close()


@contextlib.contextmanager
def postgres_of_its_own(folder: Path) -> Iterator[Running]:
    """A cluster that may be killed; durable, or what was acknowledged would be lost with it."""
    folder.mkdir(mode=0o711)
    running = start(folder / "data", roots_folder=folder / "accounts", is_durable=True)
    try:
        yield running
    finally:
        with contextlib.suppress(Exception):
            running.stop()


class Progress:
    """How many steps all devices have taken."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    def tick(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._count >= count, 600), "the devices stand still"


def load(folder: Path, *, devices: int, rounds: int) -> None:
    """Everybody writes and syncs at once; meanwhile a server is killed, and PostgreSQL too."""
    with postgres_of_its_own(folder / "pg") as running, contextlib.ExitStack() as stack:
        with psycopg.connect(running.url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE load TEMPLATE raddle")
        conninfo = make_conninfo(running.url, dbname="load")
        prepare(conninfo)
        with connected(conninfo) as connection:
            person = a_person(connection)
            tokens = [
                mint(connection, person.user, f"device {number}", ["threads"], new_id=new_id)
                for number in range(devices)
            ]
        servers = [
            server_program(conninfo, folder / "blobs", str(folder / f"s{number}.sock")) for number in range(2)
        ]
        for server in servers:
            stack.callback(server.kill)
        everybody = [
            Device(folder / f"device-{number}", number, token, servers) for number, token in enumerate(tokens)
        ]
        for device in everybody:
            stack.callback(device.close)
        shared = []
        for number in range(SHARED):
            with everybody[0].threads.create() as editor:
                editor.reply(None, "user", f"for everybody {number}")
                shared.append(editor.thread.id)
        assert everybody[0].sync()

        clock = Progress()

        def work(device: Device) -> None:
            for _ in range(rounds):
                device.say(shared)
                device.sync()
                clock.tick()

        with ThreadPoolExecutor(max_workers=min(devices, 25)) as pool:
            done = [pool.submit(work, device) for device in everybody]
            clock.wait_for(devices * rounds // 5)
            servers[0].kill()
            clock.wait_for(devices * rounds * 2 // 5)
            servers[0].start()
            clock.wait_for(devices * rounds * 3 // 5)
            os.kill(running.pid, signal.SIGKILL)  # the postmaster: its children end by themselves
            again = start(folder / "pg" / "data", roots_folder=folder / "pg" / "accounts", is_durable=True)
            stack.callback(again.stop)
            for each in done:
                each.result()
        _settle(everybody)
        _compare(everybody, conninfo)


def _settle(everybody: list[Device]) -> None:
    """Until everybody has synced twice after the last word: the second time nothing is left to send or to take in."""
    for _ in range(2):
        with ThreadPoolExecutor(max_workers=10) as pool:
            list(pool.map(_until_done, everybody))


def _until_done(device: Device) -> None:
    deadline = time.monotonic() + 300
    pause = threading.Event()
    while not device.sync():
        assert time.monotonic() < deadline, "a device does not come into step"
        pause.wait(0.2)


def _compare(everybody: list[Device], conninfo: str) -> None:
    states = [{name: device.threads.load(name) for name in device.threads.ids()} for device in everybody]
    first = {name: sorted(message.id for message in thread.tree) for name, thread in states[0].items()}
    for state in states[1:]:
        assert {name: sorted(m.id for m in thread.tree) for name, thread in state.items()} == first
    held = {message_id for ids in first.values() for message_id in ids}
    for device in everybody:
        assert device.acknowledged <= held, "an acknowledged turn is lost"
    words = sorted(
        message.content for thread in states[0].values() for message in thread.tree if message.device
    )
    assert len(words) == len(set(words)), "a turn is there twice"
    assert len(words) == sum(device.said for device in everybody) + SHARED, "every turn is there"
    with connected(conninfo) as connection:
        found = connection.execute("SELECT count(*), count(DISTINCT id) FROM messages").fetchone()
    assert found == (len(held), len(held)), "the server holds the same"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short enough for sockets, and open to the account that PostgreSQL runs as."""
    made = Path(tempfile.mkdtemp(prefix="raddle-load-"))
    made.chmod(0o711)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def test_no_acknowledged_turn_is_lost_or_doubled_when_a_server_and_postgresql_are_killed(
    folder: Path,
) -> None:
    load(folder, devices=5, rounds=6)


@pytest.mark.soak
def test_a_hundred_devices_two_servers_and_every_process_killed_once(folder: Path) -> None:
    load(folder, devices=100, rounds=12)
