"""The index between several: readers beside a writer, writers by turns, imports side by side or broken off."""

from __future__ import annotations

import contextlib
import threading
import tracemalloc
from pathlib import Path

import pytest

from raddle.adapters.local_store import search_bulk
from raddle.adapters.local_store.search_database import IndexBusy
from raddle.adapters.local_store.search_index import SearchIndex
from raddle.model.threads.search_fields import cut_row
from raddle.model.threads.search_text import Cutter
from raddle.model.threads.summary import ThreadSummary
from tests.builders_search import ONE, TWO, found, is_sound, says


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "index.sqlite3"


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


def test_the_words_of_a_session_without_end_are_not_all_held(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_bulk, "_MOST_TERMS", 1_000)
    cutter = Cutter()
    texts = [" ".join(f"word{at * 100 + number}" for number in range(100)) for at in range(200)]
    rows = [cut_row(says(text, at), cutter) for at, text in enumerate(texts)]
    with SearchIndex(path) as index:
        with index.bulk() as bulk:
            tracemalloc.start()
            try:
                for row in rows:
                    bulk.add("a", [row])
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            bulk.finish("a", ThreadSummary(id=ONE))
        assert found(index, "~ord17317") == {ONE}
        assert is_sound(index)
    assert peak < 1_500_000


def test_the_vocabulary_grows_and_is_merged(path: Path) -> None:
    with SearchIndex(path) as index:
        for at in range(120):
            index.extend(ThreadSummary(id=ONE), [says(f"word{at}x zebra", at)])
        assert index._database.sql.execute("SELECT count(*) FROM book").fetchone()[0] < 60
        for at in (0, 60, 119):
            assert index.messages_in(ONE, f"~ord{at}x") == [f"m{at}"]
        assert len(index.messages_in(ONE, "~ebr")) == 120
