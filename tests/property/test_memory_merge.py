"""Laws of the merge of two stores, on stories of two nodes that change copies of one."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from tests.property import memory_merge_laws
from tests.property.memory_stories import Story, stories


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(stories())
def test_two_copies_of_a_store_become_one_and_nothing_is_lost(story: Story) -> None:
    memory_merge_laws.check(story)
