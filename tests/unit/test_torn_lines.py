"""A torn line of any agent's file may hold anything."""

from __future__ import annotations

import pytest

from raddle.actions.importing.importer import Importer
from raddle.actions.importing.registry import importers
from tests.reading import named, read

TORN = (
    b'{"a":[{"type":[1],"payload":{}},{"id":"x","type":[1]},{"opencode":[1],"id":"x"},{"id":"x","parent":[1]}'
)


@pytest.mark.parametrize("importer", importers(), ids=lambda one: one.agent)
def test_values_of_other_types_inside_a_torn_line_are_no_record(importer: Importer) -> None:
    reading = read(importer, named("x.jsonl"), [TORN])
    assert reading.messages == []
    assert [problem.reason for problem in reading.problems] == ["a torn record"]
