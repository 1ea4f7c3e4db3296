"""A session among tasks and processes: asyncio, cancellations, forks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import raddle
from tests.builders import texts
from tests.builders_recording import stored
from tests.file_events import start_child

CALL = {"id": "c1", "name": "read_file", "arguments": {"path": "a.py"}}
OTHER = {"id": "c2", "name": "run", "arguments": {}}


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the program runs in: no repository."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_an_async_program_records_the_same() -> None:
    async def act() -> raddle.Session:
        async with raddle.record() as session:
            session.user("do it all at once")
            session.assistant("", [CALL, OTHER])

            async def use(call_id: str) -> None:
                async with session.tool(call_id) as run:
                    await asyncio.sleep(0)
                    run.result = call_id

            await asyncio.gather(use("c1"), use("c2"))
            async with session.stream() as reply:
                reply.write("Done.")
        return session

    thread = stored(asyncio.run(act()).thread_id)
    assert sorted(texts(thread.messages)) == ["", "Done.", "c1", "c2", "do it all at once"]
    assert thread.agent_state == raddle.AgentState()


def test_a_task_that_is_cancelled_says_where_it_was() -> None:
    names: list[str] = []

    async def act(is_running: asyncio.Event) -> None:
        async with raddle.record() as session:
            names.append(session.thread_id)
            session.user("hello")
            session.assistant("", [CALL, OTHER])
            async with session.tool("c1"):
                is_running.set()
                await asyncio.Event().wait()

    async def main() -> None:
        is_running = asyncio.Event()
        task = asyncio.create_task(act(is_running))
        await is_running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    thread = stored(names[0])
    assert thread.agent_state.kind == "shutting_down"
    assert [call.call_id for call in thread.agent_state.pending_tool_calls] == ["c2"]
    assert texts(thread.messages)[2:] == ["CancelledError"]


def test_a_tool_that_is_given_up_in_time_has_a_result_and_the_session_goes_on() -> None:
    async def act() -> raddle.Session:
        async with raddle.record() as session:
            session.user("hello")
            session.assistant("", [CALL])
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01), session.tool("c1"):
                    await asyncio.Event().wait()
            session.assistant("It took too long.")
        return session

    thread = stored(asyncio.run(act()).thread_id)
    assert [message.is_error for message in thread.messages] == [False, False, True, False]
    assert thread.agent_state == raddle.AgentState()


def test_a_child_process_owns_nothing_of_its_parents_session() -> None:
    with raddle.record() as session:
        session.user("hello")

        def child() -> None:
            with pytest.raises(raddle.UserError, match="belongs to the process"):
                session.assistant("from the child")
            session.__exit__(None, None, None)

        process = start_child(child)
        process.join()
        assert process.exitcode == 0
        assert stored(session.thread_id).agent_state.kind == "calling_llm"
    assert texts(stored(session.thread_id).messages) == ["hello"]
