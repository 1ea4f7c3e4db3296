"""`raddle.open()`: the threads of this machine as a program reads, searches, keeps and deletes them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import raddle
from tests.builders import a_line, a_thread
from tests.command_line import done, new

UNKNOWN = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c"


def test_what_the_command_line_wrote_is_read() -> None:
    thread_id = new("Why does the kiln crack?", "--title", "Kiln")
    with raddle.open() as store:
        assert store.get(thread_id).title == "Kiln"
        loaded = store.load(thread_id[:20])
        assert loaded is not None
        assert loaded.id == thread_id
        assert thread_id in store
        assert [thread.id for thread in store] == [thread_id]


def test_what_is_not_there_is_none_or_an_error_as_it_was_asked() -> None:
    with raddle.open() as store:
        assert store.load(UNKNOWN) is None
        assert UNKNOWN not in store
        assert "../escape" not in store
        with pytest.raises(raddle.NotFound):
            store.get(UNKNOWN)
        with pytest.raises(raddle.NotFound):
            store.delete(UNKNOWN)
        with pytest.raises(raddle.InvalidInput):
            store.load("../escape")


def test_a_start_that_names_several_threads_is_refused() -> None:
    one, other = new("one"), new("other")
    with raddle.open() as store, pytest.raises(raddle.Ambiguous):
        store.load(one[: next(n for n in range(40) if one[n] != other[n])])


def test_lists_come_pins_first_and_the_newest_activity_next() -> None:
    oldest, middle, newest = new("oldest kiln"), new("middle"), new("newest kiln")
    done("pin", oldest)
    done("archive", middle)
    with raddle.open() as store:
        assert [row.id for row in store.list()] == [oldest, newest]
        assert [row.id for row in store.list(limit=1)] == [oldest]
        assert {row.id for row in store.list(limit=None, archived=True)} == {oldest, middle, newest}
        assert len(store.list(limit=10**20)) == len(store.list(limit=None))
        assert [row.title for row in store.list("kiln is:pinned")] == ["oldest kiln"]


def test_a_search_gives_the_best_message_of_each_thread() -> None:
    thread_id = new("Why does the kiln crack?")
    message = done("reply", thread_id, "thermal shock", "--role", "assistant").out.strip()
    with raddle.open() as store:
        (hit,) = store.search("shock")
        assert (hit.thread.id, hit.message_id, hit.role) == (thread_id, message, "assistant")
        assert store.search("absent") == []


def test_a_thread_that_is_saved_joins_what_is_there() -> None:
    mine = a_thread(*a_line("why?", "because"), title="From elsewhere")
    with raddle.open() as store:
        assert store.save(mine)
        assert not store.save(mine)
        with store.edit(mine.id) as editor:
            editor.append("user", "added here")
        assert not store.save(mine)
        assert [message.content for message in store.get(mine.id).messages] == [
            "why?",
            "because",
            "added here",
        ]
        assert [hit.thread.id for hit in store.search("because")] == [mine.id]


def test_an_empty_thread_is_not_written() -> None:
    with raddle.open() as store:
        assert not store.save(raddle.Thread(UNKNOWN))
        assert UNKNOWN not in store


def test_an_edit_that_raises_changes_nothing() -> None:
    thread_id = new("hello")
    with raddle.open() as store:
        with pytest.raises(ZeroDivisionError), store.edit(thread_id) as editor:
            editor.rename("never")
            raise ZeroDivisionError
        assert store.get(thread_id).title == "hello"


def test_a_deleted_thread_is_in_no_list_and_can_be_brought_back() -> None:
    thread_id = new("hello kiln")
    with raddle.open() as store:
        store.delete(thread_id)
        assert store.list() == []
        assert store.search("kiln") == []
        assert list(store) == []
        assert store.get(thread_id).is_deleted
    done("restore", thread_id)
    with raddle.open() as store:
        assert [row.id for row in store.list()] == [thread_id]


def test_a_thread_that_cannot_be_read_is_told_of_and_the_others_come(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken, whole = new("broken"), new("whole")
    folder = home / ".local/share/raddle/threads"
    for file in folder.glob(f"{broken}.*"):
        file.unlink()
    (folder / f"{broken}.json").write_text("{")
    with caplog.at_level(logging.WARNING, "raddle"), raddle.open() as store:
        assert [thread.id for thread in store] == [whole]
    assert broken in caplog.text


def test_what_does_not_fit_is_refused_by_name() -> None:
    thread_id = new("one")
    with raddle.open() as store:
        for ask in (store.get, store.load, store.delete):
            with pytest.raises(raddle.InvalidInput, match="the id of a thread is a text, not NoneType"):
                ask(None)  # type: ignore[arg-type]
        with pytest.raises(raddle.InvalidInput, match="a limit is 0 or more"):
            store.search("one", limit=-1)
        assert [hit.thread.id for hit in store.search("one", limit=None)] == [thread_id]
        with store.edit(thread_id) as editor:
            with pytest.raises(raddle.UserError, match="being edited already"):
                store.delete(thread_id)
            with raddle.open() as other, pytest.raises(raddle.UserError, match="being edited already"):
                other.delete(thread_id)
            with (
                pytest.raises(raddle.UserError, match="being edited already"),
                raddle.record(thread=thread_id) as session,
            ):
                session.user("unseen by the edit")
            editor.rename("Kiln")
        assert store.get(thread_id).title == "Kiln"
    for wrong in ({"title": 5}, {"thread": 5}, {"model": 7}, {"private": "no"}, {"workspace": 5}):
        with pytest.raises(raddle.InvalidInput):
            raddle.record(**wrong)
