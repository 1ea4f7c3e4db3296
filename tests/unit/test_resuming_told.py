"""What of a conversation is told to an agent that goes on with it, and what is told as text."""

from __future__ import annotations

import pytest

from raddle.actions.resuming.told import Turn
from raddle.model.errors import InvalidInput, NotFound
from raddle.model.threads.rendering import NO_RESULT
from tests.builders import a_line, a_message, a_thread
from tests.builders_resuming import ON_PATH, PNG, a_conversation, call, told


def turn(message_id: str) -> Turn:
    (found,) = [one for one in told(a_conversation()).turns if one.message.id == message_id]
    return found


def test_the_path_is_told_and_no_other_branch() -> None:
    path = told(a_conversation())
    assert path.messages == len(ON_PATH)
    assert [one.message.id for one in path.turns] == ["q1", "a1", "a2", "r3", "s1", "o1", "q2", "a3"]
    assert path.last.id == "a3"


def test_any_branch_can_be_gone_on_from() -> None:
    path = told(a_conversation(), "x1")
    assert [one.text for one in path.turns][-1:] == ["Or else?"]
    assert path.messages == 2


def test_what_hung_on_a_notice_hangs_on_what_is_told_before_it() -> None:
    assert turn("q1").message.parent_id is None
    assert turn("a1").message.parent_id == "q1"


def test_a_call_without_a_result_gets_a_stub() -> None:
    first, second = turn("a1").calls
    assert (first.result.text, first.result.is_error) == ("kiln.txt", False)
    assert (second.result.text, second.result.is_error) == (NO_RESULT, True)
    assert second.result.message is None


def test_a_call_whose_tool_no_api_would_take_is_told_in_words() -> None:
    said = turn("a2")
    assert said.calls == ()
    assert said.text == '[call of mcp.fetch with {"url":"u"}]'
    assert turn("r3").text == "[result of mcp.fetch] a page"


def test_a_call_in_words_says_that_it_has_no_result() -> None:
    thread = a_thread(a_message("m1", "", role="assistant", tool_calls=(call("c1", "a.b"),)))
    (only,) = told(thread).turns
    assert only.text == f"[call of a.b with {{}}: {NO_RESULT}]"


def test_a_result_without_its_call_is_told_in_words() -> None:
    thread = a_thread(a_message("m1", "42", role="tool", tool_call_id="c9", tool_name="add"))
    (only,) = told(thread).turns
    assert (only.role, only.text) == ("user", "[result of add] 42")


def test_two_calls_of_one_id_get_two() -> None:
    first, then = a_line("", "")
    both = [
        a_message("m1", "", role="assistant", tool_calls=(call("c1"),)),
        a_message("m2", "one", role="tool", tool_call_id="c1", parent_id="m1", ts=first.ts),
        a_message("m3", "", role="assistant", tool_calls=(call("c1"),), parent_id="m2", ts=then.ts),
    ]
    turns = told(a_thread(*both)).turns
    ids = [one.calls[0].id for one in turns]
    assert ids[0] == "c1"
    assert len(set(ids)) == 2


def test_a_role_that_nobody_knows_is_told_by_the_person() -> None:
    said = turn("o1")
    assert (said.role, said.text, said.is_said) == ("user", "[narrator] Mind the gas.", False)


def test_a_summary_is_words_like_others() -> None:
    assert turn("s1").text == "So far: the kiln is cold."


def test_a_picture_that_is_here_is_shown_and_what_is_not_is_named() -> None:
    path = told(a_conversation(), bytes_of=lambda sha256: PNG if sha256 == "a" * 64 else None)
    said = path.turns[0]
    assert [one.media_type for one in said.pictures] == ["image/png"]
    assert said.text == "Why is the kiln cold?\n[attached: plan.pdf (application/pdf)]"
    assert path.unseen == 1
    assert "[attached: dot.png (image/png)]" in turn("q1").text


def test_a_thread_in_which_nobody_said_anything_cannot_be_gone_on_with() -> None:
    with pytest.raises(InvalidInput):
        told(a_thread(a_message("m1", "<context>", kind="notice")))
    with pytest.raises(NotFound):
        told(a_conversation(), "m99")
