"""ULIDs: sorted by time, never going back, and refused where they are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.model.errors import InvalidInput
from raddle.model.ids import MonotonicIds
from raddle.model.memory.ulids import derived_ulid, is_ulid, new_ulid, parse_ulid, ulid_time
from tests.builders import NOON


def test_ulids_grow_within_one_millisecond_and_when_the_clock_steps_back() -> None:
    moments = iter([NOON, NOON, NOON + 999, NOON + 1_000, NOON - 5_000_000, NOON - 5_000_000, NOON + 2_000])
    new_id = MonotonicIds(lambda: next(moments))
    made = [new_ulid(new_id) for _ in range(7)]
    assert made == sorted(set(made))
    assert all(map(is_ulid, made))


def test_a_ulid_tells_when_it_was_made() -> None:
    assert ulid_time(new_ulid(MonotonicIds(lambda: NOON + 1_234))) == NOON + 1_000
    assert ulid_time("01M8PZKM3KMAB0SYRHJ485PAMY") == 1_796_067_676_275_000


@given(st.integers(0, (1 << 48) * 1_000 - 1), st.integers(0, (1 << 48) * 1_000 - 1))
def test_the_order_of_ulids_is_the_order_of_time(one: int, other: int) -> None:
    first, second = derived_ulid(one, b"x"), derived_ulid(other, b"y")
    assert is_ulid(first)
    assert ulid_time(first) == one // 1_000 * 1_000
    if one // 1_000 != other // 1_000:
        assert (first < second) == (one < other)


def test_a_derived_ulid_is_the_same_everywhere() -> None:
    assert derived_ulid(NOON, b"a", b"b") == derived_ulid(NOON, b"a", b"b") == "01M8P570G07JENJ425QJ47DYEG"
    assert derived_ulid(NOON, b"ab") != derived_ulid(NOON, b"a", b"b")
    assert is_ulid(derived_ulid(-5, b""))
    assert is_ulid(derived_ulid(1 << 80, b""))


def test_a_ulid_is_read_in_any_case() -> None:
    assert parse_ulid(" 01m8pzkm3kmab0syrhj485pamy\n") == "01M8PZKM3KMAB0SYRHJ485PAMY"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "../x",
        "01M8PZKM3KMAB0SYRHJ485PAM",
        "81M8PZKM3KMAB0SYRHJ485PAMY",
        "01M8PZKM3KMAB0SYRHJ485PAMU",
        "0" * 27,
    ],
)
def test_what_is_no_ulid_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="run id"):
        parse_ulid(text, "run id")
