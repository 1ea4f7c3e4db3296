"""What of a typed line is a command, and what is said."""

from __future__ import annotations

import pytest

from raddle.apps.cli.prompt import as_turn, as_typed, is_command


@pytest.mark.parametrize("text", ["/undo", "/attach a b", "/undo\n"])
def test_a_slash_makes_a_command(text: str) -> None:
    assert is_command(text)


@pytest.mark.parametrize("text", ["undo", "//undo", "/undo\nand more", "a\n/undo", ""])
def test_all_else_is_a_turn(text: str) -> None:
    assert not is_command(text)


@pytest.mark.parametrize("turn", ["hello", "/usr/bin", "//x", "/a\nb", "", "a\n/undo"])
def test_a_draft_stands_there_so_that_it_is_said_and_not_run(turn: str) -> None:
    typed = as_typed(turn)
    assert not is_command(typed)
    assert as_turn(typed) == turn
