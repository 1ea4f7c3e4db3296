"""Which turn goes where somebody who stands in the middle of a thread takes one back."""

from __future__ import annotations

import pytest

from raddle.actions import threads as verbs
from raddle.actions.answering.taking_back import take_back_at
from raddle.model.errors import InvalidInput
from tests.builders import THREAD_ID, an_author
from tests.fakes.memory_store import MemoryStore


@pytest.fixture
def threads() -> MemoryStore:
    """A store with one thread of one turn, `root`."""
    made = MemoryStore(an_author())
    with made.create(THREAD_ID) as editor:
        editor.append("user", "root")
    return made


def contents(threads: MemoryStore) -> list[str]:
    return [message.content for message in threads.load(THREAD_ID).tree.shown()]


def test_what_another_window_said_meanwhile_stays(threads: MemoryStore) -> None:
    root = threads.load(THREAD_ID).messages[0]
    mine = verbs.reply(threads, THREAD_ID, "mine", parent=root.id)
    answer = verbs.reply(threads, THREAD_ID, "answer", parent=mine.id, role="assistant")
    verbs.reply(threads, THREAD_ID, "theirs", parent=root.id)
    assert take_back_at(threads, THREAD_ID, answer.id) == ([answer.id, mine.id], root.id)
    assert contents(threads) == ["root", "theirs"]
    assert set(verbs.redo(threads, THREAD_ID, 1)) == {mine.id, answer.id}


def test_a_turn_under_which_somebody_went_on_is_not_taken_back_unseen(threads: MemoryStore) -> None:
    root = threads.load(THREAD_ID).messages[0]
    answer = verbs.reply(threads, THREAD_ID, "answer", parent=root.id, role="assistant")
    verbs.reply(threads, THREAD_ID, "theirs", parent=answer.id)
    with pytest.raises(InvalidInput):
        take_back_at(threads, THREAD_ID, answer.id)
    assert contents(threads) == ["root", "answer", "theirs"]


def test_an_answer_that_landed_meanwhile_goes_with_its_turn(threads: MemoryStore) -> None:
    root = threads.load(THREAD_ID).messages[0]
    verbs.reply(threads, THREAD_ID, "answer", parent=root.id, role="assistant")
    gone, head = take_back_at(threads, THREAD_ID, root.id)
    assert (len(gone), head) == (2, None)
    assert contents(threads) == []


def test_where_nothing_was_said_nothing_goes(threads: MemoryStore) -> None:
    assert take_back_at(threads, THREAD_ID, None) == ([], None)
