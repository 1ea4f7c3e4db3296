"""`raddle login`, `logout`, `whoami`, `devices` as they are called, with a real server and without one."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from psycopg import Connection

from raddle.adapters.credentials import Credentials
from raddle.model.ids import MonotonicIds
from raddle.server.accounts import device_flow
from raddle.server.accounts.devices import mint
from tests.builders_server import Person, a_person, connected, prepare
from tests.command_line import Answer, program, raddle, terminal
from tests.postgres import NewDatabase
from tests.served_program import served_at

pytest_plugins = ("tests.postgres",)

_CODE = re.compile(r"type the code (\w{4}-\w{4})")


class World(NamedTuple):
    """A server with Ada and Bob on it."""

    url: str
    connection: Connection
    ada: Person
    bob: Person

    def token(self, person: Person, name: str) -> str:
        """The token of a new device of theirs."""
        return mint(self.connection, person.user, name, ["threads"], new_id=MonotonicIds())


@pytest.fixture
def world(new_database: NewDatabase, tmp_path: Path) -> Iterator[World]:
    conninfo = new_database(prepare)
    with connected(conninfo) as connection, served_at(conninfo, tmp_path / "blobs") as url:
        yield World(url, connection, a_person(connection, "ada"), a_person(connection, "bob"))


def ok(answer: Answer) -> Answer:
    """The same, which succeeded."""
    assert answer.code == 0, answer
    return answer


def told(answer: Answer, code: int) -> dict[str, str]:
    """The error of a command with `--json`, which ended with that exit code and said nothing else."""
    assert answer.code == code, answer
    assert (answer.data, "Traceback" in answer.err) == (b"", False)
    return answer.error


def login_with(token: str, url: str) -> Answer:
    return program("login", "--server", url, "--token-stdin", stdin=token.encode() + b"\n")


def test_a_device_signs_in_is_known_and_signs_out(world: World, home: Path) -> None:
    with terminal("login", "--server", world.url) as screen:
        screen.wait_for("waiting")
        code = _CODE.search(screen.shown)
        assert code is not None, screen.shown
        assert f"open {world.url}/device" in screen.shown
        assert device_flow.approve(world.connection, code[1], world.ada.user)
        assert screen.end() == 0, screen.shown
    assert f"signed in to {world.url} as ada" in screen.shown

    kept = home / ".local/state/raddle/servers.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    me = ok(program("whoami", "--json")).json
    assert (me["server"], me["name"], me["scopes"]) == (world.url, "ada", ["threads"])
    (device,) = ok(program("devices", "--json")).json
    assert device["is_current"]
    assert device["id"] == me["device_id"]

    assert ok(program("logout")).out == f"signed out of {world.url}\n"
    assert "rdl_" not in kept.read_text()
    assert told(program("whoami", "--json"), 7)["code"] == "not_signed_in"
    assert world.connection.execute("SELECT count(*) FROM devices WHERE revoked_at IS NULL").fetchone() == (
        0,
    )


def test_a_device_that_is_not_let_in_is_told_so(world: World) -> None:
    with terminal("login", "--server", world.url) as screen:
        screen.wait_for("waiting")
        code = _CODE.search(screen.shown)
        assert code is not None
        device_flow.deny(world.connection, code[1])
        assert screen.end() == 7
    assert "was not let in" in screen.shown


def test_who_does_not_want_to_wait_stops(world: World) -> None:
    with terminal("login", "--server", world.url) as screen:
        screen.wait_for("waiting")
        assert screen.interrupt() == 130
    assert "Traceback" not in screen.shown


def test_a_token_can_be_given_and_another_goes_before_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = world.token(world.ada, "first")
    assert "as ada" in ok(login_with(first, world.url)).out
    second = world.token(world.ada, "second")
    ok(login_with(second, world.url))
    names = [device["name"] for device in ok(program("devices", "list", "--json")).json]
    assert names == ["second"], "one device has one token: signing in anew ends the former one"
    monkeypatch.setenv("RADDLE_TOKEN", world.token(world.bob, "robot"))
    assert ok(program("whoami")).out == f"bob on {world.url}, on the device robot\n"
    assert program("logout").code == 2
    monkeypatch.delenv("RADDLE_TOKEN")
    assert ok(program("whoami", "--json")).json["device_name"] == "second"
    assert login_with("rdl_made-up", world.url).code == 7
    assert ok(program("whoami", "--json")).json["device_name"] == "second", (
        "what is kept is not lost by a wrong token"
    )


def test_devices_are_listed_and_let_in_no_more(world: World) -> None:
    ok(login_with(world.token(world.ada, "laptop"), world.url))
    world.token(world.ada, "old phone")
    world.token(world.bob, "his own")
    listed = ok(program("devices"))
    assert len(listed.lines) == 2
    assert "old phone" in listed.lines[0]
    assert "laptop (this one)" in listed.lines[1]
    assert ok(program("devices", "revoke", "old phone", "--json")).json["name"] == "old phone"
    (mine,) = ok(program("devices", "--json")).json
    assert told(program("devices", "revoke", "his own", "--json"), 3)["code"] == "not_found"
    assert told(program("devices", "revoke", mine["id"][:1], "-y", "--json"), 2)["code"] == "invalid_input"
    assert "this very device" in told(program("devices", "revoke", mine["id"], "--json"), 2)["message"]
    assert ok(program("whoami", "--json")).json["device_id"] == mine["id"]
    gone = ok(program("devices", "revoke", mine["id"][:14], "-y"))
    assert "it is signed out" in gone.err
    assert told(program("devices", "--json"), 7)["code"] == "not_signed_in"


def test_a_server_that_is_away_is_a_matter_of_the_network(world: World) -> None:
    ok(login_with(world.token(world.ada, "laptop"), world.url))
    nobody = "http://127.0.0.1:9"
    error = told(program("whoami", "--json", env={**os.environ, "RADDLE_SERVER": nobody}), 7)
    assert error["code"] == "not_signed_in", "its token is for another server, and is sent to no other"
    answer = program("login", "--server", nobody)
    assert answer.code == 7
    assert "cannot be reached" in answer.err
    assert "Traceback" not in answer.err


def test_without_a_server_it_is_said_which_command_names_one() -> None:
    for command in ("whoami", "devices"):
        error = told(raddle(command, "--json"), 2)
        assert "raddle login --server URL" in error["hint"]
    assert raddle("login").code == 2
    assert raddle("logout").code == 2


def test_a_known_server_without_a_token_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADDLE_SERVER", "https://raddle.example.org")
    assert told(raddle("whoami", "--json"), 7)["code"] == "not_signed_in"


def test_offline_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RADDLE_OFFLINE", "1")
    monkeypatch.setenv("RADDLE_SERVER", "https://raddle.example.org")
    monkeypatch.setenv("RADDLE_TOKEN", "rdl_t")
    assert "RADDLE_OFFLINE" in told(raddle("whoami", "--json"), 2)["message"]
    assert raddle("login").code == 2


def test_what_is_not_encrypted_has_to_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = raddle("login", "--server", "http://192.0.2.1")
    assert answer.code == 2
    assert "--insecure" in answer.err
    monkeypatch.setenv("RADDLE_SERVER", "http://192.0.2.1")
    monkeypatch.setenv("RADDLE_TOKEN", "rdl_secret")
    error = told(raddle("whoami", "--json"), 2)
    assert "--insecure" in error["hint"]
    assert "rdl_secret" not in json.dumps(error)


@pytest.mark.parametrize("server", ["ftp://x", "https://ada:hunter2@x", "https://", " "])
def test_an_address_that_is_none_is_bad_input(server: str) -> None:
    answer = raddle("login", "--server", server)
    assert answer.code == 2
    assert "hunter2" not in answer.err


@pytest.mark.parametrize("stdin", [b"", b"\n", b"two words", b"\xff", b"x" * 5_000, b"a\0b", "é".encode()])
def test_what_is_no_token_is_bad_input(stdin: bytes) -> None:
    assert raddle("login", "--server", "https://x.example", "--token-stdin", stdin=stdin).code == 2


def test_a_server_in_the_config_file_is_the_server(home: Path) -> None:
    config = home / ".config/raddle/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[sync]\nserver = "https://from.file.example"\n')
    assert "from.file.example" in told(raddle("whoami", "--json"), 7)["message"]
    shown = {each["name"]: each for each in raddle("config", "--json").json}
    assert shown["server"]["value"] == "https://from.file.example"
    assert shown["server"]["source"] == "file"


def test_signing_out_of_a_server_that_is_away_forgets_the_token_all_the_same(home: Path) -> None:
    state = home / ".local/state/raddle"
    Credentials(state / "servers.json", state / "server-locks").keep("http://127.0.0.1:9", "rdl_1")
    answer = program("logout")
    assert answer.code == 7
    assert "forgotten here" in answer.err
    assert "rdl_" not in (state / "servers.json").read_text()
    assert program("whoami").code == 7
