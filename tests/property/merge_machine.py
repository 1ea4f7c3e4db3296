"""The state machine of the merge: three devices, two hubs, any order of edits, exchanges and accidents.

Hub 1 serves all devices, hub 2 two of them. After every step the laws are asked of each replica that was
touched; at the end all settle, everybody must hold and show the same, and the join's own laws are asked of
the states that came about.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from raddle.model.threads.delta import delta_from_json, delta_to_json
from raddle.model.threads.thread import Thread, diff, merge
from tests.builders import SECOND, THREAD_ID, YEAR
from tests.fakes.device import TRIES
from tests.property.merge_edits import STORIES, STORIES_THAT_MEET
from tests.property.merge_laws import check_second_seed, readings_of, state_of
from tests.property.merge_oracle import law
from tests.property.merge_replica import Replica, WatchedHub, World

ROUNDS = 6
OFFSETS = (0, 100 * SECOND, -100 * SECOND, YEAR, -YEAR)
DEVICES = st.integers(0, 2)
HUBS = st.integers(0, 1)
PICKS = st.integers(0, 11)
KINDS = st.integers(0, 3)
WAITS = st.sampled_from((SECOND, 0, 1))
ORDERS = st.permutations((0, 1, 2))
ACCIDENTS = (
    *(
        "clock_is_set",
        "restart",
        "base_is_lost",
        "reinstall",
        "backup",
        "restore",
        "hub_backup",
        "hub_restore",
    ),
    *("hub_replica_falls_behind", "stale_answer", "event_after_a_gap"),
)


THEMES = st.one_of(
    *(st.lists(st.sampled_from(theme), min_size=1, max_size=4, unique=True) for theme in STORIES_THAT_MEET),
    st.lists(st.sampled_from(sorted(STORIES)), min_size=2, max_size=6, unique=True),
)
"""What people do in one run: a few things that have to do with one another, so that they meet."""


class MergeMachine(RuleBasedStateMachine):
    """`stories`, `accidents`: what people do and what befalls them in this run."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.replicas = [Replica(name, self.world) for name in "abc"]
        self.hubs = [WatchedHub(name, self.world, THREAD_ID) for name in ("hub1", "hub2")]
        self.stories: list[str] = []
        self.accidents: list[str] = []
        self.has_failed = False

    @initialize(stories=THEMES, accidents=st.lists(st.sampled_from(ACCIDENTS), max_size=4, unique=True))
    def begin(self, stories: list[str], accidents: list[str]) -> None:
        self.stories, self.accidents = stories, accidents

    @contextmanager
    def step(self) -> Iterator[None]:
        """What runs inside has failed until it ends."""
        self.has_failed = True
        yield
        self.has_failed = False

    def _hub(self, device: int, hub: int) -> WatchedHub:
        """The hub of that number, or the one that serves the device at all."""
        return self.hubs[hub if device < 2 else 0]

    def _check(self, *checked: Replica | WatchedHub) -> None:
        for each in checked:
            each.check()

    def _edit(self, device: int, story: int, pick: int, wait: int) -> None:
        replica = self.replicas[device]
        replica.wait(wait)
        STORIES[self.stories[story % len(self.stories)]](replica, pick)
        self._check(replica)

    @rule(device=DEVICES, story=KINDS, pick=PICKS, wait=WAITS)
    def edit(self, device: int, story: int, pick: int, wait: int) -> None:
        with self.step():
            self._edit(device, story, pick, wait)

    @rule(device=DEVICES, story=KINDS, pick=PICKS, then=KINDS, wait=WAITS)
    def edit_twice(self, device: int, story: int, pick: int, then: int, wait: int) -> None:
        with self.step():
            self._edit(device, story, pick, wait)
            self._edit(device, then, pick + 1, SECOND)

    @rule(devices=ORDERS, story=KINDS, picks=st.tuples(PICKS, PICKS), wait=WAITS)
    def edit_alike(self, devices: list[int], story: int, picks: tuple[int, int], wait: int) -> None:
        """Two devices do the same kind of thing, neither knowing of the other."""
        with self.step():
            for device, pick in zip(devices, picks, strict=False):
                self._edit(device, story, pick, wait)

    @rule(device=DEVICES, hub=HUBS, push_first=st.booleans())
    def sync(self, device: int, hub: int, push_first: bool) -> None:
        with self.step():
            replica, with_hub = self.replicas[device], self._hub(device, hub)
            replica.say(f"sync with {with_hub.name}")
            replica.sync(with_hub, push_first=push_first)
            self._check(replica, with_hub)

    @rule(devices=ORDERS, hub=HUBS)
    def sync_everyone(self, devices: list[int], hub: int) -> None:
        with self.step():
            note(f"everyone syncs with hub{hub + 1}")
            for device in devices:
                self.replicas[device].sync(self._hub(device, hub))
            self._check(*self.replicas, *self.hubs)

    @rule(device=DEVICES, hub=HUBS, crash=st.booleans())
    def pull(self, device: int, hub: int, crash: bool) -> None:
        with self.step():
            replica, from_hub = self.replicas[device], self._hub(device, hub)
            replica.say(f"pull from {from_hub.name}{', crash before the base' if crash else ''}")
            replica.pull(from_hub, crash=crash)
            self._check(replica)

    @rule(device=DEVICES, hub=HUBS, pick=PICKS, crash=st.booleans(), types=st.booleans())
    def push_once(self, device: int, hub: int, pick: int, crash: bool, types: bool) -> None:
        """One push; the answer may be lost, and the person may type while it is on its way."""
        with self.step():
            replica, to_hub = self.replicas[device], self._hub(device, hub)
            sent, heard = replica.pending(to_hub), replica.heard
            if sent.is_empty:
                return
            replica.say(f"push to {to_hub.name}{', answer lost' if crash else ''}")
            if types:
                STORIES[self.stories[pick % len(self.stories)]](replica, pick)
            replica.send(to_hub, sent, crash=crash, heard=heard)
            self._check(replica, to_hub)

    @rule(devices=ORDERS, hub=HUBS, lost=st.booleans())
    def contention(self, devices: list[int], hub: int, lost: bool) -> None:
        """Two devices push in step; the answer to the first may be lost."""
        with self.step():
            one, other = (self.replicas[device] for device in devices[:2])
            at_hub = self.hubs[hub if 2 not in devices[:2] else 0]
            sent = [(each, each.pending(at_hub), each.heard) for each in (one, other)]
            one.say(f"and {other.name} push to {at_hub.name} in step{', answer lost' if lost else ''}")
            for each, delta, heard in sent:
                if not delta.is_empty:
                    each.send(at_hub, delta, crash=lost and each is one, heard=heard)
            for each in (other, one):
                each.push(at_hub)
            self._check(one, other, at_hub)

    @precondition(lambda self: self.accidents)
    @rule(which=KINDS, device=DEVICES, hub=HUBS, pick=PICKS)
    def accident(self, which: int, device: int, hub: int, pick: int) -> None:
        with self.step():
            replica, at_hub = self.replicas[device], self._hub(device, hub)
            accident = self.accidents[which % len(self.accidents)]
            replica.say(f"{accident}, {at_hub.name}, {pick}")
            getattr(self, f"_{accident}")(replica, at_hub, pick)
            self._check(replica, at_hub)

    def _clock_is_set(self, replica: Replica, hub: WatchedHub, pick: int) -> None:
        replica.offset = OFFSETS[pick % len(OFFSETS)]

    def _restart(self, replica: Replica, hub: WatchedHub, pick: int) -> None:
        replica.restart()

    def _base_is_lost(self, replica: Replica, hub: WatchedHub, pick: int) -> None:
        replica.lose_base(hub)

    def _reinstall(self, replica: Replica, hub: WatchedHub, pick: int) -> None:
        replica.reinstall()

    def _backup(self, replica: Replica, hub: WatchedHub, pick: int) -> None:
        replica.save()

    def _restore(self, replica: Replica, hub: WatchedHub, pick: int) -> None:
        replica.go_back()

    def _hub_backup(self, replica: Replica, hub: WatchedHub, pick: int) -> None:
        hub.save()

    def _hub_restore(self, replica: Replica, hub: WatchedHub, pick: int) -> None:
        hub.go_back()

    def _hub_replica_falls_behind(self, replica: Replica, hub: WatchedHub, pick: int) -> None:
        hub.lag()

    def _stale_answer(self, replica: Replica, hub: WatchedHub, pick: int) -> None:
        """A replica of the hub that fell behind answers in its place."""
        if hub.past:
            late, heard = hub.past[pick % len(hub.past)]
            base = replica.base(hub)
            replica.receive(hub, late.since(THREAD_ID, base.version, base.hub_epoch), heard=heard)

    def _event_after_a_gap(self, replica: Replica, hub: WatchedHub, pick: int) -> None:
        """A live event tells of the newest rows only: the base stays, and the pull after it fills the gap."""
        base = replica.base(hub)
        newest = hub.since(THREAD_ID, hub.version - 1 - pick % 3, hub.epoch)
        if 0 < base.version < newest.delta.base_version:
            replica.receive(hub, newest)
            law(replica.base(hub) == base, "an answer after a gap moves no base")
            readings_of(replica.thread)
        replica.pull(hub)
        replica.check_index()

    def teardown(self) -> None:
        """All settle; then once more with nothing private. Not after a law broke: that one is to be shown."""
        if self.has_failed:
            return
        for replica in self.replicas:
            replica.check_index()
            replica.restart()
            check_second_seed(replica.thread)
        check_joins([replica.thread for replica in self.replicas])
        self.settle()
        for _ in self.replicas:
            for replica in self.replicas:
                if replica.thread.is_private:
                    with replica.edit() as editor:
                        editor.set_private(False)
            self.settle()
        self.check_all_equal()

    def settle(self) -> None:
        """Everybody syncs with everybody; it is quiet once a whole round pushed nothing."""
        note("all sync until it is quiet")
        for _ in range(ROUNDS):
            if not self._round():
                break
        else:
            law(not self._round(), f"quiet within {ROUNDS} rounds of at most {TRIES} tries")
        self._check(*self.replicas, *self.hubs)

    def _round(self) -> int:
        pushed = 0
        for device, replica in enumerate(self.replicas):
            for hub in self.hubs if device < 2 else self.hubs[:1]:
                pushed += replica.sync(hub)
        return pushed

    def check_all_equal(self) -> None:
        """Nothing is private any more, and all is quiet: there is one state."""
        first = self.replicas[0].thread
        state, readings = state_of(first), readings_of(first)
        for replica in self.replicas:
            law(state_of(replica.thread) == state, "all replicas are equal", replica.name)
            law(readings_of(replica.thread) == readings, "all replicas show the same", replica.name)
        for hub in self.hubs:
            law(state_of(hub.thread) == state, "every hub holds what the devices hold", hub.name)
        newest = max(hub.version for hub in self.hubs)
        law(
            {replica.thread.version for replica in self.replicas[:2]} == {newest},
            "versions are equal once quiet",
        )
        law(self.replicas[2].thread.version == self.hubs[0].version, "versions are equal once quiet")


def check_joins(threads: list[Thread]) -> None:
    """The join is commutative, associative and idempotent, and a diff is what is missing."""
    one, two, three = threads
    states = [state_of(thread) for thread in threads]
    both = merge(one, two)
    law(state_of(both) == state_of(merge(two, one)), "the join is commutative")
    law(
        state_of(merge(both, three)) == state_of(merge(one, merge(two, three))),
        "the join is associative",
    )
    law(state_of(merge(one, one)) == states[0], "the join is idempotent")
    law(state_of(merge(both, two)) == state_of(both), "the join is idempotent")
    caught_up = one.copy()
    caught_up.join(delta_from_json(delta_to_json(diff(one, both))))
    law(state_of(caught_up) == state_of(both), "an older state and the diff make the newer one")
    law(not caught_up.join(both.whole()), "a join that brings nothing new says so")
    law([state_of(thread) for thread in threads] == states, "a merge leaves its parts alone")
