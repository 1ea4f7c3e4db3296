"""YAML as a store uses it: the peer's meaning of it, nothing dangerous, and comments that stay."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from raddle.model.errors import BrokenFormat, InvalidInput
from raddle.model.memory.yaml_text import format_yaml, parse_yaml, rewrite_yaml
from raddle.model.three_way import same
from tests.property.strategies import texts

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts()
    | st.sampled_from(
        (
            "no",
            "null",
            "1",
            "1.5",
            "1e5",
            "0x1f",
            "017",
            "1:30",
            "2026-11-30",
            "=",
            "<<",
            "~",
            "- a",
            "a: b",
            "#",
        )
    )
)
plain_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(6), inner, max_size=3),
    max_leaves=8,
)
mappings = st.dictionaries(texts(6), plain_values, max_size=5)


@given(mappings)
def test_what_is_written_reads_back(plain: dict[str, Any]) -> None:
    assert same(parse_yaml(format_yaml(plain), "it"), plain)


@given(mappings)
def test_what_is_written_means_the_same_to_the_peer(plain: dict[str, Any]) -> None:
    """The peer reads with PyYAML's safe loader."""
    assert same(yaml.safe_load(format_yaml(plain)), plain)


@given(mappings)
def test_what_the_peer_writes_means_the_same_here(plain: dict[str, Any]) -> None:
    assert same(parse_yaml(yaml.safe_dump(plain, sort_keys=False), "it"), plain)


@given(mappings, mappings)
def test_a_rewrite_says_what_it_was_told(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert same(parse_yaml(rewrite_yaml(format_yaml(old), new, "it"), "it"), new)


@given(st.text(max_size=40) | st.text("{}[]:-&*!|>'\"%@`#,? \n\tab~1", max_size=40))
def test_any_text_is_a_value_or_broken(text: str) -> None:
    try:
        plain = parse_yaml(text, "it")
    except BrokenFormat:
        return
    assert json.loads(json.dumps(plain)) == plain
    assert same(parse_yaml(rewrite_yaml(text, {"a": 1}, "it"), "it"), {"a": 1})


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("publish: no", {"publish": False}),
        ("publish: Off", {"publish": False}),
        ("when: 2026-11-30", {"when": "2026-11-30"}),
        ("when: 2026-11-30T12:00:00Z", {"when": "2026-11-30T12:00:00Z"}),
        ("1: x\ntrue: y", {"1": "x", "true": "y"}),
        ("a: ~\nb:\nc: ''", {"a": None, "b": None, "c": ""}),
        ("a: 0123\nb: 1e3\nc: .inf\nd: 1_000", {"a": "0123", "b": "1e3", "c": ".inf", "d": "1_000"}),
        ("a: !!str 5", {"a": "5"}),
        ("\ufeffa: 1", {"a": 1}),
        ("a: 1\r\nb: [x, y]\r\n", {"a": 1, "b": ["x", "y"]}),
        ("", None),
    ],
)
def test_plain_scalars_have_the_types_of_yaml_1_1_but_for_times(text: str, plain: Any) -> None:
    assert same(parse_yaml(text, "it"), plain)


@pytest.mark.parametrize(
    "text",
    [
        "a: &x [1]\nb: *x",
        "&x a: 1",
        "a: !!python/object/apply:os.system ['true']",
        "!!binary aGk=",
        "a: !!set {b}",
        "? [a]\n: 1",
        "? {a: 1}\n: 1",
        "a: 1\na: 2",
        "a: 1\n---\nb: 2",
        "a: [",
        "a: 'x",
        "a: \x00",
        "\ta: 1",
        "[" * 5_000,
        "[" * 300 + "]" * 300,
        "- " * 5_000,
        "a: " + "x" * (1 << 20),
        'a: "\\ud800"',
    ],
)
def test_what_no_store_writes_is_refused(text: str) -> None:
    with pytest.raises(BrokenFormat, match=r"^it "):
        parse_yaml(text, "it")


def test_half_a_character_is_not_written() -> None:
    with pytest.raises(InvalidInput):
        format_yaml({"a": "\ud800"})


COMMENTED = """\
# the pipeline of the team
schema_version: 1
project_id: loom  # never change this

# in this order
phases:
- build   # by ci
- test
name: Loom
later: {kept: [1, 2]}
# the end
"""


def test_a_rewrite_keeps_comments_and_what_did_not_change() -> None:
    plain = parse_yaml(COMMENTED, "it")
    rewritten = rewrite_yaml(COMMENTED, plain | {"name": "Raddle", "new": True}, "it")
    assert rewritten == COMMENTED.replace("name: Loom", "name: Raddle") + "new: true\n"


def test_a_rewrite_writes_only_the_changed_entry_anew() -> None:
    plain = parse_yaml(COMMENTED, "it")
    rewritten = rewrite_yaml(COMMENTED, plain | {"phases": ["build", "test", "ship"]}, "it")
    assert rewritten == COMMENTED.replace("- build   # by ci\n- test\n", "- build\n- test\n- ship\n")


def test_a_rewrite_of_the_same_changes_no_byte() -> None:
    assert rewrite_yaml(COMMENTED, parse_yaml(COMMENTED, "it"), "it") == COMMENTED
    assert rewrite_yaml("a: 0x1f", {"a": "0x1f"}, "it") == "a: 0x1f"


def test_a_removed_entry_goes_and_its_neighbours_stay() -> None:
    plain = parse_yaml(COMMENTED, "it")
    del plain["name"]
    assert rewrite_yaml(COMMENTED, plain, "it") == COMMENTED.replace("name: Loom\n", "")


@pytest.mark.parametrize(
    "text",
    ["{a: 1, b: 2}", "--- {a: 1}", "a: 1\n...\n", "  a: 1\n  b: 2", "a: |\n  text\n\n", "'a': 1\n\"b\": 2"],
)
def test_any_layout_can_be_rewritten(text: str) -> None:
    assert parse_yaml(rewrite_yaml(text, {"a": 5, "c": [1]}, "it"), "it") == {"a": 5, "c": [1]}
