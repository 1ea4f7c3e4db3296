"""Any session, step by step: the state never says more than what happened, and never hides what is open."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.recording import states
from raddle.actions.recording.recorder import Opening, Recorder, Step, Turn
from raddle.actions.recording.states import Ending
from raddle.model.ids import MonotonicIds
from raddle.model.threads.agent_state import AGENT_STATE_KINDS, AgentState, PendingToolCall
from tests.builders import THREAD_ID, WoundClock, an_author
from tests.fakes.memory_store import MemoryFolder, MemoryStore

CALLS = tuple(PendingToolCall(call_id=f"c{n}", tool_name="t") for n in range(4))
WAITING = "waiting_for_user_input"


def a_store() -> MemoryStore:
    clock = WoundClock()
    return MemoryStore(an_author(clock=clock, new_id=MonotonicIds(clock)), MemoryFolder())


calls = st.sampled_from(CALLS)
steps = st.one_of(
    st.tuples(st.sampled_from(["user", "calling", "answering", "failed", "retrying", "waiting"]), st.none()),
    st.tuples(st.just("answered"), st.lists(calls, max_size=3)),
    st.tuples(st.sampled_from(["running", "ran"]), calls),
)
endings = st.sampled_from([Ending(), Ending(why="SIGTERM"), Ending(why="E: x", is_failure=True)])


class Told:
    """What happened, told without states: which calls are open, and whether it is the user's turn."""

    def __init__(self) -> None:
        self.open: set[str] = set()
        self.is_users_turn = True

    def hear(self, what: str, about: object) -> None:
        if what in ("user", "waiting"):
            self.open.clear()
        if what == "answered" and isinstance(about, list):
            self.open |= {call.call_id for call in about}
        if isinstance(about, PendingToolCall):
            (self.open.add if what == "running" else self.open.discard)(about.call_id)
        if what == "waiting" or (what == "answered" and not self.open):
            self.is_users_turn = True
        elif what != "ran":
            self.is_users_turn = False


def after(state: AgentState, what: str, about: object) -> AgentState:
    if isinstance(about, PendingToolCall):
        return states.running(state, about) if what == "running" else states.ran(state, about.call_id)
    if isinstance(about, list):
        return states.answered(state, about)
    plain: dict[str, Callable[[], AgentState]] = {
        "user": states.asked,
        "waiting": states.waiting,
        "calling": lambda: states.calling(state),
        "answering": lambda: states.answering(state),
        "failed": lambda: states.failed(state, "wrong"),
        "retrying": lambda: states.retrying(state),
    }
    return plain[what]()


@given(st.lists(steps, max_size=30))
def test_every_open_call_is_named_and_no_other(session: list[tuple[str, object]]) -> None:
    state, told = AgentState(), Told()
    for what, about in session:
        state = after(state, what, about)
        told.hear(what, about)
        assert {call.call_id for call in state.pending_tool_calls} == told.open
        assert len(state.pending_tool_calls) == len(told.open)
        assert state.kind in AGENT_STATE_KINDS


@given(st.lists(steps, max_size=30))
def test_it_waits_for_the_user_when_it_is_the_users_turn_and_never_else(
    session: list[tuple[str, object]],
) -> None:
    state, told = AgentState(), Told()
    for what, about in session:
        state = after(state, what, about)
        told.hear(what, about)
        assert (state.kind == WAITING) == told.is_users_turn
        assert state.kind != WAITING or state == AgentState()


@given(st.lists(steps, max_size=30), endings)
def test_an_end_makes_nobody_wait_who_did_not_and_closes_no_call(
    session: list[tuple[str, object]], ending: Ending
) -> None:
    state = AgentState()
    for what, about in session:
        state = after(state, what, about)
    on_the_way, at_rest = states.stopping(state, ending), states.stopped(state, ending)
    assert on_the_way.kind == "shutting_down"
    assert (at_rest.kind == WAITING) == (state.kind == WAITING and not ending.is_failure)
    assert on_the_way.pending_tool_calls == at_rest.pending_tool_calls == state.pending_tool_calls
    assert on_the_way.retries == at_rest.retries == state.retries


@given(
    st.lists(st.tuples(st.integers(0, 2), steps), max_size=40),
    st.lists(st.integers(0, 40), min_size=2, max_size=2),
)
def test_of_sessions_in_one_thread_none_hides_where_another_one_is_or_died(
    moves: list[tuple[int, tuple[str, object]]], deaths: list[int]
) -> None:
    """Their calls have ids of their own, as those of models do. The first two may die; their steps end there."""
    store, told = a_store(), [Told() for _ in range(3)]
    with store.create(THREAD_ID) as editor:
        editor.append("user", "hello")
    recorders = [
        Recorder(lambda: store, THREAD_ID, Opening(is_new=False), keep_body=lambda text: (text, ()))
        for _ in told
    ]
    for number, (who, (what, about)) in enumerate(moves):
        if who < 2 and number >= deaths[who]:
            continue
        about = _own(who, about)
        told[who].hear(what, about)
        recorders[who].take(Step(state=after(recorders[who].state, what, about)))
        shown = store.load(THREAD_ID).agent_state
        named = [call.call_id for call in shown.pending_tool_calls]
        assert sorted(named) == sorted(told[0].open | told[1].open | told[2].open)
        assert (shown.kind == WAITING) == all(each.is_users_turn for each in told)
        assert shown.kind in {recorder.state.kind for recorder in recorders}
        assert shown.kind != WAITING or shown == AgentState()
        if not told[who].is_users_turn:
            mine = recorders[who].state
            assert (shown.kind, shown.retries, shown.last_error) == (mine.kind, mine.retries, mine.last_error)


def _own(who: int, about: object) -> object:
    if isinstance(about, PendingToolCall):
        return PendingToolCall(call_id=f"{who}-{about.call_id}", tool_name="t")
    return [_own(who, call) for call in about] if isinstance(about, list) else about


parallel = st.one_of(
    st.sampled_from(
        ["user", "calling", "waiting", "failed", "retrying", "begin", "end", "cut", "answered"]
    ).map(lambda what: (what, None)),
    st.tuples(st.sampled_from(["call", "run", "ran"]), calls),
)


def _step_of(what: str, call: PendingToolCall | None, state: AgentState) -> Step:
    turn = Turn(role="assistant", content="x")
    if what == "begin":
        return Step(state=states.answering(state), answers=1)
    if what == "end":
        return Step(state=states.answered(state), turn=turn, answers=-1)
    if what == "cut":
        return Step(state=state, turn=turn, answers=-1)
    if what == "answered" or call is None:
        return Step(state=after(state, what, [] if what == "answered" else None))
    if what == "call":
        return Step(state=states.answered(state, [call]))
    if what == "run":
        return Step(state=states.running(state, call), begins=call)
    return Step(state=states.ran(state, call.call_id), ends=call.call_id)


@given(st.lists(parallel, max_size=25))
def test_nobody_waits_for_the_user_while_another_answer_comes_in_or_a_tool_runs(
    session: list[tuple[str, PendingToolCall | None]],
) -> None:
    store = a_store()
    recorder = Recorder(lambda: store, THREAD_ID, Opening(is_new=True), keep_body=lambda text: (text, ()))
    recorder.take(Step(state=states.asked(), turn=Turn(role="user", content="why?")))
    answers = 0
    running: set[str] = set()
    for what, call in session:
        if what in ("end", "cut") and not answers:
            continue
        recorder.take(_step_of(what, call, recorder.state))
        answers += {"begin": 1, "end": -1, "cut": -1}.get(what, 0)
        if call is not None and what in ("run", "ran"):
            (running.add if what == "run" else running.discard)(call.call_id)
        told = store.load(THREAD_ID).agent_state
        assert told == recorder.state
        named = {pending.call_id for pending in told.pending_tool_calls}
        assert running <= named
        assert told.kind != WAITING or not (answers or named)
        if what == "waiting" and not answers and not running:
            assert told == AgentState()
