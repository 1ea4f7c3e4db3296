"""Sync over real files and real bases: whatever is written, crashed and synced in whatever order, both devices and the
hub end up with the same, and then nothing more is sent."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from raddle.actions.sync.one_thread import Place
from raddle.actions.sync.run import carry_out, make_plan
from raddle.adapters.blobs.directory import BlobDirectory
from raddle.adapters.local_store.hub_bases import HubBases
from raddle.adapters.local_store.thread_files import ThreadFiles
from raddle.adapters.local_store.thread_marks import ThreadMarks
from raddle.adapters.locks import LockFiles
from raddle.adapters.paths import Paths
from raddle.model.errors import NetworkError
from raddle.model.ids import MonotonicIds
from raddle.model.protocol.hub import Pushed
from raddle.model.protocol.sources import SourceSegment
from raddle.model.threads.codec import encode_thread
from raddle.model.threads.delta import Delta
from tests.builders import SECOND, WoundClock, an_author
from tests.property.sync_remote import HubInMemory

FASTEST = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Files in memory: thousands of waits for a disk would be most of the time."""
DEVICES = st.integers(0, 1)
PICKS = st.integers(0, 5)


class Cut(BaseException):
    """The process dies here."""


class Shelf:
    """What a device keeps of the sources of its threads: in memory, since no ledger is what is looked at here."""

    def __init__(self, device: str, blobs: BlobDirectory) -> None:
        self.device = device
        self._blobs = blobs
        self.kept: dict[str, list[SourceSegment]] = {}

    def keep(self, thread_ids: list[str], data: bytes) -> None:
        """The next bytes of a file that these threads share."""
        for thread_id in thread_ids:
            kept = self.kept.setdefault(thread_id, [])
            start = sum(one.size for one in kept)
            sha256 = self._blobs.put(data)
            kept.append(
                SourceSegment(
                    key="k",
                    name="n",
                    agent="claude-code",
                    sha256=sha256,
                    generation=0,
                    start=start,
                    end=start + len(data),
                    size=len(data),
                )
            )

    def digests(self) -> dict[str, str]:
        return {name: str(len(kept)) for name, kept in self.kept.items()}

    def segments(self, thread_id: str) -> list[SourceSegment]:
        return list(self.kept.get(thread_id, ()))

    def sharing(self, thread_id: str) -> dict[str, frozenset[str]]:
        return {
            mine.sha256: frozenset(
                other
                for other, kept in self.kept.items()
                if other != thread_id and mine.sha256 in {one.sha256 for one in kept}
            )
            for mine in self.kept.get(thread_id, ())
        }


class Machine:
    """One device: a data folder, a base, and a line to the hub that can be cut at any call."""

    def __init__(self, folder: Path, name: str, remote: HubInMemory, clock: WoundClock) -> None:
        paths = Paths(
            data_dir=folder / "data",
            config_dir=folder / "config",
            state_dir=folder / "state",
            cache_dir=folder / "cache",
        )
        self.clock = clock
        self.name = name
        self.folder = folder
        self.threads = ThreadFiles(
            paths, LockFiles(paths.locks_dir), an_author(name * 8, clock, new_id=MonotonicIds(clock))
        )
        self.marks = ThreadMarks(paths)
        self.remote = remote
        self.blobs = BlobDirectory(paths.blobs_dir)
        self.shelf = Shelf(name * 8, self.blobs)
        self.bases = HubBases(folder / "bases.sqlite3")

    def place(self, wrap: Callable[[Any], Any] = lambda each: each) -> Place:
        remote = WatchedLine(self.remote, self.threads)
        return Place(self.threads, self.marks, wrap(self.bases), wrap(remote), self.blobs, self.shelf)

    def sync(self, place: Place | None = None) -> int:
        """A whole sync; how many pushes the hub took."""
        place = place or self.place()
        before = self.remote.accepted
        self.clock.wind(SECOND)
        plan = make_plan(place, self.clock, is_deleted=self._is_deleted, anyway=True)
        done = carry_out(place, plan, self.clock, lambda: 0.5)
        assert not done.trouble, done.trouble
        assert not done.source_trouble, done.source_trouble
        return self.remote.accepted - before

    def _is_deleted(self, thread_id: str) -> bool:
        return self.threads.load(thread_id).is_deleted

    def lose_bases(self) -> None:
        self.bases.close()
        for file in self.folder.glob("bases.sqlite3*"):
            file.unlink()
        self.bases = HubBases(self.folder / "bases.sqlite3")


class WatchedLine:
    """The line from a device to the hub: what is private here does not go over it."""

    def __init__(self, remote: HubInMemory, threads: ThreadFiles) -> None:
        self._remote, self._threads = remote, threads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._remote, name)

    def push(self, thread_id: str, delta: Delta, hub_epoch: str) -> Pushed:
        if self._threads.load(thread_id).is_private:
            assert not delta.messages, "a turn of a private thread leaves its machine"
            assert set(delta.registers) <= {"is_private"}, "a fact of a private thread leaves its machine"
        return self._remote.push(thread_id, delta, hub_epoch)

    def put_sources(
        self, thread_id: str, device: str, segments: list[SourceSegment], version: int
    ) -> tuple[str, ...]:
        assert not self._threads.load(thread_id).is_private, "sources of a private thread leave their machine"
        for one in segments:
            assert self._remote.has_blob(one.sha256), "a list names bytes that are not there"
        return self._remote.put_sources(thread_id, device, segments, version)


class CutAfter:
    """Lets so many calls through, then dies: before the call, or after it was done."""

    def __init__(self, inner: Any, budget: list[int], *, is_after: bool) -> None:
        self._inner, self._budget, self._is_after = inner, budget, is_after

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._inner, name)

        def cut(*args: Any, **named: Any) -> Any:
            self._budget[0] -= 1
            if self._budget[0] == 0 and not self._is_after:
                raise Cut
            result = call(*args, **named)
            if self._budget[0] == 0:
                raise Cut
            return result

        return cut


class SyncMachine(RuleBasedStateMachine):
    """Two devices, one hub."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="raddle-sync-", dir=FASTEST))
        self.clock = WoundClock()
        self.remote = HubInMemory()
        self.devices = [Machine(self.folder / name, name, self.remote, self.clock) for name in ("a", "b")]
        self.said: set[str] = set()
        self.counted = 0

    def teardown(self) -> None:
        try:
            self.settle()
        finally:
            for device in self.devices:
                device.bases.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _thread_of(self, device: Machine, pick: int) -> str | None:
        ids = device.threads.ids()
        return ids[pick % len(ids)] if ids else None

    def _text(self) -> str:
        self.counted += 1
        self.clock.wind(SECOND)
        return f"turn {self.counted}"

    @rule(device=DEVICES)
    def start(self, device: int) -> None:
        text = self._text()
        with self.devices[device].threads.create() as editor:
            editor.reply(None, "user", text)
        self.said.add(text)

    @rule(device=DEVICES, pick=PICKS)
    def say(self, device: int, pick: int) -> None:
        thread_id = self._thread_of(self.devices[device], pick)
        if thread_id is not None:
            text = self._text()
            self.devices[device].threads.append(thread_id, "user", text)
            self.said.add(text)

    @rule(
        device=DEVICES,
        pick=PICKS,
        what=st.sampled_from(["rename", "tag", "pin", "delete", "restore", "undo"]),
    )
    def edit(self, device: int, pick: int, what: str) -> None:
        thread_id = self._thread_of(self.devices[device], pick)
        if thread_id is None:
            return
        word = self._text()
        with self.devices[device].threads.edit(thread_id) as editor:
            match what:
                case "rename":
                    editor.rename(word)
                case "tag":
                    editor.tag(word)
                case "pin":
                    editor.pin(True)
                case "delete":
                    editor.delete()
                case "restore":
                    editor.restore()
                case _:
                    editor.undo(1)

    @rule(device=DEVICES, pick=PICKS, is_private=st.booleans())
    def keep_private(self, device: int, pick: int, is_private: bool) -> None:
        thread_id = self._thread_of(self.devices[device], pick)
        if thread_id is not None:
            self.clock.wind(SECOND)
            with self.devices[device].threads.edit(thread_id) as editor:
                editor.set_private(is_private)

    @rule(device=DEVICES, pick=PICKS, syncs=st.tuples(st.booleans(), st.booleans()), says=st.booleans())
    def withdraw_and_give_back(self, device: int, pick: int, syncs: tuple[bool, bool], says: bool) -> None:
        for is_private, then_syncs in zip((True, False), syncs, strict=True):
            self.keep_private(device, pick, is_private)
            if says:
                self.say(device, pick)
            if then_syncs:
                self.sync(device)

    @rule(device=DEVICES, picks=st.lists(PICKS, min_size=1, max_size=2))
    def keep_sources(self, device: int, picks: list[int]) -> None:
        threads = {self._thread_of(self.devices[device], pick) for pick in picks} - {None}
        if threads:
            self.devices[device].shelf.keep(sorted(filter(None, threads)), self._text().encode())

    @rule(device=DEVICES, pick=PICKS)
    def fold(self, device: int, pick: int) -> None:
        thread_id = self._thread_of(self.devices[device], pick)
        if thread_id is not None:
            self.devices[device].threads.fold(thread_id)

    @rule(device=DEVICES)
    def sync(self, device: int) -> None:
        self.devices[device].sync()

    @rule(device=DEVICES, calls=st.integers(1, 12), is_after=st.booleans())
    def crash_in_a_sync(self, device: int, calls: int, is_after: bool) -> None:
        budget = [calls]
        machine = self.devices[device]
        place = machine.place(lambda inner: CutAfter(inner, budget, is_after=is_after))
        try:
            machine.sync(place)
        except Cut:
            machine.bases.close()
            machine.bases = HubBases(machine.folder / "bases.sqlite3")

    @rule(device=DEVICES, pick=PICKS)
    def lose_files_that_the_hub_has(self, device: int, pick: int) -> None:
        machine = self.devices[device]
        machine.sync()
        thread_id = self._thread_of(machine, pick)
        if thread_id is None or machine.threads.load(thread_id).is_private:
            return
        before = encode_thread(machine.threads.load(thread_id))
        machine.threads.delete_files(thread_id)
        machine.sync()
        assert encode_thread(machine.threads.load(thread_id)) == before

    @rule(device=DEVICES)
    def lose_bases(self, device: int) -> None:
        self.devices[device].lose_bases()

    @rule()
    def keep_a_backup_of_the_hub(self) -> None:
        self.remote.keep_backup()

    @precondition(lambda self: self.remote.has_backup)
    @rule()
    def put_the_hub_back(self) -> None:
        self.remote.go_back()

    @rule(device=DEVICES)
    def lose_the_line(self, device: int) -> None:
        self.remote.is_down = True
        try:
            self.devices[device].sync()
            raise AssertionError("a sync without a hub says so")
        except NetworkError:
            pass
        finally:
            self.remote.is_down = False

    @invariant()
    def nothing_private_is_on_the_hub(self) -> None:
        for thread in self.remote.threads():
            if thread.is_private:
                assert not len(thread.tree)
                assert set(thread.registers) == {"is_private"}

    @invariant()
    def no_sources_are_there_of_what_is_private_there(self) -> None:
        for thread in self.remote.threads():
            assert not thread.is_private or not self.remote.sources(thread.id)

    def expect_sources(self) -> None:
        """Of every thread that is not private what it shares with no other is there, and nothing of a private one."""
        for thread in self.remote.threads():
            told = {each.device: list(each.segments) for each in self.remote.sources(thread.id)}
            for device in self.devices:
                if thread.is_private or thread.id not in device.threads.ids():
                    continue
                sharing = device.shelf.sharing(thread.id)
                there = told.get(device.shelf.device, [])
                for one in device.shelf.segments(thread.id):
                    if not sharing[one.sha256]:
                        assert one in there
                    elif any(device.threads.load(other).is_private for other in sharing[one.sha256]):
                        assert one not in there

    def settle(self) -> None:
        for _ in range(4):
            for device in self.devices:
                device.sync()
        assert [device.sync() for device in self.devices] == [0, 0], "quiet means that nothing is sent"
        here, there = (
            {name: self.devices[at].threads.load(name) for name in self.devices[at].threads.ids()}
            for at in (0, 1)
        )
        for name in here.keys() & there.keys():
            assert encode_thread(here[name]) == encode_thread(there[name]) or here[name].is_private
        for one, other in ((here, there), (there, here)):
            for name in one.keys() - other.keys():
                assert one[name].is_private, "only what is private is on one device alone"
        self.expect_sources()
        held = {
            message.content for each in (here, there) for thread in each.values() for message in thread.tree
        }
        assert held >= self.said, "no turn is lost"
        for thread in self.remote.threads():
            mine = here.get(thread.id) or there[thread.id]
            if not mine.is_private:
                assert {message.id for message in thread.tree} == {message.id for message in mine.tree}


def test_two_devices_and_a_hub_lose_nothing_and_send_nothing_private() -> None:
    run_state_machine_as_test(SyncMachine, settings=settings(max_examples=60, stateful_step_count=30))


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_two_devices_and_a_hub_through_long_lives(part: int) -> None:
    """In parts, so that what Hypothesis remembers of a run stays small; each part is another one every time."""
    run_state_machine_as_test(SyncMachine, settings=settings(max_examples=600, stateful_step_count=50))
