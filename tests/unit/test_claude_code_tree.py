"""The tree of a Claude Code session is the person's tree, not the one the program recorded."""

from __future__ import annotations

import json

import pytest

from raddle.actions.importing.claude_code import ClaudeCode
from raddle.model.threads.message import Message
from tests.builders_claude_code import (
    SESSION,
    ClaudeSession,
    calls,
    starts,
    uuid_of,
)
from tests.reading import Reading, named, read

FILE = named(f"{SESSION}.jsonl")


def imported(session: ClaudeSession) -> Reading:
    return read(ClaudeCode(), FILE, session.data)


def heads(reading: Reading) -> list[str]:
    return [message.content for message in reading.thread.tree.heads()]


def parent(reading: Reading, content: str) -> Message | None:
    return reading.thread.tree.get(reading.message(content).parent_id or "")


def test_progress_hooks_and_snapshots_are_no_turns_and_break_no_chain() -> None:
    session = ClaudeSession()
    session.progress(under=None)
    session.progress()
    session.user("one")
    session.line("attachment", attachment={"type": "hook_success", "content": ""})
    session.says("two", calls("c1"), message="m1")
    for _ in range(40):
        session.progress("c1")
    session.result("c1", "three")
    session.turn_ends()
    session.bare(type="file-history-snapshot", messageId="x", snapshot={})
    session.user("four")
    reading = imported(session)
    assert reading.path() == ["one", "two", "three", "four"]
    assert heads(reading) == ["four"]
    assert reading.problems == []


def test_results_of_parallel_calls_all_stand_on_the_way_to_the_tip() -> None:
    session = ClaudeSession()
    session.user("read both")
    one = session.says(calls("c1"), message="m1")
    two = session.says(calls("c2"), message="m1")
    session.result("c2", "second result", under=two)
    session.result("c1", "first result", under=one)
    session.says("both", message="m2", under=session.last)
    reading = imported(session)
    assert reading.path() == ["read both", "", "second result", "first result", "both"]
    assert heads(reading) == ["both"]


def test_a_result_that_lags_behind_the_talk_goes_to_its_end() -> None:
    session = ClaudeSession()
    session.user("go")
    call = session.says(calls("slow"), message="m1")
    session.says("meanwhile", message="m2", under=call)
    session.says(calls("quick"), message="m3")
    session.result("quick", "quick result")
    session.says("more", message="m4")
    session.result("slow", "slow result", under=call)
    session.says("done", message="m5")
    reading = imported(session)
    assert reading.path() == ["go", "", "meanwhile", "", "quick result", "more", "slow result", "done"]


def test_parallel_calls_threaded_through_progress_are_one_line() -> None:
    session = ClaudeSession()
    session.user("go")
    one = session.says(calls("c1"), message="m1")
    through = session.progress("c1", under=one)
    session.result("c1", "r1", under=one)
    session.line("attachment", attachment={"type": "hook_success"})
    session.says(calls("c2"), message="m1", under=through)
    session.progress("c2")
    session.says("after", message="m2")
    reading = imported(session)
    assert reading.path() == ["go", "", "r1", "after"]


def test_typing_again_from_an_earlier_point_is_a_fork_that_keeps_both() -> None:
    session = ClaudeSession()
    session.user("first")
    session.says("answer", message="m1")
    here = session.turn_ends()
    session.user("left")
    session.says("left answer", message="m2")
    session.user("right", under=here, at=500)
    session.says("right answer", message="m3")
    session.user("and third", under=here, at=700)
    reading = imported(session)
    assert heads(reading) == ["left answer", "right answer", "and third"]
    for turn in ("left", "right", "and third"):
        above = parent(reading, turn)
        assert above is not None
        assert above.content == "answer"
    assert reading.message("left").branch_id == reading.message("first").id
    assert reading.message("right").branch_id == reading.message("right").id
    assert reading.message("right answer").branch_id == reading.message("right").id


def test_typing_the_first_prompt_again_is_another_root() -> None:
    for anchor in (None, "hook"):
        session = ClaudeSession()
        root = session.progress(under=None) if anchor else None
        session.user("first", under=root)
        session.says("answer", message="m1")
        session.user("first, but better", under=root, at=300)
        session.says("better answer", message="m2")
        reading = imported(session)
        assert heads(reading) == ["answer", "better answer"]
        assert reading.message("first, but better").parent_id is None


def test_going_on_with_the_older_branch_stays_on_it() -> None:
    session = ClaudeSession()
    session.user("first")
    here = session.says("answer", message="m1")
    session.user("left", under=here)
    left = session.says("left answer", message="m2")
    session.user("right", under=here, at=500)
    for number in range(700):
        session.progress(f"p{number}")
    session.user("left again", under=left, at=900)
    reading = imported(session)
    above = parent(reading, "left again")
    assert above is not None
    assert above.content == "left answer"


def test_a_person_can_return_to_a_point_far_back() -> None:
    session = ClaudeSession()
    session.user("first")
    here = session.says("answer", message="m1")
    session.user("left", under=here)
    for number in range(900):
        session.says(f"step {number}", message=f"s{number}")
    session.user("right", under=here, at=5000)
    reading = imported(session)
    above = parent(reading, "right")
    assert above is not None
    assert above.content == "answer"


def test_a_prompt_that_hangs_in_the_middle_of_a_turn_is_not_a_fork() -> None:
    """A resume that lost the later of two parallel results, or a hook that came late."""
    session = ClaudeSession()
    session.user("go")
    one = session.says(calls("c1"), message="m1")
    two = session.says(calls("c2"), message="m1")
    lost = session.result("c1", "r1", under=one)
    session.result("c2", "r2", under=two)
    session.says("both", message="m2")
    session.user("next", under=lost, at=800)
    reading = imported(session)
    assert reading.path() == ["go", "", "r1", "r2", "both", "next"]


def test_a_parent_that_was_never_written_is_told_and_hides_nothing() -> None:
    session = ClaudeSession()
    session.user("one")
    session.says("two", message="m1", under=uuid_of("never written"))
    session.user("three", under=uuid_of("nor this"))
    reading = imported(session)
    assert reading.path() == ["one", "two", "three"]
    assert [problem.line for problem in reading.problems] == [2, 3]
    assert reading.thread.tree.lost() == []


def test_a_line_that_is_its_own_parent_or_names_a_later_one_is_read() -> None:
    session = ClaudeSession()
    session.user("one", uuid=uuid_of("a"), under=uuid_of("a"))
    session.says("two", message="m1", uuid=uuid_of("b"), under=uuid_of("c"))
    session.user("three", uuid=uuid_of("c"), under=uuid_of("b"))
    reading = imported(session)
    assert reading.path() == ["one", "two", "three"]
    assert reading.thread.tree.lost() == []


def test_a_replay_after_a_compaction_is_no_second_turn() -> None:
    session = ClaudeSession()
    session.user("one")
    session.says("two", message="m1")
    session.user("three")
    session.says("four", message="m2")
    originals = session.lines[1:4]
    session.compacts("so far")
    for number, line in enumerate(originals):
        replay = json.loads(line)
        replay["uuid"] = uuid_of(f"replay {number}")
        if number:
            replay["parentUuid"] = uuid_of(f"replay {number - 1}")
        session.bare(**replay)
    session.says("five", message="m3", under=uuid_of("replay 2"))
    reading = imported(session)
    assert reading.path() == ["one", "two", "three", "four", "Conversation compacted", "so far", "five"]
    assert heads(reading) == ["five"]


def test_a_replay_is_known_in_a_file_that_is_read_on() -> None:
    session = ClaudeSession()
    session.user("old")
    for number in range(1200):
        session.says(f"step {number}", message=f"s{number}")
    first = list(session.lines)
    replay = json.loads(first[0])
    replay["uuid"] = uuid_of("replay")
    session.bare(**replay)
    session.user("new", under=uuid_of("replay"), at=5000)
    begun = read(ClaudeCode(), FILE, first)
    grown = read(ClaudeCode(), FILE, session.lines[len(first) :], before=begun)
    assert grown.ending.needs_whole, "the state is too small to know"
    whole = imported(session)
    assert whole.texts().count("old") == 1


def test_a_line_written_twice_is_one_message() -> None:
    session = ClaudeSession()
    session.user("one")
    session.says("two", message="m1")
    session.lines += session.lines[:2]
    session.user("three")
    reading = imported(session)
    assert reading.texts() == ["one", "two", "three"]


def test_a_line_that_repeats_an_id_with_other_words_loses_neither() -> None:
    session = ClaudeSession()
    session.user("one", uuid=uuid_of("same"))
    session.user("two", uuid=uuid_of("same"))
    reading = imported(session)
    assert reading.path() == ["one", "two"]


def test_order_follows_the_file_even_when_the_clock_steps_back() -> None:
    session = ClaudeSession()
    session.user("one", at=100)
    session.says("two", message="m1", at=50)
    session.user("three", at=50)
    messages = imported(session).thread.messages
    assert [message.content for message in messages] == ["one", "two", "three"]
    assert messages[1].order == messages[0].order + 1
    assert messages[1].ts == "2026-02-01T09:00:50.000000Z"
    assert messages[0].seq is None


@pytest.mark.parametrize("count", [3000])
def test_a_long_session_keeps_a_small_state(count: int) -> None:
    session = ClaudeSession()
    for number in range(count):
        session.user(f"prompt {number}")
        session.says(starts(f"call-{number:030}", f"task {number}"), message=f"m{number}")
    reading = imported(session)
    assert len(reading.ending.state) < 160 << 10
    assert len(reading.path()) == 2 * count


def test_more_branches_than_are_remembered_lose_nothing() -> None:
    session = ClaudeSession()
    session.user("first")
    here = session.says("answer", message="m1")
    ends = []
    for number in range(100):
        session.user(f"branch {number}", under=here, at=100 + number)
        ends.append(session.says(f"reply {number}", message=f"r{number}"))
    session.says("late", message="late", under=ends[0])
    reading = imported(session)
    assert len(heads(reading)) == 100
    assert reading.path()[-1] == "late"
    assert reading.thread.tree.lost() == []
