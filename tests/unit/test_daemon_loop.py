"""The daemon's sync loop, step by step over a wound clock: what it does, tells and survives."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Self

import pytest

from raddle.apps.daemon.board import Board
from raddle.apps.daemon.listener import Listener
from raddle.apps.daemon.sync_loop import LOOK_SECONDS, SyncLoop
from raddle.model.errors import NetworkError, NotSignedIn, StorageError, TooManyRequests
from raddle.model.protocol.hub import Change, Changes
from raddle.wiring.daemon_state import DaemonState
from raddle.wiring.daemon_sync import Alarming, Interrupted, Look, Synced
from raddle.wiring.standing import Ground, Standing
from raddle.wiring.syncing import SyncIsRunning

PATIENCE_SECONDS = 20.0


class FakeLog:
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write(self, event: str, **fields: Any) -> None:
        self.events.append({"event": event, **fields})

    def of(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self.events if each["event"] == event]


class FakeWork:
    """A server and a machine: what a look sees, and what a sync answers or raises, one after the other."""

    def __init__(self) -> None:
        self.answers: list[Synced | Exception] = []
        self.seen = Look(pending=0, is_due=False, again_in=None, cursor="c1")
        self.syncs = 0
        self.looks = 0
        self.known = 7

    def sync(self, is_over: Callable[[], bool]) -> Synced:
        self.syncs += 1
        answer = self.answers.pop(0) if self.answers else Synced(pulled=0, pushed=0, trouble={})
        if isinstance(answer, Exception):
            raise answer
        return answer

    def look(self) -> Look:
        self.looks += 1
        return self.seen

    def is_news(self, page: Changes) -> bool:
        return any(change.version != self.known for change in page.changes)


class Stage:
    """A loop with everything it needs, over clocks that a test winds."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.wall = 5_000_000.0
        self.log = FakeLog()
        self.saved: list[DaemonState] = []
        state = DaemonState(pid=1, since=0, version="1")
        self.board = Board(state, save=self._save, log=self.log, clock=self._clock)
        self.work = FakeWork()
        self.told: list[tuple[str, bool]] = []
        self.woken = 0
        self.loop = SyncLoop(
            self.work,
            self.board,
            is_over=lambda: False,
            seconds=lambda: self.now,
            clock=self._clock,
            draw=lambda: 1.0,
            in_step=lambda cursor, is_back: self.told.append((cursor, is_back)),
            woke=self._wake,
        )

    def _save(self, state: DaemonState) -> bool:
        self.saved.append(state)
        return True

    def _clock(self) -> int:
        return int(self.wall * 1_000_000)

    def _wake(self) -> None:
        self.woken += 1

    def wind(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds

    def go_on(self, seconds: float) -> None:
        """Step as the loop would, for so long."""
        end = self.now + seconds
        while self.now < end:
            self.wind(min(max(self.loop.step(), 0.001), end - self.now))
        self.loop.step()

    @property
    def error(self) -> str:
        found = self.board.state.last_error
        return "" if found is None or found.is_over else found.code


@pytest.fixture
def stage() -> Stage:
    made = Stage()
    made.loop.step()
    assert made.work.syncs == 1
    return made


def page(version: int) -> Changes:
    return Changes(
        changes=(Change(thread_id="T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c", version=version),),
        cursor="c2",
        hub_epoch="e",
    )


def test_a_turn_that_is_written_here_is_sent_within_two_seconds(stage: Stage) -> None:
    stage.work.seen = Look(pending=1, is_due=True, again_in=None, cursor="c1")
    stage.loop.changed_here()
    stage.go_on(0.9)
    assert stage.work.syncs == 1
    stage.go_on(0.2)
    assert stage.work.syncs == 2


def test_a_change_here_that_the_server_has_already_asks_nobody(stage: Stage) -> None:
    stage.loop.changed_here()
    stage.go_on(60)
    assert stage.work.syncs == 1
    assert stage.board.state.pending == 0


def test_a_thread_that_rests_is_left_alone_and_counted(stage: Stage) -> None:
    stage.work.seen = Look(pending=3, is_due=False, again_in=None, cursor="c1")
    stage.loop.changed_here()
    stage.go_on(10)
    assert (stage.work.syncs, stage.board.state.pending) == (1, 3)


def test_word_of_another_device_is_followed_and_the_echo_of_this_one_is_not(stage: Stage) -> None:
    stage.loop.heard(page(7))
    stage.go_on(10)
    assert stage.work.syncs == 1
    stage.loop.heard(page(8))
    stage.go_on(1)
    assert stage.work.syncs == 2


def test_more_word_than_is_looked_at_counts_as_news(stage: Stage) -> None:
    for _ in range(1000):
        stage.loop.heard(page(7))
    stage.go_on(1)
    assert stage.work.syncs == 2


def test_idle_it_syncs_every_five_minutes_and_looks_seldom(stage: Stage) -> None:
    steps = 0
    end = stage.now + 3600
    while stage.now < end:
        stage.wind(stage.loop.step())
        steps += 1
    assert stage.work.syncs in (12, 13)
    assert steps <= 3600 / LOOK_SECONDS + 50


def test_a_server_that_is_away_for_an_hour_is_asked_seldom_and_told_of_once(stage: Stage) -> None:
    stage.work.answers = [NetworkError("the server cannot be reached") for _ in range(100)]
    stage.work.seen = Look(pending=1, is_due=True, again_in=None, cursor="c1")
    stage.loop.changed_here()
    for _ in range(3600):
        stage.loop.changed_here()
        stage.go_on(1)
    assert 10 < stage.work.syncs < 25
    assert stage.error == "network"
    assert len(stage.log.of("error")) == 1
    stage.work.answers.clear()
    stage.go_on(301)
    assert stage.error == ""
    assert stage.told[-1] == ("c1", True)
    assert len(stage.log.of("works_again")) == 1


def test_after_a_sleep_it_syncs_at_once_and_listens_anew(stage: Stage) -> None:
    stage.go_on(20)
    stage.wall += 8 * 3600
    stage.go_on(LOOK_SECONDS)
    assert (stage.work.syncs, stage.woken) == (2, 1)


def test_a_sync_that_takes_long_is_no_sleep(stage: Stage) -> None:
    def long(is_over: Callable[[], bool]) -> Synced:
        stage.work.syncs += 1
        stage.wind(600)
        return Synced(pulled=1, pushed=0, trouble={})

    stage.work.sync = long  # type: ignore[method-assign]
    stage.loop.heard(page(8))
    stage.go_on(10)
    assert (stage.work.syncs, stage.woken) == (2, 0)


def test_an_alarming_sync_is_not_done_but_told_and_tried_again_seldom(stage: Stage) -> None:
    stage.work.answers = [Alarming("a sync would delete 30 threads here", "raddle sync --force")] * 3
    stage.loop.heard(page(8))
    stage.go_on(1)
    assert stage.error == "alarming_sync"
    stage.go_on(58)
    assert stage.work.syncs == 2
    stage.go_on(240)
    assert stage.error == ""


def test_a_sign_in_that_is_over_is_not_tried_every_second(stage: Stage) -> None:
    stage.work.answers = [NotSignedIn("not signed in")]
    stage.loop.heard(page(8))
    stage.go_on(1)
    stage.loop.changed_here()
    stage.go_on(290)
    assert (stage.work.syncs, stage.error) == (2, "not_signed_in")


def test_a_server_that_asks_for_patience_gets_it(stage: Stage) -> None:
    stage.work.answers = [TooManyRequests("asked too often", 60.0)]
    stage.loop.heard(page(8))
    stage.go_on(59)
    assert stage.work.syncs == 2
    stage.go_on(3)
    assert stage.work.syncs == 3


def test_a_sync_of_the_persons_own_is_waited_for_without_a_word(stage: Stage) -> None:
    stage.work.answers = [SyncIsRunning("another sync is running")]
    stage.loop.heard(page(8))
    stage.go_on(5)
    assert (stage.work.syncs, stage.board.state.last_error) == (3, None)


@pytest.mark.parametrize("error", [StorageError("the disk is full"), ZeroDivisionError("a private word")])
def test_whatever_goes_wrong_is_told_without_a_word_of_it_in_the_log_and_tried_again(
    stage: Stage, error: Exception
) -> None:
    stage.work.answers = [error]
    stage.loop.heard(page(8))
    stage.go_on(1)
    assert stage.error in {"storage", "bug"}
    assert "word" not in str(stage.log.events)
    assert "word" not in str(stage.board.state)
    stage.go_on(100)
    assert stage.error == ""


def test_a_look_that_fails_is_no_end(stage: Stage) -> None:
    def broken() -> Look:
        raise StorageError("the folder cannot be read")

    look, stage.work.look = stage.work.look, broken  # type: ignore[method-assign]
    stage.loop.changed_here()
    stage.go_on(2)
    assert stage.error == "storage"
    stage.work.look = look  # type: ignore[method-assign]
    stage.go_on(10)
    assert stage.error == ""


def test_told_to_end_in_a_sync_it_says_nothing_of_a_failure(stage: Stage) -> None:
    stage.work.answers = [Interrupted()]
    stage.loop.heard(page(8))
    stage.go_on(0.2)
    assert (stage.work.syncs, stage.board.state.last_error) == (2, None)


def test_what_is_not_in_step_is_logged_by_its_code(stage: Stage) -> None:
    stage.work.answers = [Synced(pulled=1, pushed=2, trouble={"too_large": 1})]
    stage.loop.heard(page(8))
    stage.go_on(1)
    assert stage.log.of("sync") == [{"event": "sync", "pulled": 1, "pushed": 2, "trouble": {"too_large": 1}}]


def test_a_busy_hour_writes_the_state_at_most_once_a_second(stage: Stage) -> None:
    before = len(stage.saved)
    for number in range(1000):
        stage.wind(0.01)
        stage.board.change(pending=number)
    assert len(stage.saved) - before <= 11
    stage.board.flush()
    assert stage.saved[-1].pending == 999


def test_the_ground_is_looked_at_once_a_second_and_once_it_is_another_one_all_is_over() -> None:
    now, looks, data = 0.0, 0, (1, 1)

    def look() -> Ground:
        nonlocal looks
        looks += 1
        return Ground((), data)

    stop = threading.Event()
    standing = Standing(look, stop, lambda: now)
    for _ in range(1000):
        now += 0.01
        assert not standing.is_set()
    assert looks <= 12
    data = (1, 2)
    now += 2.0
    assert standing.is_set()
    data = (1, 1)
    now += 2.0
    assert standing.is_set()


def test_the_ground_gives_way_at_once_where_everything_is_over() -> None:
    stop = threading.Event()
    standing = Standing(lambda: Ground((), None), stop, lambda: 0.0)
    stop.set()
    assert standing.is_set()


class FakeFeed:
    """A connection that a test speaks on, and that ends by its word or by `close`."""

    def __init__(self) -> None:
        self.pages: list[Changes | None] = []
        self._told = threading.Condition()

    def tell(self, page: Changes | None) -> None:
        with self._told:
            self.pages.append(page)
            self._told.notify()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Changes:
        with self._told:
            assert self._told.wait_for(lambda: self.pages, PATIENCE_SECONDS)
            found = self.pages.pop(0)
        if found is None:
            raise StopIteration
        return found

    def close(self) -> None:
        self.tell(None)


class Ear:
    """A listener in a thread of control of its own; `cursors`: from where each connection began."""

    def __init__(self, *refusals: Exception) -> None:
        self.cursors: list[str] = []
        self.feeds: list[FakeFeed] = []
        self.heard: list[Changes] = []
        self.waits = 0
        self._refusals = list(refusals)
        self._came = threading.Condition()
        board = Board(
            DaemonState(pid=1, since=0, version="1"), save=lambda _: True, log=FakeLog(), clock=lambda: 0
        )
        self.listener = Listener(self._open, board, seconds=lambda: 0.0, draw=lambda: -0.998)
        self._thread = threading.Thread(target=self.listener.run, args=(self._hear,), daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def _open(self, cursor: str) -> Iterator[FakeFeed]:
        feed = FakeFeed()
        with self._came:
            self.cursors.append(cursor)
            self.feeds.append(feed)
            self._came.notify_all()
            refusal = self._refusals.pop(0) if self._refusals else None
        if refusal is not None:
            raise refusal
        yield feed

    def _hear(self, found: Changes) -> None:
        with self._came:
            self.heard.append(found)
            self._came.notify_all()

    def until(self, holds: Callable[[], bool]) -> None:
        with self._came:
            assert self._came.wait_for(holds, PATIENCE_SECONDS)

    def end(self) -> None:
        self.listener.close()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()


def test_it_listens_from_where_the_first_sync_ended_and_comes_back_where_it_was_cut() -> None:
    ear = Ear()
    ear.listener.in_step("c1", False)
    ear.until(lambda: len(ear.feeds) == 1)
    ear.feeds[0].tell(page(8))
    ear.until(lambda: len(ear.heard) == 1)
    ear.feeds[0].tell(None)
    ear.until(lambda: len(ear.feeds) == 2)
    ear.end()
    assert ear.cursors == ["c1", "c2"]


def test_a_server_that_does_not_let_it_listen_is_asked_again() -> None:
    ear = Ear(NetworkError("no"), ZeroDivisionError("a bug"), NotSignedIn("no"))
    ear.listener.in_step("c1", False)
    ear.until(lambda: len(ear.feeds) == 4)
    ear.feeds[3].tell(page(8))
    ear.until(lambda: len(ear.heard) == 1)
    ear.end()


def test_after_a_sleep_it_connects_anew() -> None:
    ear = Ear()
    ear.listener.in_step("c1", False)
    ear.until(lambda: len(ear.feeds) == 1)
    ear.feeds[0].tell(page(8))
    ear.until(lambda: len(ear.heard) == 1)
    ear.listener.begin_anew()
    ear.until(lambda: len(ear.feeds) == 2)
    ear.end()


def test_it_ends_while_it_waits_for_the_first_sync() -> None:
    ear = Ear()
    ear.end()
    assert ear.cursors == []
