"""What a person types, and what is asked for. Every text asks for something or for nothing; none is an error."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from raddle.model.threads.query import (
    LONGEST_QUERY,
    MOST_TERMS,
    FlagFilter,
    Fragment,
    Name,
    NameFilter,
    Needle,
    Phrase,
    Query,
    ShaFilter,
    TimeFilter,
    Word,
    is_of_thread,
    parse,
)

NOW = 1_796_000_000_000_000


def asked(text: str, *, as_you_type: bool = False) -> Query:
    return parse(text, now=NOW, as_you_type=as_you_type)


def needles(text: str, *, as_you_type: bool = False) -> list[Needle]:
    return [
        term.needle for term in asked(text, as_you_type=as_you_type).terms if isinstance(term, Word | Phrase)
    ]


def test_words_stand_side_by_side_where_one_term_has_several() -> None:
    assert needles("login src/auth.rs:42") == [
        Needle(words=("login",)),
        Needle(words=("src", "auth", "rs", "42")),
    ]


def test_an_identifier_is_also_looked_for_as_one_word() -> None:
    assert needles("get_user_by-id") == [Needle(words=("get", "user", "by", "id"), joined="getuserbyid")]
    assert needles("getUser") == [Needle(words=("getuser",))]
    assert needles("a.b_c") == [Needle(words=("a", "b", "c"))]


def test_a_star_makes_a_prefix_of_the_last_word() -> None:
    assert needles("auth* get_us* C++*") == [
        Needle(words=("auth",), is_prefix=True),
        Needle(words=("get", "us"), joined="getus", is_prefix=True),
        Needle(words=("c",)),
    ]


def test_seven_to_forty_hex_digits_are_the_start_of_a_commit() -> None:
    assert needles("a1b2c3d A1B2C3D4")[0] == Needle(words=("a1b2c3d",), is_prefix=True)
    assert needles("A1B2C3D4") == [Needle(words=("a1b2c3d4",), is_prefix=True)]
    assert needles("a1b2c3") == [Needle(words=("a1b2c3",))]
    assert needles("a" * 41) == [Needle(words=("a" * 41,))]
    assert needles('"a1b2c3d"') == [Needle(words=("a1b2c3d",))]


def test_a_run_without_spaces_may_go_on() -> None:
    assert needles("你好世界 世 git提交") == [
        Needle(words=("你好", "好世", "世界")),
        Needle(words=("世",), is_prefix=True),
        Needle(words=("git", "提交")),
    ]


def test_the_word_being_typed_is_a_prefix() -> None:
    assert needles("fix log", as_you_type=True) == [
        Needle(words=("fix",)),
        Needle(words=("log",), is_prefix=True),
    ]
    assert needles("fix log ", as_you_type=True) == [Needle(words=("fix",)), Needle(words=("log",))]
    assert needles('fix "log', as_you_type=True) == [Needle(words=("fix",)), Needle(words=("log",))]


def test_a_single_letter_being_typed_asks_for_nothing_yet() -> None:
    assert needles("fix l", as_you_type=True) == [Needle(words=("fix",))]
    assert needles("l", as_you_type=True) == []
    assert needles("src/l", as_you_type=True) == [Needle(words=("src",))]
    assert needles("l*", as_you_type=True) == [Needle(words=("l",), is_prefix=True)]
    assert needles("世", as_you_type=True) == [Needle(words=("世",), is_prefix=True)]


def test_quoted_text_is_exact_where_punctuation_matters() -> None:
    assert asked('"error  handling"').terms == (
        Phrase(text='"error  handling"', needle=Needle(words=("error", "handling"))),
    )
    assert asked('"If (X !=\n y)"').terms == (
        Phrase(text='"If (X !=\n y)"', needle=Needle(words=("if", "x", "y")), exact="if (x != y)"),
    )
    assert asked("“smart quotes”").terms == asked('"smart quotes"').terms


def test_a_quote_left_open_ends_with_the_text() -> None:
    assert asked('"error handling').terms == asked('"error handling"').terms
    assert asked('tag:"bug fix').filters == (
        NameFilter(text='tag:"bug fix', key="tag", names=(Name(words=("bug", "fix"), is_whole=True),)),
    )


def test_a_tilde_finds_inside_words() -> None:
    assert asked("~denseSess").terms == (Fragment(text="~denseSess", inside="densesess"),)
    assert asked("~r/main.g").terms == (Fragment(text="~r/main.g", exact="r/main.g", words=("main",)),)
    assert asked('~"a b"').terms == (Fragment(text="~a b", exact="a b"),)
    assert asked('~=> "=>"').terms == (Fragment(text="~=>", exact="=>"), Fragment(text='"=>"', exact="=>"))
    assert needles("~世界") == [Needle(words=("世界",))]


def test_a_minus_leaves_out_and_a_flag_does_not() -> None:
    terms = asked('-draft -"to do" -~tmp --force -rf').terms
    assert [term.is_negative for term in terms] == [True, True, True, False, True]
    assert asked("a-b -").terms == asked("a-b").terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "repo:github.com/me/x",
            NameFilter(text="", key="repo", names=(Name(words=("github", "com", "me", "x")),)),
        ),
        ("Branch:feat*", NameFilter(text="", key="branch", names=(Name(words=("feat",), is_prefix=True),))),
        (
            "role:user,tool",
            NameFilter(text="", key="role", names=(Name(words=("user",)), Name(words=("tool",)))),
        ),
        (
            'tag:"bug, fix"',
            NameFilter(text="", key="tag", names=(Name(words=("bug", "fix"), is_whole=True),)),
        ),
        ("sha:A1B2,c3", ShaFilter(text="", prefixes=("a1b2", "c3"))),
        ("is:Pinned", FlagFilter(text="", flag="pinned")),
        ("has:error", FlagFilter(text="", flag="error")),
        ("after:7d", TimeFilter(text="", is_after=True, at=NOW - 7 * 86_400_000_000)),
        ("before:1970-01-02", TimeFilter(text="", is_after=False, at=86_400_000_000)),
    ],
)
def test_filters(text: str, expected: object) -> None:
    (found,) = asked(text).filters
    assert found.text == text
    assert replace(found, text="") == expected
    (negative,) = asked(f"-{text}").filters
    assert negative.is_negative


@pytest.mark.parametrize(
    "text", ["before:soon", "is:nice", "has:fun", "sha:xyz", "repo:", "tag:!!", "http://x", "role:,"]
)
def test_what_no_filter_has_is_text(text: str) -> None:
    query = asked(text)
    assert query.filters == ()
    assert isinstance(query.terms[0], Word)


def test_filters_ask_about_threads_or_about_messages() -> None:
    filters = asked("repo:a branch:a tag:a agent:a sha:a is:pinned is:private is:archived").filters
    assert all(map(is_of_thread, filters))
    filters = asked("role:a tool:a file:a before:1d after:1d is:removed has:error").filters
    assert not any(map(is_of_thread, filters))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("https://github.com/me/x.git", ("github", "com", "me", "x")),
        ("https://user:pw@github.com:8443/me/x/pull/5?a=b#c", ("github", "com", "me", "x")),
        ("git@github.com:me/x.git", ("github", "com", "me", "x")),
        ("ssh://git@host/me/x", ("host", "me", "x")),
        ("me/x.git", ("me", "x")),
        ("github.com/me/x", None),
        ("src/auth.rs", None),
        ("https://", None),
    ],
)
def test_the_address_of_a_repository_is_looked_for_as_its_name(
    text: str, words: tuple[str, ...] | None
) -> None:
    remotes = [term.remote for term in asked(text).terms if isinstance(term, Word)]
    assert remotes == ([Needle(words=words)] if words else remotes[:1] and [None])


def test_the_same_thing_twice_is_asked_for_once() -> None:
    assert asked("fix fix is:pinned is:pinned").terms == asked("fix").terms
    assert len(asked("fix is:pinned is:pinned").filters) == 1


def test_what_asks_for_nothing_is_said() -> None:
    query = asked('-> ++ "" ~ fix')
    assert query.ignored == ("->", "++", '""', "~")
    assert asked("").is_empty
    assert asked(" \n ").is_empty


@pytest.mark.parametrize("text", ["...", "\0", '""', "-> ++", "-!", "~", "*"])
def test_a_query_of_which_nothing_is_left_is_of_nothing_and_not_of_everything(text: str) -> None:
    query = asked(text)
    assert query.is_of_nothing
    assert not query.is_empty
    assert query.ignored
    assert asked(text, as_you_type=True).is_empty
    assert not asked(f"{text} is:pinned").is_of_nothing
    assert not asked(f"{text} is:removed -is:removed").is_of_nothing


def test_a_query_has_only_so_many_terms() -> None:
    query = asked(" ".join(f"word{at}" for at in range(MOST_TERMS + 30)))
    assert len(query.terms) == MOST_TERMS
    assert query.ignored == (f"30 more, after the first {MOST_TERMS}",)


def test_only_the_start_of_a_very_long_text_is_looked_at() -> None:
    query = asked("x" * LONGEST_QUERY + " tail")
    assert len(query.text) == LONGEST_QUERY
    assert query.ignored == (f"what follows the first {LONGEST_QUERY} characters",)


def test_a_scope_narrows_a_query_without_a_word_in_it() -> None:
    scope = FlagFilter(text="", flag="private", is_negative=True)
    assert asked("fix").narrowed(scope).filters == (scope,)
