"""Metrics on their way into entries: what a program tells one by one stands in few entries, each of many samples.

The one place that decides how many samples an entry has and when they are due. A second one would write an entry for
each call, and a store of a day's work would be a million files. Owns no clock and no thread: who has them says what
time it is, and keeps everybody else out meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from raddle.actions.memory.entries import NewEntry
from raddle.actions.memory.payloads import check_payload
from raddle.model.errors import InvalidInput, TooLarge
from raddle.model.threads.plain_values import shown

TOLD_AT = "_ts"
"""The name under which a sample says when it was told; the peer has the same."""
LARGEST_SAMPLE = 64 * 1024
_LARGEST_BATCH = 512 * 1024
"""Bytes; an entry takes twice as much."""


class Sample(Struct, frozen=True, kw_only=True):
    """What was measured at one time. `size`: bytes, as JSON."""

    values: dict[str, Any]
    size: int


class MetricBuffer:
    """The samples that are in no entry yet. `most`: as many are due at once; `seconds`: so long may one wait.

    `now` is in seconds, of a clock that never goes back.
    """

    def __init__(self, *, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._samples: list[Sample] = []
        self._size = 0
        self._due_at: float | None = None
        self._is_put_off = False

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def due_at(self) -> float | None:
        """When the samples have waited long enough; None where there is none."""
        return self._due_at

    def add(self, sample: Sample, now: float) -> None:
        """One more."""
        self._samples.append(sample)
        self._size += sample.size
        if self._due_at is None:
            self._due_at = now + self._seconds

    def is_due(self, now: float) -> bool:
        """Are they to be written now: there are enough of them, or one has waited long enough?"""
        if self._due_at is None:
            return False
        is_full = len(self._samples) >= self._most or self._size >= _LARGEST_BATCH
        return now >= self._due_at or (is_full and not self._is_put_off)

    def entries(self) -> list[NewEntry]:
        """All of them as entries, in their order; they stay here until `clear`."""
        batches: list[list[Sample]] = []
        size = 0
        for sample in self._samples:
            if not batches or len(batches[-1]) >= self._most or size + sample.size > _LARGEST_BATCH:
                batches.append([])
                size = 0
            batches[-1].append(sample)
            size += sample.size
        return [_entry(batch) for batch in batches]

    def clear(self) -> None:
        """They are in entries now."""
        self._samples.clear()
        self._size = 0
        self._due_at = None
        self._is_put_off = False

    def put_off(self, now: float) -> None:
        """They could not be written: however many come, the next try is when as long has passed again."""
        if self._samples:
            self._due_at = now + self._seconds
            self._is_put_off = True


def sample_of(values: Mapping[str, Any], told_at: str) -> Sample:
    """What a program measured, as an entry can hold it. `told_at`: RFC 3339.

    A number of a numerical library (anything with `item()`) is taken for the number that it is. NaN and the infinities,
    for which JSON has no number, become texts: a measurement that went wrong is worth knowing. InvalidInput for what is
    no JSON value, TooLarge.
    """
    plain = {name: plain_value(value) for name, value in values.items()}
    if not plain:
        raise InvalidInput("a metric without a value", "name one: metric(seconds=1.5)")
    checked = check_payload({TOLD_AT: told_at, **plain}, "a metric")
    size = len(msgspec.json.encode(checked))
    if size > LARGEST_SAMPLE:
        raise TooLarge(
            f"a metric has {size:,} bytes; {LARGEST_SAMPLE:,} are the most",
            "keep what is large as an artifact",
        )
    return Sample(values=checked, size=size)


def _entry(batch: list[Sample]) -> NewEntry:
    return NewEntry(type="metric", payload={"samples": [sample.values for sample in batch]})


def plain_value(value: Any) -> Any:
    """What a program measured as JSON has it, as `sample_of` says. Deeper ones too: a list of losses is one
    like any other."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _not_a_number(value)
        case Mapping():
            return {name: plain_value(inner) for name, inner in value.items()}
        case list() | tuple():
            return [plain_value(inner) for inner in value]
        case _:
            return plain_value(_item_of(value))


def _not_a_number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _item_of(value: Any) -> bool | int | float | str | None:
    item = getattr(value, "item", None)
    try:
        found = item() if callable(item) else value
    except Exception as error:  # whatever that library raises: of several numbers there is no one item
        raise InvalidInput(
            f"a metric is no number: {shown(value)[:60]}", "give a number, or a list of numbers"
        ) from error
    if found is None or isinstance(found, bool | int | float | str):
        return found
    raise InvalidInput(
        f"a metric holds a {type(value).__name__}, which JSON does not have", "make it a number or a text"
    )
