"""Memories: front matter as the peer reads it, every byte of a text kept, one line that says what it holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.model.memory.memory_text import (
    FrontMatter,
    MemoryText,
    changed_front_matter,
    described,
    format_memory,
    parse_memory,
)
from tests.property.strategies import texts
from tests.unit.memory_files import MEMORY

anything = st.text("-\n ad:[]\t'\"#é\r", max_size=30) | texts(30)


@given(anything | anything.map(lambda text: f"---\n{text}\n---\n{text}"))
def test_a_memory_that_nobody_changed_keeps_every_byte(text: str) -> None:
    assert format_memory(parse_memory(text)) == text


@given(anything.map(lambda text: f"---\n{text}\n---\n{text}"), texts(8), st.lists(texts(5), max_size=3))
def test_a_change_of_front_matter_leaves_the_body_alone(text: str, description: str, tags: list[str]) -> None:
    memory = parse_memory(text)
    changed = changed_front_matter(memory, description=description, tags=tuple(tags))
    read = parse_memory(format_memory(changed))
    assert read.front_matter == changed.front_matter
    assert read.body.lstrip("\n") == memory.body.lstrip("\n")


def test_the_peers_front_matter_is_read() -> None:
    memory = parse_memory(MEMORY)
    assert memory.front_matter == FrontMatter(description="a: desc", tags=("a", "z"))
    assert memory.body == "# Body\n\ntext\n"


def test_front_matter_of_ours_stands_where_the_peer_looks() -> None:
    memory = MemoryText(
        front_matter=FrontMatter(description="x", tags=("a",), created="t", author="n"), body="text\n"
    )
    assert format_memory(memory) == "---\ndescription: x\ntags:\n- a\ncreated: t\nauthor: n\n---\n\ntext\n"
    assert (
        format_memory(changed_front_matter(memory, description="", tags=(), created="", author=""))
        == "text\n"
    )


def test_unknown_fields_and_comments_survive() -> None:
    text = "---\n# ours\ndescription: old # why\nreviewed: {by: Grace}\n---\nbody"
    changed = changed_front_matter(parse_memory(text), description="new")
    assert format_memory(changed) == "---\n# ours\ndescription: new\nreviewed: {by: Grace}\n---\n\nbody"


@pytest.mark.parametrize(
    "text",
    [
        "---\nno end",
        "---\n- a list\n---\nx",
        "---\na: [\n---\nx",
        "--- \nx",
        "text\n---\na: 1\n---\n",
        "",
        "---",
        "---\n&a b\n---\n",
    ],
)
def test_what_is_no_front_matter_is_body(text: str) -> None:
    assert parse_memory(text) == MemoryText(front_matter=FrontMatter(), body=text)


def test_a_single_tag_is_one_tag() -> None:
    assert parse_memory("---\ntags: word\n---\n").front_matter.tags == ("word",)
    assert parse_memory("---\ntags: [1, b, true]\n---\n").front_matter.tags == ("1", "b", "true")
    assert parse_memory("---\ntags: {a: 1}\n---\n").front_matter.unknown == {"tags": {"a": 1}}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("---\ndescription: ' told\n  twice '\n---\nbody", "told twice"),
        ("\n\n# Title\ntext", "Title"),
        ("```\ncode\n```", "code"),
        ("<!-- x -->\n---\n#\nfirst", "first"),
        ("", ""),
        ("x" * 200, "x" * 159 + "…"),
    ],
)
def test_a_memory_is_described_in_one_line(text: str, line: str) -> None:
    assert described(parse_memory(text)) == line
