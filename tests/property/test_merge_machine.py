"""The state machine of the merge, run: a fast version in every `make test`, a long one in `make soak`."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.merge_machine import MergeMachine


def test_three_devices_and_two_hubs_agree_and_lose_nothing() -> None:
    run_state_machine_as_test(MergeMachine, settings=settings(max_examples=600, stateful_step_count=30))


@pytest.mark.soak
def test_three_devices_and_two_hubs_agree_through_long_lives() -> None:
    run_state_machine_as_test(MergeMachine, settings=settings(max_examples=10_000, stateful_step_count=80))
