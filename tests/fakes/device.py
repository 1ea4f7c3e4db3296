"""A device with one thread: it edits offline, and pulls from and pushes to hubs as `merge.md` rules 10 to 13 say.

Every step can be cut short by a crash: after the hub took a push, or after an answer was joined, but before
the base was written down.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from raddle.model.clock import Clock
from raddle.model.ids import NewId
from raddle.model.protocol.hub import Answer
from raddle.model.threads.base import Base, accepted, answered, pending
from raddle.model.threads.delta import Delta, delta_from_json, delta_to_json
from raddle.model.threads.edits import Author, Editor
from raddle.model.threads.thread import Thread
from tests.builders import THREAD_ID, WoundClock, counted_ids
from tests.fakes.hub import Hub

TRIES = 6


class NeverSettled(AssertionError):
    """A push was refused more often than a hub with that few other writers can refuse it."""


class Device:
    """One person's machine. `bases`: hub name -> what that hub is known to hold."""

    def __init__(
        self,
        device_id: str = "aaaaaaaa",
        clock: Clock | None = None,
        *,
        new_id: NewId | None = None,
        thread_id: str = THREAD_ID,
    ) -> None:
        self.device_id = device_id
        self.clock = clock or WoundClock()
        self.new_id = new_id or counted_ids(device_id[:1])
        self.thread = Thread(thread_id)
        self.bases: dict[str, Base] = {}

    @property
    def author(self) -> Author:
        """Who edits here."""
        return Author(device=self.device_id, now=self.clock, new_id=self.new_id)

    @contextmanager
    def edit(self) -> Iterator[Editor]:
        """Edits, kept where the block ends."""
        editor = Editor(self.thread, self.author)
        yield editor
        self.keep(editor.delta())

    def keep(self, delta: Delta) -> None:
        """What the device's own journal would take in: nothing more, for the thread holds it already."""

    def base(self, hub: Hub) -> Base:
        """What `hub` is known to hold; an empty base where nothing is known."""
        return self.bases.get(hub.name, Base())

    def lose_base(self, hub: Hub) -> None:
        """Forget what `hub` is known to hold."""
        self.bases.pop(hub.name, None)

    def pull(self, hub: Hub, *, crash: bool = False) -> None:
        """Ask what is new since the base and take it in. `crash`: the base is not written down."""
        base = self.base(hub)
        self.receive(hub, hub.since(self.thread.id, base.version, base.hub_epoch), crash=crash)

    def receive(self, hub: Hub, answer: Answer, *, crash: bool = False) -> None:
        """Join an answer of the hub, however old, and move the base as far as it tells."""
        delta = over_the_wire(answer.delta)
        self.thread.join(delta)
        if not crash:
            self.bases[hub.name] = answered(self.base(hub), delta, answer.hub_epoch)

    def pending(self, hub: Hub) -> Delta:
        """What `hub` lacks, as far as is known."""
        return pending(self.thread, self.base(hub))

    def send(self, hub: Hub, sent: Delta, *, crash: bool = False) -> bool:
        """Push `sent`; was it accepted? A refusal's answer is taken in. `crash`: the answer does not arrive."""
        base = self.base(hub)
        pushed = hub.push(self.thread.id, over_the_wire(sent), base.hub_epoch)
        if pushed.answer is not None:
            if not crash:
                self.receive(hub, pushed.answer)
            return False
        if not crash:
            self.bases[hub.name] = accepted(base, sent, pushed.version, pushed.hub_epoch)
            self.thread.join(Delta(version=pushed.version))
        return True

    def push(self, hub: Hub) -> int:
        """Push until nothing is pending; the number of accepted pushes. NeverSettled after TRIES refusals."""
        count = 0
        for _ in range(TRIES):
            sent = self.pending(hub)
            if sent.is_empty:
                return count
            count += self.send(hub, sent)
        if not self.pending(hub).is_empty:
            raise NeverSettled(f"{self.device_id} pushed {TRIES} times to {hub.name}")
        return count

    def sync(self, hub: Hub, *, push_first: bool = False) -> int:
        """Pull and push, or the other way round; the number of accepted pushes."""
        count = self.push(hub) if push_first else 0
        self.pull(hub)
        return count + self.push(hub)


def over_the_wire(delta: Delta) -> Delta:
    """`delta` as it comes out at the other end."""
    return delta_from_json(delta_to_json(delta))
