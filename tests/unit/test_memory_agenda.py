"""When the daemon syncs a memory: soon after the last write, never late for the first, and every minute."""

from __future__ import annotations

from raddle.apps.daemon.memory_agenda import LONGEST_SECONDS, PULL_SECONDS, QUIET_SECONDS, MemoryAgenda


def _in_step(now: float = 100.0) -> MemoryAgenda:
    agenda = MemoryAgenda(now, lambda: 0.5)
    agenda.began()
    agenda.succeeded(now)
    return agenda


def test_a_memory_that_was_just_found_is_synced_at_once() -> None:
    assert MemoryAgenda(100.0, lambda: 0.5).due_at == 100.0


def test_a_write_is_synced_when_it_has_been_quiet_for_a_while() -> None:
    agenda = _in_step()
    agenda.changed(103.0)
    assert agenda.due_at == 103.0 + QUIET_SECONDS
    agenda.changed(105.0)
    assert agenda.due_at == 105.0 + QUIET_SECONDS


def test_writes_that_never_end_are_synced_all_the_same() -> None:
    agenda = _in_step()
    for tenth in range(400):
        agenda.changed(101.0 + tenth / 10)
    assert agenda.due_at == 101.0 + LONGEST_SECONDS


def test_what_others_wrote_is_fetched_every_minute() -> None:
    assert _in_step().due_at == 100.0 + PULL_SECONDS


def test_a_network_that_is_away_is_asked_less_and_less_often_and_a_write_does_not_hurry_it() -> None:
    agenda = _in_step()
    waits = [agenda.failed(200.0) for _ in range(12)]
    assert waits == sorted(waits)
    agenda.changed(200.0)
    assert agenda.due_at == 200.0 + waits[-1]
    agenda.succeeded(500.0)
    assert agenda.due_at <= 500.0 + PULL_SECONDS
    assert agenda.failed(600.0) == waits[0]
