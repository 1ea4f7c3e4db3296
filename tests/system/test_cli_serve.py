"""What an operator does on the command line of the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders_daemon import called
from tests.builders_import import Machine
from tests.command_line import Answer
from tests.postgres import NewDatabase

pytest_plugins = ("tests.postgres",)


@pytest.fixture
def host(tmp_path: Path, new_database: NewDatabase) -> Machine:
    machine = Machine(tmp_path / "host")
    machine.variables["RADDLE_DATABASE_URL"] = new_database()
    return machine


def ok(machine: Machine, *arguments: str) -> Answer:
    answer = called(machine, "serve", "user", *arguments)
    assert answer.code == 0, answer
    return answer


def test_accounts_are_made_listed_disabled_and_let_in_again(host: Machine) -> None:
    told = ok(host, "add", "ada", "--admin").err
    assert "it has no password" in told
    ok(host, "add", "bob")
    ok(host, "disable", "bob")
    shown = ok(host, "list").lines
    assert [line.split()[0] for line in shown] == ["ada", "bob"]
    assert "admin, no password" in shown[0]
    assert "disabled" in shown[1]
    found = ok(host, "list", "--json").json
    assert [(one["name"], one["is_admin"], one["is_disabled"], one["threads"]) for one in found] == [
        ("ada", True, False, 0),
        ("bob", False, True, 0),
    ]
    ok(host, "enable", "bob")
    assert not any(one["is_disabled"] for one in ok(host, "list", "--json").json)
    assert called(host, "serve", "user", "disable", "nobody").code == 3
