"""Codex sessions that share lines or a thread: forks, sub-agents, rollbacks, reverts, copies."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from raddle.actions.exporting.native import Added, SourceEnd
from raddle.actions.exporting.native_codex import CodexWriter
from raddle.actions.importing.codex import Codex
from raddle.actions.importing.importer import Place
from raddle.model.threads.message import Message
from tests.builders_codex import (
    SESSION,
    CodexSession,
    a_bare_session,
    a_fork,
    a_fork_that_names_its_base,
    a_reverted_session,
    a_session_with_a_sub_agent,
    a_session_with_everything,
    a_short_session,
    call_id,
    uuid7,
)
from tests.reading import Reading, named, read, read_on, read_session, same_thread


def imported(session: CodexSession) -> Reading:
    return read(Codex(), named(session.name), session.data)


def by_id(*readings: Reading) -> dict[str, Message]:
    """Every message once, as a count of tokens over several threads takes them."""
    return {message.id: message for reading in readings for message in reading.thread.messages}


def spent(messages: dict[str, Message]) -> int:
    return sum(message.usage.output_tokens or 0 for message in messages.values() if message.usage)


# -- forks


@pytest.mark.parametrize("age", ["new", "plain"])
@pytest.mark.parametrize("header", [True, False], ids=["with the first one's header", "without it"])
def test_a_fork_is_a_whole_thread_whose_shared_turns_have_the_same_ids(age: str, *, header: bool) -> None:
    parent, child = (imported(one) for one in a_fork(age, header=header))
    assert parent.ending.thread_id != child.ending.thread_id
    shared = [message.id for message in parent.thread.messages]
    assert [message.id for message in child.thread.messages][: len(shared)] == shared
    assert child.path()[-2:] == ["And now?", "Now it is warm."]
    assert child.thread.messages[0].extra == {"forked_from": SESSION}


@pytest.mark.parametrize("age", ["new", "plain"])
def test_what_a_fork_copied_is_not_counted_twice(age: str) -> None:
    parent, child = (imported(one) for one in a_fork(age))
    assert spent(by_id(parent)) == 62
    assert spent(by_id(parent, child)) == 62 + 7


@pytest.mark.parametrize("age", ["new", "plain"])
def test_the_same_words_in_two_forks_are_two_messages(age: str) -> None:
    _, one = a_fork(age)
    start = one.now + 900_000_000
    other = CodexSession(uuid7(start, "other"), age=age, start=start)
    other.meta(forked_from_id=SESSION)
    other.lines += a_short_session(age).lines
    other.now += 60_000_000
    other.begin_turn()
    other.types("And now?")
    ours = imported(one).message("And now?")
    theirs = imported(other).message("And now?")
    assert ours.id != theirs.id


@pytest.mark.parametrize("age", ["new", "plain"])
def test_the_same_words_in_two_sessions_are_two_messages(age: str) -> None:
    one = a_short_session(age)
    other = a_short_session(age, session=uuid7(one.now, "other"), start=one.now)
    assert not by_id(imported(one)).keys() & by_id(imported(other)).keys()


def test_a_fork_of_a_fork_shares_what_each_of_them_said() -> None:
    parent, child = a_fork()
    start = child.now + 600_000_000
    last = CodexSession(uuid7(start, "last"), start=start)
    last.meta(forked_from_id=child.session)
    last.lines += child.lines
    last.now = start + 60_000_000
    last.begin_turn()
    last.types("And then?")
    readings = [imported(one) for one in (parent, child, last)]
    assert [len(reading.thread.messages) for reading in readings] == [6, 8, 9]
    assert len(by_id(*readings)) == 9


def test_a_fork_that_only_names_what_it_goes_on_from_begins_where_it_was_forked() -> None:
    start = a_short_session().now + 600_000_000
    child = CodexSession(uuid7(start, "based"), start=start)
    child.ordinal = 21
    child.meta(forked_from_id=SESSION, history_base={"thread_id": SESSION, "end_ordinal_exclusive": 21})
    child.begin_turn()
    child.types("And now?")
    reading = imported(child)
    assert Codex().place(named(child.name), child.data) == Place(session=child.session, base=SESSION)
    assert reading.path() == ["And now?"]
    assert reading.ending.waits_for == SESSION
    assert reading.thread.messages[0].extra == {"forked_from": SESSION}
    assert not reading.ending.is_unplaced


def test_a_fork_that_names_its_base_hangs_on_the_turn_before_it() -> None:
    first = a_short_session()
    at = first.ordinal
    first.begin_turn()
    first.types("Fire them")
    told = Codex().links(imported(first).ending.state)
    for end, answers in ((at, "The relay is open."), (first.ordinal, "Fire them")):
        fork = a_fork_that_names_its_base(first, end=end)
        reading = read(Codex(), named(fork.name), fork.data, links=told)
        start = reading.thread.messages[0]
        assert start.parent_id == imported(first).message(answers).id
        assert start.extra == {"forked_from": SESSION}
        assert (reading.ending.waits_for, reading.ending.is_unplaced) == ("", False)
        assert reading.ending.session_id == fork.session


def test_a_fork_does_not_hang_on_what_was_said_after_it() -> None:
    first = a_short_session()
    fork = a_fork_that_names_its_base(first, end=first.ordinal)
    first.now += 3_600_000_000
    first.begin_turn()
    first.types("An hour later")
    first.says("Long after.")
    told = Codex().links(imported(first).ending.state)
    assert told is not None
    late = {key: anchor for key, anchor in told.calls.items() if anchor.seq > fork.start}
    assert late
    reading = read(Codex(), named(fork.name), fork.data, links=replace(told, calls=late))
    assert (reading.path()[0], reading.ending.waits_for) == ("And now, based?", SESSION)


def test_a_copy_that_took_long_to_write_is_known_by_its_turns() -> None:
    def with_turns(session: CodexSession) -> list[bytes]:
        lines = []
        for line in session.lines:
            record = json.loads(line)
            if record["type"] == "turn_context":
                record["payload"]["turn_id"] = session.turn
            lines.append(json.dumps(record, separators=(",", ":")).encode())
        return lines

    parent = a_short_session("plain")
    start = parent.now + 600_000_000
    child = CodexSession(uuid7(start, "slow"), age="plain", start=start)
    child.meta(forked_from_id=SESSION)
    for line in with_turns(parent):
        record = json.loads(line)
        child.line(record["type"], record["payload"], seconds=2)
    child.line("turn_context", {"turn_id": uuid7(child.now, "own"), "cwd": "/", "model": "m"})
    child.types("And now?")
    shared = {message.id for message in read(Codex(), named("p.jsonl"), with_turns(parent)).thread.messages}
    ids = [message.id for message in imported(child).thread.messages]
    assert set(ids[:-1]) == shared


def test_a_foreign_header_in_the_middle_makes_nothing_a_copy() -> None:
    one, other = CodexSession(age="plain"), CodexSession(age="plain")
    for session in (one, other):
        session.meta()
        session.types("Why?")
    other.line("session_meta", {"id": uuid7(other.start - 1_000_000, "foreign")}, seconds=0.1)
    for session in (one, other):
        session.types("And now?")
    assert imported(one).message("And now?").id == imported(other).message("And now?").id


def test_a_fork_whose_own_header_is_lost_is_not_taken_for_the_one_it_was_forked_from() -> None:
    _, child = a_fork()
    lines = [
        b'{"timestamp":"2026-02-01T09:10:00.000Z","type":"event_msg","payload":{"type":"error"}}',
        *child.lines[1:],
    ]
    assert read(Codex(), named(child.name), lines).ending.session_id == child.session  # fmt: skip


# -- a person who goes back


def test_a_rollback_is_a_fork_and_both_attempts_stay() -> None:
    for age in ("new", "plain"):
        reading = imported(a_session_with_everything(age))
        first, second = reading.message("Fire them"), reading.message("No, dry them first")
        assert second.branch_id == second.id
        assert "Fire them" not in reading.path()
        assert "No, dry them first" in reading.path()
        assert {"Fire them", "Fired."} <= set(reading.texts())
        parent = reading.thread.tree.get(second.parent_id or "")
        assert parent is not None
        assert parent.content == "denied"
        assert first.branch_id != second.branch_id


def test_a_rollback_of_everything_begins_anew_under_what_was_there_first() -> None:
    session = a_short_session()
    session.event("thread_rolled_back", num_turns=9)
    session.begin_turn()
    session.types("Is it warm?")
    reading = imported(session)
    assert "Why is the kiln cold?" not in reading.path()
    assert [text[:12] for text in reading.path()] == ["<permissions", "<environment", "Is it warm?"]
    assert reading.thread.tree.lost() == []


def test_a_rollback_of_several_turns_and_then_of_one_more() -> None:
    session = CodexSession()
    session.meta()
    for text in ("one", "two", "three"):
        session.begin_turn()
        session.types(text)
        session.says(f"{text}!")
    session.event("thread_rolled_back", num_turns=2)
    session.begin_turn()
    session.types("four")
    session.event("thread_rolled_back", num_turns=1)
    session.types("five")
    reading = imported(session)
    assert reading.path() == ["one", "one!", "five"]
    assert set(reading.texts()) >= {"two", "three", "four"}


def test_one_rollback_after_another_goes_further_back() -> None:
    session = CodexSession()
    session.meta()
    for text in ("one", "two", "three"):
        session.begin_turn()
        session.types(text)
    session.event("thread_rolled_back", num_turns=1)
    session.event("thread_rolled_back", num_turns=1)
    session.types("four")
    assert imported(session).path() == ["one", "four"]


def test_a_reverted_session_is_one_thread_in_two_files() -> None:
    first, second = a_reverted_session()
    name = named(f"rollout-2026-02-01T09-09-00-{uuid7(second.now, 'second')}.jsonl")
    assert Codex().place(name, second.data) == Place(session=SESSION, is_part=True)
    reading = read_session(Codex(), (named(first.name), first.data), (name, second.data))
    assert reading.path()[-3:] == ["The relay is open.", "No, dry them first", "Dried."]
    assert {"Fire them", "Fired."} <= set(reading.texts())
    assert not any(message.is_sidechain for message in reading.thread.messages)
    assert reading.register("title") == "Why is the kiln cold?"


def test_a_session_that_was_reverted_twice_is_one_thread_in_three_files() -> None:
    first, second = a_reverted_session()
    other = uuid7(second.now, "second")
    third = CodexSession(start=second.now + 60_000_000)
    third.ordinal = second.ordinal
    third.meta(history_base={"thread_id": other, "end_ordinal_exclusive": second.ordinal})
    third.begin_turn()
    third.types("Now fire them")
    names = [named(f"rollout-2026-02-01T09-0{at}-00-{one}.jsonl") for at, one in enumerate(
        (SESSION, other, uuid7(third.now, "third")))]  # fmt: skip
    files = [(name, one.data) for name, one in zip(names, (first, second, third), strict=True)]
    assert [Codex().place(*file) for file in files[1:]] == [Place(session=SESSION, is_part=True)] * 2
    reading = read_session(Codex(), *files)
    assert reading.path()[-3:] == ["No, dry them first", "Dried.", "Now fire them"]


def test_a_session_reverted_to_its_end_goes_on_there() -> None:
    first, second = a_reverted_session(to_end=True)
    reading = read_session(Codex(), (named(first.name), first.data), (named("y.jsonl"), second.data))
    assert reading.path()[-3:] == ["Fired.", "No, dry them first", "Dried."]


def test_what_follows_a_revert_waits_for_what_stood_before_it() -> None:
    _, second = a_reverted_session()
    reading = read(Codex(), named("y.jsonl"), second.data)
    assert reading.ending.is_unplaced
    assert reading.ending.session_id == SESSION


def test_a_state_tells_what_a_revert_needs() -> None:
    first, second = a_reverted_session()
    links = Codex().links(imported(first).ending.state)
    reading = read(Codex(), named("y.jsonl"), second.data, links=links)
    assert not reading.ending.is_unplaced


# -- sub-agents


def test_a_sub_agent_hangs_on_the_call_that_started_it() -> None:
    main, side = a_session_with_a_sub_agent()
    assert Codex().place(named(side.name), side.data[:65536]) == Place(session=SESSION, is_part=True)
    reading = read_session(Codex(), (named(main.name), main.data), (named(side.name), side.data))
    start = reading.message("find the shelf")
    caller = reading.thread.tree.get(start.parent_id or "")
    assert caller is not None
    assert [call.id for call in caller.tool_calls] == [call_id("spawn")]
    assert start.is_sidechain
    assert start.extra == {"agent_id": side.session, "agent_nickname": "Otter"}
    assert "find the shelf" not in reading.path()
    assert reading.path()[-1] == "Shelf 4."


def test_what_a_sub_agent_was_told_of_its_session_is_not_said_again() -> None:
    main, side = a_session_with_a_sub_agent()
    alone, both = (
        imported(main),
        read_session(Codex(), *((named(one.name), one.data) for one in (main, side))),
    )
    assert both.texts().count("Why is the kiln cold?") == 1
    added = by_id(both).keys() - by_id(alone).keys()
    assert {by_id(both)[one].content for one in added} == {"find the shelf", "It is shelf 4."}
    assert spent(by_id(both)) == spent(by_id(alone)) + 6
    assert all(by_id(both)[one] == message for one, message in by_id(alone).items())


def test_a_copy_that_nothing_tells_from_a_sub_agents_own_words_moves_nothing() -> None:
    main, side = a_session_with_a_sub_agent()
    header = json.loads(side.lines[0])
    for name in ("subagent_history_start_ordinal", "forked_from_id"):
        del header["payload"][name]
    data = b"".join(line + b"\n" for line in [json.dumps(header).encode(), *side.lines[1:]])
    both = read_session(Codex(), (named(main.name), main.data), (named(side.name), data))
    assert both.texts().count("Why is the kiln cold?") == 2
    for one, message in by_id(imported(main)).items():
        assert by_id(both)[one] == message


def test_without_ordinals_a_sub_agents_own_lines_begin_with_its_own_turn() -> None:
    main, side = a_session_with_a_sub_agent()
    lines = [side.lines[0].replace(b'"subagent_history_start_ordinal"', b'"x"'), *side.lines[1:]]
    reading = read_session(
        Codex(), (named(main.name), main.data), (named(side.name), b"\n".join(lines) + b"\n")
    )
    assert [one.content for one in reading.thread.messages if one.is_sidechain] == [
        "find the shelf",
        "It is shelf 4.",
    ]


def test_a_sub_agent_that_was_told_nothing_keeps_all_it_says() -> None:
    start = a_short_session().now
    side = CodexSession(uuid7(start, "fresh"), start=start)
    side.meta(source={"subagent": {"thread_spawn": {"parent_thread_id": SESSION, "depth": 1}}})
    side.types("find the shelf")
    side.says("It is shelf 4.")
    assert imported(side).texts() == ["find the shelf", "It is shelf 4."]


def test_a_sub_agent_whose_session_is_gone_is_found_in_its_thread() -> None:
    main, side = a_session_with_a_sub_agent()
    reading = imported(side)
    assert reading.ending.thread_id == imported(main).ending.thread_id
    assert reading.ending.is_unplaced
    assert [path for path, _, _ in reading.ending.registers] == ["source", "updated_at", "last_activity_at"]


def test_the_result_of_the_call_and_the_older_event_name_the_sub_agent_too() -> None:
    main, side = a_session_with_a_sub_agent()
    spawn, agent = call_id("spawn"), side.session
    without = [line for line in main.lines if b"SubAgentActivity" not in line]
    ended = {"type": "collab_agent_spawn_end", "call_id": spawn, "new_thread_id": agent}
    event = CodexSession()
    event.line("event_msg", ended)
    at = next(at for at, line in enumerate(without) if b"spawn_agent" in line)
    with_event = [line for line in without if b'\\"agent_id\\"' not in line]
    with_event.insert(at + 1, event.lines[0])
    with_activity = [line for line in main.lines if b'\\"agent_id\\"' not in line]
    for lines in (without, with_event, with_activity):
        links = read(Codex(), named(main.name), lines).ending.links
        assert links.agents == {agent: spawn}


def test_a_review_is_a_session_of_its_own() -> None:
    session = CodexSession()
    session.meta(source={"subagent": "review"})
    session.types("review it")
    assert Codex().place(named(session.name), session.data) == Place(session=SESSION)
    assert not imported(session).thread.messages[0].is_sidechain


def test_a_sub_agents_sub_agent_is_of_the_whole_session() -> None:
    main, side = a_session_with_a_sub_agent()
    deep = CodexSession(uuid7(side.now, "deep"), start=side.now)
    spawned = {"parent_thread_id": side.session, "depth": 2}
    deep.meta(session_id=SESSION, source={"subagent": {"thread_spawn": spawned}})
    deep.types("look behind it")
    assert Codex().place(named(deep.name), deep.data) == Place(session=SESSION, is_part=True)
    files = [(named(one.name), one.data) for one in (main, deep)]
    assert read_session(Codex(), *files).message("look behind it").is_sidechain


# -- growth and copies


def test_a_session_resumed_into_a_second_file_is_one_thread() -> None:
    for age in ("new", "plain"):
        first = a_short_session(age)
        second = a_short_session(age)
        second.meta(cwd="/home/dev/elsewhere")
        second.begin_turn(cwd="/home/dev/elsewhere")
        second.types("And now?")
        one, two = imported(first), imported(second)
        assert one.ending.thread_id == two.ending.thread_id
        one.thread.join(two.thread.whole())
        assert same_thread(one.thread, two.thread)
        assert two.register("cwd") == "/home/dev/elsewhere"


def test_a_response_that_was_half_written_finishes_with_a_greater_rev() -> None:
    session = a_short_session()
    answer = imported(session).message("The relay is open.")
    assert answer.usage is not None
    for cut in range(1, len(session.lines)):
        grown = read_on(Codex(), named(session.name), session.lines[:cut], session.lines[cut:])
        assert grown.message("The relay is open.") == answer
        half = [one for one in grown.messages if one.id == answer.id and one != answer]
        assert all(one.rev < answer.rev for one in half)


def test_a_call_that_is_written_again_after_a_reading_is_one_call() -> None:
    session = a_short_session()
    at = next(at for at, line in enumerate(session.lines) if b'"function_call"' in line)
    session.lines.insert(at + 1, session.lines[at])
    grown = read_on(Codex(), named(session.name), session.lines[: at + 1], session.lines[at + 1 :])
    calls = [call for message in grown.thread.messages for call in message.tool_calls]
    assert len(calls) == 1


def test_a_header_that_comes_late_asks_for_the_whole_file() -> None:
    session = a_short_session()
    lines = [*session.lines[1:5], session.lines[0], *session.lines[5:]]
    begun = read(Codex(), named("x.jsonl"), lines[:4])
    assert read(Codex(), named("x.jsonl"), lines[4:], before=begun).ending.needs_whole
    assert read(Codex(), named("x.jsonl"), lines).ending.session_id == SESSION


def test_an_output_that_was_emptied_in_place_does_not_win() -> None:
    session = a_short_session()
    full = imported(session).thread
    session.lines = [line.replace(b"09:00 relay open", b"") for line in session.lines]
    at = next(at for at, line in enumerate(session.lines) if b'"function_call_output"' in line)
    record = json.loads(session.lines[at])
    record["payload"]["output"] = ""
    session.lines[at] = json.dumps(record).encode()
    full.join(imported(session).thread.whole())
    assert any("09:00 relay open" in message.content for message in full.messages)


def test_a_response_that_is_not_in_the_thread_any_more_asks_for_the_whole_file() -> None:
    session = a_short_session()
    at = next(at for at, line in enumerate(session.lines) if b'"function_call"' in line)
    before = read(Codex(), named(session.name), session.lines[: at + 1])
    reader = Codex().open(named(session.name), state=before.ending.state, lookup=lambda _: None)
    reader.feed(session.lines[at + 1 :])
    assert reader.finish().needs_whole


# -- turns that were added here, and written into the rollout


def test_a_turn_that_raddle_wrote_into_a_rollout_comes_back_as_itself() -> None:
    for session in (a_short_session(), a_short_session("plain"), a_bare_session()):
        reading = imported(session)
        tip = reading.thread.tree.tip()
        assert tip is not None
        added = [
            Message(
                id=f"m{at}", parent_id=under, branch_id=tip.branch_id, role=role, content=text,
                ts="2026-03-01T09:00:00.000000Z", seq=tip.order + 1 + at, device="laptop",
            )
            for at, (role, text, under) in enumerate((("user", "Warm it", tip.id), ("assistant", "Warm.", "m0")))
        ]  # fmt: skip
        writer = CodexWriter()
        for line in session.lines:
            writer.see(line, lambda _: "")
        turns = [Added(message=message, under=message.parent_id or "") for message in added]
        end = SourceEnd(size=len(session.data), is_ended=True)
        data = session.data + writer.insertion(turns, session.session, end).data
        again = read(Codex(), named(session.name), data)
        assert [again.thread.tree.get(message.id) for message in added] == added
        assert again.path()[-2:] == ["Warm it", "Warm."]
        assert len(again.thread.messages) == len(reading.thread.messages) + 2
        assert again.problems == []
        known = len(session.lines)
        grown = read(Codex(), named(session.name), data.split(b"\n")[known:-1], before=reading)
        assert same_thread(grown.thread, again.thread)
