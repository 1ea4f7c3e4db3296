"""What a person does to one thread, below any command line: how messages are named, where branches start and end."""

from __future__ import annotations

import pytest

from raddle.actions import threads as verbs
from raddle.model.errors import Ambiguous, InvalidInput, NotFound
from raddle.model.threads.thread import Thread
from tests.builders import a_line, a_message, a_thread, an_author
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


def test_a_new_thread_that_says_nothing_is_not_made() -> None:
    threads = MemoryStore(an_author())
    with pytest.raises(InvalidInput):
        verbs.start_thread(threads, " \n")
    assert threads.ids() == []
