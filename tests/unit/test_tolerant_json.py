"""JSON that a strict reader refuses: what can be saved is, and every repair is told."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.model.errors import BrokenFormat
from raddle.model.tolerant_json import DEEPEST, decode_tolerantly

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_good_json_is_read_as_it_is_and_needs_no_repair(value: Any) -> None:
    assert decode_tolerantly(json.dumps(value).encode()) == (value, [])


@pytest.mark.parametrize(
    ("data", "value", "repairs"),
    [
        (b'"\\ud800"', "\ufffd", 1),
        (b'{"\\udc00k": ["\\ud83d"]}', {"\ufffdk": ["\ufffd"]}, 2),
        (b'"\\ud83d\\ude00"', "😀", 0),
        (b'"a\xffb"', "a\ufffdb", 1),
        (b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd", 1),
        (b"[NaN, Infinity, -Infinity]", ["NaN", "Infinity", "-Infinity"], 3),
        (b"[1e400, -1e400, 1e-400]", ["1e400", "-1e400", 0.0], 2),
        (b"\xef\xbb\xbf[1]", [1], 0),
        (b'"tab\tand\nnewline"', "tab\tand\nnewline", 0),
        (b"123456789012345678901234567890", 123456789012345678901234567890, 0),
        (b"[" + b"9" * 5000 + b"]", ["9" * 5000], 1),
    ],
)
def test_damage_is_mended_and_named(data: bytes, value: Any, repairs: int) -> None:
    read, told = decode_tolerantly(data)
    assert read == value
    assert len(told) == repairs


def test_what_was_mended_can_be_written_and_read_strictly() -> None:
    value, _ = decode_tolerantly(b'{"a": "\\ud800", "b": NaN, "c": ' + b"9" * 5000 + b"}")
    assert msgspec.json.decode(msgspec.json.encode(value)) == value


def test_nesting_is_cut_and_what_stands_beside_it_is_kept() -> None:
    data = b'{"deep": ' + b"[" * 5000 + b"1" + b"]" * 5000 + b', "after": "[[[", "list": [1]}'
    value, told = decode_tolerantly(data)
    assert (value["after"], value["list"], len(told)) == ("[[[", [1], 1)
    depth, inner = 1, value["deep"]
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0]
    assert (depth, inner) == (DEEPEST, "\ufffd")


@pytest.mark.parametrize(
    "data", [b"", b" ", b"{", b"[1,]", b"[1] 2", b'{"a" 1}', b"\0", b"[" * 100_000, b'{"a":' * 5000]
)
def test_what_is_no_json_is_broken(data: bytes) -> None:
    with pytest.raises(BrokenFormat):
        decode_tolerantly(data)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_value_or_broken(data: bytes) -> None:
    try:
        value, _ = decode_tolerantly(data)
    except BrokenFormat:
        return
    msgspec.json.encode(value)


@given(st.integers(0, 31), st.integers(0, 30))
def test_a_bare_control_character_in_a_text_is_damage_where_the_writer_never_writes_one(
    control: int, at: int
) -> None:
    data = json.dumps({"key": "a text", "list": [1]}).encode()
    changed = data[:at] + bytes([control]) + data[at:]
    try:
        json.loads(changed.decode())
    except json.JSONDecodeError:
        with pytest.raises(BrokenFormat):
            decode_tolerantly(changed, with_controls=False)
    else:
        assert decode_tolerantly(changed, with_controls=False) == (json.loads(data.decode()), [])
