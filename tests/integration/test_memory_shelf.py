"""The index of a store's memory: what it lists, how soon it sees a write, and that nothing of it is the truth."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from raddle.actions.memory.entries import EntryFiles
from raddle.actions.memory.memories import MemoryLine, set_memory
from raddle.adapters.memory_repo.shelf import Shelf
from raddle.model.memory.entry import ContextEntry, Provenance, encode_entry
from raddle.model.threads.query import parse
from tests.builders import NOON, THREAD_ID, WoundClock
from tests.builders_memories import RUN, a_folder, a_writer, lay

ENTRIES = f"runs/{RUN}/phases/build/entries"
IDS = ("01M8PZKM3QH82B3EHB38JW5D7M", "01M8PZKM3QH82B3EHB38JW5D7N", "01M8PZKM3QH82B3EHB38JW5D7P")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


def names(shelf: Shelf, namespace: str | None = None, prefix: str = "") -> list[str]:
    return [line.name for line in shelf.memories(namespace, prefix)]


def an_entry(entry_id: str, text: str = "x", **fields: object) -> bytes:
    return encode_entry(
        ContextEntry(
            entry_id=entry_id,
            run_id=RUN,
            phase="build",
            type="note",
            provenance=Provenance(node_id="n", **fields),  # type: ignore[arg-type]
            payload={"text": text},
        )
    )


def test_memories_are_listed_by_name_with_what_they_say_of_themselves(root: Path, tmp_path: Path) -> None:
    said = "---\ndescription: how we release\ntags: [a, b]\nupdated: '2026-11-30T12:00:00Z'\n---\n\nbody\n"
    lay(root, {"memory/team/release.md": said, "memory/team/deep/er": "# Title\n", "memory/ada/z": b"\xff"})
    lay(root, {"memory/.gitkeep": "", "memory/team/.git/hooks/x": "no", "memory/stray": "no namespace"})
    with Shelf(tmp_path / "index", root) as shelf:
        assert names(shelf) == ["ada/z", "team/deep/er", "team/release.md"]
        assert names(shelf, "team", "deep/") == ["team/deep/er"]
        assert names(shelf, "nobody") == []
        line = shelf.memories("team", "rel")[0]
        assert line == MemoryLine(
            namespace="team",
            key="release.md",
            description="how we release",
            tags=("a", "b"),
            updated="2026-11-30T12:00:00.000000Z",
            size=len(said),
        )


def test_a_write_of_ours_shows_at_once_also_to_another_process(root: Path, tmp_path: Path) -> None:
    files, clock = a_folder(root), WoundClock()
    with (
        Shelf(tmp_path / "index", root, clock=clock) as one,
        Shelf(tmp_path / "index", root, clock=clock) as other,
    ):
        for number in range(20):
            set_memory(files, a_writer(), "team/same", f"text {number}")
            assert [line.description for line in one.memories("team", "same")] == [f"text {number}"]
            set_memory(files, a_writer(), f"team/deep/{number}", "new")
            assert len(one.memories()) == len(other.memories()) == number + 2
            assert other.memories()[-1].description == f"text {number}"
        files.change("memory/team/same", lambda _: None)
        assert "team/same" not in names(one)
        assert "team/same" not in names(other)


def test_an_edit_in_place_by_another_program_shows_within_two_seconds(root: Path, tmp_path: Path) -> None:
    clock = WoundClock()
    lay(root, {"memory/team/a": "before"})
    os.utime(root / "memory/team/a", ns=(NOON, NOON))
    with Shelf(tmp_path / "index", root, clock=clock) as shelf:
        shelf.memories()
        clock.wind(2_100_000)
        shelf.memories()
        with (root / "memory/team/a").open("r+b") as file:
            file.write(b"after!")
        clock.wind(2_000_001)
        assert [line.description for line in shelf.memories()] == ["after!"]


def test_size_and_times_that_were_put_back_do_not_hide_an_edit(root: Path, tmp_path: Path) -> None:
    clock = WoundClock()
    lay(root, {"memory/team/a": "before"})
    with Shelf(tmp_path / "index", root, clock=clock) as shelf:
        shelf.memories()
        status = (root / "memory/team/a").stat()
        (root / "memory/team/a").write_bytes(b"after!")
        os.utime(root / "memory/team/a", ns=(status.st_atime_ns, status.st_mtime_ns))
        clock.wind(2_000_001)
        assert [line.description for line in shelf.memories()] == ["after!"]


def test_a_folder_that_went_takes_its_memories_with_it(root: Path, tmp_path: Path) -> None:
    lay(root, {"memory/team/deep/er/a": "alpha", "memory/team/b": "beta"})
    with Shelf(tmp_path / "index", root) as shelf:
        assert len(shelf.memories()) == 2
        (root / "memory/team/deep/er/a").unlink()
        (root / "memory/team/deep/er").rmdir()
        (root / "memory/team/deep").rename(tmp_path / "elsewhere")
        assert names(shelf) == ["team/b"]
        assert shelf.search(parse("alpha", now=NOON), limit=5).total == 0


def test_a_link_in_a_store_is_not_followed(root: Path, tmp_path: Path) -> None:
    lay(tmp_path / "outside", {"secret": "alpha", "folder/secret": "alpha"})
    lay(root, {"memory/team/a": "beta"})
    (root / "memory/team/link").symlink_to(tmp_path / "outside/secret")
    (root / "memory/other").symlink_to(tmp_path / "outside/folder")
    (root / "runs").symlink_to(tmp_path / "outside")
    with Shelf(tmp_path / "index", root) as shelf:
        assert names(shelf) == ["team/a"]
        assert shelf.search(parse("alpha", now=NOON), limit=5).total == 0


@pytest.mark.parametrize("damage", [b"", b"not a database", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_index_is_made_anew(root: Path, tmp_path: Path, damage: bytes) -> None:
    lay(root, {"memory/team/a": "alpha"})
    index = tmp_path / "index"
    index.write_bytes(damage)
    for _ in range(2):
        with Shelf(index, root) as shelf:
            assert names(shelf) == ["team/a"]
            assert not shelf.is_aside


def test_an_index_that_is_damaged_while_it_is_open_is_made_anew(root: Path, tmp_path: Path) -> None:
    lay(root, {f"memory/team/{number}": "alpha " * 50 for number in range(200)})
    with Shelf(tmp_path / "index", root) as shelf:
        shelf.memories()
    data = bytearray((tmp_path / "index").read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    (tmp_path / "index").write_bytes(data)
    with Shelf(tmp_path / "index", root) as shelf:
        assert len(shelf.memories()) == 200
        assert shelf.search(parse("alpha", now=NOON), limit=5).total == 200


def test_an_index_that_somebody_else_writes_is_read_past(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raddle.adapters.memory_repo.shelf_database.BUSY_SECONDS", 0.05)
    monkeypatch.setattr(
        "raddle.adapters.memory_repo.shelf_database.Database.writing.__kwdefaults__",
        {"wait_seconds": 0.05},
        raising=False,
    )
    lay(root, {"memory/team/a": "alpha"})
    with Shelf(tmp_path / "index", root) as shelf:
        shelf.memories()
        blocker = sqlite3.connect(tmp_path / "index", isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        lay(root, {"memory/team/b": "beta"})
        assert names(shelf) == ["team/a", "team/b"]
        assert shelf.is_aside
        blocker.execute("ROLLBACK")
        blocker.close()


def test_an_index_that_is_locked_as_a_whole_is_done_without(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raddle.adapters.memory_repo.shelf_database.BUSY_SECONDS", 0.05)
    lay(root, {"memory/team/a": "alpha"})
    with Shelf(tmp_path / "index", root, is_network=lambda _: True) as early:
        early.memories()
        blocker = sqlite3.connect(tmp_path / "index", isolation_level=None)
        blocker.execute("BEGIN EXCLUSIVE")
        with Shelf(tmp_path / "index", root, is_network=lambda _: True) as late:
            for shelf in (early, late):
                assert names(shelf) == ["team/a"]
                assert shelf.is_aside
        blocker.execute("ROLLBACK")
        blocker.close()


def test_a_cache_that_cannot_be_written_costs_time_and_no_answer(root: Path, tmp_path: Path) -> None:
    lay(root, {"memory/team/a": "alpha"})
    (tmp_path / "file").write_text("no folder")
    with Shelf(tmp_path / "file" / "index", root) as shelf:
        assert names(shelf) == ["team/a"]
        lay(root, {"memory/team/b": "beta"})
        assert names(shelf) == ["team/a", "team/b"]
        assert shelf.is_aside


def test_the_index_lists_entries_as_their_files_do(root: Path, tmp_path: Path) -> None:
    lay(
        root,
        {f"{ENTRIES}/000{at}-{IDS[2 - at]}.json": an_entry(IDS[2 - at], f"text {at}") for at in range(3)},
    )
    lay(root, {f"{ENTRIES}/0009-{IDS[0][:-1]}Z.json": b"", f"{ENTRIES}/notes.txt": "not an entry"})
    lay(root, {f"runs/{RUN}/phases/test/entries/0001-{IDS[0]}.json": an_entry(IDS[1])})
    files = EntryFiles(a_folder(root))
    with Shelf(tmp_path / "index", root) as shelf:
        for phase in (None, "build", "test", "nothing", "../build"):
            assert shelf.entries(RUN, phase) == files.entries(RUN, phase)
        assert len(shelf.entries(RUN, "build").findings) == 1
        assert [entry.payload["text"] for entry in shelf.entries(RUN, "build").entries] == [
            "text 2",
            "text 1",
            "text 0",
        ]


def test_entries_of_one_phase_are_seen_before_anything_else_was_looked_at(root: Path, tmp_path: Path) -> None:
    lay(root, {f"{ENTRIES}/0001-{IDS[0]}.json": an_entry(IDS[0], "alpha")})
    lay(root, {f"runs/{RUN}/phases/test/entries/0001-{IDS[1]}.json": an_entry(IDS[1], "alpha")})
    with Shelf(tmp_path / "index", root) as shelf:
        assert len(shelf.entries(RUN, "build").entries) == 1
        assert len(shelf.entries(RUN).entries) == 2
        assert shelf.search(parse("alpha", now=NOON), limit=5).total == 2


def test_entries_are_found_by_the_thread_that_they_rest_on(root: Path, tmp_path: Path) -> None:
    lay(root, {f"{ENTRIES}/0001-{IDS[0]}.json": an_entry(IDS[0], thread_id=THREAD_ID)})
    lay(root, {f"{ENTRIES}/0002-{IDS[1]}.json": an_entry(IDS[1])})
    with Shelf(tmp_path / "index", root) as shelf:
        assert [one.entry_id for one in shelf.resting_on(THREAD_ID).entries] == [IDS[0]]
        assert shelf.resting_on(THREAD_ID) == EntryFiles(a_folder(root)).resting_on(THREAD_ID)


def test_conflicts_are_no_memories_and_are_listed_apart(root: Path, tmp_path: Path) -> None:
    other = f"memory/team/a.conflict-bbbbbbbb-{IDS[0]}"
    lay(root, {"memory/team/a": "alpha", other: "alpha beta"})
    with Shelf(tmp_path / "index", root) as shelf:
        assert names(shelf) == ["team/a"]
        assert shelf.conflicts() == [other]
        assert shelf.conflicts("ada") == []
        assert shelf.search(parse("beta", now=NOON), limit=5).total == 0


def test_what_says_it_in_its_name_comes_before_what_says_it_somewhere(root: Path, tmp_path: Path) -> None:
    lay(root, {"memory/team/a": "# About\n\nthe parser\n", "memory/team/parser": "# About\n\nwords\n"})
    lay(
        root,
        {
            f"{ENTRIES}/0001-{IDS[0]}.json": an_entry(IDS[0], "the parser"),
            f"runs/{RUN}/phases/build/summary.md": "parser",
        },
    )
    with Shelf(tmp_path / "index", root) as shelf:
        hits = shelf.search(parse("parser", now=NOON), limit=10).hits
    assert [(hit.kind, hit.name) for hit in hits] == [
        ("memory", "team/parser"),
        ("memory", "team/a"),
        ("summary", f"{RUN}/build"),
        ("entry", f"{RUN}/build/{IDS[0]}"),
    ]
    assert [hit.is_in_name for hit in hits] == [True, False, False, False]
    assert [hit.snippet.text[start:end] for hit in hits for start, end in hit.snippet.marks] == ["parser"] * 4


def test_a_filter_on_threads_finds_nothing_and_says_why(root: Path, tmp_path: Path) -> None:
    lay(root, {"memory/team/a": "alpha"})
    with Shelf(tmp_path / "index", root) as shelf:
        answer = shelf.search(parse("alpha role:user", now=NOON), limit=5)
        assert (answer.total, answer.looked_at) == (0, 1)
        assert "role:user" in answer.notes[0]
        assert shelf.search(parse("alpha -role:user", now=NOON), limit=5).total == 1


def test_an_index_that_was_thrown_away_answers_the_same(root: Path, tmp_path: Path) -> None:
    lay(root, {f"memory/team/{number}": f"alpha {number}" for number in range(30)})
    with Shelf(tmp_path / "index", root, clock=WoundClock()) as shelf:
        before = (shelf.memories(), shelf.search(parse("alpha", now=NOON), limit=9))
        assert shelf.rebuild() == 30
        assert (shelf.memories(), shelf.search(parse("alpha", now=NOON), limit=9)) == before
