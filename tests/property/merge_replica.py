"""Devices and hubs as the state machine sees them: the real ones, and beside each what it has heard of.

A replica is a device whose every edit is noted in the `History`, and whose every exchange with a hub hands
over what the one had heard of to the other, by what the rules say and not by what the delta holds. Laws that
only an exchange can break (size, tries, privacy, versions) are asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from hypothesis import note

from raddle.model.protocol.hub import Answer
from raddle.model.threads.base import Base
from raddle.model.threads.codec import decode_file, encode_thread
from raddle.model.threads.delta import Delta, delta_to_json
from raddle.model.threads.thread import Thread
from tests.builders import NOON, SECOND
from tests.fakes.device import TRIES, Device, NeverSettled
from tests.fakes.hub import Holding, Hub
from tests.property.merge_laws import check_in_order, check_replica, readings_of, state_of
from tests.property.merge_oracle import Edit, History, LawBroken, law
from tests.property.merge_sources import legacy_edits, session_edits


class World:
    """True time, fresh ids, and all that was ever written."""

    def __init__(self) -> None:
        self.history = History()
        self.time = NOON
        self.counted = 0
        self.states: dict[int, bytes] = {}
        self.foreseen: dict[tuple[str, int, str], Edit] = {}
        for path, n, value in session_edits():
            self._foresee(path, n, value, "")
        for path, n, value, device in legacy_edits():
            self._foresee(path, n, value, device)

    def count(self) -> int:
        """A number that was not given before."""
        self.counted += 1
        return self.counted

    def new_id(self) -> str:
        """A fresh message id; ids are in no order, so that ties are broken either way."""
        number = self.count()
        return f"{number * 7919 % 64:02d}-m{number}"

    def _foresee(self, path: str, n: int, value: object, device: str) -> None:
        """Note an edit that several machines may make as one; it replaces those that its own source made before."""
        key = path, n, device
        if key not in self.foreseen:
            earlier = [edit for edit in self.history.by_path.get(path, ()) if edit.device == device]
            seen = sum(edit.bit for edit in earlier if not path.startswith("message/"))
            self.foreseen[key] = self.history.add(path, value, device, seen)

    def find(self, path: str, n: int, device: str) -> int:
        """The mask of an edit that was foreseen, with those it replaces."""
        edit = self.foreseen[path, n, device]
        return edit.bit | edit.seen

    def check(self, name: str, thread: Thread, heard: int) -> None:
        """All laws of one replica, and: who heard the same holds the same."""
        try:
            check_replica(thread, self.history, heard)
            check_in_order(thread)
            state = state_of(thread)
            law(self.states.setdefault(heard, state) == state, "who heard the same holds the same")
        except LawBroken as broken:
            raise LawBroken(f"{name}: {broken}") from broken


class HubBackup(NamedTuple):
    """A hub as it was, and what it had heard of."""

    holdings: Mapping[str, Holding]
    heard: int


class WatchedHub(Hub):
    """A hub and what it has heard of. `past`: earlier states, as a replica of it that lags may still answer."""

    def __init__(self, name: str, world: World, thread_id: str) -> None:
        super().__init__(name)
        self.world = world
        self.thread_id = thread_id
        self.heard = 0
        self.past: list[tuple[Hub, int]] = []
        self.saved: HubBackup | None = None

    @property
    def thread(self) -> Thread:
        """What it holds."""
        return self.holding(self.thread_id).thread

    @property
    def version(self) -> int:
        """The version it answers with."""
        return self.holding(self.thread_id).version

    def take(self, heard: int) -> None:
        """It was told of `heard`: a withdrawal leaves it only what was said about privacy."""
        self.heard |= heard
        if self.world.history.is_private(self.heard):
            self.heard &= self.world.history.private_bits
            held = {path for path in self.thread.registers if path != "is_private"}
            law(not held and not len(self.thread.tree), "no private content on a hub that was told", held)

    def check(self) -> None:
        """The laws that hold of any replica hold of a hub."""
        self.world.check(self.name, self.thread, self.heard)

    def lag(self) -> None:
        """Remember this state for an answer that comes late."""
        twin = Hub(self.name)
        twin.restores = self.restores
        twin._holdings = dict(self.backup())
        self.past.append((twin, self.heard))

    def save(self) -> None:
        """Make a backup."""
        self.saved = HubBackup(self.backup(), self.heard)

    def go_back(self) -> None:
        """The backup takes the place of what was held since."""
        if self.saved is not None:
            self.restore(self.saved.holdings)
            self.heard = self.saved.heard
            self.past = []


class DeviceBackup(NamedTuple):
    """A device's disk as it was."""

    file: bytes
    bases: dict[str, Base]
    heard: int


class Replica(Device):
    """A device and what it has heard of."""

    def __init__(self, name: str, world: World) -> None:
        self.world = world
        self.name = name
        self.heard = 0
        self.offset = 0
        self.lives = 0
        self.saved: DeviceBackup | None = None
        super().__init__(name * 8, self.now, new_id=world.new_id)

    def now(self) -> int:
        """This machine's clock, right or wrong."""
        return self.world.time + self.offset

    def say(self, words: str) -> None:
        """A line of the story that a counterexample tells."""
        note(f"{self.name}: {words}")

    def keep(self, delta: Delta) -> None:
        """Note what was edited: each write had seen all this replica had heard of."""
        seen = self.heard
        for message in delta.messages:
            self._heard_of(f"message/{message.id}", message, message.device, seen)
        for path, register in delta.registers.items():
            for write in register.writes:
                self._heard_of(path, write.value, write.device, seen)

    def _heard_of(self, path: str, value: object, device: str, seen: int) -> None:
        self.heard |= self.world.history.add(path, value, device, seen).bit

    def check(self) -> None:
        """All laws of one replica; and its index over the tree reads as one built anew."""
        self.world.check(self.name, self.thread, self.heard)

    def check_index(self) -> None:
        """What was kept up to date piece by piece reads as what is built at once."""
        mine, anew = readings_of(self.thread), readings_of(self.thread.copy())
        differing = [key for key in mine if mine[key] != anew[key]]
        law(not differing, "the index reads as one built anew", self.name, differing)

    def receive(self, hub: Hub, answer: Answer, *, crash: bool = False, heard: int | None = None) -> None:
        """Take in an answer; `heard`: what it tells of, where that is not all the hub has heard of."""
        assert isinstance(hub, WatchedHub)
        before = self.thread.version
        super().receive(hub, answer, crash=crash)
        self.heard |= hub.heard if heard is None else heard
        law(self.thread.version >= before, "a device's version never goes back", before, self.thread.version)

    def send(self, hub: Hub, sent: Delta, *, crash: bool = False, heard: int | None = None) -> bool:
        """Push `sent`; `heard`: what this replica had heard of when `sent` was made."""
        assert isinstance(hub, WatchedHub)
        told = self.heard if heard is None else heard
        self._check_privacy(hub, sent, told)
        before, device_before = hub.version, self.thread.version
        is_on_top = sent.base_version == before and self.base(hub).hub_epoch == hub.epoch
        if sent.base_version and is_on_top:  # not where the hub was put back to a backup with that version
            self._check_size(hub, sent, told)
        is_accepted = super().send(hub, sent, crash=crash)
        law(hub.version >= before, "a hub's version never goes back", before, hub.version)
        law(self.thread.version >= device_before, "a device's version never goes back")
        if is_accepted:
            hub.take(told)
        return is_accepted

    def _check_privacy(self, hub: WatchedHub, sent: Delta, told: int) -> None:
        history = self.world.history
        if history.is_private(told):
            law(set(sent.registers) <= {"is_private"}, "only the flag of a private thread leaves")
            law(not sent.messages, "no turn of a private thread leaves")
            law(bool(sent.base_version), "a hub that does not know a private thread is not told of it")

    def _check_size(self, hub: WatchedHub, sent: Delta, told: int) -> None:
        """At most 400 bytes, and 400 and what was said for each edit that the hub lacks."""
        history = self.world.history
        lacked = [edit for edit in history.edits if edit.bit & told & ~hub.heard]
        if any(not edit.device for edit in lacked):
            return
        paths = {edit.path for edit in lacked}
        said = sum(edit.size for path in paths for edit in history.standing(path, told))
        size = len(delta_to_json(sent))
        law(
            size <= 400 + 400 * len(lacked) + said,
            "a delta costs what changed",
            len(lacked),
            said,
            delta_to_json(sent),
        )

    def push(self, hub: Hub) -> int:
        """Push until nothing is pending."""
        try:
            return super().push(hub)
        except NeverSettled as error:
            raise LawBroken(f"settled in at most {TRIES} tries: {error}") from error

    def restart(self) -> None:
        """Stop and start: memory is gone, the file is read."""
        data = encode_thread(self.thread)
        decoded = decode_file(data)
        thread = decoded.thread()
        law(not decoded.problems and decoded.is_as_written, "a file reads as it was written")
        law(state_of(thread) == state_of(self.thread), "a file holds the whole state")
        law(thread.version == self.thread.version, "a file holds the version")
        law(encode_thread(thread) == data, "a file that is read and written again is the same file")
        self.thread = thread

    def save(self) -> None:
        """Make a backup of the disk."""
        self.saved = DeviceBackup(encode_thread(self.thread), dict(self.bases), self.heard)

    def go_back(self) -> None:
        """The backup takes the place of the disk; the device id is a new one."""
        if self.saved is not None:
            self.thread = decode_file(self.saved.file).thread()
            self.bases, self.heard = dict(self.saved.bases), self.saved.heard
            self._new_device_id()

    def reinstall(self) -> None:
        """A new, empty data dir."""
        self.thread = Thread(self.thread.id)
        self.bases, self.heard = {}, 0
        self._new_device_id()

    def _new_device_id(self) -> None:
        self.lives += 1
        self.device_id = f"{self.name * 6}{self.lives:02d}"

    def wait(self, microseconds: int = SECOND) -> None:
        """True time passes."""
        self.world.time += microseconds


Story = Callable[[Replica, int], None]
"""Something a person does on a replica; the number picks among the turns, tags or texts there are."""
