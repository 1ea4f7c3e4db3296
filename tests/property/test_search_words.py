"""The fast cutting of texts gives the words that a character-by-character reading gives."""

from __future__ import annotations

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from raddle.model.threads import query_match
from raddle.model.threads.search_text import LONGEST_WORD, Cutter, cut, fold

tricky = st.text(
    st.sampled_from("aAbBcC019_-. éßΣ世界ん한✅→\u0301\u200d½²ｶﾞ\n/\ud800\0xFдД\u00ad\ufe0f👍\U0001f3fd"),
    max_size=60,
)


@given(st.one_of(tricky, st.text(max_size=80)))
@example("x" * 600 + "-" + "é" * 400)
@example("0aA0000ßΣ0")
def test_cutting_finds_the_words_of_a_plain_reading(text: str) -> None:
    found = cut(text)
    words, pieces = found.words.split(), set(found.pieces.split())
    assert words == query_match.words(text)
    assert pieces <= query_match.pieces(text)
    assert query_match.pieces(text) <= pieces | set(words)


@given(tricky)
def test_folding_twice_changes_nothing_more(text: str) -> None:
    once = fold(text)
    assert fold(once).split() == once.split()


@given(st.lists(tricky, max_size=6))
def test_what_was_cut_before_changes_nothing(texts: list[str]) -> None:
    warm = Cutter()
    for text in texts:
        assert warm.cut(text) == Cutter().cut(text)


@given(st.lists(tricky, max_size=6))
def test_a_cutter_tells_every_token_it_emitted(texts: list[str]) -> None:
    cutter = Cutter()
    emitted: set[str] = set()
    for text in texts:
        emitted |= cutter.cut(text).tokens()
    assert set(cutter.take_terms().split("\n")) - {""} == emitted


def test_every_character_folds_to_words_or_spaces_and_stays_so() -> None:
    for code in range(0x80, 0x110000, 7):
        folded = fold(chr(code))
        assert fold(folded).split() == folded.split(), hex(code)
        if unicodedata.category(chr(code)) == "Co":  # the signs of the index are taken from there
            assert folded == " ", hex(code)


@given(st.text(max_size=800))
def test_no_word_is_longer_than_the_engines_take(text: str) -> None:
    assert all(len(word.encode()) <= LONGEST_WORD for word in cut(text).words.split())
