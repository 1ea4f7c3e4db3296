"""What a word is, one example for each rule of docs/reference/search-language.md."""

from __future__ import annotations

import pytest

from raddle.model.threads.search_text import Cutter, cut, fold, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Fix the LOGIN", "fix the login"),
        ("src/auth.rs:42", "src auth rs 42"),
        ("snake_case kebab-case", "snake case kebab case"),
        ("it's a 3.5e-7", "it s a 3 5e 7"),
        ("Crème brûlée", "creme brulee"),
        ("ﬁne Ｆｕｌｌ", "fine full"),
        ("Straße STRASSE", "strasse strasse"),
        ("ΣΊΣΥΦΟΣ σίσυφος", "σισυφοσ σισυφοσ"),
        ("Й и", "и и"),
        ("e\u0301 = é", "e e"),
        ("soft\u00adhyphen zero\u200dwidth", "softhyphen zerowidth"),
        ("½ and x² and word¹", "1 2 and x 2 and word 1"),
    ],
)
def test_words_are_lower_case_without_accents_cut_at_punctuation(text: str, words: str) -> None:
    assert cut(text).words.split() == words.split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("你好世界", "你好 好世 世界 界"),
        ("世", "世"),
        ("git提交x", "git 提交 交 x"),
        ("第3章", "第 3 章"),
        ("ﾃﾞｰﾀ", "デー ータ タ"),
        ("한국어", "한국 국어 어"),
        ("\u1112\u1161\u11ab", "한"),
        ("ไทย", "ไท ทย ย"),
        ("你好，世界", "你好 好 世界 界"),
    ],
)
def test_scripts_without_spaces_become_overlapping_pairs(text: str, words: str) -> None:
    assert cut(text).words.split() == words.split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("done ✅🚀", "done ✅ 🚀"),
        ("❤️ and 👍🏽", "❤ and 👍"),
        ("5€ ≤ 6£", "5 € ≤ 6 £"),
        ("  1→text ─── ● ⠋ a…b", "1 text a b"),
    ],
)
def test_emoji_and_symbols_are_words_and_drawing_is_none(text: str, words: str) -> None:
    assert cut(text).words.split() == words.split()


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("getUserById", "by get id user"),
        ("HTTPServer parseJSON", "http json parse server"),
        ("utf8 sha256sum v2", "2 256 8 sha sum utf v"),
        ("get_user by-id", "byid getuser"),
        ("--dry-run __init__", "dryrun"),
        ("getUser_byId", "by get getuserbyid id user"),
        ("User user", ""),
        ("getUser user", "get"),
        ("a1b2c3d4e5 DEADBEEF00", ""),
        ("018e2b3c-4d5e-7f8a", ""),
        ("2026-11-30", ""),
        ("aB3dE6fG7hI9", ""),
        ("x" * 81 + "Camel", ""),
        ("größeWert", "grosse wert"),
        ("søgeOrd", "ord søge"),
    ],
)
def test_parts_of_identifiers_are_pieces(text: str, pieces: str) -> None:
    assert cut(text).pieces.split() == pieces.split()


def test_a_word_is_cut_at_five_hundred_bytes_and_never_inside_a_character() -> None:
    assert cut("x" * 700).words == "x" * 500
    assert cut("aд" + "д" * 400).words == "a" + "д" * 249
    assert cut("y-" + "x" * 600 + " z").words.split() == ["y", "x" * 500, "z"]


def test_nul_surrogates_and_unassigned_characters_are_only_gaps() -> None:
    assert cut("a\x00b\ud800c\ue000d\U0010ffffe").words.split() == ["a", "b", "c", "d", "e"]


def test_ascii_is_folded_by_leaving_it_alone() -> None:
    text = "Any ASCII, as it is.\n"
    assert fold(text) is text


def test_a_cutter_gives_each_term_out_once() -> None:
    cutter = Cutter()
    cutter.cut("getUser first")
    assert cutter.take_terms().split("\n") == ["first", "get", "getuser", "user"]
    cutter.cut("getUser second")
    assert cutter.take_terms() == "second"
    assert cutter.take_terms() == ""


def test_words_of_a_short_text_come_in_order() -> None:
    assert words_of("feature/add-auth") == ("feature", "add", "auth")
