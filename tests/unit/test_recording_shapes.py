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


@pytest.mark.parametrize(
    "given",
    [
        {"tokens": 3},
        {"input_tokens": "many"},
        {"input_tokens": True},
        812,
        *({"input_tokens": number} for number in (-1, 1.5, 10**30, float("inf"), float("nan"))),
        *({"cost_usd": number} for number in (-0.1, float("inf"), float("nan"))),
        Usage(input_tokens=-1),
    ],
)
def test_usage_that_says_nothing_known_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInput):
        usage_of(given)


def test_a_result_is_a_text_whatever_the_tool_gave() -> None:
    assert result_text("as it is") == "as it is"
    assert result_text(None) == ""
    assert result_text(b"caf\xc3\xa9 \xff") == "café \\xff"
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
    assert plain_json(circle) == ["[[...]]"]
    assert plain_json("\ud800") == "\ud800"


def test_what_is_no_text_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="an answer is a text, not bytes"):
        text_of(b"x", "an answer")


class Label(str):
    """A text of a class of its own, as libraries for HTML have them."""

    __slots__ = ()


class Broken:
    """Something that cannot even be shown."""

    def __repr__(self) -> str:
        raise ZeroDivisionError


def test_a_text_of_any_class_is_a_plain_one() -> None:
    call = tool_call_of({"id": Label("i"), "name": Label("n"), "arguments": {Label("k"): [Label("v")]}})
    assert call == ToolCall(id="i", tool_name="n", arguments_json={"k": ["v"]})
    for text in (call.id, call.tool_name, *call.arguments_json, call.arguments_json["k"][0]):
        assert type(text) is str
    assert type(text_of(Label("x"), "an answer")) is type(result_text(Label("x"))) is str
    assert tool_call_of({"id": "i", "name": "n", "arguments": Label('{"k": 1}')}).arguments_json == {"k": 1}


def test_a_result_that_cannot_be_shown_is_told_by_its_kind() -> None:
    assert result_text(Broken()) == "<Broken that says nothing of itself>"
    assert result_text({"a": 1, "b": Broken()}) == '{"a":1,"b":"<Broken that says nothing of itself>"}'
    assert result_text(10**5000) == hex(10**5000)


def test_half_a_character_in_a_value_is_its_escape_and_costs_nothing_else() -> None:
    assert plain_json({"a": "x\ud83d", "b": [1]}) == {"a": "x\\ud83d", "b": [1]}
    assert plain_json(["\ud83d\ude00", "\ud83d"]) == ["\U0001f600", "\\ud83d"]


def test_no_calls_may_be_none() -> None:
    assert tool_calls_of(None) == ()
    with pytest.raises(InvalidInput, match="tool calls are a list, not int"):
        tool_calls_of(5)  # type: ignore[arg-type]


def test_what_is_nested_too_deeply_for_a_message_ends_in_words() -> None:
    deep: list[Any] = []
    for _ in range(3000):
        deep = [deep]
    levels, value = 0, plain_json(deep)
    while isinstance(value, list):
        levels, value = levels + 1, value[0]
    assert 150 < levels < 200
    assert isinstance(value, str)
