"""`raddle hooks` as a person uses it, and what it installs as the agent calls it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.builders_claude_code import SESSION, a_short_session
from tests.builders_codex import a_short_session as a_short_codex_session
from tests.builders_import import PROJECT, write
from tests.command_line import PROGRAM, done, program, raddle, terminal

PATIENCE_SECONDS = 60


@pytest.fixture
def settings(home: Path) -> Path:
    """Claude Code's settings, with something in them."""
    file = home / ".claude/settings.json"
    write(file, b'{\n  "model": "opus"\n}\n')
    return file


@pytest.fixture
def session(home: Path) -> Path:
    """A session of Claude Code."""
    path = home / ".claude/projects" / PROJECT / f"{SESSION}.jsonl"
    write(path, a_short_session().data)
    return path


def command_in(settings: Path, event: str) -> str:
    (group,) = json.loads(settings.read_text())["hooks"][event]
    (handler,) = group["hooks"]
    command: str = handler["command"]
    return command


def called(command: str, payload: dict[str, Any] | bytes, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """As an agent calls it: by a shell, where it works, with what it tells on stdin."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return subprocess.run(
        ["/bin/sh", "-c", command], input=data, cwd=folder, capture_output=True, timeout=30, check=False
    )


def comes(query: str) -> bool:
    """Is it found before long? It is brought in by a process that nobody waits for."""
    ends = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends:
        if done("search", query, "--json").json["total_threads"]:
            return True
    return False


def test_the_change_is_shown_and_nothing_written_unless_somebody_says_so(settings: Path) -> None:
    before = settings.read_bytes()
    answer = raddle("hooks", "install", "claude-code")
    assert answer.code == 2
    assert "nobody is here to answer" in answer.err
    assert '+  "hooks": {' in answer.out
    assert '-  "model": "opus"\n+  "model": "opus",\n' in answer.out
    assert settings.read_bytes() == before


def test_on_a_terminal_it_asks(settings: Path) -> None:
    before = settings.read_bytes()
    for key, is_written in (("n", False), ("y", True)):
        with terminal("hooks", "install", "claude-code") as screen:
            screen.wait_for("Write this into the settings of claude-code?")
            screen.type(f"{key}\n")
            assert screen.end() == 0
            assert ("nothing was written" in screen.shown) is not is_written
        assert (settings.read_bytes() != before) is is_written


def test_install_list_remove(settings: Path) -> None:
    before = settings.read_bytes()
    assert "installed" in done("hooks", "install", "claude-code", "--yes").err
    again = done("hooks", "install", "claude-code", "-y")
    assert (again.out, "nothing to change" in again.err) == ("", True)
    rows = {row["agent"]: row for row in done("hooks", "list", "--json").json}
    assert rows["claude-code"]["events"] == ["Stop", "SessionEnd"]
    assert rows["claude-code"]["files"] == [str(settings)]
    assert (rows["codex"]["is_there"], rows["codex"]["is_installed"]) == (False, False)
    listed = done("hooks", "list").lines
    assert "on Stop, SessionEnd" in listed[0]
    starts = [line.index("~/") for line in listed]
    assert len(set(starts)) == 1
    assert all(line[starts[0] - 2 : starts[0]] == "  " for line in listed)
    answer = done("hooks", "remove", "claude-code", "-y", "--json").json
    assert (answer["agent"], answer["files"], answer["is_written"]) == ("claude-code", [str(settings)], True)
    assert answer["diff"].startswith(f"--- {settings}\n")
    assert settings.read_bytes() == before


def test_claude_is_short_for_claude_code(settings: Path) -> None:
    done("hooks", "install", "claude", "-y")
    assert command_in(settings, "Stop").endswith("hooks run claude-code")


def test_settings_that_are_no_json_are_refused_and_the_others_still_listed(settings: Path) -> None:
    settings.write_text('{"model": ')
    answer = raddle("hooks", "install", "claude-code", "-y", "--json")
    assert answer.code == 5
    assert str(settings) in answer.error["message"]
    assert settings.read_text() == '{"model": '
    listed = done("hooks", "list")
    assert "not valid JSON" in listed.err
    assert len(listed.lines) == 3


def test_an_agent_that_is_not_known_or_was_never_here_is_said(home: Path) -> None:
    assert raddle("hooks", "install", "emacs", "-y").code == 2
    answer = raddle("hooks", "install", "gemini", "-y")
    assert answer.code == 3
    assert str(home / ".gemini") in answer.err


def test_claude_code_calls_and_the_turn_is_there(settings: Path, session: Path, tmp_path: Path) -> None:
    done("hooks", "install", "claude-code", "-y")
    told = {
        "session_id": SESSION,
        "transcript_path": str(session),
        "cwd": str(tmp_path),
        "hook_event_name": "Stop",
        "stop_hook_active": False,
    }
    (tmp_path / "click.py").write_text("raise SystemExit('somebody else')")
    (tmp_path / "raddle").mkdir()
    ran = called(command_in(settings, "Stop"), told, tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"{}\n", b"")
    assert comes("relay")


def test_at_the_end_of_a_session_it_is_waited_for_a_little(
    settings: Path, session: Path, tmp_path: Path
) -> None:
    done("hooks", "install", "claude-code", "-y")
    told = {"session_id": SESSION, "transcript_path": str(session), "hook_event_name": "SessionEnd"}
    start = time.monotonic()
    ran = called(command_in(settings, "SessionEnd"), told, tmp_path)
    assert ran.returncode == 0
    assert time.monotonic() - start < PATIENCE_SECONDS / 6
    assert comes("relay")


def test_codexs_notify_hands_its_event_over_as_an_argument(home: Path, tmp_path: Path) -> None:
    codex = a_short_codex_session()
    write(home / ".codex/sessions/2026/02/01" / codex.name, codex.data)
    done("hooks", "install", "codex", "--notify", "-y")
    line = (home / ".codex/config.toml").read_text()
    argv = json.loads(line.partition("=")[2])
    event = {"type": "agent-turn-complete", "thread-id": codex.session, "cwd": str(tmp_path)}
    ran = subprocess.run(
        [*argv, json.dumps(event)],
        stdin=subprocess.DEVNULL,
        cwd=tmp_path,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert comes("relay")


@pytest.mark.parametrize("payload", [b"", b"\xff\x00", b"[1]", b'{"session_id": "nobody-knows-it"}'])
def test_nothing_that_an_agent_tells_fails_it(payload: bytes) -> None:
    ran = program("hooks", "run", "claude-code", stdin=payload)
    assert (ran.code, ran.out) == (0, "{}\n")
    assert "Traceback" not in ran.err


def logs(home: Path, words: str) -> bool:
    """Do these words come into the log before long?"""
    file, ends = home / ".local/state/raddle/raddle.log", time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends:
        if file.exists() and words in file.read_text():
            return True
    return False


def told_of(session: Path) -> bytes:
    return json.dumps({"session_id": SESSION, "transcript_path": str(session)}).encode()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["claude-code", "{}", "more"], "unexpected extra argument"),
        (["claude-code", "--nope"], "No such option"),
        (["emacs"], "'emacs' is no agent"),
        ([], "Missing argument"),
        (["claude-code", "not json"], "told of no session"),
    ],
)
def test_words_that_do_not_fit_are_told_to_the_log_alone(home: Path, words: list[str], said: str) -> None:
    ran = program("hooks", "run", *words, stdin=b"")
    assert (ran.code, ran.out, ran.err) == (0, "{}\n", "")
    assert logs(home, said)


@pytest.mark.parametrize(
    ("folder", "said"), [("relative", "RADDLE_DATA_DIR is 'relative'"), ("/proc/nowhere", "storage")]
)
def test_a_store_that_cannot_be_used_is_told_to_the_log(
    home: Path, session: Path, monkeypatch: pytest.MonkeyPatch, folder: str, said: str
) -> None:
    monkeypatch.setenv("RADDLE_DATA_DIR", folder)
    ran = program("hooks", "run", "claude-code", stdin=told_of(session))
    assert (ran.code, ran.out, ran.err) == (0, "{}\n", "")
    assert logs(home, said)


def test_settings_that_do_not_read_are_told_to_the_log(home: Path, session: Path) -> None:
    write(home / ".config/raddle/config.toml", b"= nonsense")
    assert program("hooks", "run", "claude-code", stdin=told_of(session)).code == 0
    assert logs(home, "not valid TOML")


def test_where_there_is_no_log_either_nothing_is_said(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADDLE_STATE_DIR", "/proc/nowhere")
    ran = program("hooks", "run", "claude-code", "--nope", stdin=told_of(session))
    assert (ran.code, ran.out, ran.err) == (0, "{}\n", "")


@pytest.mark.parametrize("where", [">&-", "> /dev/full", "<&-"])
def test_streams_that_are_closed_or_full_do_not_fail_it(home: Path, where: str) -> None:
    argv = shlex.join([*PROGRAM, "hooks", "run", "claude-code", "{}"])
    ran = subprocess.run(["/bin/sh", "-c", f"{argv} {where}"], capture_output=True, timeout=30, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_an_agent_that_leaves_its_end_open_is_not_waited_for(home: Path, session: Path) -> None:
    argv = [*PROGRAM, "hooks", "run", "claude-code"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(told_of(session))
        process.stdin.flush()
        assert process.wait(timeout=PATIENCE_SECONDS / 2) == 0
    assert comes("relay")


def test_not_even_settings_of_raddle_that_cannot_be_read_fail_it(home: Path) -> None:
    write(home / ".config/raddle/config.toml", b"= nonsense")
    ran = program("hooks", "run", "codex", stdin=b'{"session_id": "12345678"}')
    assert (ran.code, ran.out, ran.err) == (0, "{}\n", "")


def test_what_is_written_into_the_settings_can_be_called_from_anywhere(settings: Path) -> None:
    done("hooks", "install", "claude-code", "-y")
    first = Path(shlex.split(command_in(settings, "Stop"))[0])
    assert first.is_absolute()
    assert os.access(first, os.X_OK)
