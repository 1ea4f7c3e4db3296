"""What somebody is told whose query was not read as it seems to be meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.model.threads.query import FILTERS, parse
from raddle.model.threads.query_hints import hints

NOW = 1_796_000_000_000_000


def told(query: str, *, has_hits: bool = False) -> list[str]:
    return hints(parse(query, now=NOW), has_hits=has_hits)


@pytest.mark.parametrize(
    ("query", "helps"),
    [
        ("after:banana", "7d"),
        ("before:9999-99-99", "2026-11-30"),
        ('-after:"next week"', "yesterday"),
        ("is:weird", "is:pinned is:private is:archived is:removed"),
        ("is:pinned,archived", "is:pinned is:private"),
        ("HAS:foo", "has:error"),
        ("sha:zz", "hex digits"),
        ("tag:!!", "a letter or a digit"),
        ('repo:"..."', "a letter or a digit"),
    ],
)
@pytest.mark.parametrize("has_hits", [False, True])
def test_a_filter_whose_value_is_none_is_told_whatever_was_found(
    query: str, helps: str, has_hits: bool
) -> None:
    (hint,) = told(f"lock {query}", has_hits=has_hits)
    assert f"`{query.removeprefix('-')}` was looked for as text" in hint
    assert helps in hint


def test_a_value_among_several_that_is_none_is_told() -> None:
    assert told("sha:a1b2,zz", has_hits=True) == ["`zz` in `sha:a1b2,zz` is no commit, and was left out"]


@pytest.mark.parametrize(
    ("query", "helps"),
    [
        ("agnet:codex", "did you mean `agent:codex`?"),
        ("repos:moth", "did you mean `repo:moth`?"),
        ("foo:bar", "there are repo: branch: tag:"),
        ("repo: moth", "without a space"),
    ],
)
def test_what_is_no_filter_is_told_where_nothing_was_found(query: str, helps: str) -> None:
    (hint,) = told(query)
    assert helps in hint
    assert told(query, has_hits=True) == []


@pytest.mark.parametrize(
    "query",
    ["", " ", "lock", "repo:moth", "https://x.example/y", "std::vector", "C:\\temp", "error:", '"foo:bar"'],
)
def test_what_looks_like_no_filter_is_not_talked_about(query: str) -> None:
    assert told(query) == []


@pytest.mark.parametrize("query", ["...", "-!", "-> ++"])
@pytest.mark.parametrize("has_hits", [False, True])
def test_a_query_of_which_nothing_is_left_says_so_and_how_to_look_for_it(query: str, has_hits: bool) -> None:
    (hint,) = told(query, has_hits=has_hits)
    assert hint.startswith(f"nothing is left to look for: `{query}`")
    assert f'`"{query}"`' in hint
    assert told(f'"{query}"') == []


@pytest.mark.parametrize("query", ['""', "\0", "." * 500])
def test_advice_that_does_not_help_is_not_given(query: str) -> None:
    (hint,) = told(query)
    assert "quotation" not in hint
    assert len(hint) < 200


@given(
    st.lists(
        st.one_of(
            st.text(max_size=12),
            st.builds("{}:{}".format, st.sampled_from((*FILTERS, "foo", "agnet")), st.text(max_size=8)),
        ),
        max_size=5,
    ).map(" ".join),
    st.booleans(),
)
def test_any_query_can_be_talked_about(query: str, has_hits: bool) -> None:
    for hint in told(query, has_hits=has_hits):
        assert 0 < len(hint) < 300
        assert not hint.endswith(".")
