"""A conversation as lines: the same bytes for the same conversation, parents first, damage where it is."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.importing.chatgpt import ChatGPT
from raddle.actions.importing.chatgpt_layout import conversation_lines, microseconds
from raddle.model.errors import BrokenFormat
from tests.builders_chatgpt import (
    SESSION,
    Conversation,
    a_conversation_with_everything,
    a_short_conversation,
    uuid_of,
)
from tests.reading import Reading, named, read


def imported(data: bytes) -> Reading:
    return read(ChatGPT(), named(SESSION), conversation_lines(data))


def ids(lines: list[bytes]) -> list[str]:
    return [json.loads(line)["id"] for line in lines[1:]]


def test_the_first_line_is_the_conversation_without_its_tree() -> None:
    talk = a_short_conversation()
    header = json.loads(talk.lines[0])
    assert header == {name: value for name, value in talk.value.items() if name != "mapping"}
    assert talk.lines[0].startswith(b'{"conversation_id":"' + SESSION.encode())


def test_every_node_is_a_line_that_says_all_that_it_said() -> None:
    talk = a_conversation_with_everything()
    nodes = [json.loads(line) for line in talk.lines[1:]]
    assert {node["id"]: node for node in nodes} == talk.mapping


def test_equal_conversations_give_equal_bytes_however_they_were_written() -> None:
    talk = a_conversation_with_everything()
    backwards = dict(reversed(talk.mapping.items()))
    value = dict(reversed(talk.value.items())) | {"mapping": backwards}
    for text in (
        json.dumps(talk.value),
        json.dumps(value, indent=2),
        json.dumps(talk.value, ensure_ascii=False, separators=(",", ":")),
    ):
        assert conversation_lines(text.encode()) == talk.lines


def test_a_capture_of_a_page_gives_the_conversation_in_it() -> None:
    talk = a_short_conversation()
    capture = {
        "polylogue_capture_kind": "browser_llm_session",
        "session": {"provider": "chatgpt", "title": "what the page showed", "turns": [{"text": "x"}]},
        "raw_provider_payload": talk.value,
    }
    assert conversation_lines(json.dumps(capture).encode()) == talk.lines


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Any]:
    """Nodes under any node or none, a circle now and then, with times in any order or none."""
    count = draw(st.integers(1, 12))
    mapping: dict[str, Any] = {}
    for number in range(count):
        parent = draw(st.none() | st.integers(0, count + 1))
        time = draw(st.none() | st.floats(0, 2e9, allow_nan=False) | st.integers(0, 2_000_000_000))
        mapping[f"n{number}"] = {
            "id": f"n{number}",
            "parent": None if parent is None else f"n{parent}",
            "children": [],
            "message": {
                "id": uuid_of(f"n{number}"),
                "author": {"role": draw(st.sampled_from(["user", "assistant"]))},
                "create_time": time,
                "content": {"content_type": "text", "parts": [f"node {number}"]},
            },
        }
    return mapping


@given(trees(), st.randoms())
def test_any_tree_is_read_whole_and_the_same_in_any_order(
    mapping: dict[str, Any], order: random.Random
) -> None:
    talk = Conversation()
    talk.mapping = mapping
    lines = talk.lines
    places = {key: place for place, key in enumerate(ids(lines))}
    assert places.keys() == mapping.keys()
    in_circles = {key for key in mapping if _goes_round(mapping, key)}
    for key, node in mapping.items():
        if node["parent"] in places and key not in in_circles:
            assert places[node["parent"]] < places[key]
    reading = read(ChatGPT(), named(SESSION), lines)
    assert sorted(reading.texts()) == sorted(f"node {key[1:]}" for key in mapping)
    assert reading.thread.tree.lost() == []
    if not in_circles:
        shuffled = list(mapping.items())
        order.shuffle(shuffled)
        talk.mapping = dict(shuffled)
        assert talk.lines == lines


def _goes_round(mapping: dict[str, Any], key: str) -> bool:
    seen: set[str] = set()
    at: str | None = key
    while at in mapping:
        if at in seen:
            return True
        seen.add(at)
        at = mapping[at]["parent"]
    return False


def test_a_lone_surrogate_costs_one_character_and_its_line_is_told() -> None:
    talk = a_short_conversation()
    reading = imported(talk.data.replace(b"How do I see that?", b"How do I see \\ud83d that?"))
    assert reading.texts()[2] == "How do I see \ufffd that?"
    assert len(reading.texts()) == 4
    assert [(one.line, one.reason) for one in reading.problems] == [(5, "a lone surrogate")]
    assert reading.register("title") == "Cold kiln"


def test_bytes_that_are_not_utf8_cost_themselves() -> None:
    talk = a_short_conversation()
    reading = imported(talk.data.replace(b"How do I see that?", b"How do I \xff\xfe see that?"))
    assert reading.texts()[2] == "How do I \ufffd\ufffd see that?"
    assert [one.line for one in reading.problems] == [5]


def test_damage_in_the_last_node_leaves_the_conversation_its_name() -> None:
    talk = a_short_conversation()
    data = json.dumps(talk.value, indent=2).replace("Look at", "Look \\ud83d at").encode()
    reading = imported(data)
    assert reading.texts()[3] == "Look \ufffd at the log."
    assert reading.ending.session_id == SESSION
    assert [one.reason for one in reading.problems] == ["a lone surrogate"]


def test_a_block_of_nul_bytes_costs_itself() -> None:
    talk = a_short_conversation()
    reading = imported(talk.data.replace(b"How do I see that?", b"How do I" + b"\0" * 512 + b" see that?"))
    assert reading.texts()[2] == "How do I see that?"


@pytest.mark.parametrize("indent", [None, 2])
def test_a_torn_node_costs_itself_and_no_other(indent: int | None) -> None:
    talk = a_short_conversation()
    data = json.dumps(talk.value, indent=indent).encode()
    start = data.index(b"How do I")
    for size in (1, 40, 120, 200):
        reading = imported(data[: start + 3] + data[start + 3 + size :])
        texts = reading.texts()
        assert texts[:2] == ["Why is the kiln cold?", "The relay may be open."], size
        assert texts[-1] == "Look at the log.", size
        assert reading.ending.session_id == SESSION
        assert reading.thread.tree.lost() == []


@pytest.mark.parametrize(
    "more", [b"", b', "\xff": 1'], ids=["torn", "torn, and with a name that is not UTF-8"]
)
def test_a_node_that_lost_its_last_bracket_does_not_swallow_the_others(more: bytes) -> None:
    talk = a_short_conversation()
    second = list(talk.mapping)[2]
    whole = json.dumps(talk.mapping[second]).encode()
    reading = imported(talk.data.replace(whole, whole[:-1] + more))
    assert [text for text in reading.texts() if text != "The relay may be open."] == [
        "Why is the kiln cold?",
        "How do I see that?",
        "Look at the log.",
    ]
    assert len(reading.problems) > 0


def test_a_conversation_that_ends_in_the_middle_keeps_what_came_before() -> None:
    talk = a_short_conversation()
    data = talk.data
    reading = imported(data[: data.index(b"Look at") + 4])
    assert reading.texts()[:3] == ["Why is the kiln cold?", "The relay may be open.", "How do I see that?"]
    assert reading.register("title") == "Cold kiln"
    again = imported(data[: data.index(b"How do I") + 4])
    assert again.ending.thread_id == reading.ending.thread_id


@given(st.integers(0, 3000), st.integers(1, 400), st.binary(max_size=20))
def test_no_damage_raises_anything_but_one_error(start: int, size: int, junk: bytes) -> None:
    data = json.dumps(a_short_conversation().value, indent=1).encode()
    damaged = data[:start] + junk + data[start + size :]
    try:
        lines = conversation_lines(damaged)
    except BrokenFormat:
        return
    assert not any(b"\n" in line for line in lines)
    reading = read(ChatGPT(), named(SESSION), lines)
    assert reading.thread.tree.lost() == []


@pytest.mark.parametrize("data", [b"", b"{}", b"null", b"[]", b'{"mapping":null}', b'{"mapping":3}', b"}{"])
def test_what_is_no_conversation_is_refused(data: bytes) -> None:
    with pytest.raises(BrokenFormat):
        conversation_lines(data)


@pytest.mark.parametrize(
    ("seconds", "micros"),
    [
        (1784164544.946, 1_784_164_544_946_000),
        (1, 1_000_000),
        (0, None),
        (-1, None),
        (None, None),
        (3e11, None),
    ],
)
def test_times_are_counted_in_microseconds(seconds: float | None, micros: int | None) -> None:
    assert microseconds(seconds) == micros
