"""The doctor looks at what imports keep beside the threads, and puts right what it can."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from raddle.actions.ports import Finding
from raddle.wiring.care import check, rebuild_index
from raddle.wiring.purging import purge_thread
from tests.builders_claude_code import a_short_session
from tests.builders_import import Machine, counts
from tests.file_events import deaths_of


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.keep(a_short_session())
    machine.bring_in()
    return machine


def findings(machine: Machine, *, fix: bool = False) -> list[Finding]:
    with machine.stores() as stores:
        return check(stores, fix=fix)


def test_all_is_well_after_an_import(machine: Machine) -> None:
    assert findings(machine) == []


def test_lost_source_bytes_are_named_and_kept_again_from_the_source(machine: Machine) -> None:
    (blob,) = (machine.folder / "data" / "blobs").rglob("*.zst")
    blob.unlink()
    (finding,) = findings(machine)
    assert "are gone" in finding.what
    (finding,) = findings(machine, fix=True)
    assert "keeps them again" in finding.done
    assert findings(machine) == []
    assert counts(machine.bring_in()) == (0, 0, 1, 0)
    (path,) = machine.claude.rglob("*.jsonl")
    assert machine.source_of(path) == [path.read_bytes()]


def test_a_purge_that_died_at_its_very_end_is_named_and_finished(machine: Machine) -> None:
    with machine.stores() as stores:
        (thread_id,) = stores.threads.ids()
        stores.ledger.note_purged(thread_id)
        stores.threads.delete_files(thread_id)
    (finding,) = findings(machine)
    assert "was not finished" in finding.what
    (finding,) = findings(machine, fix=True)
    assert finding.done == "finished"
    assert findings(machine) == []
    assert machine.orphans() == set()


def test_an_import_finishes_it_too(machine: Machine) -> None:
    with machine.stores() as stores:
        (thread_id,) = stores.threads.ids()
        stores.ledger.note_purged(thread_id)
        stores.threads.delete_files(thread_id)
    machine.bring_in()
    assert findings(machine) == []
    assert machine.orphans() == set()


@pytest.mark.parametrize("damage", ["bytes", "format"])
def test_a_ledger_that_cannot_be_read_is_a_finding_and_no_obstacle(machine: Machine, damage: str) -> None:
    path = machine.folder / "data" / "import-ledger.sqlite3"
    if damage == "bytes":
        path.write_bytes(b"not a database" * 500)
    else:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version=99")
        connection.close()
    (finding,) = findings(machine)
    assert finding.path == str(path)
    path.unlink()
    assert counts(machine.bring_in()) == (0, 0, 1, 0)
    assert findings(machine) == []


@pytest.mark.parametrize("how", ["doctor", "purge"])
def test_what_a_killed_import_left_half_made_goes_at_once(tmp_path: Path, how: str) -> None:
    machine = Machine(tmp_path)
    machine.keep(a_short_session())
    left = 0
    for _ in deaths_of(machine.bring_in):
        half_made = list((machine.folder / "data").rglob(".raddle-*.tmp"))
        left += len(half_made)
        if how == "doctor":
            assert len([one for one in findings(machine) if "half-made" in one.what]) == len(half_made)
            findings(machine, fix=True)
        else:
            with machine.stores() as stores, stores.threads.create() as editor:
                editor.append("user", "marimba")
            with machine.stores() as stores:
                purge_thread(stores, editor.thread.id)
        assert list((machine.folder / "data").rglob(".raddle-*.tmp")) == []
        shutil.rmtree(machine.folder / "data")
    assert left


def test_an_index_built_anew_holds_what_the_import_put_there(machine: Machine) -> None:
    with machine.stores() as stores:
        before = stores.listed(limit=None)
        assert rebuild_index(stores) == 1
        assert stores.listed(limit=None) == before
        assert stores.index.verify() == []
    assert len(machine.finds("relay")) == 1


def test_an_index_built_anew_leaves_out_what_is_deleted_or_damaged(machine: Machine) -> None:
    (thread_id,) = machine.finds("relay")
    with machine.stores() as stores:
        with stores.threads.create() as editor:
            editor.append("user", "marimba")
        with stores.threads.edit(editor.thread.id) as deleting:
            deleting.delete()
    (machine.folder / "data" / "threads" / f"{thread_id}.json").write_bytes(b"{")
    with machine.stores() as stores:
        assert rebuild_index(stores) == 0
    assert machine.finds("marimba") == machine.finds("relay") == []
