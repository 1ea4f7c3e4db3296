"""Sessions that share a file go through an import like those that have their own: once, whole, and no more."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from raddle.actions.importing.collection import Member
from raddle.adapters.agent_homes import collections
from raddle.wiring.importing import Finder, import_sessions
from raddle.wiring.purging import purge_thread
from tests.builders_chatgpt import OTHER_SESSION, Conversation
from tests.builders_import import Machine, counts, reasons, write
from tests.builders_opencode import OpenCodeSession, a_short_session, shown
from tests.builders_opencode_stores import connected, store, write_folder

SECOND = "ses_2second0000000000000000000"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def database(machine: Machine) -> Iterator[sqlite3.Connection]:
    """OpenCode's, open and with its log beside it, as while the program runs; two sessions are in it."""
    path = machine.home / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    connection = connected(path)
    store(connection, a_short_session())
    other = OpenCodeSession(SECOND)
    other.says(other.user("Where is the glaze?"), "On the shelf.")
    store(connection, other)
    yield connection
    connection.close()


def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every collection that is opened from now on to be looked into."""
    paths: list[str] = []
    real = collections.Listing._as_file

    def noted(self: collections.Listing, member: Member) -> object:
        paths.append(member.session)
        return real(self, member)

    monkeypatch.setattr(collections.Listing, "_as_file", noted)
    return paths


@pytest.mark.usefixtures("database")
def test_each_session_of_a_database_is_a_thread(machine: Machine) -> None:
    assert counts(machine.bring_in(), "opencode")[:3] == (2, 0, 0)
    assert len(machine.finds("glaze")) == len(machine.finds("relay")) == 1


@pytest.mark.usefixtures("database")
def test_a_database_that_did_not_change_is_not_looked_into(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.bring_in()
    listed = opened(monkeypatch)
    assert counts(machine.bring_in(), "opencode") == (0, 0, 2, 0)
    assert listed == []


def test_one_new_turn_reads_its_session_alone_and_keeps_what_is_new(
    machine: Machine, database: sqlite3.Connection
) -> None:
    session = OpenCodeSession("ses_3third00000000000000000000")
    for number in range(30):
        session.says(session.user(f"Question {number}"), f"Answer {number}")
    store(database, session)
    machine.bring_in()
    path = machine.home / ".local/share/opencode" / f"opencode.db#{session.session}"
    before = len(machine.source_of(path)[0].splitlines())
    session.user("And now?")
    store(database, session)
    assert counts(machine.bring_in(), "opencode") == (0, 1, 2, 1)
    (kept,) = machine.source_of(path)
    assert before < len(kept.splitlines()) < before + 8, "what did not change is not kept again"


def test_a_message_that_changes_in_place_changes_in_its_thread(
    machine: Machine, database: sqlite3.Connection
) -> None:
    session = OpenCodeSession("ses_3third00000000000000000000")
    asked = session.user("Fire it")
    answer = session.says(asked, "The first")
    store(database, session)
    machine.bring_in()
    session.now += 1000
    session.change(answer, shown("The first half and the second"))
    store(database, session)
    machine.bring_in()
    (found,) = machine.finds('"half and the second"')
    (thread,) = [thread for thread in machine.threads() if thread.id == found]
    assert [message.content for message in thread.messages] == ["Fire it", "The first half and the second"]


@pytest.mark.usefixtures("database")
def test_a_thread_whose_file_was_removed_comes_back_though_the_database_did_not_change(
    machine: Machine,
) -> None:
    machine.bring_in()
    for path in (machine.folder / "data" / "threads").glob("*.json"):
        path.unlink()
    assert counts(machine.bring_in(), "opencode")[0] == 2


@pytest.mark.usefixtures("database")
def test_a_session_that_was_purged_stays_gone_and_the_others_stay(machine: Machine) -> None:
    machine.bring_in()
    (gone,) = machine.finds("glaze")
    with machine.stores() as stores:
        purge_thread(stores, gone)
    machine.bring_in()
    assert machine.finds("glaze") == []
    assert len(machine.finds("relay")) == 1
    assert b"glaze" not in machine.everything_stored()


def test_a_rule_leaves_out_a_session_by_its_folder_and_lets_it_in_when_it_goes(
    machine: Machine, database: sqlite3.Connection
) -> None:
    folder = database.execute("SELECT directory FROM session").fetchone()[0]
    machine.configure(f'[import]\nexclude = ["{folder}"]\n')
    assert len(machine.bring_in().left_out) == 2
    assert machine.threads() == []
    machine.configure("")
    assert counts(machine.bring_in(), "opencode")[0] == 2


def test_a_database_that_is_none_is_named_and_tried_again(machine: Machine) -> None:
    path = machine.home / ".local" / "share" / "opencode" / "opencode.db"
    write(path, b"no database at all" * 100)
    assert len(reasons(machine.bring_in())) == 1
    assert len(reasons(machine.bring_in())) == 1
    path.unlink()
    connection = connected(path)
    store(connection, a_short_session())
    connection.close()
    assert counts(machine.bring_in(), "opencode")[0] == 1


def test_an_export_that_did_not_change_is_not_looked_into(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one, other = Conversation(), Conversation(OTHER_SESSION, title="Glaze")
    one.says("user", "Why is the kiln cold?")
    other.says("user", "Where is the glaze?")
    export = tmp_path / "export" / "conversations.json"
    write(export, json.dumps([one.value, other.value]).encode())
    assert counts(machine.bring_in(str(export)), "chatgpt")[:3] == (2, 0, 0)
    listed = opened(monkeypatch)
    assert counts(machine.bring_in(str(export)), "chatgpt")[:3] == (0, 0, 2)
    assert counts(machine.bring_in(str(export.parent)), "chatgpt")[:3] == (0, 0, 2)
    assert listed == []


def a_database(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = connected(path)
    store(connection, a_short_session())
    connection.close()
    return path


@pytest.mark.parametrize("below", ["", "storage", "opencode/storage"])
def test_the_older_folder_of_opencode_is_read_where_a_person_names_it(
    machine: Machine, tmp_path: Path, below: str
) -> None:
    write_folder(tmp_path / "copy" / below, a_short_session())
    assert counts(machine.bring_in(str(tmp_path / "copy")), "opencode")[:2] == (1, 0)
    assert len(machine.finds("relay")) == 1
    assert counts(machine.bring_in(str(tmp_path / "copy")), "opencode") == (0, 0, 1, 0)


@pytest.mark.parametrize("named", ["odd.name.db", "."])
def test_a_database_of_opencode_is_read_where_a_person_names_it(
    machine: Machine, tmp_path: Path, named: str
) -> None:
    a_database(tmp_path / "copy" / "odd.name.db")
    assert counts(machine.bring_in(str(tmp_path / "copy" / named)), "opencode")[:2] == (1, 0)


@pytest.mark.parametrize("value", ["{elsewhere}/mine.sqlite", "mine.sqlite", "sub/mine.sqlite"])
def test_the_database_that_opencodes_variable_names_is_read_too(
    machine: Machine, tmp_path: Path, value: str
) -> None:
    home = machine.home / ".local" / "share" / "opencode"
    home.mkdir(parents=True)
    value = value.format(elsewhere=tmp_path / "elsewhere")
    path = a_database(home / value)
    machine.variables["OPENCODE_DB"] = value
    assert counts(machine.bring_in(), "opencode")[:2] == (1, 0)
    assert counts(machine.bring_in("opencode"), "opencode") == (0, 0, 1, 0)
    with machine.stores() as stores:
        assert path.parent in Finder(stores, ("opencode",), {}).folders()
        more = OpenCodeSession(SECOND)
        more.says(more.user("Where is the glaze?"), "On the shelf.")
        connection = connected(path)
        store(connection, more)
        connection.close()
        report = import_sessions(stores, ("opencode",), changed=[f"{path}-wal", str(path)])
    assert counts(report, "opencode")[0] == 1


@pytest.mark.parametrize("value", [":memory:", "nothing.db", "opencode.db"])
def test_a_variable_that_names_no_other_database_changes_nothing(machine: Machine, value: str) -> None:
    a_database(machine.home / ".local/share/opencode/opencode.db")
    machine.variables["OPENCODE_DB"] = value
    report = machine.bring_in()
    assert (counts(report, "opencode")[:3], report.problems) == ((1, 0, 0), [])
