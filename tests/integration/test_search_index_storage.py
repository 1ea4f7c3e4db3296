"""The index as a file: shared between processes, behind the thread files, damaged, of another format, on a network."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from raddle.adapters.local_store.search_database import FORMAT, IndexBusy, is_on_network
from raddle.adapters.local_store.search_dirty import count_dirty, is_dirty, mark_dirty, take_dirty
from raddle.adapters.local_store.search_index import SearchIndex
from raddle.model.errors import BrokenFormat, InvalidInput, NotFound, StorageError
from raddle.model.threads.delta import Delta
from raddle.model.threads.message import Message
from raddle.model.threads.search_fields import MessageText, cut_row
from raddle.model.threads.search_text import Cutter
from raddle.model.threads.summary import ThreadSummary
from raddle.model.threads.thread import Thread

ONE, TWO = "T-018e2b3c-4d5e-7f8a-9b0c-000000000001", "T-018e2b3c-4d5e-7f8a-9b0c-000000000002"


def says(text: str, at: int = 1) -> MessageText:
    return MessageText(id=f"m{at}", order=at, role="user", texts=(text, "", "", "", ""))


def found(index: SearchIndex, query: str) -> set[str]:
    return {hit.thread.id for hit in index.search(query).hits}


def is_sound(index: SearchIndex) -> bool:
    index.finish_rebuild()
    return index.verify() == []


class Shelf:
    """Threads as a store would load them, and a list of which were written."""

    def __init__(self, folder: Path) -> None:
        self.dirty = folder / "dirty"
        self.threads: dict[str, Thread] = {}
        self.broken: dict[str, Exception] = {}

    def write(self, thread_id: str, *texts: str) -> None:
        thread = Thread(thread_id)
        messages = tuple(
            Message(id=f"m{at}", role="user", content=text, seq=at) for at, text in enumerate(texts)
        )
        thread.join(Delta(version=1, messages=messages))
        self.threads[thread_id] = thread
        mark_dirty(self.dirty, thread_id)

    def load(self, thread_id: str) -> Thread:
        if thread_id in self.broken:
            raise self.broken[thread_id]
        if thread_id not in self.threads:
            raise NotFound("thread", thread_id)
        return self.threads[thread_id]

    def open(self, path: Path) -> SearchIndex:
        return SearchIndex(path, dirty_list=self.dirty, load=self.load)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "index.sqlite3"


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


# -- keeping up ----------------------------------------------------------------------------------


def test_a_search_finds_what_was_saved_the_moment_before(path: Path, shelf: Shelf) -> None:
    with shelf.open(path) as index:
        shelf.write(ONE, "zebra")
        assert found(index, "zebra") == {ONE}
        shelf.write(ONE, "zebra", "lion")
        shelf.write(TWO, "lion")
        assert found(index, "lion") == {ONE, TWO}
        assert not is_dirty(shelf.dirty)


def test_another_process_finds_what_this_one_saved(path: Path, shelf: Shelf) -> None:
    with shelf.open(path) as one, shelf.open(path) as other:
        shelf.write(ONE, "zebra")
        assert found(other, "zebra") == {ONE}
        assert found(one, "zebra") == {ONE}


def test_a_thread_that_is_gone_is_found_no_more(path: Path, shelf: Shelf) -> None:
    with shelf.open(path) as index:
        shelf.write(ONE, "zebra")
        assert found(index, "zebra") == {ONE}
        del shelf.threads[ONE]
        mark_dirty(shelf.dirty, ONE)
        assert found(index, "zebra") == set()


def test_a_damaged_thread_stays_as_it_was_last_read(path: Path, shelf: Shelf) -> None:
    with shelf.open(path) as index:
        shelf.write(ONE, "zebra")
        assert found(index, "zebra") == {ONE}
        shelf.broken[ONE] = BrokenFormat("half a file")
        mark_dirty(shelf.dirty, ONE)
        assert found(index, "zebra") == {ONE}
        assert not is_dirty(shelf.dirty)


def test_a_thread_that_cannot_be_read_at_present_waits_and_the_answer_says_so(
    path: Path, shelf: Shelf
) -> None:
    with shelf.open(path) as index:
        shelf.write(ONE, "zebra")
        shelf.broken[ONE] = StorageError("the lock is held")
        answer = index.search("zebra")
        assert (answer.total_threads, answer.scope.pending) == (0, 1)
        del shelf.broken[ONE]
        answer = index.search("zebra")
        assert (answer.total_threads, answer.scope.pending) == (1, 0)


def test_what_a_reader_took_and_did_not_finish_is_taken_again(shelf: Shelf) -> None:
    mark_dirty(shelf.dirty, ONE)
    taken = take_dirty(shelf.dirty)
    assert taken.ids == (ONE,)
    mark_dirty(shelf.dirty, TWO)
    mark_dirty(shelf.dirty, TWO)
    assert is_dirty(shelf.dirty)
    assert count_dirty(shelf.dirty) == 2
    assert set(take_dirty(shelf.dirty).ids) == {ONE, TWO}


def test_a_torn_line_of_the_list_names_nothing(shelf: Shelf) -> None:
    shelf.dirty.write_bytes(b"T-018e2b\n\xff\xfe\n" + ONE.encode() + b"\n\n")
    assert take_dirty(shelf.dirty).ids == (ONE,)
    with pytest.raises(InvalidInput):
        mark_dirty(shelf.dirty, "../../etc/passwd")


def test_marks_of_many_writers_are_never_lost(shelf: Shelf) -> None:
    ids = [f"T-018e2b3c-4d5e-7f8a-9b0c-{number:012x}" for number in range(200)]
    seen: set[str] = set()

    def write(some: list[str]) -> None:
        for thread_id in some:
            mark_dirty(shelf.dirty, thread_id)

    writers = [threading.Thread(target=write, args=(ids[at::4],)) for at in range(4)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        seen.update(take_dirty(shelf.dirty).ids)
    seen.update(take_dirty(shelf.dirty).ids)
    assert seen == set(ids)


# -- several at once -----------------------------------------------------------------------------


def test_readers_are_not_kept_waiting_by_a_writer(path: Path) -> None:
    with SearchIndex(path) as writer, SearchIndex(path) as reader:
        writer.put(ThreadSummary(id=ONE), [says("zebra")])
        with writer.bulk() as bulk:
            bulk.add("s", [cut_row(says("lion"), Cutter())])
            bulk.finish("s", ThreadSummary(id=TWO))
            assert found(reader, "zebra") == {ONE}
            assert found(reader, "lion") == set()
            assert [row.id for row in reader.list()] == [ONE]
        assert found(reader, "lion") == {TWO}


def test_a_search_during_an_import_says_what_is_not_in_it_yet(
    path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raddle.adapters.local_store.search_index._DRAIN_SECONDS", 0.01)
    with SearchIndex(path) as writer, shelf.open(path) as reader, writer.bulk():
        shelf.write(ONE, "zebra")
        assert reader.search("zebra").scope.pending == 1
    with shelf.open(path) as reader:
        assert found(reader, "zebra") == {ONE}


def test_a_second_writer_waits_and_then_says_what_is_in_the_way(path: Path) -> None:
    with SearchIndex(path) as one, SearchIndex(path) as other:
        with one.bulk(), pytest.raises(IndexBusy, match="written by another process"):
            _begin(other)
        other.put(ThreadSummary(id=ONE), [says("zebra")])
        assert found(one, "zebra") == {ONE}


def _begin(index: SearchIndex) -> None:
    with index._database.writing(wait_seconds=0.05):
        raise AssertionError


def test_threads_of_one_process_take_turns(path: Path) -> None:
    errors: list[Exception] = []
    with SearchIndex(path) as index:

        def work(number: int) -> None:
            try:
                for at in range(15):
                    index.put(
                        ThreadSummary(id=f"T-018e2b3c-4d5e-7f8a-9b0c-{number:012x}"), [says(f"zebra {at}")]
                    )
                    index.search("zebra")
            except Exception as error:  # noqa: BLE001  whatever it is, the test shows it
                errors.append(error)

        workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert errors == []
        assert index.search("zebra").total_threads == 4
        assert is_sound(index)


def test_an_import_that_died_leaves_what_was_committed_and_nothing_else(path: Path) -> None:
    with SearchIndex(path) as index:
        with contextlib.suppress(RuntimeError), index.bulk() as bulk:
            bulk.add("a", [cut_row(says("zebra"), Cutter())])
            bulk.finish("a", ThreadSummary(id=ONE))
            bulk.add("b", [cut_row(says("half done"), Cutter())])
            bulk.commit()
            bulk.add("c", [cut_row(says("lost"), Cutter())])
            bulk.finish("c", ThreadSummary(id=TWO))
            raise RuntimeError
        assert found(index, "zebra") == {ONE}
        assert found(index, "half") == set()
        assert found(index, "lost") == set()
        assert index.ids() == {ONE}
        assert found(index, "~ebr") == {ONE}
        with index.bulk() as bulk:
            bulk.forget("nothing")
        assert index._database.sql.execute("SELECT count(*) FROM threads").fetchone() == (1,)
        assert is_sound(index)


def test_two_sessions_side_by_side_and_a_message_that_comes_again(path: Path) -> None:
    cutter = Cutter()
    with SearchIndex(path) as index:
        with index.bulk() as bulk:
            bulk.add("a", [cut_row(says("one", 1), cutter), cut_row(says("shrt", 2), cutter)])
            bulk.add("b", [cut_row(says("other", 1), cutter)])
            bulk.add("a", [cut_row(says("short grown long", 2), cutter), cut_row(says("three", 3), cutter)])
            bulk.finish("b", ThreadSummary(id=TWO))
            bulk.finish("a", ThreadSummary(id=ONE))
        assert index.messages_in(ONE, "") == ["m1", "m2", "m3"]
        assert found(index, "shrt") == set()
        assert found(index, "grown three -other") == set()
        assert index.messages_in(ONE, "grown") == ["m2"]
        with index.bulk() as bulk:
            bulk.add("x", [cut_row(says("replaced", 1), cutter)])
            bulk.finish("x", ThreadSummary(id=ONE, title="again"))
        assert index.messages_in(ONE, "") == ["m1"]
        assert found(index, "three") == set()
        assert is_sound(index)


def test_a_cutter_that_told_its_words_elsewhere_hides_nothing(path: Path, tmp_path: Path) -> None:
    cutter = Cutter()
    with SearchIndex(tmp_path / "first.sqlite3") as first, first.bulk() as bulk:
        bulk.add("a", [cut_row(says("condenseSession"), cutter)])
        bulk.finish("a", ThreadSummary(id=ONE))
    with SearchIndex(path) as index:
        with index.bulk() as bulk:
            bulk.add("a", [cut_row(says("condenseSession"), cutter)])
            bulk.finish("a", ThreadSummary(id=ONE))
        assert found(index, "~denseSess") == {ONE}
        assert is_sound(index)


def test_the_vocabulary_grows_and_is_merged(path: Path) -> None:
    with SearchIndex(path) as index:
        for at in range(120):
            index.extend(ThreadSummary(id=ONE), [says(f"word{at}x zebra", at)])
        assert index._database.sql.execute("SELECT count(*) FROM book").fetchone()[0] < 60
        for at in (0, 60, 119):
            assert index.messages_in(ONE, f"~ord{at}x") == [f"m{at}"]
        assert len(index.messages_in(ONE, "~ebr")) == 120


# -- the file ------------------------------------------------------------------------------------


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
