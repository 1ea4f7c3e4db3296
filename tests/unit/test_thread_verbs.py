"""What a person does to one thread, below any command line: how messages are named, where branches start and end."""

from __future__ import annotations

import pytest

from raddle.actions import threads as verbs
from raddle.actions.importing.titles import title_from
from raddle.model.errors import Ambiguous, InvalidInput, NotFound
from raddle.model.threads.thread import Thread
from tests.builders import THREAD_ID, a_line, a_message, a_thread, an_author, texts
from tests.fakes.memory_store import MemoryStore


@pytest.fixture
def forked() -> Thread:
    """M1 answered twice: by m2, which m3 goes on from, and by m4 on a branch of its own."""
    fork = a_message("m4", parent_id="m1", branch_id="m4", role="assistant", ts="2026-11-30T12:00:30Z")
    return a_thread(*a_line("ask", "first", "go on"), fork)


@pytest.mark.parametrize(
    "part", ["msg_01ABCdef_-xyz", "msg_01ABC", "MSG_01abc", "Cdef_-xyz", "def_-xyz", "DEF_-XYZ"]
)
def test_a_message_is_named_by_its_id_its_start_or_its_end(part: str) -> None:
    thread = a_thread(a_message("msg_01ABCdef_-xyz"), a_message("other-000001"))
    assert verbs.find_message(thread, part).id == "msg_01ABCdef_-xyz"


def test_a_whole_id_is_not_mistaken_for_the_start_of_another() -> None:
    thread = a_thread(a_message("m1"), a_message("m10"), a_message("m11"))
    assert verbs.find_message(thread, "m1").id == "m1"


def test_a_short_end_names_nothing() -> None:
    thread = a_thread(a_message("aaaa-bbbb-12345"))
    with pytest.raises(NotFound):
        verbs.find_message(thread, "12345")


def test_an_ambiguous_name_lists_the_candidates() -> None:
    thread = a_thread(a_message("m10"), a_message("m11"))
    with pytest.raises(Ambiguous) as error:
        verbs.find_message(thread, "m1")
    assert error.value.candidates == ("m10", "m11")


@pytest.mark.parametrize("part", ["", " ", "../x", "a b", "x" * 201, "é"])
def test_what_cannot_be_an_id_is_refused(part: str) -> None:
    with pytest.raises(InvalidInput):
        verbs.find_message(a_thread(a_message("m1")), part)


def test_a_branch_starts_where_it_forks_and_ends_where_nothing_goes_on(forked: Thread) -> None:
    assert [verbs.branch_start(forked, name) for name in ("m1", "m3", "m4")] == ["m1", "m1", "m4"]
    assert [verbs.leaf_of(forked, name) for name in ("m1", "m2", "m4")] == ["m3", "m3", "m4"]


@pytest.fixture
def threads() -> MemoryStore:
    """A store with one thread of three turns."""
    made = MemoryStore(an_author())
    with made.create(THREAD_ID) as editor:
        for text in ("\n  Fix the lock\nplease", "two", "three"):
            editor.append("user", text)
        editor.rename("Lock")
    return made


def test_an_empty_title_is_made_of_the_first_words(threads: MemoryStore) -> None:
    assert verbs.rename(threads, THREAD_ID, " New\ntitle ", title_of=title_from) == "New title"
    assert verbs.rename(threads, THREAD_ID, "\t", title_of=title_from) == "Fix the lock"


def test_a_thread_without_words_has_no_title_to_fall_back_on(threads: MemoryStore) -> None:
    verbs.undo(threads, THREAD_ID, 3)
    assert verbs.rename(threads, THREAD_ID, "", title_of=title_from) == ""


def test_tags_that_were_not_there_are_told(threads: MemoryStore) -> None:
    assert verbs.tag(threads, THREAD_ID, ["bug", "later"]) == (["bug", "later"], [])
    assert verbs.tag(threads, THREAD_ID, [], ["#bug", "nope", "bug"]) == (["later"], ["nope", "bug"])


def test_what_was_erased_does_not_come_back_and_nothing_else_with_it(threads: MemoryStore) -> None:
    verbs.undo(threads, THREAD_ID, 1)
    with threads.edit(THREAD_ID) as editor:
        editor.purge([message.id for message in editor.thread.messages[2:]])
    with pytest.raises(InvalidInput, match="erased"):
        verbs.redo(threads, THREAD_ID, 1)
    verbs.undo(threads, THREAD_ID, 1)
    with pytest.raises(InvalidInput) as refused:
        verbs.redo(threads, THREAD_ID, 2)
    assert f"raddle redo {THREAD_ID} 1" in refused.value.hint
    assert texts(threads.load(THREAD_ID).tree.shown()) == ["\n  Fix the lock\nplease"]
    assert len(verbs.redo(threads, THREAD_ID, 1)) == 1
    assert texts(threads.load(THREAD_ID).tree.shown()) == ["\n  Fix the lock\nplease", "two"]


def test_a_new_thread_that_says_nothing_is_not_made() -> None:
    threads = MemoryStore(an_author())
    with pytest.raises(InvalidInput):
        verbs.start_thread(threads, " \n")
    assert threads.ids() == []
