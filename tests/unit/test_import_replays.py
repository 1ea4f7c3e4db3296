"""Records that say again what was said: known as far as is remembered, and doubted beyond."""

from __future__ import annotations

from raddle.actions.importing.replays import Replays, digest_of

ONE, TWO, THREE = (digest_of(f"record {number}") for number in range(3))


def test_what_comes_again_is_a_copy() -> None:
    replays = Replays(2)
    assert [replays.is_copy(digest, 5) for digest in (ONE, TWO, ONE, TWO)] == [False, False, True, True]
    assert not replays.is_in_doubt


def test_one_reading_forgets_nothing() -> None:
    replays = Replays(1)
    assert [replays.is_copy(digest, 5) for digest in (ONE, TWO, THREE, ONE)] == [False, False, False, True]


def test_a_later_reading_doubts_what_may_be_older_than_it_remembers() -> None:
    first = Replays(1)
    for at, digest in enumerate((ONE, TWO), 10):
        first.is_copy(digest, at)
    later = Replays(1)
    later.recall(first.memory())
    assert later.is_copy(TWO, 11)
    assert not later.is_copy(THREE, 11)
    assert not later.is_in_doubt
    assert not later.is_copy(ONE, 10)
    assert later.is_in_doubt


def test_a_record_without_a_time_raises_no_doubt() -> None:
    first = Replays(1)
    for digest in (ONE, TWO):
        first.is_copy(digest, 10)
    later = Replays(1)
    later.recall(first.memory())
    assert not later.is_copy(THREE, None)
    assert not later.is_in_doubt


def test_the_same_words_with_other_content_are_another_record() -> None:
    assert digest_of("user 1 ", b"a") != digest_of("user 1 ", b"b")
    assert digest_of("user 1 ", b"a") == digest_of("user 1 a")
