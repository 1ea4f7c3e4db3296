"""The index as a file: new, damaged, of another format, on a network, in nobody else's hands."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from raddle.adapters.file_systems import is_on_network
from raddle.adapters.local_store.search_database import FORMAT
from raddle.adapters.local_store.search_index import SearchIndex
from raddle.model.errors import StorageError
from raddle.model.threads.search_fields import cut_row
from raddle.model.threads.search_text import Cutter
from raddle.model.threads.summary import ThreadSummary
from tests.builders_search import ONE, TWO, found, is_sound, says


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "index.sqlite3"


def test_a_new_index_asks_to_be_filled_and_says_so_until_it_is(path: Path) -> None:
    with SearchIndex(path) as index:
        assert index.stale() == "the search index is new"
        assert "not whole" in index.search("x").scope.notes[0]
        index.finish_rebuild()
        assert index.stale() == ""
    with SearchIndex(path) as index:
        assert index.stale() == ""
        assert index.search("x").scope.notes == ()


def test_the_index_is_its_owners_alone(path: Path) -> None:
    with SearchIndex(path) as index:
        index.put(ThreadSummary(id=ONE), [says("zebra")])
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_index_of_another_format_is_emptied(path: Path) -> None:
    with SearchIndex(path) as index:
        index.put(ThreadSummary(id=ONE), [says("zebra")])
        index.finish_rebuild()
    with sqlite3.connect(path) as sql:
        sql.execute("UPDATE meta SET value = '0.9' WHERE key = 'format'")
    with SearchIndex(path) as index:
        assert index.stale() == f"the search index had format 0.9, this raddle makes {FORMAT}"
        assert index.ids() == set()
        index.put(ThreadSummary(id=ONE), [says("zebra")])
        assert found(index, "zebra") == {ONE}


@pytest.mark.parametrize(
    "content", [b"this is no database at all, but it is long enough to look at" * 20, b"SQLite format 3\x00"]
)
def test_what_is_no_index_is_replaced_by_one(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with SearchIndex(path) as index:
        assert index.stale()
        index.put(ThreadSummary(id=ONE), [says("zebra")])
        assert found(index, "zebra") == {ONE}


def test_a_database_of_somebody_else_is_emptied(path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as sql:
        sql.execute("CREATE TABLE theirs (x)")
    with SearchIndex(path) as index:
        assert "format unknown" in index.stale()


def test_damage_inside_is_found_by_the_doctor(path: Path) -> None:
    with SearchIndex(path) as index:
        index.finish_rebuild()
        index.put(ThreadSummary(id=ONE), [says("zebra")])
        assert is_sound(index)
        index._database.sql.execute("UPDATE marks SET keys = zeroblob(12)")
        assert index.verify() == [f"the texts of {ONE} are not those of its marks"]
        index._database.sql.execute("DELETE FROM book")
        assert "the vocabulary lacks 2 words" in index.verify()
        index.start_over("by hand")
        assert index.stale() == "by hand"
        assert index.verify() == ["not every thread may be in: by hand"]


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot make the folder"):
        SearchIndex(tmp_path / "file" / "index.sqlite3")


def test_on_a_network_there_is_no_write_ahead_log_and_a_note_says_so(path: Path) -> None:
    with SearchIndex(path, is_network=lambda folder: True) as index:
        assert index._database.sql.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        index.put(ThreadSummary(id=ONE), [says("zebra")])
        assert found(index, "zebra") == {ONE}
        assert "write-ahead log" in index.search("x").scope.notes[0]
        with index.bulk() as bulk:
            bulk.add("a", [cut_row(says("lion"), Cutter())])
            bulk.finish("a", ThreadSummary(id=TWO))
        assert found(index, "lion") == {TWO}


def test_sessions_that_come_by_turns_make_one_segment_and_not_one_a_turn(path: Path) -> None:
    """FTS5 writes out what it holds whenever row numbers go back, and all that was written has to be merged again."""
    turns, rows = 3, 600
    cutter = Cutter()
    with SearchIndex(path) as index:
        with index.bulk() as bulk:
            for turn in range(turns):
                for session in ("a", "b"):
                    said = (says(f"zebra {at}", at) for at in range(turn * rows, turn * rows + rows))
                    bulk.add(session, [cut_row(text, cutter) for text in said])
            bulk.finish("a", ThreadSummary(id=ONE))
            bulk.finish("b", ThreadSummary(id=TWO))
            bulk.commit()
            segments = index._database.sql.execute("SELECT count(DISTINCT segid) FROM words_idx").fetchone()
            assert segments == (1,)
        assert len(index.messages_in(ONE, "zebra")) == len(index.messages_in(TWO, "zebra")) == turns * rows
        index.finish_rebuild()
        assert index.verify() == []


def test_an_import_leaves_the_memory_of_the_index_as_it_was(path: Path) -> None:
    with SearchIndex(path) as index:
        before = index._database.sql.execute("PRAGMA cache_size").fetchone()
        with index.bulk():
            assert index._database.sql.execute("PRAGMA cache_size").fetchone() > before  # negative: kibibytes
        assert index._database.sql.execute("PRAGMA cache_size").fetchone() == before


def test_a_local_folder_is_not_on_a_network(tmp_path: Path) -> None:
    assert not is_on_network(tmp_path)


def test_of_a_removed_thread_not_a_word_is_left_in_the_file(path: Path) -> None:
    with SearchIndex(path) as index:
        index.put(ThreadSummary(id=ONE, title="Xylophone"), [says("quetzalcoatl is a secret")])
        index.put(ThreadSummary(id=TWO), [says("other")])
        index.remove(ONE)
        index.optimize()
        assert found(index, "other") == {TWO}
    held = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"quetzalcoatl" not in held
    assert b"xylophone" not in held


def test_a_search_imports_nothing_it_does_not_need() -> None:
    program = (
        "import sys; import raddle.adapters.local_store.search_index;"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    loaded = set(ran.stdout.split())
    assert not loaded & {
        "zstandard",
        "asyncio",
        "httpx",
        "click",
        "rich",
        "logging",
        "multiprocessing",
        "socket",
    }
    assert {"sqlite3", "msgspec"} <= loaded
