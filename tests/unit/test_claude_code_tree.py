"""The tree of a Claude Code session is the person's tree, not the one the program recorded."""

from __future__ import annotations

import json

import pytest

from raddle.actions.importing.claude_code import ClaudeCode
from raddle.model.threads.message import Message
from tests.builders_claude_code import (
    SESSION,
    ClaudeSession,
    a_sub_agent,
    calls,
    starts,
    uuid_of,
)
from tests.reading import Reading, named, read, read_session

FILE = named(f"{SESSION}.jsonl")
SUBAGENTS = ("projects", "-home-dev-src-kiln", SESSION, "subagents")


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
    before = session.user("one")
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
    assert before


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


def test_a_sub_agents_file_hangs_on_the_call_that_started_it() -> None:
    """Four traces of it, each enough alone."""
    by_result = [{"type": "text", "text": "done\nagentId: a1b2c3d (for resuming)"}]
    tool_use_result = {"toolUseResult": {"agentId": "a1b2c3d", "content": "x" * 50}}
    for trace in ("sidecar", "result", "toolUseResult", "progress", "prompt"):
        session = ClaudeSession()
        session.user("look")
        session.says("sending", starts("c0", "something else"), starts("c1", "find the shelf"), message="m1")
        if trace == "progress":
            session.progress("c1", data={"type": "agent_progress", "agentId": "a1b2c3d"})
        session.result(
            "c1",
            by_result if trace == "result" else "done",
            **(tool_use_result if trace == "toolUseResult" else {}),
        )
        session.says("found", message="m2")
        prompt = "find the shelf" if trace == "prompt" else "an unequal prompt"
        sidecar = b'{"agentType":"Explore","toolUseId":"c1"}' if trace == "sidecar" else b""
        name = named("agent-a1b2c3d.jsonl", *SUBAGENTS, sidecar=sidecar)
        reading = read_session(ClaudeCode(), (FILE, session.data), (name, a_sub_agent(prompt).data))
        side = [message for message in reading.thread.messages if message.is_sidechain]
        assert [message.content for message in side] == [prompt, "", "shelf 4", "It is shelf 4."], trace
        assert side[0].parent_id == reading.message("sending").id, trace
        assert side[0].branch_id == side[0].id
        assert {message.branch_id for message in side} == {side[0].id}
        assert side[0].extra["agent_id"] == "a1b2c3d"
        assert reading.path() == ["look", "sending", "done" if trace != "result" else by_result[0]["text"], "found"]
        assert reading.thread.tree.lost() == []
        assert reading.problems == []


def test_a_sub_agent_of_a_sub_agent_hangs_on_its_call() -> None:
    session = ClaudeSession()
    session.user("look")
    session.says("sending", starts("c1", "find the shelf"), message="m1")
    outer = ClaudeSession(agent="a1b2c3d", start=session.now)
    outer.user("find the shelf")
    outer.says("sending another", starts("c2", "open the door"), message="m2")
    inner = a_sub_agent("open the door", agent="e5f6a7b")
    reading = read_session(
        ClaudeCode(),
        (FILE, session.data),
        (named("agent-a1b2c3d.jsonl", *SUBAGENTS), outer.data),
        (named("agent-e5f6a7b.jsonl", *SUBAGENTS), inner.data),
    )
    above = parent(reading, "open the door")
    assert above is not None
    assert above.content == "sending another"


def test_agents_of_a_workflow_hang_on_the_call_that_ran_it() -> None:
    session = ClaudeSession()
    session.user("look")
    session.says("running", calls("c1", "Workflow", script="x"), message="m1")
    session.result("c1", "launched", toolUseResult={"runId": "run-7"})
    name = named("agent-e5f6a7b.jsonl", *SUBAGENTS, "workflows", "run-7")
    reading = read_session(
        ClaudeCode(), (FILE, session.data), (name, a_sub_agent("phase 1", agent="e5f6a7b").data)
    )
    assert reading.message("phase 1").parent_id == reading.message("running").id
    assert reading.ending.session_id == SESSION


def test_a_sub_agent_whose_call_is_unknown_is_a_sidechain_of_its_own() -> None:
    session = ClaudeSession()
    session.user("look")
    reading = read_session(
        ClaudeCode(),
        (FILE, session.data),
        (named("agent-warm.jsonl", "-home"), a_sub_agent("Warmup", agent="warm").data),
    )
    root = reading.message("Warmup")
    assert (root.parent_id, root.is_sidechain) == (None, True)
    assert reading.path() == ["look"]


def test_a_sub_agents_file_belongs_to_its_session_whatever_its_lines_say() -> None:
    agent = a_sub_agent(session="agent-a1b2c3d")
    reading = read(ClaudeCode(), named("agent-a1b2c3d.jsonl", *SUBAGENTS), agent.data)
    assert reading.ending.session_id == SESSION


def test_sub_agents_inside_the_sessions_own_file_hang_on_their_calls() -> None:
    session = ClaudeSession()
    session.user("look twice")
    session.says("two", starts("c1", "look left"), starts("c2", "look right"), message="m1")
    main = session.last
    left = session.user("look left", under=None, isSidechain=True)
    right = session.user("look right", under=None, isSidechain=True)
    session.says("left is clear", under=left, isSidechain=True, message="s1")
    session.says("right is clear", under=right, isSidechain=True, message="s2")
    session.result("c1", "left clear", under=main)
    session.result("c2", "right clear")
    session.says("both clear", message="m2")
    reading = imported(session)
    assert reading.path() == ["look twice", "two", "left clear", "right clear", "both clear"]
    two = reading.message("two").id
    for side in ("left", "right"):
        prompt, answer = reading.message(f"look {side}"), reading.message(f"{side} is clear")
        assert (prompt.parent_id, answer.parent_id) == (two, prompt.id)
        assert prompt.is_sidechain
        assert answer.branch_id == prompt.id


def test_a_main_line_under_a_sub_agents_line_stays_on_the_main_line() -> None:
    session = ClaudeSession()
    session.user("look")
    side = session.user("inside", under=None, isSidechain=True)
    session.says("outside", message="m1", under=side)
    reading = imported(session)
    assert reading.path() == ["look", "outside"]


@pytest.mark.parametrize("count", [3000])
def test_a_long_session_keeps_a_small_state(count: int) -> None:
    session = ClaudeSession()
    for number in range(count):
        session.user(f"prompt {number}")
        session.says(starts(f"call-{number:030}", f"task {number}"), message=f"m{number}")
    reading = imported(session)
    assert len(reading.ending.state) < 160 << 10
    assert len(reading.path()) == 2 * count
