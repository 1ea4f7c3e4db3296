"""What programs hand to a session, in the shapes of the model APIs they use."""

from __future__ import annotations

from typing import Any

import pytest

from raddle.actions.recording.shapes import (
    plain_json,
    result_text,
    text_of,
    tool_call_of,
    tool_calls_of,
    usage_of,
)
from raddle.model.errors import InvalidInput
from raddle.model.threads.message import ToolCall, Usage

READ = ToolCall(id="c1", tool_name="read_file", arguments_json={"path": "a.py"})


@pytest.mark.parametrize(
    "given",
    [
        READ,
        {"id": "c1", "tool_name": "read_file", "arguments_json": {"path": "a.py"}},
        {"id": "c1", "name": "read_file", "arguments": {"path": "a.py"}},
        {"id": "c1", "function": {"name": "read_file", "arguments": '{"path": "a.py"}'}, "type": "function"},
        {"call_id": "c1", "name": "read_file", "arguments": '{"path":"a.py"}', "type": "function_call"},
        {"id": "c1", "type": "tool_use", "name": "read_file", "input": {"path": "a.py"}},
    ],
    ids=["our own", "the thread file's", "plain", "Chat Completions", "Responses", "Messages API"],
)
def test_a_tool_call_is_understood_as_the_api_gave_it(given: Any) -> None:
    assert tool_calls_of([given]) == (READ,)


@pytest.mark.parametrize(
    "given", [{}, {"id": "c1"}, {"id": "", "name": "x"}, {"id": 3, "name": "x"}, "c1", None, ["c1", "x"]]
)
def test_a_call_without_id_or_name_is_refused_with_an_example(given: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        tool_call_of(given)
    assert "call_1" in refused.value.hint


def test_arguments_that_are_no_json_object_are_kept_as_they_came() -> None:
    for arguments in ("{broken", "plain words", None, [1, 2], 3):
        call = tool_call_of({"id": "c", "name": "n", "arguments": arguments})
        assert call.arguments_json == arguments


def test_usage_is_understood_by_three_sets_of_names() -> None:
    ours = Usage(input_tokens=812, output_tokens=64, cache_read_tokens=700)
    assert usage_of(ours) is ours
    assert usage_of({"input_tokens": 812, "output_tokens": 64, "cache_read_tokens": 700}) == ours
    assert (
        usage_of(
            {
                "prompt_tokens": 812,
                "completion_tokens": 64,
                "total_tokens": 876,
                "cache_read_input_tokens": 700,
            }
        )
        == ours
    )
    assert usage_of({"input_tokens": 812, "cost_usd": 1}) == Usage(input_tokens=812, cost_usd=1.0)
    assert usage_of(None) is None
    assert usage_of({}) is None


@pytest.mark.parametrize("given", [{"tokens": 3}, {"input_tokens": "many"}, {"input_tokens": True}, 812])
def test_usage_that_says_nothing_known_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInput):
        usage_of(given)


def test_a_result_is_a_text_whatever_the_tool_gave() -> None:
    assert result_text("as it is") == "as it is"
    assert result_text(None) == ""
    assert result_text(b"caf\xc3\xa9 \xff") == "café \ufffd"
    assert result_text({"path": "a.py", "lines": 3}) == '{"path":"a.py","lines":3}'
    assert result_text([1, "zwei"]) == '[1,"zwei"]'
    assert result_text({1}) == "[1]"


def test_what_json_has_no_form_for_becomes_what_it_is_called() -> None:
    class Strange:
        def __repr__(self) -> str:
            return "<strange>"

    assert plain_json({"x": Strange()}) == {"x": "<strange>"}
    circle: list[Any] = []
    circle.append(circle)
    assert isinstance(plain_json(circle), str)
    assert plain_json("\ud800") == "\ud800"


def test_what_is_no_text_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="an answer is a text, not bytes"):
        text_of(b"x", "an answer")
