"""Metrics on their way into entries: which are due when, and what a sample may hold."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.actions.phases.metrics import LARGEST_SAMPLE, MetricBuffer, Sample, sample_of
from raddle.model.errors import InvalidInput, TooLarge

NOW = "2026-11-30T09:52:50.000001Z"


def numbers(buffer: MetricBuffer) -> list[list[int]]:
    """The samples of each entry that there would be."""
    return [[sample["n"] for sample in entry.payload["samples"]] for entry in buffer.entries()]


def filled(count: int, *, most: int = 3, size: int = 10, seconds: float = 10.0) -> MetricBuffer:
    buffer = MetricBuffer(most=most, seconds=seconds)
    for number in range(count):
        buffer.add(Sample(values={"n": number}, size=size), now=float(number))
    return buffer


def test_samples_are_due_when_there_are_enough_of_them() -> None:
    assert not filled(2).is_due(2.0)
    assert filled(3).is_due(2.0)


def test_samples_are_due_when_the_first_has_waited_long_enough() -> None:
    buffer = filled(2)
    assert buffer.due_at == 10.0
    assert not buffer.is_due(9.9)
    assert buffer.is_due(10.0)
    assert not filled(0).is_due(1e9)


def test_samples_are_due_before_an_entry_becomes_too_large() -> None:
    assert filled(10, most=100, size=LARGEST_SAMPLE).is_due(10.0)


def test_what_could_not_be_written_is_not_tried_again_with_each_sample() -> None:
    buffer = filled(3)
    buffer.put_off(now=5.0)
    buffer.add(Sample(values={"n": 3}, size=1), now=5.5)
    assert not buffer.is_due(14.9)
    assert buffer.is_due(15.0)
    assert numbers(buffer) == [[0, 1, 2], [3]]
    buffer.clear()
    assert (len(buffer), buffer.due_at, buffer.entries()) == (0, None, [])


@given(st.lists(st.integers(1, LARGEST_SAMPLE), max_size=60), st.integers(1, 9))
def test_every_sample_is_in_one_entry_and_in_its_place(sizes: list[int], most: int) -> None:
    buffer = MetricBuffer(most=most, seconds=1.0)
    for number, size in enumerate(sizes):
        buffer.add(Sample(values={"n": number}, size=size), now=0.0)
    batches = numbers(buffer)
    assert [number for batch in batches for number in batch] == list(range(len(sizes)))
    assert all(0 < len(batch) <= most for batch in batches)
    assert all(sum(sizes[number] for number in batch) < 1 << 20 for batch in batches)


class Scalar:
    """A number as numerical libraries have them."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def item(self) -> Any:
        (found,) = self._value if isinstance(self._value, list) else (self._value,)
        return found


def test_numbers_of_numerical_libraries_are_numbers() -> None:
    sample = sample_of({"a": Scalar(0.5), "b": [Scalar(1), 2.5], "c": {"d": Scalar(math.nan)}}, NOW)
    assert sample.values == {"_ts": NOW, "a": 0.5, "b": [1, 2.5], "c": {"d": "NaN"}}


def test_what_is_no_number_is_told_as_a_text() -> None:
    sample = sample_of({"a": math.inf, "b": -math.inf, "c": math.nan}, NOW)
    assert list(sample.values.values())[1:] == ["Infinity", "-Infinity", "NaN"]


@pytest.mark.parametrize("value", [object(), {1, 2}, Scalar([1, 2]), Scalar(object()), {1: 2}, "\ud800", 1j])
def test_what_no_entry_can_hold_is_refused_when_it_is_told(value: Any) -> None:
    with pytest.raises(InvalidInput):
        sample_of({"a": value}, NOW)


def test_a_metric_says_something_and_not_too_much() -> None:
    with pytest.raises(InvalidInput, match="without a value"):
        sample_of({}, NOW)
    with pytest.raises(TooLarge):
        sample_of({"a": "x" * LARGEST_SAMPLE}, NOW)
