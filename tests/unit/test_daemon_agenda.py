"""When the daemon syncs: after a change here, after word from elsewhere, after failures, after a sleep."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from raddle.apps.daemon.agenda import EVERY_SECONDS, LONGEST_WAIT_SECONDS, Agenda, Backoff, WakeWatch


def least() -> float:
    return 0.0


def most() -> float:
    return 1.0


def settled(now: float = 0.0) -> Agenda:
    """An agenda whose first sync is done."""
    agenda = Agenda(now, most)
    agenda.began(now)
    agenda.succeeded(now, did_something=False, again_in=None)
    return agenda


def test_the_first_sync_is_due_at_once() -> None:
    assert Agenda(100.0, most).due_at == 100.0


def test_a_change_here_is_sent_a_second_later_however_many_follow() -> None:
    agenda = settled()
    agenda.changed_here(10.0)
    agenda.changed_here(10.9)
    assert agenda.due_at == 11.0
    assert agenda.is_only_local(11.0)


def test_what_changes_during_a_sync_is_for_the_next_one() -> None:
    agenda = settled()
    agenda.changed_here(10.0)
    agenda.began(11.0)
    agenda.changed_here(11.5)
    agenda.succeeded(12.0, did_something=True, again_in=None)
    assert agenda.due_at == 12.5


def test_word_from_the_server_is_followed_at_once() -> None:
    agenda = settled()
    agenda.changed_there(10.0)
    assert 10.0 < agenda.due_at < 10.5
    assert not agenda.is_only_local(agenda.due_at)


def test_without_a_word_from_anybody_there_is_a_whole_sync_every_five_minutes() -> None:
    assert settled(7.0).due_at == 7.0 + EVERY_SECONDS


def test_a_change_that_was_none_is_forgotten() -> None:
    agenda = settled()
    agenda.changed_here(10.0)
    agenda.nothing_to_do(11.0)
    assert agenda.due_at == EVERY_SECONDS


def test_a_change_that_waits_comes_up_again_when_it_is_its_time() -> None:
    agenda = settled()
    agenda.changed_here(10.0)
    agenda.nothing_to_do(11.0, again_in=30.0)
    assert agenda.due_at == 41.0


def test_failures_in_a_row_are_followed_by_longer_and_longer_waits_up_to_five_minutes() -> None:
    backoff = Backoff(most)
    assert [backoff.failed() for _ in range(11)] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    backoff.reset()
    assert backoff.failed() == 1


def test_chance_makes_a_wait_shorter_so_that_not_all_come_at_once() -> None:
    assert Backoff(least).failed() == 0.5


def test_a_change_here_does_not_hurry_a_server_that_is_not_there() -> None:
    agenda = Agenda(0.0, most)
    for _ in range(5):
        agenda.began(0.0)
        agenda.failed(0.0)
    agenda.changed_here(1.0)
    assert agenda.due_at == 16.0


def test_a_word_from_the_server_ends_the_waiting() -> None:
    agenda = Agenda(0.0, most)
    for _ in range(9):
        agenda.failed(0.0)
    agenda.changed_there(5.0)
    assert agenda.due_at < 5.5
    agenda.began(5.2)
    assert agenda.failed(6.0) == 1.0


def test_after_a_sleep_everything_is_looked_at_at_once() -> None:
    agenda = settled()
    agenda.failed(1.0)
    agenda.woke(2.0)
    assert agenda.due_at == 2.0
    assert not agenda.is_only_local(2.0)


def test_a_server_that_says_how_long_to_wait_is_obeyed() -> None:
    agenda = settled()
    agenda.failed(0.0, at_least=40.0)
    assert agenda.due_at == 40.0


def test_a_thread_that_failed_is_tried_again_when_its_time_has_come() -> None:
    agenda = settled()
    agenda.began(1.0)
    agenda.succeeded(1.0, did_something=True, again_in=30.0)
    assert agenda.due_at == 31.0


def test_syncs_that_find_nothing_to_do_do_not_call_for_each_other_for_ever() -> None:
    agenda, now, count = settled(), 0.0, 0
    while now < 250.0:
        agenda.changed_here(now)
        now = agenda.due_at
        agenda.began(now)
        agenda.succeeded(now, did_something=False, again_in=None)
        count += 1
    assert count < 12


@given(
    st.lists(
        st.sampled_from(["here", "there", "woke", "worked", "failed", "nothing"]), min_size=1, max_size=40
    )
)
def test_there_is_always_a_next_sync_and_never_later_than_five_minutes(events: list[str]) -> None:
    agenda, now = Agenda(0.0, most), 0.0
    for event in events:
        now += 1.0
        if event == "here":
            agenda.changed_here(now)
        elif event == "there":
            agenda.changed_there(now)
        elif event == "woke":
            agenda.woke(now)
        elif event == "nothing":
            agenda.nothing_to_do(now)
        else:
            agenda.began(now)
            if event == "worked":
                agenda.succeeded(now, did_something=True, again_in=None)
            else:
                agenda.failed(now)
        assert agenda.due_at <= now + max(EVERY_SECONDS, LONGEST_WAIT_SECONDS)


def test_a_wall_clock_that_jumped_tells_of_a_sleep() -> None:
    watch = WakeWatch(0.0, 1000.0)
    assert not watch.woke(5.0, 1005.0, waited=5.0)
    assert watch.woke(10.0, 4605.0, waited=5.0)
    assert not watch.woke(15.0, 4610.0, waited=5.0)


def test_a_clock_that_goes_on_while_the_machine_sleeps_tells_it_too() -> None:
    watch = WakeWatch(0.0, 1000.0)
    assert watch.woke(3600.0, 4600.0, waited=5.0)


def test_a_wall_clock_that_is_set_back_is_no_sleep() -> None:
    watch = WakeWatch(0.0, 1000.0)
    assert not watch.woke(5.0, 5.0, waited=5.0)
