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
AT_ONCE = frozenset(
    {
        "siblings_are_kept",
        "a_register_knows_what_it_saw",
        "the_clock_is_hybrid",
        "the_tip_is_by_order",
        "a_removed_turn_that_was_answered_stays_shown",
        "branches_are_computed",
        "removed_only_if_all_say_so",
        "the_id_of_a_landed_job_is_derived",
        "the_id_of_a_migrated_turn_holds_its_content",
        "a_delete_holds_only_what_it_had_seen",
        "a_hub_is_never_behind_the_pusher",
        "pushes_compare_and_set",
        "nothing_private_leaves",
        "the_base_tells_the_forms_of_a_turn_apart",
    }
)
"""Rules whose absence shows within a second or two: these run in every `make test`."""


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
        pytest.param(each, id=each.name, marks=() if each.name in AT_ONCE else pytest.mark.soak)
        for each in MUTATIONS
    ],
)
def test_a_rule_that_is_taken_away_is_missed(mutation: Mutation) -> None:
    with pytest.raises(LawBroken):
        runs_without(mutation, NOTICED_WITHIN)


@pytest.mark.soak
def test_an_older_answer_may_move_the_base_back() -> None:
    """The one rule that no law needs: without it all is safe, and only more is sent."""
    runs_without(Mutation(an_older_answer_moves_nothing_back, ("append", "rename"), _LATE), 1_000)


_LATE = ("hub_replica_falls_behind", "stale_answer")


def test_the_list_of_rules_names_each_once() -> None:
    names = [each.name for each in MUTATIONS]
    assert len(names) == len(set(names))
    assert set(names) >= AT_ONCE
