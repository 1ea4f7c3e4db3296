"""The ledger remembers what was read, for several processes at once, and is made only by a write."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from raddle.actions.importing.run_plan import Segment, SourceEntry
from raddle.adapters.local_store.import_ledger import FORMAT, ImportLedger
from raddle.model.errors import NewerFormat, OlderFormat, StorageError
from tests.file_events import start_child


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "ledger.sqlite3"


def an_entry(path: str = "/s.jsonl", **fields: Any) -> SourceEntry:
    known = {
        "agent": "claude-code",
        "session": "s",
        "is_main": True,
        "thread_id": "T-1",
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
    known = {"generation": 0, "sha256": f"{start}-{end}", "thread_id": "T-1", **fields}
    return Segment(start=start, end=end, **known)


def test_what_was_recorded_is_known_to_the_next_process(path: Path) -> None:
    entries = [an_entry(), an_entry("/p.jsonl", is_main=False, is_unplaced=True, thread_id="")]
    with ImportLedger(path) as ledger:
        ledger.record([(entries[0], b"\0state"), (entries[1], None)], [("/s.jsonl", a_segment())])
    with ImportLedger(path) as ledger:
        assert list(ledger.entries().values()) == sorted(entries, key=lambda entry: entry.path)
        assert (ledger.state_of("/s.jsonl"), ledger.state_of("/p.jsonl")) == (b"\0state", None)
        assert ledger.state_of("/absent") is None
        assert ledger.segments_of("T-1") == [("/s.jsonl", a_segment())]


def test_a_later_reading_takes_the_place_of_an_earlier_one(path: Path) -> None:
    with ImportLedger(path) as ledger:
        ledger.record([(an_entry(), b"old")], [])
        ledger.record([(an_entry(read_to=20), None)], [])
        assert ledger.entries()["/s.jsonl"].read_to == 20
        assert ledger.state_of("/s.jsonl") is None


def test_segments_are_told_in_order_each_once_and_no_blob_is_lost_sight_of(path: Path) -> None:
    torn, whole = a_segment(0, 5), a_segment(0, 9)
    later = [a_segment(9, 20), a_segment(0, 7, generation=1)]
    with ImportLedger(path) as ledger:
        for segment in (*reversed(later), whole, torn, whole):
            ledger.record([], [("/s.jsonl", segment)])
        ledger.record([], [("/copy.jsonl", a_segment(0, 9, thread_id="T-2"))])
        assert [segment for _, segment in ledger.segments_of("T-1")] == [torn, whole, *later]
        assert sorted(ledger.holders_of("0-9")) == ["T-1", "T-2"]
        assert ledger.holders_of("absent") == []
        assert set(ledger.kept_blobs()) == {"0-5", "0-7", "0-9", "9-20"}
        ledger.forget_segments("T-1")
        assert ledger.segments_of("T-1") == []
        assert ledger.holders_of("0-9") == ["T-2"]


def test_a_file_of_which_bytes_were_lost_counts_as_unread(path: Path) -> None:
    with ImportLedger(path) as ledger:
        entries = [(an_entry(), b"x"), (an_entry("/o.jsonl"), b"x")]
        ledger.record(entries, [("/s.jsonl", a_segment()), ("/o.jsonl", a_segment(5, 6))])
        ledger.forget_blob("0-9")
        lost, other = ledger.entries()["/s.jsonl"], ledger.entries()["/o.jsonl"]
        assert (lost.size, lost.read_to, lost.thread_id, ledger.state_of("/s.jsonl")) == (-1, 0, "T-1", None)
        assert other == an_entry("/o.jsonl")
        assert [at for at, _ in ledger.segments_of("T-1")] == ["/o.jsonl"]


def test_a_purged_thread_is_remembered_until_it_is_revived(path: Path) -> None:
    with ImportLedger(path) as ledger:
        ledger.record([(an_entry(), b"words of T-1"), (an_entry("/o", thread_id="T-2"), b"words of T-2")], [])
        ledger.note_purged("T-1", is_whole=False)
        assert (ledger.purged(), ledger.without_bytes()) == (set(), {"T-1"})
        ledger.note_purged("T-1")
        ledger.note_purged("T-1", is_whole=False)
        assert (ledger.purged(), ledger.without_bytes()) == ({"T-1"}, set())
        assert set(ledger.entries()) == {"/s.jsonl", "/o"}
        assert (ledger.state_of("/s.jsonl"), ledger.state_of("/o")) == (None, b"words of T-2")
        assert b"words of T-1" not in path.read_bytes()
        ledger.revive("T-1")
        assert ledger.purged() == set()
        assert set(ledger.entries()) == {"/o"}


def test_a_look_makes_no_ledger(path: Path) -> None:
    with ImportLedger(path) as ledger:
        assert (ledger.entries(), ledger.purged(), ledger.segments_of("T-1"), ledger.state_of("/s")) == (
            {},
            set(),
            [],
            None,
        )
        ledger.record([], [])
    assert not path.parent.exists()


def test_the_file_is_the_owners_alone(path: Path) -> None:
    with ImportLedger(path) as ledger:
        ledger.note_purged("T-1")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("number", "error"), [(FORMAT + 1, NewerFormat), (FORMAT - 1, OlderFormat)])
def test_another_format_is_named(path: Path, number: int, error: type[Exception]) -> None:
    with ImportLedger(path) as ledger:
        ledger.note_purged("T-1")
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version={number}")
    connection.close()
    with ImportLedger(path) as ledger, pytest.raises(error, match=str(path)):
        ledger.entries()


def test_a_damaged_ledger_is_one_error_that_names_it_whatever_is_asked(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database" * 1_000)
    with ImportLedger(path) as ledger:
        for ask in (
            ledger.entries,
            ledger.purged,
            ledger.without_bytes,
            ledger.kept_blobs,
            lambda: ledger.state_of("/s"),
            lambda: ledger.segments_of("T-1"),
            lambda: ledger.holders_of("x"),
            lambda: ledger.note_purged("T-1"),
            lambda: ledger.revive("T-1"),
            lambda: ledger.forget_segments("T-1"),
            lambda: ledger.record([(an_entry(), None)], []),
        ):
            with pytest.raises(StorageError, match=str(path)):
                ask()


def test_a_ledger_that_cannot_be_made_is_an_error_that_names_it(path: Path) -> None:
    path.parent.write_text("a file where the folder should be")
    with ImportLedger(path) as ledger, pytest.raises(StorageError, match=str(path.parent)):
        ledger.note_purged("T-1")


def test_what_fails_half_way_leaves_nothing(path: Path) -> None:
    with ImportLedger(path) as ledger:
        bad = a_segment(thread_id=None)
        with pytest.raises(StorageError):
            ledger.record([(an_entry(), None)], [("/s.jsonl", bad)])
        assert ledger.entries() == {}
        ledger.note_purged("T-1")
        assert ledger.purged() == {"T-1"}


def test_readers_see_whole_records_while_another_process_writes(path: Path) -> None:
    """Each record notes two files of one session; no reader ever sees one of them without the other."""
    asked, ask = os.pipe()
    told, tell = os.pipe()

    def write() -> None:
        with ImportLedger(path) as ledger:
            while number := os.read(asked, 1)[0]:
                ledger.record([(an_entry(f"/{name}", read_to=number), b"s") for name in "ab"], [])
                os.write(tell, b".")

    child = start_child(write)
    os.close(asked)
    os.close(tell)  # so that a child that dies is heard of here
    with ImportLedger(path) as ledger:
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


def test_two_processes_make_it_at_once(path: Path) -> None:
    def write(number: int) -> None:
        with ImportLedger(path) as ledger:
            ledger.note_purged(f"T-{number}")

    children = [start_child(write, number) for number in range(6)]
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 6
    with ImportLedger(path) as ledger:
        assert ledger.purged() == {f"T-{number}" for number in range(6)}


def test_a_writer_that_is_killed_leaves_a_ledger_that_reads(path: Path) -> None:
    with ImportLedger(path) as ledger:
        ledger.record([(an_entry(), b"x")], [])

    def write() -> None:
        with ImportLedger(path) as ledger, ledger._writing() as db:
            db.execute("DELETE FROM sources")
            os.kill(os.getpid(), signal.SIGKILL)

    child = start_child(write)
    child.join()
    with ImportLedger(path) as ledger:
        assert set(ledger.entries()) == {"/s.jsonl"}
