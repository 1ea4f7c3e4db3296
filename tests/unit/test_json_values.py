"""Where a value ends in bytes that go on: the strict way, and by brackets alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.importing.json_values import MALFORMED, UNENDED, end_of_brackets, end_of_value

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), VALUES)
RESTS = [b"", b",", b" ", b"\n]", b"}", b',{"a":1}', b"]\0", b"x"]


@given(OBJECTS, st.sampled_from(RESTS), st.sampled_from([None, 1]), st.booleans())
def test_a_value_ends_where_it_ends_whatever_follows(
    value: dict[str, object], rest: bytes, indent: int | None, is_plain: bool
) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=is_plain).encode()
    found = end_of_value(data + rest)
    assert (data + rest)[:found].rstrip() == data
    assert end_of_brackets(data + rest) == len(data)
    assert end_of_value(memoryview(data + rest)) == found


@given(OBJECTS)
def test_what_has_no_end_yet_is_told_from_what_will_have_none(value: dict[str, object]) -> None:
    data = json.dumps({"a": value}).encode()
    for cut in range(1, len(data)):
        assert end_of_value(data[:cut]) == UNENDED
        assert end_of_brackets(data[:cut]) == 0


@pytest.mark.parametrize(
    "damaged",
    [b'{"a":1,,}', b'{"a" 1}', b'{"a":NaN}', b'{"a":"\\ud83d"} and more text', b'{"a":"\0"}', b"}{"],
)
def test_damage_is_told(damaged: bytes) -> None:
    assert end_of_value(damaged) == MALFORMED


def test_nesting_too_deep_for_the_decoder_is_damage_and_has_brackets() -> None:
    deep = b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"
    assert end_of_value(deep) == MALFORMED
    assert end_of_brackets(deep + b",") == len(deep)


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b'{"a":"\\ud83d"},', 14),
        (b'{"a":NaN, b},{', 12),
        (b'{"a":"}\\"}"},', 12),
        (b'{"a":[1}],', 0),
        (b'{"a":1', 0),
        (b'"text"', 0),
        (b"]", 0),
        (b"", 0),
    ],
)
def test_brackets_are_counted_outside_texts(data: bytes, end: int) -> None:
    assert end_of_brackets(data) == end
