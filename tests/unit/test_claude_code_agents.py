"""Sub-agents of a Claude Code session hang on the call that started them, beside the main line."""

from __future__ import annotations

from typing import Any

from raddle.actions.importing.claude_code import ClaudeCode
from raddle.model.threads.message import Message
from tests.builders_claude_code import SESSION, ClaudeSession, a_sub_agent, calls, starts
from tests.reading import Reading, named, read, read_session

FILE = named(f"{SESSION}.jsonl")
SUBAGENTS = ("projects", "-home-dev-src-kiln", SESSION, "subagents")


def imported(session: ClaudeSession) -> Reading:
    return read(ClaudeCode(), FILE, session.data)


def parent(reading: Reading, content: str) -> Message | None:
    return reading.thread.tree.get(reading.message(content).parent_id or "")


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
        outcome: dict[str, Any] = tool_use_result if trace == "toolUseResult" else {}
        session.result("c1", by_result if trace == "result" else "done", **outcome)
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
        assert reading.path() == [
            "look",
            "sending",
            "done" if trace != "result" else by_result[0]["text"],
            "found",
        ]
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


def test_a_sub_agent_read_too_early_takes_its_place_when_it_is_read_again() -> None:
    session = ClaudeSession()
    session.user("look")
    session.says("sending", starts("c1", "find the shelf"), message="m1")
    main = read(ClaudeCode(), FILE, session.data)
    name = named("agent-a1b2c3d.jsonl", *SUBAGENTS)
    early = read(ClaudeCode(), name, a_sub_agent().data)
    placed = read(ClaudeCode(), name, a_sub_agent().data, links=main.ending.links)
    assert (early.ending.is_unplaced, placed.ending.is_unplaced) == (True, False)
    for first, second in ((early, placed), (placed, early)):
        thread = main.thread.copy()
        thread.join(first.thread.whole())
        thread.join(second.thread.whole())
        prompt = thread.tree.get(placed.message("find the shelf").id)
        assert prompt is not None
        assert prompt.parent_id == main.message("sending").id


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
