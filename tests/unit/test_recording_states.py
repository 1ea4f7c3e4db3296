"""The state machine of a recorded session, move by move."""

from __future__ import annotations

import pytest

from raddle.actions.recording import states
from raddle.actions.recording.states import Ending
from raddle.model.threads.agent_state import AgentState, PendingToolCall

ONE = PendingToolCall(call_id="c1", tool_name="read_file")
TWO = PendingToolCall(call_id="c2", tool_name="run")
BUSY = states.answered(states.asked(), [ONE, TWO])


def test_a_turn_goes_through_the_states_of_the_seed() -> None:
    called = states.answered(states.asked(), [ONE])
    turn = (
        AgentState(),
        states.asked(),
        states.answering(states.asked()),
        called,
        states.ran(called, "c1"),
        states.answered(states.ran(called, "c1")),
    )
    seen = [state.kind for state in turn]
    assert seen == [
        "waiting_for_user_input",
        "calling_llm",
        "processing_llm_response",
        "executing_tools",
        "post_tools_hook",
        "waiting_for_user_input",
    ]


def test_tools_are_executed_until_the_last_call_has_its_result() -> None:
    one_left = states.ran(BUSY, "c1")
    assert (one_left.kind, one_left.pending_tool_calls) == ("executing_tools", (TWO,))
    assert states.ran(one_left, "c2") == AgentState(kind="post_tools_hook")


def test_a_result_that_comes_while_the_model_is_asked_again_does_not_hide_that() -> None:
    late = states.ran(states.calling(states.answered(states.asked(), [ONE])), "c1")
    assert late == AgentState(kind="calling_llm")


def test_an_answer_without_calls_leaves_the_user_waiting_while_a_call_is_open() -> None:
    assert states.answered(BUSY).kind == "executing_tools"


def test_retries_are_counted_until_an_answer_comes() -> None:
    state = states.retrying(states.failed(states.asked(), "overloaded"))
    state = states.retrying(state, "timeout")
    assert (state.kind, state.retries, state.last_error) == ("calling_llm", 2, "timeout")
    assert states.answering(state).retries == 2
    assert states.answered(states.answering(state)) == AgentState()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, Ending()),
        (SystemExit(0), Ending()),
        (SystemExit(), Ending()),
        (EOFError(), Ending()),
        (SystemExit(3), Ending(why="SystemExit: 3")),
        (KeyboardInterrupt(), Ending(why="KeyboardInterrupt")),
        (GeneratorExit(), Ending(why="GeneratorExit")),
        (ValueError("no"), Ending(why="ValueError: no", is_failure=True)),
    ],
)
def test_what_a_session_is_left_with_says_how_it_ended(error: BaseException | None, expected: Ending) -> None:
    assert states.ending_of(error, AgentState()) == expected


def test_the_end_of_the_input_in_the_middle_of_a_turn_is_an_error() -> None:
    assert states.ending_of(EOFError(), states.asked()).is_failure


@pytest.mark.parametrize("ending", [Ending(), Ending(why="SIGTERM")])
def test_whoever_waits_for_the_user_still_does_after_the_end(ending: Ending) -> None:
    assert states.stopped(AgentState(), ending) == AgentState()


@pytest.mark.parametrize("ending", [Ending(), Ending(why="SIGTERM")])
def test_an_error_stays_one_after_the_end(ending: Ending) -> None:
    state = states.failed(BUSY, "overloaded")
    assert states.stopped(state, ending) == state


def test_a_turn_that_was_not_finished_says_where_it_was_and_what_is_open() -> None:
    state = states.stopped(BUSY, Ending(why="SIGTERM"))
    assert state.kind == "shutting_down"
    assert state.last_error == "stopped while executing_tools (SIGTERM)"
    assert state.pending_tool_calls == (ONE, TWO)
    ended = states.stopped(states.retrying(states.asked(), "overloaded"), Ending())
    assert ended.last_error == "stopped while calling_llm; before that: overloaded"


def test_an_error_of_the_program_is_the_last_word() -> None:
    state = states.stopped(BUSY, Ending(why="ValueError: no", is_failure=True))
    assert (state.kind, state.last_error) == ("error", "ValueError: no")
    assert state.pending_tool_calls == (ONE, TWO)


def test_an_error_is_kept_short() -> None:
    assert len(states.error_text(ValueError("x" * 100_000))) == states.LONGEST_ERROR
    assert states.error_text(ValueError()) == "ValueError"


def test_a_tool_that_was_stopped_is_what_the_end_tells_of() -> None:
    busy = states.answered(states.asked(), [ONE])
    stopped = states.stopped(states.ran(busy, "c1", is_stopped=True), Ending(why="KeyboardInterrupt"))
    assert stopped.last_error == "stopped while executing_tools (KeyboardInterrupt)"
    assert stopped.pending_tool_calls == ()


def test_an_error_that_cannot_say_what_it_is_is_told_by_its_kind() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    class Words(str):
        __slots__ = ()

    assert states.error_text(Mute()) == "Mute: <Mute that says nothing of itself>"
    assert type(states.error_text(Words("reset"))) is str
