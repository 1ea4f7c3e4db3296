"""What is a hit, said with examples: the meaning that both engines have to have."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from raddle.model.threads.query import parse
from raddle.model.threads.query_match import hits, matches
from raddle.model.threads.search_fields import HeaderText, MessageText

NOW = 1_796_000_000_000_000
DAY = 86_400_000_000
HEADER = HeaderText(
    title="Fix the login form",
    tags=("bug fix", "urgent"),
    branches=("feature/add-auth",),
    remote="github.com/me/project",
    shas=("a1b2c3d4e5f6a7b8c9d0",),
    repository="github.com/me/project",
    agent="claude-code",
    is_pinned=True,
)


def a_text(user: str = "", output: str = "", tools: str = "", **facts: Any) -> MessageText:
    text = MessageText(id="m", order=NOW - 3 * DAY, role="user", texts=(user, "", "", tools, output))
    return replace(text, **facts)


def finds(query: str, text: MessageText, header: HeaderText = HEADER, **facts: bool) -> bool:
    return matches(parse(query, now=NOW), header, text, **facts)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("getUserById", "call getUserById(1)"),
        ("user", "call getUserById(1)"),
        ("getuserbyid", "get_user_by_id"),
        ("get-user-by-id", "getUserById"),
        ("get_user*", "getUserById"),
        ("src/auth.rs", "in src/auth.rs:42"),
        ("auth.rs:42", "in src/auth.rs:42"),
        ("bd-q3fy", "see bd-q3fy."),
        ("http*", "HTTPServer"),
        ("世界", "你好世界"),
        ("世", "你好世界"),
        ("好世界", "你好世界！"),
        ("提交", "git提交"),
        ("CREME", "crème"),
        ("e3b0c442", "sha e3b0c44298fc1c149afbf4c8996fb924"),
        ("✅", "all ✅"),
        ('"error handling"', "better error-handling"),
        ('"x != y"', "if X  !=\ny:"),
        ("~denseSess", "condenseSession"),
        ("~serby", "get_user_by_id"),
        ("~r/main.g", "cmd/worker/main.go"),
        ("login error", "an error"),
        ("feature/add-auth error", "an error"),
        ("addauth error", "an error"),
        ("https://github.com/me/project.git error", "an error"),
        ("a1b2c3d error", "an error"),
        ("error -warning", "an error"),
        ("file:auth.rs error", "an error"),
        ("tool:bash error", "an error"),
    ],
)
def test_it_finds(query: str, text: str) -> None:
    assert finds(query, a_text(text, tools="Bash\npath: src/auth.rs", tool_names=("Bash",)))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("use", "user"),
        ("util.rs", "util x.rs"),
        ("lib/auth", "lib src auth"),
        ("好你", "你好"),
        ('"user"', "getUserById"),
        ('"x != y"', "x == y"),
        ('"rror"', "error"),
        ("~abd", "ab d"),
        ("error -error", "an error"),
        ("error -login", "an error"),
        ('error -"add auth"', "an error"),
        ("error form*", "an errors"),
        ("file:other.rs error", "an error"),
        ("tool:bas error", "an error"),
    ],
)
def test_it_does_not_find(query: str, text: str) -> None:
    assert not finds(query, a_text(text, tools="Bash\npath: src/auth.rs", tool_names=("Bash",)))


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("repo:project", True),
        ("repo:me/project", True),
        ("repo:proj", False),
        ("repo:proj*", True),
        ('repo:"github.com/me/project"', True),
        ('repo:"project"', False),
        ("branch:auth", True),
        ("branch:main", False),
        ("tag:bug", True),
        ('tag:"bug fix"', True),
        ('tag:"bug"', False),
        ("tag:other,urgent", True),
        ("sha:a1b2", True),
        ("sha:b2", False),
        ("agent:claude", True),
        ("agent:codex", False),
        ("is:pinned", True),
        ("is:private", False),
        ("-is:private -is:archived", True),
        ("-repo:project", False),
        ("role:user", True),
        ("role:tool", False),
        ("-role:tool", True),
        ("after:4d before:2d", True),
        ("after:2d", False),
        ("before:3d", False),
        ("after:3d", True),
        ("has:error", False),
        ("-has:error", True),
    ],
)
def test_filters(query: str, fits: bool) -> None:
    assert finds(query, a_text("an error")) == fits


def test_a_message_without_a_time_fits_no_time() -> None:
    assert not finds("before:1d", a_text("x", order=5))
    assert not finds("after:1970", a_text("x", order=5))


def test_removed_messages_are_found_only_when_asked_for() -> None:
    assert not finds("error", a_text("an error"), is_removed=True)
    assert finds("error is:removed", a_text("an error"), is_removed=True)
    assert not finds("error is:removed", a_text("an error"))
    assert not finds("error is:removed -is:removed", a_text("an error"), is_removed=True)


def test_words_of_a_term_stand_in_one_field() -> None:
    assert not finds("one_two", a_text(user="one", output="two"))
    assert finds("one two", a_text(user="one", output="two"))


def test_a_negative_filter_on_messages_drops_the_whole_thread() -> None:
    said = [a_text("an error", id="1"), a_text(output="ok", id="2", role="tool", is_error=True)]
    assert hits(parse("error", now=NOW), HEADER, said) == ["1"]
    assert hits(parse("error -has:error", now=NOW), HEADER, said) == []
    assert hits(parse("error -has:error", now=NOW), HEADER, said, {"2"}) == ["1"]
    assert hits(parse("error -role:tool", now=NOW), HEADER, said) == []


def test_a_query_for_nothing_finds_everything_that_shows() -> None:
    assert hits(parse("", now=NOW), HEADER, [a_text("x", id="1"), a_text("y", id="2")], {"2"}) == ["1"]


@pytest.mark.parametrize("query", ["...", '""', "-!", "~"])
def test_a_query_of_which_nothing_is_left_finds_nothing_removed_or_not(query: str) -> None:
    assert not finds(query, a_text("..."))
    assert not finds(query, a_text("..."), is_removed=True)
    assert finds("", a_text("..."))
