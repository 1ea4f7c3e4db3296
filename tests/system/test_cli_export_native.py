"""`raddle export --format AGENT`: what a person sees who takes a session out as its agent's own file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.builders_claude_code import a_session_with_everything, a_short_session, a_sub_agent
from tests.builders_import import PROJECT, write
from tests.command_line import PROGRAM, done, new, raddle

MAIN, AGENT = a_session_with_everything(), a_sub_agent()


def keep(home: Path, data: bytes, name: str = f"{MAIN.session}.jsonl") -> Path:
    path = home / ".claude" / "projects" / PROJECT / name
    write(path, data)
    return path


def bring_in() -> str:
    """The id of the one thread that an import makes."""
    done("import")
    (thread,) = done("list", "--json").json
    return str(thread["id"])


@pytest.fixture
def thread(home: Path) -> str:
    keep(home, MAIN.data)
    return bring_in()


def test_the_agents_own_file_goes_to_stdout_to_the_byte(thread: str) -> None:
    answer = done("export", thread, "--format", "claude-code")
    assert (answer.data, answer.err) == (MAIN.data, "")
    assert done("export", thread, "--format", "claude-code", "-o", "-").data == MAIN.data


def test_what_was_added_is_told(thread: str, tmp_path: Path) -> None:
    done("reply", thread, "and then?")
    path = tmp_path / "out.jsonl"
    answer = done("export", thread, "--format", "claude-code", "-o", str(path))
    assert answer.data == b""
    assert answer.err.splitlines()[0].startswith("wrote ")
    assert answer.err.splitlines()[1] == "with 1 turn added here, behind what the agent wrote"
    assert path.read_bytes().startswith(MAIN.data)
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_is_left_out_is_one_line_and_a_folder_gets_it_all(home: Path, tmp_path: Path) -> None:
    keep(home, MAIN.data)
    agent = f"{MAIN.session}/subagents/agent-{AGENT.agent}.jsonl"
    keep(home, AGENT.data, agent)
    thread = bring_in()
    answer = done("export", thread, "--format", "claude-code")
    assert answer.data == MAIN.data
    assert answer.err == f"left out: 1 more file of this session, such as {agent}; -o FOLDER/ writes all\n"
    for folder in (f"{tmp_path}/new/", str(tmp_path)):
        answer = done("export", thread, "--format", "claude-code", "-o", folder)
        assert "left out" not in answer.err
        assert (Path(folder) / agent).read_bytes() == AGENT.data
        assert (Path(folder) / f"{MAIN.session}.jsonl").read_bytes() == MAIN.data


def test_earlier_generations_are_told_and_given(home: Path, thread: str) -> None:
    keep(home, a_short_session().data)
    done("import")
    answer = done("export", thread, "--format", "claude-code")
    assert answer.data == a_short_session().data
    assert answer.err == (
        "this is generation 2 of the file, which was rewritten; --generation N gives an earlier one: 1\n"
    )
    first = done("export", thread, "--format", "claude-code", "--generation", "1")
    assert (first.data, first.err) == (MAIN.data, "")


def test_a_branch_takes_the_added_turns_on_its_way(thread: str) -> None:
    asked = done("reply", thread, "this way").out.strip()
    other = done("reply", thread, "that way", "--parent", asked).out.strip()
    answer = done("export", thread, "--format", "claude-code", "--branch", asked)
    assert answer.data.count(b'"raddle":') == 1
    assert "left out: 1 added turn on other branches; --branch MESSAGE takes the path to one" in answer.err
    assert other.encode() not in answer.data


@pytest.mark.parametrize(
    ("words", "told", "hint"),
    [
        (("--format", "codex"), "came from claude-code, not from Codex", "--format claude-code"),
        (("--format", "claude-code", "--generation", "7"), "no generation 7", "kept here: 1"),
        (("--format", "json", "--generation", "1"), "--generation is of an agent's own file", "claude-code"),
    ],
)
def test_what_cannot_be_is_one_line_and_one_hint(
    thread: str, words: tuple[str, ...], told: str, hint: str
) -> None:
    answer = raddle("export", thread, *words)
    assert (answer.code, answer.data) == (2, b"")
    first, second = answer.err.splitlines()
    assert told in first
    assert hint in second


def test_a_thread_of_ones_own_has_no_such_file() -> None:
    answer = raddle("export", new("hello"), "--format", "gemini")
    assert answer.code == 2
    assert "did not come from Gemini CLI" in answer.err
    assert "json and markdown" in answer.err


@pytest.mark.parametrize(
    "path", ["/dev/null/x/", "/dev/null/x", "no\0path/", "~nobody-here/x\0", "x" * 300, f"{'x' * 300}/"]
)
def test_where_nothing_can_be_written_is_one_error(
    thread: str, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = raddle("export", thread, "--format", "claude-code", "-o", path)
    assert answer.code in (2, 6)
    assert len(answer.err.splitlines()) == 2
    assert not any(tmp_path.iterdir())


def test_a_device_stays_what_it_is(thread: str) -> None:
    done("export", thread, "--format", "claude-code", "-o", os.devnull)
    assert not Path(os.devnull).is_file()


def test_a_reader_that_goes_away_is_no_error(home: Path) -> None:
    session = a_short_session()
    while len(session.data) < 3_000_000:
        session.user("x" * 400_000)
    keep(home, session.data)
    thread = bring_in()
    with subprocess.Popen(
        [*PROGRAM, "export", thread, "--format", "claude-code"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ.copy(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(100) == session.data[:100]
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0
