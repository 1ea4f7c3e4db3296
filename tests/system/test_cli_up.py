"""`raddle up` as a person has it: a server and a daemon in the background, this machine signed in, all in step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from raddle.apps.cli.demo_home import write_demo_home
from tests.builders_served import a_token
from tests.builders_server import connected, prepare
from tests.command_line import program
from tests.postgres import NewDatabase
from tests.served_program import served_at

pytest_plugins = ("tests.postgres",)

NOW = 1_795_000_000_000_000


@pytest.fixture
def up(home: Path) -> Iterator[dict[str, object]]:
    """`raddle up` has run, over twelve sessions of an agent; what it printed."""
    write_demo_home(home, now=NOW)
    ran = program("up", "--json")
    try:
        assert ran.code == 0, ran.err
        yield ran.json
    finally:
        assert program("up", "--stop").code == 0


def test_up_brings_a_server_an_account_this_machine_and_everything_in_step(up: dict[str, object]) -> None:
    assert str(up["server"]).startswith("http://127.0.0.1:")
    assert program("whoami", "--json").json["server"] == up["server"]
    threads = program("sync", "status", "--json").json["threads"]
    assert [one["state"] for one in threads] == ["in_step"] * 12
    assert program("search", "--online", "lock_timeout", "--json").json["total_threads"] == 1
    assert program("daemon", "status", "--json").json["is_running"]


def test_up_again_is_the_same_server_and_the_same_device(up: dict[str, object]) -> None:
    devices = program("devices", "--json").json
    again = program("up", "--json")
    assert again.json["server"] == up["server"]
    assert [one["id"] for one in program("devices", "--json").json] == [one["id"] for one in devices]


def test_up_stop_ends_both_and_the_next_up_finds_what_was_there(up: dict[str, object]) -> None:
    stopped = program("up", "--stop", "--json").json
    assert stopped["server"]
    assert stopped["daemon"]
    assert program("sync").code == 7
    again = program("up", "--json")
    assert again.json["server"] == up["server"]
    assert json.loads(program("sync", "--json").out)["pushed"] == 0


def test_up_keeps_the_server_that_this_machine_is_signed_in_to(
    home: Path, new_database: NewDatabase, tmp_path: Path
) -> None:
    write_demo_home(home, now=NOW)
    conninfo = new_database(prepare)
    with connected(conninfo) as connection, served_at(conninfo, tmp_path / "blobs") as url:
        token = a_token(connection).encode()
        assert program("login", "--server", url, "--token-stdin", stdin=token).code == 0
        try:
            ran = program("up", "--json")
            assert (ran.code, ran.json["server"]) == (0, url)
            assert f"kept {url}, the server that this machine is signed in to" in ran.err
            assert connection.execute("SELECT count(*) FROM threads").fetchone() == (12,)
        finally:
            stopped = program("up", "--stop", "--json").json
        assert stopped["server"] is None, "no server of its own was started"
        assert program("whoami", "--json").json["server"] == url
