"""What a command does to a thread that the server has is done there too, at once; and what is not here is fetched."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from psycopg import Connection

from raddle.server.blobs.uploads import forget, unnamed
from raddle.server.rows import unpacked
from tests.builders_claude_code import ClaudeSession, a_short_session
from tests.builders_daemon import called
from tests.builders_import import Machine
from tests.builders_served import a_token
from tests.builders_server import connected, prepare
from tests.command_line import PROGRAM, Answer, Terminal
from tests.postgres import NewDatabase
from tests.served_program import served_at

pytest_plugins = ("tests.postgres",)


class World(NamedTuple):
    """A server, its database, and two machines of one person, both signed in."""

    connection: Connection
    one: Machine
    other: Machine
    server: contextlib.ExitStack

    def rows(self, query: str) -> list[tuple[object, ...]]:
        return self.connection.execute(query.encode()).fetchall()

    def holds(self, words: str) -> bool:
        """Do these words stand anywhere in the server's tables, compressed or not?"""
        tables = self.rows(
            "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'"
        )
        values = (value for (name,) in tables for row in self.rows(f'TABLE "{name}"') for value in row)
        return any(words.encode() in _plain(value) for value in values)


def _plain(value: object) -> bytes:
    return unpacked(value) if isinstance(value, bytes) else str(value).encode()


def ok(machine: Machine, *arguments: str) -> Answer:
    answer = called(machine, *arguments)
    assert answer.code == 0, answer
    return answer


@pytest.fixture
def world(new_database: NewDatabase, tmp_path: Path) -> Iterator[World]:
    conninfo = new_database(prepare)
    machines = Machine(tmp_path / "one"), Machine(tmp_path / "other")
    with connected(conninfo) as connection, contextlib.ExitStack() as server:
        token = a_token(connection)
        url = server.enter_context(served_at(conninfo, tmp_path / "blobs"))
        for machine in machines:
            machine.variables |= {"RADDLE_SERVER": url, "RADDLE_TOKEN": token}
        yield World(connection, *machines, server)


def begun(world: World, text: str = "marimba") -> str:
    """A thread on one machine that the server knows."""
    thread_id = ok(world.one, "new", text).out.strip()
    ok(world.one, "sync")
    return thread_id


def test_what_is_deleted_restored_and_made_private_is_told_at_once(world: World) -> None:
    thread_id = begun(world)
    assert ok(world.one, "delete", thread_id).err.count("server") == 0
    assert world.rows("SELECT is_deleted, is_private FROM threads") == [(True, False)]
    ok(world.one, "restore", thread_id)
    assert world.rows("SELECT is_deleted, is_private FROM threads") == [(False, False)]
    assert world.holds("marimba")
    ok(world.one, "private", thread_id)
    assert world.rows("SELECT is_deleted, is_private FROM threads") == [(False, True)]
    assert not world.holds("marimba")
    ok(world.one, "private", thread_id, "--off")
    assert world.holds("marimba")


def test_where_the_server_cannot_be_told_one_line_says_so_and_the_next_sync_tells_it(world: World) -> None:
    thread_id = begun(world)
    unknown = ok(world.one, "new", "never synced").out.strip()
    world.server.close()
    answer = ok(world.one, "private", thread_id)
    (line,) = answer.err.splitlines()
    assert line.startswith("warning: the server still has this thread: the server was not told: ")
    (line,) = ok(world.one, "delete", thread_id).err.splitlines()[:1]
    assert line.startswith("warning: the server was not told: ")
    assert line.endswith("; the next sync tells it")
    assert "server" not in ok(world.one, "delete", unknown).err
    world.one.variables["RADDLE_OFFLINE"] = "1"
    assert "server" not in ok(world.one, "restore", thread_id).err
    assert "the server still has this thread" in ok(world.one, "private", thread_id).err


def test_a_purge_goes_through_the_server_and_asks_so(world: World) -> None:
    thread_id = begun(world)
    ok(world.other, "sync")
    answer = ok(world.one, "purge", thread_id, "-y", "--json").json
    assert (answer["purged"], answer["from_server"]) == (True, True)
    assert not world.holds("marimba")
    assert called(world.one, "show", thread_id).code == 3
    ok(world.one, "sync")
    assert called(world.one, "show", thread_id).code == 3
    assert "erased for good" in ok(world.other, "sync").err
    assert ok(world.other, "show", thread_id).out.count("marimba")
    assert ok(world.other, "purge", thread_id, "-y").out.strip().endswith("here and on the server")


def test_a_purge_that_the_server_does_not_hear_of_leaves_the_choice(world: World) -> None:
    thread_id = begun(world)
    with contextlib.ExitStack() as away:
        variables = dict(world.one.variables)
        away.callback(world.one.variables.update, variables)
        world.one.variables["RADDLE_OFFLINE"] = "1"
        answer = called(world.one, "purge", thread_id, "-y")
        assert answer.code != 0
        assert "raddle purge --local" in answer.err
        assert ok(world.one, "show", thread_id).out.count("marimba")
        ok(world.one, "purge", thread_id, "--local", "-y")
        del world.one.variables["RADDLE_OFFLINE"]
    ok(world.one, "sync")
    assert called(world.one, "show", thread_id).code == 3
    assert world.holds("marimba")
    ok(world.one, "sync", "--revive")
    assert ok(world.one, "show", thread_id).out.count("marimba")


def test_words_that_were_taken_back_and_purged_are_nowhere_on_the_server(
    world: World, tmp_path: Path
) -> None:
    talk = ClaudeSession()
    talk.user("keep this")
    talk.says("kohlrabi")
    for machine in (world.one, world.other):
        machine.keep(talk)
        ok(machine, "import")
        ok(machine, "sync")
    assert world.holds("kohlrabi")
    assert len(world.rows("SELECT * FROM thread_sources")) == 2
    thread_id = world.one.thread().id
    ok(world.one, "undo", thread_id)
    ok(world.one, "purge", thread_id, "--removed", "-y")
    for machine in (world.other, world.one):
        ok(machine, "sync")
    assert not world.holds("kohlrabi")
    assert world.rows("SELECT * FROM thread_sources") == []
    assert world.rows("SELECT * FROM thread_blobs") == []
    (left,) = unnamed(world.connection, older_than_seconds=0)
    assert forget(world.connection, left, older_than_seconds=0)


def test_an_export_fetches_what_is_not_here_once_and_says_so(world: World) -> None:
    talk = a_short_session()
    world.one.keep(talk)
    ok(world.one, "import")
    ok(world.one, "sync")
    ok(world.other, "sync")
    thread_id = world.other.thread().id
    world.other.variables["RADDLE_OFFLINE"] = "1"
    answer = called(world.other, "export", thread_id, "--format", "claude-code")
    assert (answer.code, answer.data) == (2, b"")
    assert "are not kept here" in answer.err
    del world.other.variables["RADDLE_OFFLINE"]
    answer = ok(world.other, "export", thread_id, "--format", "claude-code")
    assert answer.data == talk.data
    assert answer.err.startswith("fetched ")
    assert len(answer.err.splitlines()) == 1
    world.server.close()
    again = ok(world.other, "export", thread_id, "--format", "claude-code")
    assert (again.data, again.err) == (talk.data, "")
    third = world.one.folder.with_name("third")
    machine = Machine(third)
    machine.variables |= world.one.variables
    with machine.stores() as stores:
        stores.threads.save(world.one.thread())
    answer = called(machine, "export", thread_id, "--format", "claude-code")
    assert answer.code == 2
    assert "the server was asked for the source bytes" in answer.err
    assert "are not kept here" in answer.err


SAVING = """
import sys
import raddle
with raddle.open() as store:
    thread = store.get(sys.argv[1])
    print(store.save_and_sync(thread))
"""


def saved(machine: Machine, thread_id: str) -> str:
    """What a program on that machine is told that saves a thread."""
    ran = subprocess.run(
        [sys.executable, "-c", SAVING, thread_id],
        env={**os.environ, **machine.environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip() + ran.stderr


def test_a_program_is_told_whether_the_server_has_what_it_saved(world: World) -> None:
    thread_id = ok(world.one, "new", "marimba").out.strip()
    assert saved(world.one, thread_id) == "True"
    assert world.holds("marimba")
    private = ok(world.one, "new", "between us", "--private").out.strip()
    assert saved(world.one, private) == "False"
    assert not world.holds("between us")
    world.server.close()
    assert saved(world.one, thread_id) == "False"
    world.one.variables = {}
    assert saved(world.one, thread_id) == "False"


def test_the_question_of_a_purge_says_where_it_goes(world: World) -> None:
    thread_id = begun(world)
    everywhere = "here and on the server (your other devices keep"
    for option, told in (((), everywhere), (("--local",), "on this machine alone")):
        command = (*PROGRAM, "purge", thread_id, *option)
        with Terminal(command, columns=200, env=world.one.environment) as screen:
            screen.wait_for(told)
            screen.type("n\n")
            assert screen.end() == 0
    assert ok(world.one, "show", thread_id).out.count("marimba")


def fetched(url: str) -> tuple[int, bytes]:
    """What anybody gets there, without a token: by a program of its own, since a sealed test speaks no TCP."""
    asks = (
        "import sys, urllib.error, urllib.request\n"
        "try:\n"
        "    with urllib.request.urlopen(sys.argv[1]) as found: status, data = found.status, found.read()\n"
        "except urllib.error.HTTPError as error:\n"
        "    with error: status, data = error.code, b''\n"
        "sys.stdout.buffer.write(b'%d ' % status + data)\n"
    )
    ran = subprocess.run([sys.executable, "-c", asks, url], capture_output=True, check=True)
    status, _, data = ran.stdout.partition(b" ")
    return int(status), data


def test_the_address_that_share_tells_opens_the_thread_to_anybody_until_it_is_closed(world: World) -> None:
    thread_id = begun(world)
    url = ok(world.one, "share", thread_id, "--visibility", "public", "--json").json["url"]
    status, data = fetched(url)
    assert (status, b"marimba" in data) == (200, True)
    assert ok(world.one, "share", thread_id, "--visibility", "private", "--json").json["is_told"]
    assert fetched(url)[0] == 404


def test_share_refuses_a_private_thread_and_a_dry_run_changes_nothing(world: World) -> None:
    thread_id = begun(world)
    planned = ok(world.one, "share", thread_id, "--visibility", "public", "--dry-run", "--json").json
    assert (planned["was"], planned["is_dry_run"]) == ("organization", True)
    assert world.one.thread().visibility == "organization"
    ok(world.one, "private", thread_id)
    refused = called(world.one, "share", thread_id, "--visibility", "public", "--json")
    assert refused.code == 2
    assert "does not leave" in refused.error["message"]


@pytest.mark.soak
def test_who_closes_a_thread_is_told_what_it_is_and_so_is_who_opens_a_private_one(world: World) -> None:
    thread_id = begun(world)
    ok(world.one, "share", thread_id, "--visibility", "private")
    ok(world.other, "sync")
    url = ok(world.other, "share", thread_id, "--visibility", "public", "--json").json["url"]
    assert fetched(url)[0] == 200
    assert ok(world.one, "share", thread_id, "--visibility", "private").out.startswith("private: only you")
    assert fetched(url)[0] == 404
    ok(world.one, "private", thread_id)
    refused = called(world.other, "share", thread_id, "--visibility", "public", "--json")
    assert (refused.code, "does not leave" in refused.error["message"]) == (2, True)
    assert fetched(url)[0] == 404


@pytest.mark.soak
def test_what_is_shared_while_the_server_is_away_is_said_to_be_so_later(world: World) -> None:
    thread_id = begun(world)
    world.server.close()
    answer = ok(world.one, "share", thread_id, "--visibility", "public")
    assert answer.out.strip() == "public, once the server is told"
    assert answer.err.startswith("warning: the server was not told yet: ")
    assert world.one.thread().visibility == "public"


@pytest.mark.soak
def test_a_search_says_how_each_thread_stands_to_the_server(world: World) -> None:
    thread_id = begun(world)
    ok(world.one, "new", "marimba again")
    hits = ok(world.one, "search", "marimba", "--json").json["hits"]
    assert {hit["thread"]["id"] == thread_id: hit["thread"]["sync"]["state"] for hit in hits} == {
        True: "in_step",
        False: "pending",
    }
    (line,) = ok(world.one, "search", "marimba -again", "--jsonl").out.splitlines()
    assert '"in_step"' in line
    (there,) = ok(world.other, "search", "marimba", "--online", "--json").json["hits"]
    assert there["thread"]["sync"]["state"] == "in_step"


def test_a_thread_deleted_here_and_edited_there_is_settled_by_restore(world: World) -> None:
    thread_id = begun(world)
    ok(world.other, "sync")
    world.other.variables["RADDLE_OFFLINE"] = "1"
    ok(world.other, "reply", thread_id, "celesta")
    del world.other.variables["RADDLE_OFFLINE"]
    ok(world.one, "delete", thread_id)
    for machine in (world.other, world.one):
        ok(machine, "sync")
    told = ok(world.one, "conflicts").out
    assert "deleted here" in told
    assert "edited elsewhere" in told
    assert "{" not in told
    assert ok(world.one, "restore", thread_id).out.strip() == "restored 1 thread"
    assert ok(world.one, "conflicts", "--json").json == []
    ok(world.other, "sync")
    assert ok(world.other, "conflicts", "--json").json == []


@pytest.mark.soak
def test_a_conflict_says_which_device_said_what(world: World) -> None:
    thread_id = begun(world)
    ok(world.other, "sync")
    ok(world.one, "rename", thread_id, "mine")
    ok(world.other, "rename", thread_id, "theirs")
    for machine in (world.one, world.other, world.one):
        ok(machine, "sync")
    (told,) = ok(world.one, "conflicts").out.splitlines()
    assert "mine (here " in told
    assert "theirs (on " in told
    (found,) = ok(world.one, "conflicts", "--json").json
    assert [write["value"] for write in found["writes"]] == found["values"] == ["mine", "theirs"]
    assert all(len(write["device"]) == 8 and write["at"].endswith("Z") for write in found["writes"])


def test_a_thread_that_another_device_purged_is_told_once_with_what_to_do(world: World) -> None:
    thread_id = begun(world)
    ok(world.other, "sync")
    ok(world.one, "purge", thread_id, "-y")
    first = ok(world.other, "sync").err
    assert "erased for good on another device" in first
    assert "--local`" in first
    assert "erased" not in ok(world.other, "sync").err
    assert ok(world.other, "sync", "status").out.count("refused: 1 thread") == 1
    ok(world.other, "purge", thread_id, "--local", "-y")
    assert "refused" not in ok(world.other, "sync", "status").out
