"""Many writers at once on real connections: who wins a version, what the feed tells, what a reader sees meanwhile."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest
from psycopg import Connection

from raddle.model.protocol.hub import Changes, Pushed
from raddle.model.threads.delta import Delta
from raddle.model.threads.message import Message
from raddle.model.threads.summary import ThreadSummary
from raddle.server.threads import answering, feed
from raddle.server.threads.holding import Key
from tests.builders import THREAD_ID, a_message, texts
from tests.builders_server import NotedIndex, Person, ServerHub, a_person, connected, prepare
from tests.contract.remote_laws import OTHER_ID, more, new
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)

WRITERS = 6
_PATIENCE_SECONDS = 20


class Desk:
    """One person's space, and as many connections to it as a test asks for."""

    def __init__(self, conninfo: str, stack: contextlib.ExitStack) -> None:
        self._conninfo, self._stack = conninfo, stack
        self.connection = self.connect()
        self.person = a_person(self.connection)

    def connect(self) -> Connection:
        return self._stack.enter_context(contextlib.closing(connected(self._conninfo)))

    def hub(self) -> ServerHub:
        """The hub over a connection of its own."""
        return ServerHub(self.connect(), self.person)


@pytest.fixture
def desk(new_database: NewDatabase) -> Iterator[Desk]:
    with contextlib.ExitStack() as stack:
        yield Desk(new_database(prepare), stack)


def at_once(actions: Sequence[Callable[[], Pushed]]) -> list[Pushed]:
    """What they come to, each in a thread of its own, all begun in one moment."""
    gate = threading.Barrier(len(actions))
    came_to: dict[int, Pushed] = {}

    def run(place: int) -> None:
        gate.wait(_PATIENCE_SECONDS)
        came_to[place] = actions[place]()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_PATIENCE_SECONDS)
    assert len(came_to) == len(actions), "one of them failed, or hangs"
    return [came_to[place] for place in range(len(actions))]


def offer(hub: ServerHub, delta: Delta) -> Callable[[], Pushed]:
    return lambda: hub.push(THREAD_ID, delta, hub.epoch)


def test_of_racing_writers_one_wins_each_version(desk: Desk) -> None:
    hubs = [desk.hub() for _ in range(WRITERS)]
    base = Pushed(version=0, hub_epoch=hubs[0].epoch)
    won: list[str] = []
    for version in range(1, 9):
        names = [f"v{version}-by-{writer}" for writer in range(WRITERS)]
        deltas = [more(base, a_message(name, name)) for name in names]
        results = at_once([offer(hub, delta) for hub, delta in zip(hubs, deltas, strict=True)])
        winners = [name for name, result in zip(names, results, strict=True) if result.is_accepted]
        assert len(winners) == 1
        won += winners
        for result in results:
            assert result.version == version
            if result.answer is not None:
                assert result.answer.delta.base_version == version - 1
                assert texts(result.answer.delta.messages) == winners
        base = next(result for result in results if result.is_accepted)
    assert [message.id for message in hubs[0].since().delta.messages] == won, "and nothing of a loser is kept"


def test_one_push_sent_twice_at_once_is_taken_once_and_answered_twice(desk: Desk) -> None:
    hubs = [desk.hub(), desk.hub()]
    base = hubs[0].push(THREAD_ID, new(a_message()), "")
    for number in range(5):
        sent = more(base, a_message(f"n{number}", "again"))
        first, second = at_once([offer(hub, sent) for hub in hubs])
        assert first.is_accepted
        assert second.is_accepted
        assert first.version == second.version == base.version + 1
        base = first
    assert len(hubs[0].since().delta.messages) == 6


def test_a_push_sent_again_is_taken_only_while_nothing_came_after_it(desk: Desk) -> None:
    hub = desk.hub()
    base = hub.push(THREAD_ID, new(a_message()), "")
    sent = more(base, a_message("m2", "mine"))
    made = hub.push(THREAD_ID, sent, hub.epoch)
    assert hub.push(THREAD_ID, sent, hub.epoch) == made
    after = hub.push(THREAD_ID, more(made, a_message("m3", "another's")), hub.epoch)
    late = hub.push(THREAD_ID, sent, hub.epoch)
    assert late.answer is not None
    assert (late.version, texts(late.answer.delta.messages)) == (after.version, ["mine", "another's"])


class HaltingIndex(NotedIndex):
    """Stands still in the middle of a push, for as long as the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.is_halted, self.may_go_on = threading.Event(), threading.Event()

    def put(
        self, connection: Connection, number: int, summary: ThreadSummary, messages: Sequence[Message]
    ) -> None:
        self.is_halted.set()
        assert self.may_go_on.wait(_PATIENCE_SECONDS)


def test_a_long_push_keeps_nobody_waiting_and_is_not_missed_by_who_read_meanwhile(desk: Desk) -> None:
    """Its number of the feed is its last statement: taken first, it would be passed over, or be waited for."""
    slow, quick = desk.hub(), desk.hub()
    slow.index = halting = HaltingIndex()
    pushing = threading.Thread(target=slow.push, args=(THREAD_ID, new(a_message()), ""))
    pushing.start()
    try:
        assert halting.is_halted.wait(_PATIENCE_SECONDS)
        quick.connection.execute("SET lock_timeout = '2s'")
        assert quick.push(OTHER_ID, new(a_message("n1")), "").is_accepted
        meanwhile = read_feed(desk, "")
        assert [line.thread_id for line in meanwhile.changes] == [OTHER_ID]
    finally:
        halting.may_go_on.set()
        pushing.join(_PATIENCE_SECONDS)
    assert [line.thread_id for line in read_feed(desk, meanwhile.cursor).changes] == [THREAD_ID]


def read_feed(desk: Desk, cursor: str, limit: int = 3) -> Changes:
    epoch = feed.hub_epoch(desk.connection, lambda: "")
    return feed.changes(desk.connection, (desk.person.space,), cursor, limit=limit, epoch=epoch)


def test_a_reader_of_the_feed_misses_nothing_that_many_writers_push(desk: Desk) -> None:
    rounds, of_each = 12, 3
    hubs = [desk.hub() for _ in range(4)]
    newest: dict[str, int] = {}

    def write(writer: int) -> None:
        """Pushes to threads of its own, in turn."""
        bases: dict[str, Pushed] = {}
        for number in range(rounds):
            name = f"T-018e2b3c-4d5e-7f8a-9b0c-{writer:06d}{number % of_each:06d}"
            base = bases.get(name, Pushed(version=0, hub_epoch=""))
            made = hubs[writer].push(name, more(base, a_message(f"m{number}")), hubs[writer].epoch)
            assert made.is_accepted
            bases[name] = made
            newest[name] = made.version

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(len(hubs))]
    for writer in writers:
        writer.start()
    seen: dict[str, int] = {}
    cursor, is_last = "", False
    while not is_last:
        is_last = not any(writer.is_alive() for writer in writers)
        while True:
            page = read_feed(desk, cursor)
            for line in page.changes:
                assert line.version > seen.get(line.thread_id, 0), "a version is told once, in order"
                seen[line.thread_id] = line.version
            cursor = page.cursor
            if not page.has_more:
                break
    assert len(newest) == len(hubs) * of_each
    assert seen == newest
    given = desk.connection.execute(
        "SELECT feed_number, (SELECT max(number) FROM thread_changes) FROM spaces WHERE id = %s",
        [desk.person.space],
    ).fetchone()
    assert given == (len(hubs) * rounds, len(hubs) * rounds), "one number for each push, and no gap"


def test_a_thread_is_read_as_it_was_at_one_moment(desk: Desk) -> None:
    writer, reader = desk.hub(), desk.hub()
    made = writer.push(THREAD_ID, new(*(a_message(f"m{n}", "x" * 500) for n in range(40)), title="t000"), "")
    is_over = threading.Event()

    def revise() -> None:
        base = made
        for revision in range(1, 60):
            turns = [a_message(f"m{n}", "x" * 500, rev=revision) for n in range(0, 40, 3)]
            base = writer.push(THREAD_ID, more(base, *turns, title=f"t{revision:03}"), writer.epoch)
            assert base.is_accepted
        is_over.set()

    writing = threading.Thread(target=revise)
    writing.start()
    key = Key(desk.person.space, THREAD_ID)
    reads = 0
    while not is_over.is_set() and writing.is_alive():
        thread = answering.whole(reader.connection, key)
        assert len(thread.tree) == 40
        revision = {message.rev for message in thread.tree if message.rev}
        assert len(revision) <= 1
        assert thread.title == f"t{max(revision, default=0):03}"
        answer = reader.since(THREAD_ID, 0).delta
        assert len(answer.messages) == 40
        reads += 1
    writing.join(_PATIENCE_SECONDS)
    assert is_over.is_set()
    assert reads


def test_of_two_people_who_race_for_one_id_both_win(desk: Desk) -> None:
    ada, bob = desk.hub(), desk.hub()
    bob.person = Person(*a_person(desk.connection, "bob"))
    first, second = at_once(
        [offer(ada, new(a_message(content="ada's"))), offer(bob, new(a_message(content="bob's")))]
    )
    assert first.is_accepted
    assert second.is_accepted
    assert texts(ada.since().delta.messages) == ["ada's"]
    assert texts(bob.since().delta.messages) == ["bob's"]
