"""Which of the seven states follows which step of a session: the state machine of a thread that is recorded.

A second place that decided this would sooner or later let a thread say that it waits for its user while a
call is open or an answer is owed. So `waiting_for_user_input` is reached from here only, by three ways: the
model answered without a call and no call is open; the program says so (`waiting`); the session ends and had
been waiting before. Where answers still stream or tools still run beside that, `beside_open` says so instead.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from raddle.model.threads.agent_state import (
    CALLING_LLM,
    ERROR,
    EXECUTING_TOOLS,
    POST_TOOLS_HOOK,
    PROCESSING_LLM_RESPONSE,
    SHUTTING_DOWN,
    WAITING_FOR_USER_INPUT,
    AgentState,
    PendingToolCall,
)
from raddle.model.threads.plain_values import is_text, plain_text, shown

LONGEST_ERROR = 1_000
"""Characters that are kept of an error: each line of a journal carries the state."""


def asked() -> AgentState:
    """The user spoke: the model is asked next. Calls that were still open are given up."""
    return AgentState(kind=CALLING_LLM)


def calling(state: AgentState) -> AgentState:
    """A request to the model leaves now."""
    return _now(state, kind=CALLING_LLM)


def answering(state: AgentState) -> AgentState:
    """The model's answer is coming in."""
    return _now(state, kind=PROCESSING_LLM_RESPONSE)


def answered(state: AgentState, calls: Iterable[PendingToolCall] = ()) -> AgentState:
    """The whole answer is in, with the calls it makes: that ends the retries."""
    pending = _with(state.pending_tool_calls, calls)
    kind = EXECUTING_TOOLS if pending else WAITING_FOR_USER_INPUT
    return AgentState(kind=kind, pending_tool_calls=pending)


def running(state: AgentState, call: PendingToolCall) -> AgentState:
    """A tool runs now."""
    return _now(state, kind=EXECUTING_TOOLS, pending_tool_calls=_with(state.pending_tool_calls, (call,)))


def ran(state: AgentState, call_id: str, *, is_stopped: bool = False) -> AgentState:
    """A tool has its result. After the last one comes what follows tools (a commit, a check).

    `is_stopped`: the program was stopped while it ran, and nothing follows.
    """
    pending = tuple(call for call in state.pending_tool_calls if call.call_id != call_id)
    kind = state.kind
    if kind == EXECUTING_TOOLS and not pending and not is_stopped:
        kind = POST_TOOLS_HOOK
    return _now(state, kind=kind, pending_tool_calls=pending)


def failed(state: AgentState, error: str) -> AgentState:
    """Something went wrong, and may be tried again."""
    return _now(state, kind=ERROR, last_error=error)


def retrying(state: AgentState, error: str | None = None) -> AgentState:
    """The model is asked once more; `error` is why (None: what went wrong last)."""
    last_error = state.last_error if error is None else error
    return _now(state, kind=CALLING_LLM, retries=state.retries + 1, last_error=last_error)


def waiting() -> AgentState:
    """It is the user's turn: nothing is open, whatever was."""
    return AgentState()


class Open(Struct, frozen=True, kw_only=True):
    """What goes on at this moment: how many answers come in, and the calls whose tools run."""

    answers: int = 0
    calls: tuple[PendingToolCall, ...] = ()


def beside_open(state: AgentState, still: Open) -> AgentState:
    """`state`, which a step leads to, where `still` goes on beside it: a tool that runs stays named, and while an
    answer comes in or a call is open nobody waits for the user."""
    pending = _with(state.pending_tool_calls, still.calls)
    kind = state.kind
    if kind == WAITING_FOR_USER_INPUT and pending:
        kind = EXECUTING_TOOLS
    elif kind == WAITING_FOR_USER_INPUT and still.answers:
        kind = PROCESSING_LLM_RESPONSE
    return _now(state, kind=kind, pending_tool_calls=pending)


class Ending(Struct, frozen=True, kw_only=True):
    """How a session ends. `why` is empty where it came to its end; `is_failure`: by an error of the program's."""

    why: str = ""
    is_failure: bool = False


def ending_of(error: BaseException | None, state: AgentState) -> Ending:
    """The ending that leaving the session with `error` is.

    The end of the input while it is the user's turn is how a conversation ends; an exit with code 0 is none
    but an end, and what stops a program (Ctrl-C, a cancelled task) is no failure of it.
    """
    if error is None or (isinstance(error, EOFError) and state.kind == WAITING_FOR_USER_INPUT):
        return Ending()
    if isinstance(error, SystemExit):
        return Ending() if error.code in (None, 0) else Ending(why=error_text(error))
    return Ending(why=error_text(error), is_failure=isinstance(error, Exception))


def stopping(state: AgentState, ending: Ending) -> AgentState:
    """The session is on its way to its end; says too where it was."""
    return _now(state, kind=SHUTTING_DOWN, last_error=_last_words(state, ending))


def stopped(state: AgentState, ending: Ending) -> AgentState:
    """The session has ended; `state` is the one before it began to.

    Whoever waited for the user still does, and an error stays one. A turn that was not finished stays
    `shutting_down`, with its open calls and with words that say where it was.
    """
    if ending.is_failure:
        return _now(state, kind=ERROR, last_error=ending.why)
    if state.kind in (WAITING_FOR_USER_INPUT, ERROR):
        return state
    return stopping(state, ending)


def _last_words(state: AgentState, ending: Ending) -> str | None:
    if ending.is_failure:
        return ending.why
    if state.kind in (WAITING_FOR_USER_INPUT, ERROR, SHUTTING_DOWN):
        return state.last_error
    why = f" ({ending.why})" if ending.why else ""
    before = f"; before that: {state.last_error}" if state.last_error else ""
    return shortened(f"stopped while {state.kind}{why}{before}")


def error_text(error: BaseException | str) -> str:
    """An error as a thread keeps it: its kind and its words, not too many of them."""
    if is_text(error):
        return shortened(plain_text(error, "an error"))
    said = shown(error, str)
    return shortened(f"{type(error).__name__}: {said}" if said else type(error).__name__)


def shortened(text: str) -> str:
    """At most LONGEST_ERROR characters of it."""
    return text if len(text) <= LONGEST_ERROR else f"{text[: LONGEST_ERROR - 1]}…"


def _now(state: AgentState, **fields: object) -> AgentState:
    return msgspec.structs.replace(state, **fields)


def _with(
    pending: tuple[PendingToolCall, ...], calls: Iterable[PendingToolCall]
) -> tuple[PendingToolCall, ...]:
    by_id = {call.call_id: call for call in pending}
    for call in calls:
        by_id.setdefault(call.call_id, call)
    return tuple(by_id.values())
