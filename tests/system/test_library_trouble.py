"""A session that cannot be saved: what the program learns, and what of it is kept."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import raddle
from tests.builders import texts
from tests.builders_recording import stored, the_thread
from tests.file_events import start_child
from tests.modes import bound_by_modes

CALL = {"id": "c1", "name": "read_file", "arguments": {"path": "a.py"}}
OTHER = {"id": "c2", "name": "run", "arguments": {}}


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the program runs in: no repository."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_half_a_character_is_mended_and_told_of(caplog: pytest.LogCaptureFixture) -> None:
    with raddle.record() as session:
        session.user("broken \ud83d here")
        session.assistant("", [{"id": "c", "name": "n", "arguments": {"text": "\ud83d"}}])
        with session.tool("c") as run:
            run.result = "x\ud83d" * 600_000
    assert stored(session.thread_id).messages[0].content == "broken \ufffd here"
    assert "U+FFFD" in caplog.text


def full_disk(action: Callable[[], None]) -> None:
    """Run `action` in a child in which no file may grow past a few kilobytes."""

    def child() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        action()

    process = start_child(child)
    process.join()
    assert process.exitcode == 0


def limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_a_full_disk_is_told_and_the_step_did_not_happen() -> None:
    def record() -> None:
        with raddle.record() as session:
            session.user("hello")
            limit_files(64)
            with pytest.raises(raddle.StorageError):
                session.assistant("hi")
            assert session.state.kind == "calling_llm"
            limit_files(resource.RLIM_INFINITY)
            session.assistant("hi again")

    full_disk(record)
    thread = the_thread()
    assert texts(thread.messages) == ["hello", "hi again"]
    assert thread.agent_state == raddle.AgentState()


def test_a_full_disk_does_not_hide_the_programs_own_error() -> None:
    def record() -> None:
        with pytest.raises(ZeroDivisionError) as raised, raddle.record() as session:
            session.user("hello")
            session.assistant("", [CALL])
            with session.tool("c1"):
                limit_files(64)
                raise ZeroDivisionError
        assert any("raddle could not save" in note for note in raised.value.__notes__)

    full_disk(record)
    state = the_thread().agent_state
    assert (state.kind, len(state.pending_tool_calls)) == ("executing_tools", 1)


def test_a_program_that_would_rather_go_on_keeps_its_steps_until_there_is_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def record() -> None:
        with raddle.record(on_error="warn") as session:
            limit_files(64)
            assert session.user("hello") == ""
            session.assistant("", [CALL])
            with session.tool("c1") as run:
                run.result = "seen"
            assert session.unsaved == 4
            assert "kept to be saved later" in caplog.text
            limit_files(resource.RLIM_INFINITY)
            session.assistant("Done.")
            assert session.unsaved == 0
            assert "is saved now" in caplog.text

    full_disk(record)
    thread = the_thread()
    assert texts(thread.messages) == ["hello", "", "seen", "Done."]
    assert thread.agent_state == raddle.AgentState()


def test_a_store_that_may_not_be_written_ends_no_session_that_would_rather_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed = tmp_path / "sealed"
    sealed.mkdir()
    for name in ("DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"RADDLE_{name}_DIR", str(sealed / name.lower()))
    sealed.chmod(0o555)

    def record() -> None:
        with pytest.raises(raddle.StorageError), raddle.record():
            pass
        with raddle.record(on_error="warn") as session:
            session.user("hello")
            session.assistant("hi")
        assert session.unsaved == 2 + 2
        assert session.state == raddle.AgentState()

    bound_by_modes(record)


def test_a_thread_that_was_purged_meanwhile_is_not_made_again() -> None:
    with pytest.raises(raddle.NotFound), raddle.record() as session:
        session.user("hello")
        for file in Path(os.environ["HOME"], ".local/share/raddle/threads").glob("T-*"):
            file.unlink()
        session.assistant("hi")
    with raddle.open() as store:
        assert session.thread_id not in store
