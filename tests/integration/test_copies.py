"""Which other threads hold the words of a turn, and are named when it is erased."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from raddle.actions import threads as verbs
from raddle.config import load_config
from raddle.wiring import Stores, open_stores
from raddle.wiring.copies import threads_with_copies


@pytest.fixture
def stores() -> Iterator[Stores]:
    """The stores of this test's home."""
    with open_stores(load_config()) as opened:
        yield opened


@pytest.fixture
def thread(stores: Stores) -> str:
    """A thread of two turns."""
    thread_id, _ = verbs.start_thread(stores.threads, "one")
    verbs.reply(stores.threads, thread_id, "two")
    return thread_id


def test_a_thread_of_its_own_has_no_copies(stores: Stores, thread: str) -> None:
    verbs.start_thread(stores.threads, f"it quotes {stores.threads.load(thread).messages[0].id}")
    assert threads_with_copies(stores, thread) == []


def test_forks_of_forks_are_copies_and_so_are_promoted_branches(stores: Stores, thread: str) -> None:
    fork = verbs.fork_thread(stores.threads, thread)
    second = verbs.fork_thread(stores.threads, fork)
    promoted = verbs.promote_branch(stores.threads, second, stores.threads.load(second).messages[0].id)
    assert threads_with_copies(stores, thread) == sorted([fork, second, promoted])
    assert threads_with_copies(stores, second) == sorted([thread, fork, promoted])


def test_turns_that_were_taken_back_are_looked_for_by_themselves(stores: Stores, thread: str) -> None:
    first = stores.threads.load(thread).messages[0].id
    whole, part = (verbs.fork_thread(stores.threads, thread, at=at) for at in (None, first))
    assert threads_with_copies(stores, thread, removed=True) == []
    verbs.undo(stores.threads, thread, 1)
    assert threads_with_copies(stores, thread, removed=True) == [whole]
    assert threads_with_copies(stores, thread) == sorted([whole, part])


def test_a_copy_without_words_is_none(stores: Stores, thread: str) -> None:
    fork = verbs.fork_thread(stores.threads, thread)
    with stores.threads.edit(fork) as editor:
        editor.purge([message.id for message in editor.thread.messages])
    assert threads_with_copies(stores, thread) == []


def test_a_thread_that_cannot_be_read_is_purged_without_a_list(stores: Stores, thread: str) -> None:
    verbs.fork_thread(stores.threads, thread)
    stores.paths.journal_file(thread).unlink()
    file = Path(stores.paths.thread_file(thread))
    file.write_text('{"format": 99}')
    assert threads_with_copies(stores, thread) == []
