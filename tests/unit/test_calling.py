"""The command that is printed is one that works where it is read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from raddle.apps.cli.calling import called, how_to_call


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A raddle in a folder that is on no PATH."""
    return a_program(tmp_path / "checkout" / ".venv" / "bin")


def a_program(folder: Path) -> Path:
    folder.mkdir(parents=True)
    program = folder / "raddle"
    program.write_text("#!/bin/sh\necho it is raddle\n")
    program.chmod(0o700)
    return program


def typed(command: str, here: Path) -> str:
    """What a shell prints for it."""
    ran = subprocess.run(["/bin/sh", "-c", command], cwd=here, capture_output=True, text=True, check=True)
    return ran.stdout


def test_it_is_called_by_name_where_the_shell_finds_it(ours: Path, tmp_path: Path) -> None:
    assert called(ours, ["/usr/bin", str(ours.parent)], tmp_path) == ("raddle", "")
    link = tmp_path / "links"
    link.mkdir()
    (link / "raddle").symlink_to(ours)
    assert called(ours, [str(link)], tmp_path) == ("raddle", "")


def test_another_of_that_name_is_not_taken_for_it(ours: Path, tmp_path: Path) -> None:
    other = a_program(tmp_path / "other")
    assert called(ours, [str(other.parent)], tmp_path / "checkout").command == ".venv/bin/raddle"


@pytest.mark.parametrize("here", ["checkout", ".", "checkout/.venv/bin"])
def test_else_by_a_path_that_works_there(here: str, ours: Path, tmp_path: Path) -> None:
    calling = called(ours, ["/usr/bin"], tmp_path / here)
    assert typed(calling.command, tmp_path / here) == "it is raddle\n"
    assert not calling.command.startswith("/")


def test_from_outside_by_its_whole_path(ours: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert called(ours, [], Path("/usr")).command == str(ours)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert called(ours, [], Path("/usr")).command == "~/checkout/.venv/bin/raddle"
    spaced = a_program(tmp_path / "my tools")
    assert typed(called(spaced, [], Path("/usr")).command, Path("/usr")) == "it is raddle\n"


@pytest.mark.parametrize("has_own_folder", [False, True])
def test_the_advice_makes_it_callable_by_name(
    has_own_folder: bool, ours: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    own = home / ".local/bin"
    (own if has_own_folder else home).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    calling = called(ours, [str(own)], tmp_path)
    advice = calling.advice.partition(": ")[2]
    assert advice.startswith("ln -s " if has_own_folder else "export PATH=")
    assert typed(f'PATH="{own}:$PATH"; {advice}; raddle', tmp_path) == "it is raddle\n"


def test_this_program_is_called_somehow() -> None:
    assert how_to_call().command
