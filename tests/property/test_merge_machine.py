"""The state machine of the merge, run: a fast version in every `make test`, a long one in `make soak`."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.merge_machine import MergeMachine


def test_three_devices_and_two_hubs_agree_and_lose_nothing() -> None:
    run_state_machine_as_test(MergeMachine, settings=settings(max_examples=300, stateful_step_count=30))


@pytest.mark.soak
@pytest.mark.parametrize("part", range(8))
def test_three_devices_and_two_hubs_agree_through_long_lives(part: int) -> None:
    """In parts, so that what Hypothesis remembers of a run stays small; each part is another one every time."""
    run_state_machine_as_test(MergeMachine, settings=settings(max_examples=1_500, stateful_step_count=80))
