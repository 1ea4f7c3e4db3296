"""What imported sessions used: split records, forks, resumed sessions and sub-agents count once each."""

from __future__ import annotations

from pathlib import Path

import pytest

from raddle.actions.threads import fork_thread, undo
from raddle.model.errors import InvalidInput
from raddle.wiring.usage import UsageAnswer, usage_of
from tests.builders_claude_code import (
    OTHER_SESSION,
    START,
    ClaudeSession,
    a_session_with_everything,
    a_short_session,
    a_sub_agent,
    calls,
)
from tests.builders_import import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def asked(machine: Machine, query: str = "", by: str = "thread", **span: str) -> UsageAnswer:
    with machine.stores() as stores:
        return usage_of(stores, query, by=by, in_utc=True, **span)


def output(answer: UsageAnswer) -> int | None:
    return answer.tally.total.tokens.output_tokens


def test_an_api_message_in_several_records_counts_once(machine: Machine) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    tokens = asked(machine).tally.total.tokens
    assert (tokens.messages, tokens.output_tokens, tokens.input_tokens) == (2, 40 + 12, 20)
    assert (tokens.cache_read_tokens, tokens.cache_write_tokens) == (14, 10)


def test_a_resumed_session_counts_what_it_took_over_for_the_first(machine: Machine) -> None:
    first, resumed = a_short_session(), a_short_session()
    resumed.lines = [line.replace(first.session.encode(), OTHER_SESSION.encode()) for line in first.lines]
    resumed.session = OTHER_SESSION
    resumed.now = START + 3600 * 1_000_000
    resumed.user("And now?")
    resumed.says("Still open.", message="msg_later", out=7)
    machine.keep(first)
    machine.keep(resumed)
    machine.bring_in()
    rows = asked(machine).tally.rows
    assert sorted((row.tokens.messages, row.tokens.output_tokens) for row in rows) == [(1, 7), (2, 52)]


def test_a_fork_adds_nothing_of_what_it_copied(machine: Machine) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    before = asked(machine)
    with machine.stores() as stores:
        fork_thread(stores.threads, machine.threads()[0].id)
    after = asked(machine)
    assert len(machine.threads()) == 2
    assert after.scope.threads == 2
    assert after.tally == before.tally


def test_a_query_for_the_fork_does_not_count_the_shared_turns_again(machine: Machine) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    with machine.stores() as stores:
        (original,) = stores.threads.ids()
        made = fork_thread(stores.threads, original)
    own, forked = (output(asked(machine, thread_id)) for thread_id in (original, made))
    assert (own, forked) == (52, None)


def test_sub_agents_count_for_their_thread_and_apart(machine: Machine) -> None:
    machine.keep(a_session_with_everything())
    machine.bring_in()
    alone = output(asked(machine))
    machine.keep(a_sub_agent())
    machine.bring_in()
    (row,) = asked(machine).tally.rows
    assert row.sidechain.output_tokens == 2 + 6
    assert row.tokens.output_tokens == (alone or 0) + 8


def test_turns_that_were_taken_back_count(machine: Machine) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    with machine.stores() as stores:
        undo(stores.threads, stores.threads.ids()[0], 1)
    assert output(asked(machine)) == 52
    assert output(asked(machine, "is:removed")) == 52
    assert output(asked(machine, "-is:removed")) is None


def test_private_threads_count_on_their_machine(machine: Machine) -> None:
    machine.configure('[private]\nworkspaces = ["**/kiln"]\n')
    machine.keep(a_short_session())
    machine.bring_in()
    assert machine.thread().is_private
    assert output(asked(machine)) == output(asked(machine, "is:private")) == 52


def test_threads_that_were_put_away_count_by_whatever_they_are_found(machine: Machine) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    with machine.stores() as stores, stores.threads.edit(stores.threads.ids()[0]) as editor:
        editor.archive(True)
    for query in ("", "relay", "kiln", "repo:kiln", "is:archived"):
        assert output(asked(machine, query)) == 52, query


def test_a_deleted_thread_does_not_count_and_is_told_of(machine: Machine) -> None:
    machine.keep(a_short_session())
    machine.bring_in()
    with machine.stores() as stores:
        (original,) = stores.threads.ids()
        made = fork_thread(stores.threads, original)
        with stores.threads.edit(original) as editor:
            editor.delete()
    answer = asked(machine)
    assert (answer.scope.threads, answer.scope.deleted) == (1, 1)
    assert [row.key for row in answer.tally.rows] == [made]
    assert output(answer) == 52


def test_words_filters_and_times_choose_what_is_counted(machine: Machine) -> None:
    machine.keep(a_short_session())
    other = ClaudeSession(OTHER_SESSION, start=START + 86_400_000_000)
    other.fields["cwd"] = "/home/dev/src/moth"
    other.user("Why is the moth dead?")
    other.says("It was the lamp.", calls("c1", "Grep", pattern="lamp"), message="msg_m", out=100)
    machine.keep(other, "-home-dev-src-moth")
    machine.bring_in()
    for query, expected in (
        ("", 152),
        ("repo:moth", 100),
        ("moth", 100),
        ("-moth", 52),
        ("relay", 52),
        ("tool:grep", 100),
        ("agent:claude-code", 152),
        ("agent:codex", None),
        ("role:user", None),
        ("role:assistant", 152),
        ("after:2026-02-02", 100),
        ("before:2026-02-02", 52),
        ("repo:moth before:2026-02-02", None),
    ):
        assert output(asked(machine, query)) == expected, query
    assert output(asked(machine, since="2026-02-02")) == 100
    assert output(asked(machine, until="2026-02-01")) == 52
    assert [row.key for row in asked(machine, by="day").tally.rows] == ["2026-02-01", "2026-02-02"]
    assert {row.key for row in asked(machine, by="repo").tally.rows} == {"kiln", "moth"}
    with pytest.raises(InvalidInput):
        asked(machine, since="soon")


def test_a_thread_that_cannot_be_read_is_named_and_the_others_count(machine: Machine) -> None:
    machine.keep(a_short_session())
    other = ClaudeSession(OTHER_SESSION)
    other.user("hello")
    other.says("hi", out=3)
    machine.keep(other)
    machine.bring_in()
    with machine.stores() as stores:
        ids = {row.key: row.tokens.output_tokens for row in usage_of(stores, by="thread").tally.rows}
        (damaged,) = [thread_id for thread_id, out in ids.items() if out == 52]
        assert damaged is not None
        stores.paths.thread_file(damaged).write_bytes(b'{"id": "')
        stores.paths.previous_file(damaged).unlink(missing_ok=True)
        answer = usage_of(stores, by="thread")
    assert (output(answer), answer.scope.unreadable) == (3, (damaged,))
