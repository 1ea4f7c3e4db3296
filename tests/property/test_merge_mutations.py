"""Each rule of the merge taken away: the state machine has to notice, or the rule is not tested."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import initialize, run_state_machine_as_test

from tests.property.merge_machine import MergeMachine
from tests.property.merge_mutations import MUTATIONS, Mutation, an_older_answer_moves_nothing_back
from tests.property.merge_oracle import LawBroken

NOTICED_WITHIN = 3_000
"""Runs of the machine. Most rules are missed within twenty."""
SLOW = frozenset(
    {
        "every_draft_is_kept",
        "a_restored_hub_is_of_another_epoch",
        "an_answer_after_a_gap_moves_no_base",
        "a_restored_disk_gets_a_new_device_id",
    }
)
"""Rules whose absence takes hundreds of runs to show; all others run in every `make test`."""
LATE_ANSWERS = ("hub_replica_falls_behind", "stale_answer")


def runs_without(mutation: Mutation, examples: int) -> None:
    """Run the machine, on the stories of this mutation, until a law breaks; nothing is shrunk."""

    class OnTheseStories(MergeMachine):
        chosen: ClassVar[Mutation] = mutation

        @initialize()
        def begin(self) -> None:
            self.stories, self.accidents = list(self.chosen.stories), list(self.chosen.accidents)

    quick = settings(
        max_examples=examples,
        stateful_step_count=30,
        phases=[Phase.generate],
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with pytest.MonkeyPatch.context() as patch:
        mutation.take_away(patch)
        run_state_machine_as_test(OnTheseStories, settings=quick)


@pytest.mark.parametrize(
    "mutation",
    [
        pytest.param(each, id=each.name, marks=pytest.mark.soak if each.name in SLOW else ())
        for each in MUTATIONS
    ],
)
def test_a_rule_that_is_taken_away_is_missed(mutation: Mutation) -> None:
    with pytest.raises(LawBroken):
        runs_without(mutation, NOTICED_WITHIN)


@pytest.mark.soak
def test_an_older_answer_may_move_the_base_back() -> None:
    """The one rule that no law needs: without it all is safe, and only more is sent."""
    runs_without(Mutation(an_older_answer_moves_nothing_back, ("append", "rename"), LATE_ANSWERS), 1_000)


def test_the_list_of_rules_names_each_once() -> None:
    names = [each.name for each in MUTATIONS]
    assert len(names) == len(set(names))
    assert set(names) >= SLOW
