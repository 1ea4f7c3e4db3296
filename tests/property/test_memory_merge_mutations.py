"""Each rule of the stores' merge taken away: the laws have to notice, or the rule is not tested."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.property import memory_merge_laws
from tests.property.memory_merge_laws import LawBroken
from tests.property.memory_merge_mutations import MUTATIONS, Mutation
from tests.property.memory_stories import Story, stories

NOTICED_WITHIN = 3_000
"""Stories. Most rules are missed within fifty."""
SLOW: frozenset[str] = frozenset()
"""Rules whose absence takes hundreds of stories to show; all others are tried in every `make test`."""


def laws_without(mutation: Mutation, examples: int) -> None:
    """Check stories of this mutation until a law breaks; nothing is shrunk."""
    quick = settings(
        max_examples=examples,
        phases=[Phase.generate],
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )

    @quick
    @given(stories(mutation.acts))
    def check(story: Story) -> None:
        memory_merge_laws.check(story)

    with pytest.MonkeyPatch.context() as patch:
        mutation.take_away(patch)
        check()


@pytest.mark.soak
@pytest.mark.parametrize(
    "mutation",
    [
        pytest.param(each, id=each.name, marks=pytest.mark.soak if each.name in SLOW else ())
        for each in MUTATIONS
    ],
)
def test_a_rule_that_is_taken_away_is_missed(mutation: Mutation) -> None:
    with pytest.raises(LawBroken):
        laws_without(mutation, NOTICED_WITHIN)


def test_the_list_of_rules_names_each_once() -> None:
    names = [each.name for each in MUTATIONS]
    assert len(names) == len(set(names))
    assert set(names) >= SLOW
