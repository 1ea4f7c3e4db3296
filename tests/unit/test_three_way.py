"""Three-way merges: what one side changed stands, what both changed alike is one, all else is a clash."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.model.three_way import (
    MISSING,
    MOST_EDITS,
    merge_mappings,
    merge_sequences,
    merge_texts,
    merge_values,
    same,
    split_lines,
)

BASE = "one\ntwo\nthree\nfour\nfive\n"
few_lines = st.lists(st.sampled_from(("a\n", "b\n", "c\n", "d\n", "\n")), max_size=7).map("".join)
few_texts = st.lists(st.sampled_from("abcdef"), max_size=6, unique=True)


def clash(path: tuple[str, ...], base: Any, local: Any, remote: Any) -> Any:
    return ("clash", *path)


@pytest.mark.parametrize(
    ("local", "remote", "merged"),
    [
        ("ONE\ntwo\nthree\nfour\nfive\n", "one\ntwo\nthree\nfour\nFIVE\n", "ONE\ntwo\nthree\nfour\nFIVE\n"),
        ("two\nthree\nfour\nfive\n", "one\ntwo\nthree\nfour\nfive\nsix\n", "two\nthree\nfour\nfive\nsix\n"),
        (
            "one\ntwo\nnew\nthree\nfour\nfive\n",
            "one\ntwo\nnew\nthree\nfour\nfive\n",
            "one\ntwo\nnew\nthree\nfour\nfive\n",
        ),
        (BASE, "", ""),
        ("one\nTWO\nthree\nfour\nfive\n", "one\ntwo\nthree\nFOUR\nfive", "one\nTWO\nthree\nFOUR\nfive"),
    ],
)
def test_changes_in_different_places_are_both_there(local: str, remote: str, merged: str) -> None:
    assert merge_texts(BASE, local, remote) == merged


@pytest.mark.parametrize(
    ("local", "remote"),
    [
        ("one\nTWO\nthree\nfour\nfive\n", "one\ntwo!\nthree\nfour\nfive\n"),
        ("one\nTWO\nthree\nfour\nfive\n", "one\ntwo\nTHREE\nfour\nfive\n"),
        (BASE + "mine\n", BASE + "yours\n"),
        ("", "one\n"),
    ],
)
def test_changes_that_touch_are_a_clash(local: str, remote: str) -> None:
    assert merge_texts(BASE, local, remote) is None


def test_only_a_line_feed_ends_a_line() -> None:
    assert split_lines("a\rb\x0bc\u2028d\ne") == ["a\rb\x0bc\u2028d\n", "e"]
    assert split_lines("") == []
    assert split_lines("\n") == ["\n"]


@given(few_lines, few_lines, few_lines)
def test_a_merge_of_texts_is_the_same_from_both_sides(base: str, local: str, remote: str) -> None:
    assert merge_texts(base, local, remote) == merge_texts(base, remote, local)


@given(few_lines, few_lines)
def test_one_sides_change_is_the_merge(base: str, side: str) -> None:
    assert (
        merge_texts(base, side, base)
        == merge_texts(base, base, side)
        == merge_texts(base, side, side)
        == side
    )


@given(few_lines, few_lines, few_lines)
def test_every_line_of_a_merge_is_a_line_of_a_side_and_none_of_theirs_is_lost(
    base: str, local: str, remote: str
) -> None:
    merged = merge_texts(base, local, remote)
    if merged is None:
        return
    sides = local.splitlines() + remote.splitlines()
    for line in {*merged.splitlines(), *sides}:
        counts = [text.splitlines().count(line) for text in (base, local, remote)]
        grown = max(counts[1] - counts[0], 0) + max(counts[2] - counts[0], 0)
        assert merged.splitlines().count(line) <= counts[0] + grown
        if counts[0] == 0 and grown:
            assert line in merged.splitlines()


@given(few_lines, few_lines, few_lines, few_lines)
def test_changes_with_a_line_between_them_never_clash(
    head: str, tail: str, new_head: str, new_tail: str
) -> None:
    # the line between is nowhere else, so that no comparison can take another one for it
    base, local, remote = (f"{head}|\n{tail}", f"{new_head}|\n{tail}", f"{head}|\n{new_tail}")
    assert merge_texts(base, local, remote) == f"{new_head}|\n{new_tail}"


def test_two_large_rewrites_clash_within_a_moment() -> None:
    base = "".join(f"{number}\n" for number in range(20_000))
    local = "".join(f"l{number}\n" for number in range(20_000))
    remote = "".join(f"r{number}\n" for number in range(20_000))
    assert merge_texts(base, local, remote) is None


def test_a_few_changes_in_a_long_text_are_found() -> None:
    lines = [f"{number}\n" for number in range(20_000)]
    local, remote = list(lines), list(lines)
    for number in range(MOST_EDITS // 4):
        local[number * 20] = "local\n"
        remote[number * 20 + 10] = "remote\n"
    merged = merge_texts("".join(lines), "".join(local), "".join(remote))
    assert merged is not None
    assert merged.count("local\n") == merged.count("remote\n") == MOST_EDITS // 4


def test_values_are_merged_key_by_key() -> None:
    base = {"a": 1, "b": {"c": 1, "d": 1}, "gone": 1}
    local = {"a": 2, "b": {"c": 2, "d": 1}, "gone": 1, "new": 1}
    remote = {"a": 1, "b": {"c": 1, "d": 2}, "other": 1}
    merged = merge_mappings(base, local, remote, clash)
    assert merged == {"a": 2, "b": {"c": 2, "d": 2}, "new": 1, "other": 1}
    assert list(merged) == ["a", "b", "new", "other"]


def test_a_clash_is_settled_where_it_is() -> None:
    merged = merge_mappings({"a": {"b": 1}}, {"a": {"b": 2}}, {"a": {"b": 3}}, clash)
    assert merged == {"a": {"b": ("clash", "a", "b")}}


def test_a_removal_never_takes_a_change() -> None:
    assert merge_values(1, MISSING, 2, clash) == merge_values(1, 2, MISSING, clash) == 2
    assert merge_values(1, MISSING, 1, clash) is MISSING


def test_true_is_not_one() -> None:
    assert not same(True, 1)
    assert not same([1], [1.0])
    assert not same({"a": 0}, {"a": False})
    assert same({"a": [1, None]}, {"a": [1, None]})
    assert merge_values(1, True, 1, clash) is True


@given(few_texts, few_texts, few_texts)
def test_a_pipeline_holds_every_phase_of_both_in_an_order_that_both_come_to(
    base: list[str], local: list[str], remote: list[str]
) -> None:
    merged = merge_sequences(base, local, remote)
    assert merged == merge_sequences(base, remote, local)
    assert sorted(merged) == sorted({*local, *remote})


@given(few_texts, few_texts)
def test_a_pipeline_that_one_side_extended_is_as_it_has_it(base: list[str], new: list[str]) -> None:
    longer = [*new, *(text for text in base if text not in new)]
    assert list(merge_sequences(base, longer, base)) == longer
    assert list(merge_sequences(base, longer, longer)) == longer


def test_new_phases_stand_behind_what_they_followed() -> None:
    assert merge_sequences(
        ["build", "test"], ["lint", "build", "test"], ["build", "bench", "test", "ship"]
    ) == (*("lint", "build", "bench", "test", "ship"),)
