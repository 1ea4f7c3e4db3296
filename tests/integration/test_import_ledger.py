"""The ledger remembers what was read, for several processes at once, and is made only by a write."""

from __future__ import annotations

import os
import signal
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raddle.actions.importing.known_sources import KnownSources
from raddle.actions.importing.run_plan import Segment, SourceEntry
from raddle.actions.ports import Finding
from raddle.adapters.local_store import import_ledger
from raddle.adapters.local_store.import_ledger import FORMAT, ImportLedger
from raddle.adapters.local_store.import_ledger_damage import move_away
from raddle.adapters.local_store.purge_marks import PurgeMarks
from raddle.adapters.locks import LockFiles
from raddle.adapters.paths import Paths
from raddle.model.errors import BrokenFormat, NewerFormat, StorageError
from tests.file_events import start_child

ONE, TWO = (f"T-{number:08d}-0000-8000-8000-000000000000" for number in (1, 2))
OLD_TABLE = "CREATE TABLE purged (thread_id TEXT PRIMARY KEY, is_whole INTEGER NOT NULL) WITHOUT ROWID"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    folders = {f"{name}_dir": tmp_path / name for name in ("data", "config", "state", "cache")}
    return Paths(**folders)


def a_ledger(paths: Paths) -> ImportLedger:
    return ImportLedger(paths, PurgeMarks(paths.purge_marks, LockFiles(paths.locks_dir)))


def an_entry(path: str = "/s.jsonl", **fields: Any) -> SourceEntry:
    known = {
        "agent": "claude-code",
        "session": "s",
        "is_main": True,
        "thread_id": ONE,
        "size": 10,
        "mtime_ns": 1_700_000_000_123_456_789,
        "inode": (1 << 63) - 1,
        "read_to": 9,
        "lines": 2,
        "head": "h",
        "tail": "t",
        "generation": 0,
        "is_unplaced": False,
        "problems": 1,
        **fields,
    }
    return SourceEntry(path=path, **known)


def a_segment(start: int = 0, end: int = 9, **fields: Any) -> Segment:
    known = {"generation": 0, "sha256": f"{start}-{end}", "thread_id": ONE, **fields}
    return Segment(start=start, end=end, **known)


def test_what_was_recorded_is_known_to_the_next_process(paths: Paths) -> None:
    entries = [an_entry(), an_entry("/p.jsonl", is_main=False, is_unplaced=True, thread_id="")]
    with a_ledger(paths) as ledger:
        ledger.record([(entries[0], b"\0state"), (entries[1], None)], [("/s.jsonl", a_segment())])
    with a_ledger(paths) as ledger:
        assert list(ledger.entries().values()) == sorted(entries, key=lambda entry: entry.path)
        assert (ledger.state_of("/s.jsonl"), ledger.state_of("/p.jsonl")) == (b"\0state", None)
        assert ledger.state_of("/absent") is None
        assert ledger.segments_of(ONE) == [("/s.jsonl", a_segment())]


def test_a_later_reading_takes_the_place_of_an_earlier_one(paths: Paths) -> None:
    with a_ledger(paths) as ledger:
        ledger.record([(an_entry(), b"old")], [])
        ledger.record([(an_entry(read_to=20), None)], [])
        assert ledger.entries()["/s.jsonl"].read_to == 20
        assert ledger.state_of("/s.jsonl") is None


def test_segments_are_told_in_order_each_once_and_no_blob_is_lost_sight_of(paths: Paths) -> None:
    torn, whole = a_segment(0, 5), a_segment(0, 9)
    later = [a_segment(9, 20), a_segment(0, 7, generation=1)]
    with a_ledger(paths) as ledger:
        for segment in (*reversed(later), whole, torn, whole):
            ledger.record([], [("/s.jsonl", segment)])
        ledger.record([], [("/copy.jsonl", a_segment(0, 9, thread_id=TWO))])
        assert [segment for _, segment in ledger.segments_of(ONE)] == [torn, whole, *later]
        assert sorted(ledger.holders_of("0-9")) == [ONE, TWO]
        assert ledger.holders_of("absent") == []
        assert set(ledger.kept_blobs()) == {"0-5", "0-7", "0-9", "9-20"}
        ledger.forget_segments(ONE)
        assert ledger.segments_of(ONE) == []
        assert ledger.holders_of("0-9") == [TWO]


def test_a_file_of_which_bytes_were_lost_counts_as_unread(paths: Paths) -> None:
    with a_ledger(paths) as ledger:
        entries = [(an_entry(), b"x"), (an_entry("/o.jsonl"), b"x")]
        ledger.record(entries, [("/s.jsonl", a_segment()), ("/o.jsonl", a_segment(5, 6))])
        ledger.forget_blob("0-9")
        lost, other = ledger.entries()["/s.jsonl"], ledger.entries()["/o.jsonl"]
        assert (lost.size, lost.read_to, lost.thread_id, ledger.state_of("/s.jsonl")) == (-1, 0, ONE, None)
        assert other == an_entry("/o.jsonl")
        assert [at for at, _ in ledger.segments_of(ONE)] == ["/o.jsonl"]


def test_a_purged_thread_is_remembered_until_it_is_revived(paths: Paths) -> None:
    with a_ledger(paths) as ledger:
        ledger.record([(an_entry(), b"words of T-1"), (an_entry("/o", thread_id=TWO), b"words of T-2")], [])
        ledger.note_purged(ONE, is_whole=False)
        assert (ledger.purged(), ledger.without_bytes()) == (set(), {ONE})
        ledger.note_purged(ONE)
        ledger.note_purged(ONE, is_whole=False)
        assert (ledger.purged(), ledger.without_bytes()) == ({ONE}, set())
        assert "/s.jsonl" not in ledger.entries()
        known = KnownSources(ledger.entries())
        assert {path for path in ("/s.jsonl", "/o", "/p") if path in known} == {"/s.jsonl", "/o"}
        assert (ledger.state_of("/s.jsonl"), ledger.state_of("/o")) == (None, b"words of T-2")
        assert b"words of T-1" not in paths.import_ledger.read_bytes()
        ledger.revive(ONE)
        assert ledger.purged() == set()
        assert set(ledger.entries()) == {"/o"}


def test_a_look_makes_no_ledger(paths: Paths) -> None:
    with a_ledger(paths) as ledger:
        assert (ledger.entries(), ledger.purged(), ledger.segments_of(ONE), ledger.state_of("/s")) == (
            {},
            set(),
            [],
            None,
        )
        ledger.record([], [])
    assert not paths.data_dir.exists()


def test_the_file_is_the_owners_alone(paths: Paths) -> None:
    with a_ledger(paths) as ledger:
        ledger.note_purged(ONE)
    assert [path.stat().st_mode & 0o777 for path in (paths.import_ledger, paths.purge_marks)] == [0o600] * 2


def test_a_newer_format_is_named_and_left_as_it_is(paths: Paths) -> None:
    with a_ledger(paths) as ledger:
        ledger.record([(an_entry(), None)], [])
    change(paths, f"PRAGMA user_version={FORMAT + 1}")
    before = paths.import_ledger.read_bytes()
    with a_ledger(paths) as ledger:
        ledger.mend_damage(must_not_be_told)
        with pytest.raises(NewerFormat, match=str(paths.import_ledger)):
            ledger.entries()
    assert paths.import_ledger.read_bytes() == before


def test_marks_of_a_ledger_that_held_them_itself_move_to_their_own_file(paths: Paths) -> None:
    with a_ledger(paths) as ledger:
        ledger.record([(an_entry(), b"x")], [("/s.jsonl", a_segment())])
    marks = f"INSERT INTO purged VALUES ('{ONE}', 1), ('{TWO}', 0)"  # noqa: S608
    change(paths, OLD_TABLE, marks, "PRAGMA user_version=2")
    for _ in range(2):
        with a_ledger(paths) as ledger:
            assert (ledger.purged(), ledger.without_bytes()) == ({ONE}, {TWO})
            assert list(ledger.entries()) == ["/s.jsonl"]
    with a_ledger(paths) as ledger:
        ledger.revive(ONE)
    paths.import_ledger.unlink()
    with a_ledger(paths) as ledger:
        assert (ledger.purged(), ledger.without_bytes()) == (set(), {TWO})


def test_what_was_purged_is_known_without_the_ledger(paths: Paths) -> None:
    with a_ledger(paths) as ledger:
        ledger.note_purged(ONE)
        ledger.note_purged(TWO, is_whole=False)
    paths.import_ledger.unlink()
    with a_ledger(paths) as ledger:
        assert (ledger.purged(), ledger.without_bytes()) == ({ONE}, {TWO})


def change(paths: Paths, *statements: str) -> None:
    """Do to the ledger what raddle would not."""
    connection = sqlite3.connect(paths.import_ledger, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def must_not_be_told(finding: Finding) -> None:
    raise AssertionError(finding)


class TestMending:
    @pytest.mark.parametrize(
        "statement", ["DROP TABLE segments", "ALTER TABLE sources DROP COLUMN head", "PRAGMA user_version=1"]
    )
    def test_a_ledger_of_another_shape_is_set_aside_and_made_anew(self, paths: Paths, statement: str) -> None:
        with a_ledger(paths) as ledger:
            ledger.record([(an_entry(), b"x")], [("/s.jsonl", a_segment())])
        change(paths, statement)
        must_be_made_anew(paths)

    def test_bytes_that_are_no_database_are_set_aside(self, paths: Paths) -> None:
        paths.data_dir.mkdir()
        paths.import_ledger.write_bytes(b"not a database" * 1_000)
        assert must_be_made_anew(paths).read_bytes() == b"not a database" * 1_000

    def test_a_journal_goes_with_its_ledger_and_is_not_laid_over_the_next_one(self, paths: Paths) -> None:
        with a_ledger(paths) as ledger:
            ledger.record([(an_entry(), None)], [])
        journal = paths.import_ledger.with_name(paths.import_ledger.name + "-journal")
        journal.write_bytes(b"of the damaged one")
        kept = move_away(paths, "a test")
        assert kept.with_name(kept.name + "-journal").read_bytes() == b"of the damaged one"
        assert not journal.exists()

    def test_what_can_still_be_read_is_saved_and_every_file_counts_as_unread(self, paths: Paths) -> None:
        """The purge marks and the names of kept bytes stand nowhere else; how far a file was read it tells itself."""
        with a_ledger(paths) as ledger:
            entries = [(an_entry(f"/{number}", generation=2), b"x" * 3_000) for number in range(200)]
            ledger.record(entries, [("/7", a_segment(generation=2))])
        marks = f"INSERT INTO purged VALUES ('{ONE}', 1), ('no id', 1)"  # noqa: S608
        change(paths, OLD_TABLE, marks, "PRAGMA user_version=2", "DROP INDEX segments_blob")
        with a_ledger(paths) as ledger:
            ledger.mend_damage(list[Finding]().append)
            ledger._begin_anew(ledger._damage("by a test"))
            assert ledger.purged() == {ONE}
            assert ledger.segments_of(ONE) == [("/7", a_segment(generation=2))]
            found = ledger.entries().values()
            assert {(one.size, one.read_to, one.generation, one.thread_id) for one in found} == {
                (-1, 0, 2, ONE)
            }
            assert len(found) == 200
            assert ledger.state_of("/7") is None

    @given(data=st.data())
    @settings(max_examples=60, deadline=None)
    def test_whatever_is_overwritten_the_ledger_works_again(self, data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory() as folder:
            paths = Paths(
                **{f"{name}_dir": Path(folder) / name for name in ("data", "config", "state", "cache")}
            )
            with a_ledger(paths) as ledger:
                entries = [(an_entry(f"/{number}"), b"x" * 500) for number in range(40)]
                ledger.record(entries, [(f"/{number}", a_segment(number, 90)) for number in range(40)])
                ledger.note_purged(TWO)
            whole = bytearray(paths.import_ledger.read_bytes())
            for _ in range(data.draw(st.integers(1, 4))):
                at = data.draw(st.integers(0, len(whole) - 1))
                junk = data.draw(st.binary(min_size=1, max_size=5_000))
                whole[at : at + len(junk)] = junk
            paths.import_ledger.write_bytes(whole[: data.draw(st.integers(1, len(whole)))])
            told: list[Finding] = []
            with a_ledger(paths) as ledger:
                ledger.mend_damage(told.append)
                try:
                    ledger.entries()
                    ledger.segments_of(ONE)
                    ledger.record([(an_entry("/new"), b"s")], [("/new", a_segment())])
                    assert ledger.state_of("/new") == b"s"
                except NewerFormat:
                    return  # that is what its bytes say now
                assert ledger.purged() == {TWO}
                assert len(told) <= 2

    def test_a_disk_that_refuses_is_no_damage(self, paths: Paths) -> None:
        paths.import_ledger.mkdir(parents=True)
        with a_ledger(paths) as ledger:
            ledger.mend_damage(must_not_be_told)
            with pytest.raises(StorageError):
                ledger.entries()

    def test_a_ledger_that_another_process_is_writing_is_no_damage(
        self, paths: Paths, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(import_ledger, "_BUSY_SECONDS", 0.01)
        with a_ledger(paths) as ledger:
            ledger.record([(an_entry(), None)], [])
        other = sqlite3.connect(paths.import_ledger, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with a_ledger(paths) as ledger:
            ledger.mend_damage(must_not_be_told)
            with pytest.raises(StorageError, match="locked"):
                ledger.entries()
        other.close()


def must_be_made_anew(paths: Paths) -> Path:
    """The next use that may mend finds an empty ledger and says so once; where the old one went."""
    told: list[Finding] = []
    with a_ledger(paths) as ledger:
        ledger.mend_damage(told.append)
        ledger.record([(an_entry("/new"), None)], [("/new", a_segment(90, 91))])
        assert "/new" in ledger.entries()
        assert ("/new", a_segment(90, 91)) in ledger.segments_of(ONE)
    (finding,) = told
    assert (finding.path, "damaged" in finding.what, "set aside" in finding.done) == (
        str(paths.import_ledger),
        True,
        True,
    )
    (kept,) = (path for path in paths.data_dir.glob("*.broken-*") if path.suffix.startswith(".broken-"))
    return kept


def test_a_damaged_ledger_is_one_error_that_names_it_whatever_is_asked(paths: Paths) -> None:
    paths.data_dir.mkdir()
    paths.import_ledger.write_bytes(b"not a database" * 1_000)
    with a_ledger(paths) as ledger:
        for ask in (
            ledger.entries,
            ledger.purged,
            ledger.without_bytes,
            ledger.kept_blobs,
            lambda: ledger.state_of("/s"),
            lambda: ledger.segments_of(ONE),
            lambda: ledger.holders_of("x"),
            lambda: ledger.note_purged(ONE),
            lambda: ledger.revive(ONE),
            lambda: ledger.forget_segments(ONE),
            lambda: ledger.record([(an_entry(), None)], []),
        ):
            with pytest.raises(BrokenFormat, match=str(paths.import_ledger)) as error:
                ask()
            assert "raddle import" in error.value.hint


def test_a_ledger_that_cannot_be_made_is_an_error_that_names_it(paths: Paths) -> None:
    paths.data_dir.write_text("a file where the folder should be")
    with a_ledger(paths) as ledger, pytest.raises(StorageError, match=str(paths.data_dir)):
        ledger.note_purged(ONE)


def test_what_fails_half_way_leaves_nothing(paths: Paths) -> None:
    with a_ledger(paths) as ledger:
        bad = a_segment(thread_id=None)
        with pytest.raises(StorageError):
            ledger.record([(an_entry(), None)], [("/s.jsonl", bad)])
        assert ledger.entries() == {}
        ledger.note_purged(ONE)
        assert ledger.purged() == {ONE}


def test_readers_see_whole_records_while_another_process_writes(paths: Paths) -> None:
    """Each record notes two files of one session; no reader ever sees one of them without the other."""
    asked, ask = os.pipe()
    told, tell = os.pipe()

    def write() -> None:
        with a_ledger(paths) as ledger:
            while number := os.read(asked, 1)[0]:
                ledger.record([(an_entry(f"/{name}", read_to=number), b"s") for name in "ab"], [])
                os.write(tell, b".")

    child = start_child(write)
    os.close(asked)
    os.close(tell)  # so that a child that dies is heard of here
    with a_ledger(paths) as ledger:
        for number in range(1, 40):
            os.write(ask, bytes([number]))
            for _ in range(5):
                entries = ledger.entries()
                seen = {entry.read_to for entry in entries.values()}
                assert (len(entries), seen) in ((0, set()), (2, {number - 1}), (2, {number}))
            assert os.read(told, 1) == b"."
            assert {entry.read_to for entry in ledger.entries().values()} == {number}
    os.write(ask, b"\0")
    child.join()
    assert child.exitcode == 0


def test_two_processes_make_it_at_once(paths: Paths) -> None:
    def write(number: int) -> None:
        with a_ledger(paths) as ledger:
            ledger.note_purged(f"T-{number:08d}-0000-8000-8000-000000000000")

    children = [start_child(write, number) for number in range(6)]
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 6
    with a_ledger(paths) as ledger:
        assert ledger.purged() == {f"T-{number:08d}-0000-8000-8000-000000000000" for number in range(6)}


def test_a_writer_that_is_killed_leaves_a_ledger_that_reads(paths: Paths) -> None:
    with a_ledger(paths) as ledger:
        ledger.record([(an_entry(), b"x")], [])

    def write() -> None:
        with a_ledger(paths) as ledger:
            ledger._db().execute("BEGIN IMMEDIATE")
            ledger._db().execute("DELETE FROM sources")
            os.kill(os.getpid(), signal.SIGKILL)

    child = start_child(write)
    child.join()
    with a_ledger(paths) as ledger:
        assert set(ledger.entries()) == {"/s.jsonl"}
