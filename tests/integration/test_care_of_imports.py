"""The doctor looks at what imports keep beside the threads, and puts right what it can."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from raddle.actions.ports import Finding
from raddle.adapters.files import new_temporary_folder
from raddle.wiring.care import check, rebuild_index
from raddle.wiring.purging import purge_thread
from tests.builders_claude_code import a_short_session
from tests.builders_import import Machine, counts
from tests.file_events import deaths_of
from tests.modes import bound_by_modes


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


def emptied(data: bytes) -> bytes:
    return b""


def blanked(data: bytes) -> bytes:
    return bytes(len(data))


def scrambled(data: bytes) -> bytes:
    return b"\x5a\x13" * len(data)


def cut_short(data: bytes) -> bytes:
    return data[:-7]


def flipped(data: bytes) -> bytes:
    at = len(data) * 3 // 4
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


DAMAGES = pytest.mark.parametrize("damage", [emptied, blanked, scrambled, cut_short, flipped])


@DAMAGES
def test_damaged_source_bytes_are_a_finding_and_kept_again_from_the_source(
    machine: Machine, damage: Callable[[bytes], bytes]
) -> None:
    (blob,) = (machine.folder / "data" / "blobs").rglob("*.zst")
    damaged = damage(blob.read_bytes())
    blob.write_bytes(damaged)
    (finding,) = findings(machine)
    assert (finding.path, "damaged" in finding.what) == (str(blob), True)
    assert blob.read_bytes() == damaged
    (finding,) = findings(machine, fix=True)
    assert finding.done == "removed; the next import keeps these bytes again"
    assert findings(machine) == []
    machine.bring_in()
    (path,) = machine.claude.rglob("*.jsonl")
    assert machine.source_of(path) == [path.read_bytes()]
    assert findings(machine) == []


def test_damaged_source_bytes_stay_where_nothing_could_bring_them_again_and_go_with_a_purge(
    machine: Machine,
) -> None:
    (blob,) = (machine.folder / "data" / "blobs").rglob("*.zst")
    blob.write_bytes(cut_short(blob.read_bytes()))
    (path,) = machine.claude.rglob("*.jsonl")
    path.unlink()
    for fix in (True, False):
        (finding,) = findings(machine, fix=fix)
        assert (finding.done, "no longer there" in finding.what) == ("", True)
    thread_id = machine.thread().id
    assert f"raddle purge {thread_id}" in findings(machine)[0].what
    with machine.stores() as stores:
        assert purge_thread(stores, thread_id) == 1
    assert findings(machine) == []


def test_a_damaged_attachment_is_named_and_left(machine: Machine) -> None:
    with machine.stores() as stores:
        sha256 = stores.blobs.put(b"the bytes of a picture")
    blob = machine.folder / "data" / "blobs" / sha256[:2] / sha256
    blob.write_bytes(b"the bytes of a pict")
    for fix in (True, False):
        (finding,) = findings(machine, fix=fix)
        assert (finding.path, finding.done, "damaged" in finding.what) == (str(blob), "", True)
    assert blob.exists()


def test_a_damaged_blob_keeps_the_doctor_from_nothing_else(machine: Machine) -> None:
    (blob,) = (machine.folder / "data" / "blobs").rglob("*.zst")
    blob.write_bytes(b"")
    thread_id = machine.thread().id
    (machine.folder / "data" / "threads" / f"{thread_id}.journal").write_bytes(b'{"half')
    assert len(findings(machine, fix=True)) == 2
    assert findings(machine) == []


def test_a_blob_or_a_folder_of_them_that_nobody_may_read_is_a_finding_and_stays(machine: Machine) -> None:
    (blob,) = (machine.folder / "data" / "blobs").rglob("*.zst")

    def look() -> None:
        (finding,) = findings(machine, fix=True)
        assert "permission denied" in finding.what

    for path in (blob, blob.parent):
        path.chmod(0)
        bound_by_modes(look)
        path.chmod(0o700)
    assert findings(machine) == []


def test_a_ledger_that_was_set_aside_is_named_until_it_goes(machine: Machine) -> None:
    ledger = machine.folder / "data" / "import-ledger.sqlite3"
    ledger.write_bytes(b"not a database" * 500)
    machine.bring_in()
    kept = ledger.with_name("import-ledger.sqlite3.broken-1")
    (finding,) = findings(machine)
    assert finding.path == str(kept)
    assert "purge" in finding.done
    kept.unlink()
    assert findings(machine) == []


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


@pytest.mark.soak
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


@pytest.mark.parametrize("how", ["doctor", "import", "purge"])
def test_the_copy_of_a_database_that_a_killed_import_left_goes(machine: Machine, how: str) -> None:
    cache, thread_id = machine.folder / "cache", machine.thread().id
    cache.mkdir(exist_ok=True)
    left, held = new_temporary_folder(cache)
    (left / "copy.db").write_bytes(b"marimba")
    assert findings(machine) == [], "somebody reads it"
    os.close(held)
    assert [finding.path for finding in findings(machine)] == [str(left)]
    if how == "import":
        machine.bring_in()
    elif how == "doctor":
        assert findings(machine, fix=True)[0].done == "removed"
    else:
        with machine.stores() as stores:
            purge_thread(stores, thread_id)
    assert not left.exists()


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
