"""The daemon as the system starts it: the file that is written, and what becomes of it."""

from __future__ import annotations

import plistlib
import shlex
import sys
from pathlib import Path

import pytest

from raddle.config import Config, load_config
from raddle.model.errors import ConflictError, InvalidInput
from raddle.wiring.daemon_unit import install, uninstall, unit_of


def settings(home: Path, **variables: str) -> Config:
    return load_config({"HOME": str(home), **variables})


@pytest.fixture
def no_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing here"))


@pytest.fixture
def systemctl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A `systemctl` that only notes how it is called; the file it notes it in."""
    folder, notes = tmp_path / "bin", tmp_path / "calls"
    folder.mkdir()
    program = folder / "systemctl"
    program.write_text(f'#!/bin/sh\necho "$@" >> {shlex.quote(str(notes))}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return notes


def test_the_unit_runs_this_python_with_these_folders_and_holds_no_secret(home: Path) -> None:
    config = settings(home, RADDLE_TOKEN="secret" * 8, CODEX_HOME="/opt/100% mine", RADDLE_STATE_DIR="/s/a b")
    unit = unit_of(config, "systemd")
    assert unit.file == home / ".config/systemd/user/raddle.service"
    lines = unit.text.splitlines()
    assert f'ExecStart="{sys.executable}" "-P" "-m" "raddle" "daemon"' in lines
    assert 'Environment="CODEX_HOME=/opt/100%% mine"' in lines
    assert 'Environment="RADDLE_STATE_DIR=/s/a b"' in lines
    assert f'Environment="RADDLE_DATA_DIR={config.data_dir}"' in lines
    assert "secret" not in unit.text


def test_another_data_folder_has_a_unit_of_its_own(home: Path) -> None:
    one = unit_of(settings(home), "systemd")
    other = unit_of(settings(home, RADDLE_DATA_DIR="/d"), "systemd")
    assert one.file != other.file


def test_the_launchd_agent_says_the_same(home: Path) -> None:
    unit = unit_of(settings(home, RADDLE_SERVER="https://raddle.example.org"), "launchd")
    assert unit.file == home / "Library/LaunchAgents/raddle.plist"
    value = plistlib.loads(unit.text.encode())
    assert value["ProgramArguments"] == [sys.executable, "-P", "-m", "raddle", "daemon"]
    assert value["EnvironmentVariables"]["RADDLE_SERVER"] == "https://raddle.example.org"
    assert value["KeepAlive"] == {"SuccessfulExit": False}


def test_a_name_that_would_begin_a_line_of_its_own_is_refused(home: Path) -> None:
    with pytest.raises(InvalidInput):
        unit_of(settings(home, CODEX_HOME="/x\nExecStart=/bin/evil"), "systemd")


@pytest.mark.usefixtures("no_system")
@pytest.mark.parametrize("system", ["systemd", "launchd"])
def test_where_no_system_hears_it_the_commands_are_told(home: Path, system: str) -> None:
    config = settings(home)
    unit = unit_of(config, "systemd" if system == "systemd" else "launchd")
    done = install(config, unit)
    assert (done.is_written, done.is_done) == (True, False)
    assert unit.file.read_text() == unit.text
    assert any(command.startswith(("systemctl --user", "launchctl")) for command in done.commands)
    again = install(config, unit)
    assert not again.is_written
    wanted = unit.file.parent / "default.target.wants" / unit.file.name
    wanted.parent.mkdir()
    wanted.symlink_to(unit.file)
    gone = uninstall(unit)
    assert not wanted.is_symlink()
    assert (gone.is_written, gone.is_done) == (True, False)
    assert not unit.file.exists()
    assert not uninstall(unit).is_written


def test_systemd_is_told_to_start_it_and_to_forget_it(home: Path, systemctl: Path) -> None:
    config = settings(home)
    unit = unit_of(config, "systemd")
    assert install(config, unit).is_done
    assert systemctl.read_text().splitlines() == [
        "--user show-environment",
        "--user daemon-reload",
        "--user enable raddle.service",
        "--user restart raddle.service",
    ]
    systemctl.unlink()
    assert uninstall(unit).is_done
    assert systemctl.read_text().splitlines() == [
        "--user show-environment",
        "--user disable --now raddle.service",
        "--user daemon-reload",
    ]


@pytest.mark.usefixtures("no_system")
@pytest.mark.parametrize("system", ["systemd", "launchd"])
def test_a_file_that_another_hand_wrote_is_left_alone(home: Path, system: str) -> None:
    config = settings(home)
    unit = unit_of(config, "systemd" if system == "systemd" else "launchd")
    unit.file.parent.mkdir(parents=True)
    unit.file.write_text("[Service]\nExecStart=/bin/mine\n")
    with pytest.raises(ConflictError):
        install(config, unit)
    with pytest.raises(ConflictError):
        uninstall(unit)
    assert unit.file.read_text() == "[Service]\nExecStart=/bin/mine\n"
