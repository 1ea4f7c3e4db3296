"""Laws of what is written for an agent, over small conversations of every shape."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from raddle.actions.resuming.registry import AGENTS
from raddle.model.clock import format_time
from raddle.model.errors import InvalidInput
from raddle.model.threads.message import Message, ToolCall
from raddle.model.threads.thread import Thread
from tests.builders import NOON, SECOND, a_message, a_thread
from tests.builders_resuming import calls_and_results, read_back, told, written

every_agent = pytest.mark.parametrize("agent", AGENTS)
_CALL_IDS = ("c1", "c2", "c 3", "x" * 70)
_NAMES = ("shell", "mcp.fetch", "", "read_file")
_ROLES = ("user", "assistant", "assistant", "tool", "tool", "system", "narrator")
_TEXTS = ("", " ", "hello", "/help", "<session_context> no", "é\u2028‹x›\n\n", "[call x]")


@st.composite
def small_trees(draw: st.DrawFn) -> Thread:
    """Up to eight messages, each under any one before it or at the root."""
    messages: list[Message] = []
    for number in range(draw(st.integers(1, 8))):
        role = draw(st.sampled_from(_ROLES))
        above = draw(st.sampled_from([None, *(message.id for message in messages)]))
        calls: list[ToolCall] = []
        if role == "assistant":
            calls = [
                ToolCall(id=call_id, tool_name=draw(st.sampled_from(_NAMES)), arguments_json={"n": number})
                for call_id in draw(st.lists(st.sampled_from(_CALL_IDS), max_size=3, unique=True))
            ]
        messages.append(
            a_message(
                f"m{number}",
                draw(st.sampled_from(_TEXTS)),
                role=role,
                parent_id=above,
                ts=format_time(NOON + number * SECOND),
                device=draw(st.sampled_from(("", "aaaaaaaa"))),
                kind=draw(st.sampled_from(("turn", "turn", "notice", "summary", "purged"))),
                tool_calls=tuple(calls),
                tool_call_id=draw(st.sampled_from(_CALL_IDS)) if role == "tool" else "",
                is_error=draw(st.booleans()) if role == "tool" else False,
            )
        )
    return a_thread(*messages)


@every_agent
@given(thread=small_trees())
def test_every_call_that_is_written_has_one_result_behind_it_and_no_result_is_without_its_call(
    agent: str, thread: Thread
) -> None:
    for leaf in thread.tree.heads():
        try:
            path = told(thread, leaf.id)
        except InvalidInput:
            assume(False)
        calls, results = calls_and_results(agent, written(agent, path))
        ids = [one.call_id for one in calls]
        assert len(set(ids)) == len(ids)
        assert sorted(one.call_id for one in results) == sorted(ids)
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", one) for one in ids)


@every_agent
@given(thread=small_trees())
def test_what_is_written_reads_as_the_same_messages_in_one_line(agent: str, thread: Thread) -> None:
    for leaf in thread.tree.heads():
        try:
            path = told(thread, leaf.id)
        except InvalidInput:
            assume(False)
        reading = read_back(agent, written(agent, path))
        assert reading.problems == []
        forms = {turn.message.id: turn.message for turn in path.turns}
        for turn in path.turns:
            forms |= {
                call.result.message.id: call.result.message
                for call in turn.calls
                if call.result.message is not None
            }
        found = {message.id: message for message in reading.thread.messages if message.id in forms}
        assert found.keys() == forms.keys()
        for name, message in found.items():
            before = forms[name]
            assert (message.content, message.parent_id, message.device) == (
                before.content,
                before.parent_id,
                before.device,
            )


@every_agent
@given(thread=small_trees())
def test_the_same_conversation_gives_the_same_bytes(agent: str, thread: Thread) -> None:
    leaf = thread.tree.heads()[0].id
    try:
        first, again = written(agent, told(thread, leaf)), written(agent, told(thread, leaf))
    except InvalidInput:
        assume(False)
    assert first == again
    assert all(isinstance(json.loads(line), dict) for line in first.splitlines())
