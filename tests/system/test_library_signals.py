"""Ctrl-C, SIGTERM and SIGHUP while a session is recorded: the program ends as it would have, the thread says where."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

import raddle
from tests.builders import texts
from tests.builders_recording import a_repository, commit, git, running, the_thread
from tests.file_events import opened

BUSY = """
with raddle.record(*sys.argv[1:]) as session:
    session.user("hello")
    session.assistant("I'll look", calls("c1", "c2"))
    with session.tool("c1"):
        reached(); wait()
"""
AT_THE_PROMPT = """
with raddle.record() as session:
    session.user("hello")
    session.assistant("What can I do for you?")
    reached()
    sys.stdin.readline()
"""
STREAMING = """
with raddle.record() as session:
    session.user("tell me a story")
    with session.stream() as reply:
        reply.write("Once upon")
        reached(); wait()
"""
STOPS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The handlers as they were, whatever a test sets."""
    before = {number: signal.getsignal(number) for number in STOPS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", STOPS)
def test_a_program_that_is_stopped_dies_as_it_would_have_and_says_what_is_open(number: int) -> None:
    with running(BUSY) as program:
        assert program.hear() == "here"
        assert program.send(number) == -number
    state = the_thread().agent_state
    name = "KeyboardInterrupt" if number == signal.SIGINT else signal.Signals(number).name
    assert (state.kind, state.last_error) == ("shutting_down", f"stopped while executing_tools ({name})")
    # Ctrl-C is an exception, so the tool that it ended has that for a result; a signal ends everything at once.
    is_open = ["c2"] if number == signal.SIGINT else ["c1", "c2"]
    assert [call.call_id for call in state.pending_tool_calls] == is_open


@pytest.mark.parametrize("number", STOPS)
def test_a_program_that_is_stopped_at_the_prompt_leaves_its_user_the_next_word(number: int) -> None:
    with running(AT_THE_PROMPT) as program:
        assert program.hear() == "here"
        assert program.send(number) == -number
    assert the_thread().agent_state == raddle.AgentState()


@pytest.mark.parametrize("number", STOPS)
def test_what_had_streamed_is_kept(number: int) -> None:
    with running(STREAMING) as program:
        assert program.hear() == "here"
        assert program.send(number) == -number
    thread = the_thread()
    assert texts(thread.messages) == ["tell me a story", "Once upon"]
    assert thread.messages[1].extra.keys() == {"cut_by"}
    assert thread.agent_state.kind == "shutting_down"


def test_git_is_looked_at_before_the_end(tmp_path: Path) -> None:
    repository = a_repository(tmp_path / "repository")
    with running(BUSY, str(repository)) as program:
        assert program.hear() == "here"
        sha = commit(repository, "second")
        git(repository, "checkout", "-q", "-b", "fix")
        assert program.send(signal.SIGTERM) == -signal.SIGTERM
    thread = the_thread()
    assert (thread.plain("git_branch"), thread.plain("git_current_commit_sha")) == ("fix", sha)


def test_the_handler_of_the_program_decides_what_a_signal_does() -> None:
    code = (
        """
def leave(number, frame):
    sys.exit(7)
signal.signal(signal.SIGTERM, leave)
"""
        + BUSY
    )
    with running(code) as program:
        assert program.hear() == "here"
        assert program.send(signal.SIGTERM) == 7
    state = the_thread().agent_state
    assert state.last_error == "stopped while executing_tools (SystemExit: 7)"


def test_a_program_under_nohup_hears_no_hangup() -> None:
    code = "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + AT_THE_PROMPT
    with running(code) as program:
        assert program.hear() == "here"
        program.process.send_signal(signal.SIGHUP)
        program.go_on()
        assert program.process.wait(60) == 0


def test_a_forked_child_that_is_stopped_says_nothing_of_its_parent() -> None:
    code = """
with raddle.record() as session:
    session.user("hello")
    child = os.fork()
    if not child:
        wait()
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    reached(str(os.waitstatus_to_exitcode(status))); wait()
"""
    with running(code) as program:
        assert program.hear() == str(-signal.SIGTERM)
        program.send(signal.SIGKILL)
    assert the_thread().agent_state.kind == "calling_llm"


def test_ctrl_c_under_asyncio_cancels_the_task_and_the_thread_says_where_it_was() -> None:
    code = """
async def main():
    async with raddle.record() as session:
        session.user("hello")
        session.assistant("I'll look", calls("c1", "c2"))
        async with session.tool("c1"):
            reached()
            await asyncio.Event().wait()
asyncio.run(main())
"""
    with running(code) as program:
        assert program.hear() == "here"
        assert program.send(signal.SIGINT) == -signal.SIGINT
    state = the_thread().agent_state
    assert (state.kind, [call.call_id for call in state.pending_tool_calls]) == ("shutting_down", ["c2"])


def test_a_program_that_is_stopped_beside_a_session_of_another_thread_writes_that_one_too() -> None:
    code = """
done = threading.Event()
def other():
    with raddle.record(title="other") as session:
        session.user("hello")
        done.set()
        threading.Event().wait()
threading.Thread(target=other, daemon=True).start()
done.wait()
with raddle.record(title="main") as session:
    session.user("hello")
    reached(); wait()
"""
    with running(code) as program:
        assert program.hear() == "here"
        assert program.send(signal.SIGTERM) == -signal.SIGTERM
    with raddle.open() as store:
        assert {thread.title: thread.agent_state.kind for thread in store} == {
            "main": "shutting_down",
            "other": "shutting_down",
        }


def test_the_handlers_are_those_that_were_there_when_the_last_session_ends() -> None:
    def mine(number: int, frame: FrameType | None) -> None:
        heard.append(number)

    heard: list[int] = []
    signal.signal(signal.SIGTERM, mine)
    before = [signal.getsignal(number) for number in STOPS]
    with raddle.record():
        with raddle.record():
            pass
        signal.raise_signal(signal.SIGTERM)
        assert [signal.getsignal(number) for number in STOPS] != before
    assert [signal.getsignal(number) for number in STOPS] == before
    assert heard == [signal.SIGTERM]


def test_a_handler_that_the_program_sets_meanwhile_stays() -> None:
    def mine(number: int, frame: FrameType | None) -> None:
        """Nothing: that it stays is what counts."""

    with raddle.record():
        signal.signal(signal.SIGTERM, mine)
    assert signal.getsignal(signal.SIGTERM) is mine


def test_a_session_outside_the_main_thread_sets_no_handler() -> None:
    seen: list[object] = []

    def record() -> None:
        with raddle.record() as session:
            session.user("hello")
            seen.extend(signal.getsignal(number) for number in STOPS)

    before = [signal.getsignal(number) for number in STOPS]
    thread = threading.Thread(target=record)
    thread.start()
    thread.join()
    assert seen == before


def test_ctrl_c_in_the_middle_of_a_write_waits_for_its_end() -> None:
    with pytest.raises(KeyboardInterrupt), raddle.record() as session:
        session.user("hello")
        with opened.listening(2, lambda: signal.raise_signal(signal.SIGINT)):
            session.assistant("all of it")
    thread = the_thread()
    assert texts(thread.messages) == ["hello", "all of it"]
    assert thread.agent_state == raddle.AgentState()


def test_a_program_may_catch_ctrl_c_and_go_on() -> None:
    with raddle.record() as session:
        session.user("tell me a story")
        with pytest.raises(KeyboardInterrupt), session.stream() as reply:
            reply.write("Once upon")
            signal.raise_signal(signal.SIGINT)
        session.waiting()
        session.user("a shorter one")
        session.assistant("The end.")
    thread = the_thread()
    tip = thread.tree.tip()
    assert tip is not None
    assert texts(thread.tree.path_to_root(tip.id)) == [
        "tell me a story",
        "Once upon",
        "a shorter one",
        "The end.",
    ]
    assert thread.agent_state == raddle.AgentState()


def test_an_async_session_puts_the_handlers_back_too() -> None:
    async def act() -> None:
        before = [signal.getsignal(number) for number in STOPS]
        async with raddle.record() as session:
            session.user("hello")
        assert [signal.getsignal(number) for number in STOPS] == before

    asyncio.run(act())


def test_a_child_has_the_handlers_that_were_there_before_its_parent_recorded() -> None:
    code = """
signal.signal(signal.SIGTERM, lambda number, frame: os._exit(9))
with raddle.record() as session:
    session.user("hello")
    for _ in range(20):
        child = os.fork()
        if not child:
            wait()
        os.kill(child, signal.SIGTERM)  # at once, while the child is still being set up
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    session.assistant("hi")
reached()
"""
    with running(code) as program:
        assert program.hear() == "here", program.errors()
    assert the_thread().agent_state == raddle.AgentState()


def test_the_one_tool_that_ctrl_c_ends_is_what_the_thread_tells_of() -> None:
    with running(BUSY.replace('"c1", "c2"', '"c1"')) as program:
        assert program.hear() == "here"
        program.send(signal.SIGINT)
    assert the_thread().agent_state.last_error == "stopped while executing_tools (KeyboardInterrupt)"


def test_threads_that_record_while_a_signal_ends_the_program_say_nothing() -> None:
    code = """
def work():
    while True:
        session.notice("still here")

with raddle.record() as session:
    session.user("hello")
    for _ in range(4):
        threading.Thread(target=work, daemon=True).start()
    reached(); wait()
"""
    with running(code) as program:
        assert program.hear() == "here"
        assert program.send(signal.SIGTERM) == -signal.SIGTERM
        assert program.errors() == ""
    assert the_thread().agent_state.kind == "shutting_down"


def test_a_fork_knows_the_thread_of_its_parent_and_may_go_on_with_it() -> None:
    code = """
with raddle.record() as session:
    session.user("hello")
    child = os.fork()
    if child == 0:
        with raddle.record(thread=session.thread_id) as mine:
            mine.assistant("from the child")
        os._exit(0)
    os.waitpid(child, 0)
    reached()
"""
    with running(code) as program:
        assert program.hear() == "here"
    assert texts(the_thread().messages) == ["hello", "from the child"]


def test_a_second_answer_does_not_end_the_wait_for_the_first() -> None:
    code = """
with raddle.record() as session:
    session.user("hello")
    with session.stream() as reply:
        reply.write("a long answer")
        with session.stream() as other:
            other.write("a short one")
        session.assistant("a third")
        session.waiting()
        reached(); wait()
"""
    with running(code) as program:
        assert program.hear() == "here"
        program.send(signal.SIGKILL)
    assert the_thread().agent_state.kind == "processing_llm_response"
