"""A query asked of a list: which words its rows answer, and which are left for the messages."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from raddle.model.threads.query import Query, parse
from raddle.model.threads.query_rows import asker

THREAD_ID = "T-1ad3480c-e9d7-7c4a-aa7b-916fa6aa5d6e"
NAMES = ("tide-pool", "claude-code", "private")


def left(query: str, names: Sequence[str] = NAMES) -> Query | None:
    return asker(parse(query, now=0))(THREAD_ID, names)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("tide-pool", []),
        ("pool claude", []),
        ("tidepool", []),
        ('"tide pool"', []),
        ("tid*", []),
        ("~ool", []),
        ("private", []),
        ("pool lock", ["lock"]),
        ("lock", ["lock"]),
        ("too", ["too"]),
        ("T-1ad3480c", []),
        ("t-1", []),
        ("1AD3480", []),
        (THREAD_ID, []),
        ("T-1ad3480c lock pool", ["lock"]),
        ("1ad", ["1ad"]),
        ("T-2", ["T-2"]),
        ("pool -lock", ["-lock"]),
    ],
)
def test_what_the_row_shows_is_answered_and_the_rest_is_left(query: str, expected: list[str]) -> None:
    found = left(query)
    assert found is not None
    assert [f"{'-' * term.is_negative}{term.text}".replace("--", "-") for term in found.terms] == expected


@pytest.mark.parametrize("query", ["-pool", "lock -claude", "-T-1ad3480c", '-"tide pool"'])
def test_a_row_that_shows_what_is_not_wanted_is_out(query: str) -> None:
    assert left(query) is None


def test_rows_are_told_apart_though_they_show_the_same() -> None:
    ask = asker(parse("T-1ad3480c", now=0))
    assert ask("T-2ad3480c-e9d7-7c4a-aa7b-916fa6aa5d6e", NAMES) == parse("T-1ad3480c", now=0)
    assert ask(THREAD_ID, NAMES) != parse("T-1ad3480c", now=0)


def test_filters_stay_for_whoever_is_asked_next() -> None:
    found = left("pool role:user")
    assert found is not None
    assert [one.text for one in found.filters] == ["role:user"]
