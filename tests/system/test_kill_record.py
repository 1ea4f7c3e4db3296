"""A program that records is killed, in each of the seven states and between any two writes: the thread tells no lie."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import raddle
from tests.builders_recording import a_repository, running, the_thread
from tests.builders_store import paths_in
from tests.file_events import lives_through

WAITING = "waiting_for_user_input"

KILLED_IN = {
    "waiting_for_user_input": """
session.user("hello")
session.assistant("What can I do for you?")
""",
    "calling_llm": """
session.user("hello")
""",
    "processing_llm_response": """
session.user("hello")
with session.stream() as reply:
    reply.write("What can")
    reached(session.thread_id); wait()
""",
    "executing_tools": """
session.user("hello")
session.assistant("I'll look", calls("c1", "c2"))
with session.tool("c1"):
    reached(session.thread_id); wait()
""",
    "post_tools_hook": """
session.user("hello")
session.assistant("I'll look", calls("c1"))
with session.tool("c1") as run:
    run.result = "seen"
""",
    "error": """
session.user("hello")
session.error(TimeoutError("no answer"))
""",
}


@pytest.mark.parametrize("kind", KILLED_IN)
def test_a_program_that_is_killed_leaves_the_state_it_was_in(kind: str) -> None:
    inside = "".join(f"    {line}\n" for line in KILLED_IN[kind].strip().splitlines())
    with running(
        f"with raddle.record() as session:\n{inside}    reached(session.thread_id); wait()"
    ) as program:
        thread_id = program.hear()
        assert program.send(signal.SIGKILL) == -signal.SIGKILL
    thread = the_thread()
    assert thread.id == thread_id
    assert thread.agent_state.kind == kind
    open_calls = [call.call_id for call in thread.agent_state.pending_tool_calls]
    assert open_calls == (["c1", "c2"] if kind == "executing_tools" else [])
    assert thread.agent_state.last_error == ("TimeoutError: no answer" if kind == "error" else None)


TWO_IN_ONE_THREAD = """
with raddle.record(thread=sys.argv[1]) as session:
    reached(); input()
    session.user("hello")
    reached(); input()
    session.assistant("Here I am.")
    reached(); input()
"""


def test_of_two_programs_in_one_thread_the_one_that_lives_does_not_hide_where_the_other_was_killed() -> None:
    with raddle.record() as first:
        first.user("hello")
        first.assistant("What can I do for you?")
    with (
        running(TWO_IN_ONE_THREAD, first.thread_id) as killed,
        running(TWO_IN_ONE_THREAD, first.thread_id) as lives,
    ):
        for program in (killed, lives):
            program.hear()
        for program in (killed, lives):
            program.go_on()
            program.hear()
        killed.send(signal.SIGKILL)
        for _ in range(2):
            lives.go_on()
            lives.hear()
        assert lives.process.wait(60) == 0
    assert the_thread().agent_state.kind == "calling_llm"
    with raddle.record(thread=first.thread_id) as again:
        assert again.state.kind == "calling_llm"
        again.waiting()
    assert the_thread().agent_state == raddle.AgentState()


@pytest.fixture
def slow_git(tmp_path: Path) -> Iterator[Path]:
    """A folder with a `git` that waits, once there is a file `slow` beside it, and says so in the pipe `asked`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for pipe in ("asked", "go-on"):
        os.mkfifo(folder / pipe)
    script = f"""#!/bin/sh
if [ -e {folder}/slow ]; then echo asked > {folder}/asked; read line < {folder}/go-on; exit 1; fi
exec {shutil.which("git")} "$@"
"""
    (folder / "git").write_text(script)
    (folder / "git").chmod(0o755)
    yield folder
    keep_open = os.open(folder / "go-on", os.O_RDWR)
    os.write(keep_open, b"on\n" * 8)  # let whoever still waits go
    os.close(keep_open)


def test_a_program_that_is_killed_while_it_shuts_down_says_so_and_where_it_was(
    slow_git: Path, tmp_path: Path
) -> None:
    repository = a_repository(tmp_path / "repository")
    code = f"""
with raddle.record({str(repository)!r}) as session:
    session.user("hello")
    session.assistant("I'll look", calls("c1", "c2"))
    open({str(slow_git / "slow")!r}, "w").close()
"""
    path = f"{slow_git}{os.pathsep}{os.environ['PATH']}"
    with running(code, env={"PATH": path}) as program:
        with (slow_git / "asked").open() as asked:
            assert asked.read() == "asked\n"
        assert program.send(signal.SIGKILL) == -signal.SIGKILL
    state = the_thread().agent_state
    assert state.kind == "shutting_down"
    assert state.last_error == "stopped while executing_tools"
    assert [call.call_id for call in state.pending_tool_calls] == ["c1", "c2"]


def a_session(acknowledgements: int) -> None:
    """A session with every kind of step; before and after each, a line into the pipe with the state after it."""
    with raddle.record() as session:
        for number, (kind, step) in enumerate(STEPS):
            os.write(acknowledgements, f"{number} {kind}\n".encode())
            step(session)
            os.write(acknowledgements, f"{number} done\n".encode())
        os.write(acknowledgements, b"99 shutting_down\n")
    os.write(acknowledgements, b"99 done\n")


def _tool(session: raddle.Session) -> None:
    with session.tool("c1") as run:
        run.result = "seen"


def _stream(session: raddle.Session) -> None:
    with session.stream() as reply:
        reply.write("Hello")


STEPS: tuple[tuple[str, Callable[[raddle.Session], object]], ...] = (
    ("calling_llm", lambda session: session.user("hello")),
    ("executing_tools", lambda session: session.assistant("", [{"id": "c1", "name": "run"}])),
    ("post_tools_hook", _tool),
    ("calling_llm", lambda session: session.retry("overloaded")),
    (WAITING, _stream),
    ("calling_llm", lambda session: session.user("and now?")),
    ("error", lambda session: session.error("no key")),
    (WAITING, lambda session: session.assistant("bye")),
)
ON_THE_WAY = {2: {"executing_tools"}, 4: {"processing_llm_response"}, 99: {WAITING}}
"""What a step may also leave, killed in the middle: the tool runs, the answer comes in, the end was reached."""


def must_be_true(home: Path, told: list[str]) -> None:
    """The thread is where the last line says that it is, or in the step that had begun."""
    kinds = {str(number): kind for number, (kind, _) in enumerate(STEPS)} | {"99": WAITING}
    number, _, last = told[-1].partition(" ") if told else ("", "", "")
    before = {kinds[line.split()[0]] for line in told[-2:-1]}
    if last == "done":
        allowed = {kinds[number]}
    elif last:
        allowed = before | {last} | ON_THE_WAY.get(int(number), set())
    else:
        allowed = set()
    with raddle.open() as store:
        threads = list(store)
        assert store.list(limit=None)[:1] == [thread.summary() for thread in threads]
    if not threads:
        assert not told or told == ["0 calling_llm"]
        return
    (thread,) = threads
    assert thread.agent_state.kind in allowed, told
    is_open = [call.call_id for call in thread.agent_state.pending_tool_calls]
    assert is_open == (["c1"] if thread.agent_state.kind == "executing_tools" else [])
    assert thread.tree.lost() == []
    assert list((paths_in(home).threads_dir).glob("*.quarantine*")) == []


def kill_at_every(
    stride: int, start: int, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> int:
    """Kill a session at every so manyth thing it does to a file; how many times it died."""
    monkeypatch.chdir(tmp_path)
    number = start
    while True:
        folder = tmp_path / str(number)
        for name in ("DATA", "CONFIG", "STATE", "CACHE"):
            monkeypatch.setenv(f"RADDLE_{name}_DIR", str(folder / name.lower()))
        read, write = os.pipe()
        has_lived = lives_through(number, lambda: a_session(write))  # noqa: B023  it is over before the next
        os.close(write)
        with os.fdopen(read) as pipe:
            told = pipe.read().splitlines()
        must_be_true(folder, told)
        if has_lived:
            assert told[-1] == "99 done"
            return (number - start) // stride
        number += stride


def test_a_program_that_is_killed_between_any_two_writes_tells_no_lie(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert kill_at_every(7, 3, home, monkeypatch, tmp_path) > 6


@pytest.mark.soak
def test_a_program_that_is_killed_at_each_write_tells_no_lie(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert kill_at_every(1, 1, home, monkeypatch, tmp_path) > 50
