"""What is shown of a hit: the right lines, the right marks, nothing that could steer a terminal."""

from __future__ import annotations

import pytest

from raddle.model.threads.query import parse
from raddle.model.threads.search_snippet import Snippet, snippet_of


def shown(query: str, *texts: str, width: int = 80) -> tuple[int, str]:
    """(which text, the snippet with [marks])."""
    at, snippet = snippet_of(parse(query, now=0), texts, width=width)
    return at, marked(snippet)


def marked(snippet: Snippet) -> str:
    text = snippet.text
    for start, end in reversed(snippet.marks):
        text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
    return text


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("login", "Fix the Login form", "Fix the [Login] form"),
        ("user", "call getUserById now", "call get[User]ById now"),
        ("user", "a user of getUserById", "a [user] of getUserById"),
        ("get_user", "call getUser(x)", "call [getUser](x)"),
        ("wor*", "hello worktrees", "hello [worktrees]"),
        ("src/auth.rs:42", "see src/auth.rs:42.", "see [src/auth.rs:42]."),
        ('"x != y"', "if x  !=\n y then", "if [x != y] then"),
        ("~denseSess", "condenseSession()", "con[denseSess]ion()"),
        ("世界", "hello 你好世界", "hello 你好[世界]"),
        ("世", "你好世界", "你好[世]界"),
        ("creme", "une Crème brûlée", "une [Crème] brûlée"),
        ("creme", "une Cre\u0300me", "une [Cre\u0300me]"),
        ("a b", "b a", "[b] [a]"),
        ("fox -dog", "fox and dog", "[fox] and dog"),
        ("zebra", "nothing here", "nothing here"),
        ("🚀", "up 🚀 up", "up [🚀] up"),
    ],
)
def test_what_was_found_is_marked(query: str, text: str, expected: str) -> None:
    assert shown(query, text) == (0, expected)


def test_the_text_that_shows_most_of_the_query_is_taken() -> None:
    assert shown("fox dog", "a fox", "a fox and a dog", "fox dog") == (1, "a [fox] and a [dog]")
    assert shown("fox", "", "", "a fox") == (2, "a [fox]")
    assert shown("fox", "", "no such thing") == (1, "no such thing")
    assert shown("fox") == (0, "")


def test_the_part_around_the_words_is_cut_out_of_a_long_text() -> None:
    at, text = shown(
        "needle thread", "hay " * 500 + "a needle in it " + "hay " * 500 + "needle thread" + " hay" * 500
    )
    assert at == 0
    assert "[needle] [thread]" in text
    assert text.startswith("… ")
    assert text.endswith(" …")
    assert len(text) < 100


def test_a_snippet_is_one_line_without_control_characters() -> None:
    _, text = shown("red", "\x1b[31mred\x1b[0m\r\n\n  \x07and \u202eback\u202c")
    assert text == "[31m[red] [0m and back"


def test_marks_stay_where_the_words_are_after_white_space_is_gone() -> None:
    _, snippet = snippet_of(parse("two four", now=0), ["one\n\n\ttwo   three \n four"])
    assert [snippet.text[start:end] for start, end in snippet.marks] == ["two", "four"]


def test_a_megabyte_is_no_trouble() -> None:
    _, text = shown("needle", "x" * 1_000_000 + " needle")
    assert text.endswith("xx [needle]")
    assert len(text) < 100
