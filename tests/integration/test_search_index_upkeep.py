"""The index behind the thread files: what was saved is found, whoever saved it and whatever else goes on."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from raddle.adapters.local_store.search_dirty import count_dirty, is_dirty, mark_dirty, take_dirty
from raddle.adapters.local_store.search_index import SearchIndex
from raddle.model.errors import BrokenFormat, InvalidInput, NotFound, StorageError
from raddle.model.threads.delta import Delta
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread
from tests.builders_search import ONE, TWO, found


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


def test_a_search_during_an_import_says_what_is_not_in_it_yet(
    path: Path, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raddle.adapters.local_store.search_upkeep.DRAIN_SECONDS", 0.01)
    with SearchIndex(path) as writer, shelf.open(path) as reader, writer.bulk():
        shelf.write(ONE, "zebra")
        assert reader.search("zebra").scope.pending == 1
    with shelf.open(path) as reader:
        assert found(reader, "zebra") == {ONE}
