"""Every byte that leaves a machine is recorded, and nothing of a private thread is among them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.builders_claude_code import ClaudeSession
from tests.builders_daemon import called
from tests.builders_import import Machine
from tests.builders_served import a_token
from tests.builders_server import connected, prepare
from tests.command_line import Answer
from tests.postgres import NewDatabase
from tests.recording_proxy import recorded, texts_of
from tests.served_program import served_at

pytest_plugins = ("tests.postgres",)


class Wire(NamedTuple):
    """A machine that is signed in to a server, and what went over the wire between them."""

    machine: Machine
    file: Path

    def ok(self, *arguments: str) -> Answer:
        answer = called(self.machine, *arguments)
        assert answer.code == 0, answer
        return answer

    def carries(self, *words: str) -> list[str]:
        """Those of these words that went over the wire in whatever case or coding."""
        texts = texts_of(self.file).lower()
        return [word for word in words if word.lower().encode() in texts]


@pytest.fixture
def wire(new_database: NewDatabase, tmp_path: Path) -> Iterator[Wire]:
    conninfo = new_database(prepare)
    machine = Machine(tmp_path / "one")
    with connected(conninfo) as connection:
        token = a_token(connection)
    file = tmp_path / "wire"
    file.touch()
    with served_at(conninfo, tmp_path / "blobs") as address, recorded(address, file) as url:
        machine.variables |= {"RADDLE_SERVER": url, "RADDLE_TOKEN": token}
        yield Wire(machine, file)


def test_the_wire_is_read_or_this_page_proves_nothing(wire: Wire) -> None:
    wire.ok("new", "okapi " * 400, "--title", "bongo")
    wire.ok("sync")
    assert wire.carries("okapi", "bongo", "gerenuk") == ["okapi", "bongo"]


def test_nothing_of_a_private_thread_goes_over_the_wire_whatever_is_done_with_it(wire: Wire) -> None:
    words = ("okapi", "bongo", "gerenuk", "klipspringer", "dikdik", "kudu", "nyala")
    thread_id = wire.ok("new", "okapi " * 400, "--private", "--title", "bongo").out.strip()
    wire.ok("sync")
    wire.ok("search", "okapi")
    wire.ok("rename", thread_id, "gerenuk")
    wire.ok("tag", thread_id, "klipspringer")
    wire.ok("reply", thread_id, "dikdik " * 400)
    wire.ok("draft", thread_id, "kudu")
    fork = wire.ok("fork", thread_id).out.strip()
    wire.ok("reply", fork, "nyala")
    wire.ok("sync")
    wire.ok("delete", fork)
    wire.ok("sync")
    refused = called(wire.machine, "share", thread_id, "--visibility", "public")
    assert refused.code == 2
    wire.ok("list", "--json")
    wire.ok("sync", "status", "--json")
    assert wire.carries(*words) == []
    assert wire.carries(thread_id, fork) == [], "nor that there is such a thread"


def test_what_is_said_while_a_thread_is_private_stays_here_until_that_ends(wire: Wire) -> None:
    thread_id = wire.ok("new", "okapi").out.strip()
    wire.ok("sync")
    wire.ok("private", thread_id)
    wire.ok("reply", thread_id, "gerenuk")
    wire.ok("rename", thread_id, "bongo")
    wire.ok("sync")
    assert wire.carries("okapi", "gerenuk", "bongo") == ["okapi"]
    wire.ok("private", thread_id, "--off")
    wire.ok("sync")
    assert wire.carries("gerenuk", "bongo") == ["gerenuk", "bongo"]
    wire.ok("private", thread_id)
    wire.ok("reply", thread_id, "dikdik")
    wire.ok("sync")
    assert wire.carries("dikdik") == []


def test_an_imported_session_that_a_rule_keeps_private_sends_neither_turns_nor_source_bytes(
    wire: Wire,
) -> None:
    wire.machine.configure('[private]\nworkspaces = ["/home/dev/secret*"]\n')
    talk = ClaudeSession()
    talk.fields["cwd"] = "/home/dev/secret-plans"
    talk.user("okapi")
    talk.says("gerenuk")
    wire.machine.keep(talk)
    wire.ok("import")
    wire.ok("sync")
    assert wire.carries("okapi", "gerenuk", "secret-plans", talk.session) == []
