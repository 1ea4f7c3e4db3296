"""`raddle mcp` as a person uses it, and what `raddle mcp-serve` says where it cannot serve."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.command_line import done, raddle


@pytest.fixture
def project(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "code"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


def test_it_shows_what_it_would_write_and_writes_nothing_unasked(project: Path) -> None:
    answer = raddle("mcp", "install", "claude")
    assert answer.code == 2
    assert '+      "command": "raddle",' in answer.lines
    assert "-y" in answer.err
    assert not list(project.iterdir())


def test_a_yes_writes_it_and_taking_it_out_leaves_nothing(project: Path) -> None:
    answer = done("mcp", "install", "vscode", "-y")
    assert "registered in" in answer.err
    assert "VS Code asks" in answer.err
    assert "nothing to change" in done("mcp", "install", "vscode", "-y").err
    assert done("mcp", "uninstall", "vscode", "--json", "-y").json["is_written"] is True
    assert not list(project.iterdir())
    assert "nothing to change" in done("mcp", "uninstall", "vscode").err


def test_for_a_program_it_is_one_json_object(project: Path) -> None:
    shown = raddle("mcp", "install", "cursor", "--json", "-y").json
    assert shown["client"] == "cursor"
    assert shown["files"] == [str(project / ".cursor/mcp.json")]
    assert shown["is_written"] is True
    assert '"mcp-serve"' in shown["diff"]


def test_a_client_that_nobody_knows_is_named(project: Path) -> None:
    answer = raddle("mcp", "install", "emacs")
    assert answer.code == 2
    assert "opencode" in answer.err
    assert "mcp-serve" in answer.err


def test_without_the_extra_it_says_what_to_install(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    answer = raddle("mcp-serve")
    assert answer.code == 2
    assert answer.data == b""
    assert "raddle[mcp]" in answer.err
    assert "raddle[mcp]" in done("mcp", "install", "gemini", "-y").err
