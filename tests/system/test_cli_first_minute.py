"""`raddle up` and the first `raddle import`: what a new user sees, and what they are asked once."""

from __future__ import annotations

from pathlib import Path

import pytest

from raddle.apps.cli.demo_home import DemoHome, write_demo_home
from raddle.config import load_config
from tests.command_line import done, program, raddle, seen, terminal

NOW = 1_795_000_000_000_000


@pytest.fixture(autouse=True)
def without_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked at here is the import; the server of `up` has tests of its own (`test_cli_up.py`)."""
    monkeypatch.setenv("RADDLE_OFFLINE", "1")


QUESTION = "Import them now? [Y/n]"


@pytest.fixture
def sessions(home: Path) -> DemoHome:
    """Sessions of Claude Code where it keeps them."""
    return write_demo_home(home, now=NOW)


@pytest.fixture
def one_session(sessions: DemoHome) -> Path:
    """The file of one of them."""
    return next(sessions.claude_home.glob("projects/*/*.jsonl"))


@pytest.mark.usefixtures("sessions")
@pytest.mark.parametrize("command", ["import", "up"])
def test_the_first_import_says_what_was_found_and_asks(command: str, home: Path) -> None:
    with terminal(command) as screen:
        screen.wait_for(QUESTION)
        for told in ("claude-code  12 sessions", "~/.local/share/raddle", "~/.config/raddle/config.toml"):
            assert told in screen.shown
        assert "exclude = " in screen.shown
        assert not list(load_config().data_dir.glob("threads/*"))
        screen.type("\n")
        assert screen.end() == 0
    assert len(done("list", "--json").json) == 12
    assert QUESTION not in seen(command)


@pytest.mark.usefixtures("sessions")
@pytest.mark.parametrize("command", ["import", "up"])
def test_whoever_says_no_has_nothing_imported(command: str) -> None:
    with terminal(command) as screen:
        screen.wait_for(QUESTION)
        screen.type("n\n")
        assert screen.end() == 0
    assert "nothing was imported" in screen.shown
    assert done("list", "--json").json == []


@pytest.mark.usefixtures("sessions")
@pytest.mark.parametrize("command", ["import", "up"])
def test_nobody_is_asked_without_a_terminal_or_with_json(command: str) -> None:
    assert program(command).code == 0
    assert len(done("list", "--json").json) == 12


@pytest.mark.usefixtures("sessions")
def test_whoever_could_not_be_asked_is_told_what_was_done_instead_once() -> None:
    told = done("up").err
    assert "no terminal to ask at" in told
    assert "nothing left out or kept private by rules" in told
    assert "~/.config/raddle/config.toml" in told
    assert "no terminal to ask at" not in done("up").err


@pytest.mark.usefixtures("sessions")
def test_whoever_could_not_be_asked_is_told_that_rules_held() -> None:
    folder = load_config().config_dir
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[import]\nexclude = ["**/papercrane*"]\n')
    told = done("up").err
    assert "1 rule of ~/.config/raddle/config.toml held" in told


def test_nothing_is_told_of_rules_where_nothing_was_found() -> None:
    assert "no terminal to ask at" not in done("up").err


@pytest.mark.usefixtures("sessions")
def test_a_program_at_a_terminal_is_not_asked() -> None:
    assert QUESTION not in seen("import", "--json")
    assert len(done("list", "--json").json) == 12


def test_nobody_is_asked_where_nothing_is_found() -> None:
    assert QUESTION not in seen("import")
    assert QUESTION not in seen("up")


@pytest.mark.usefixtures("sessions")
def test_rules_that_are_there_are_named_instead_of_explained() -> None:
    folder = load_config().config_dir
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text('[import]\nexclude = ["**/papercrane*"]\n')
    with terminal("import") as screen:
        screen.wait_for(QUESTION)
        assert "1 rule" in screen.shown
        assert "clients" not in screen.shown
        screen.type("y\n")
        assert screen.end() == 0
    assert 0 < len(done("list", "--json").json) < 12


@pytest.mark.usefixtures("sessions")
def test_control_c_at_the_question_imports_nothing() -> None:
    with terminal("import") as screen:
        screen.wait_for(QUESTION)
        assert screen.interrupt() == 130
    assert done("list", "--json").json == []


@pytest.mark.usefixtures("sessions")
def test_up_says_what_to_try_and_each_of_it_works() -> None:
    told = done("up", "--json").json
    assert told.keys() == {"import", "data_dir", "server", "try"}
    assert told["import"]["threads"] == 12
    import subprocess

    for line in told["try"]:
        ran = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=True)
        assert ran.stdout, line
    assert len(told["try"]) >= 4


@pytest.mark.usefixtures("sessions")
def test_up_again_brings_in_what_is_new(one_session: Path) -> None:
    done("up")
    one_session.rename(one_session.with_name("0" * 8 + one_session.name[8:]))
    answer = done("up")
    assert "Try:" in answer.out
    assert "nothing is here yet" not in answer.out


def test_up_on_an_empty_machine_says_what_to_do() -> None:
    answer = done("up")
    assert " import PATH` reads" in answer.out
    assert "Try:" not in answer.out


def test_the_demo_is_apart_from_everything_of_the_persons(home: Path) -> None:
    answer = done("up", "--demo", "--json")
    assert answer.json["import"]["threads"] == 12
    assert [entry.name for entry in home.iterdir()] == [".cache"]
    assert done("list", "--json").json == []


def test_the_demos_command_works_there_and_again(home: Path) -> None:
    import json
    import os
    import subprocess

    done("up", "--demo")
    command = str(home / ".cache/raddle/demo/raddle")
    env = {**os.environ, "NSED_THREAD_DIR": "/nonexistent", "RADDLE_WORKSPACE": "/elsewhere"}
    ran = subprocess.run([command, "list", "--json"], capture_output=True, check=True, env=env)
    assert len(json.loads(ran.stdout)) == 12
    again = done("up", "--demo", "--json").json["import"]
    assert (again["threads"], again["agents"][0]["unchanged"]) == (0, 12)


def test_the_demo_finds_what_it_says_it_finds() -> None:
    answer = done("up", "--demo")
    assert answer.out.count(" search ") == 3
    assert "made a mistake" not in answer.err


def test_a_demo_without_room_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RADDLE_CACHE_DIR", str(tmp_path / "file"))
    answer = raddle("up", "--demo")
    assert answer.code == 6
    assert "RADDLE_CACHE_DIR" in answer.err
