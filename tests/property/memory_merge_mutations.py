"""The merge of two stores with one rule taken away, for each rule: a list of faults that the laws have to notice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
import pytest

from raddle.model import three_way
from raddle.model.memory import merge, merge_artifacts, merge_files, merge_records, merge_texts
from raddle.model.memory.merge_files import Contents, MergedFile
from raddle.model.memory.merge_trees import BothChanged, MergePlan, Tree, plan_merge
from raddle.model.memory.run import PHASE_STATUSES, RUN_STATUSES
from raddle.model.memory.ulids import derived_ulid
from tests.property.memory_stories import (
    Act,
    changes_of_memory,
    changes_of_project,
    changes_of_run,
    changes_of_status,
    changes_of_stints,
    changes_of_summary,
    changes_of_tags,
    changes_of_twins,
    new_artifact,
    new_handoff,
    new_twin_artifact,
    rare_accident,
)

Patch = pytest.MonkeyPatch
Acts = tuple[Callable[[Any], Act], ...]


class Mutation(NamedTuple):
    """`take_away` removes the rule; `acts` are those among which its absence shows."""

    take_away: Callable[[Patch], None]
    acts: Acts

    @property
    def name(self) -> str:
        """The rule that is missing, in words."""
        return self.take_away.__name__


def a_change_outweighs_a_removal(patch: Patch) -> None:
    def plan(base: Tree, local: Tree, remote: Tree) -> MergePlan:
        whole = plan_merge(base, local, remote)
        settled = {path: entry for path, entry in whole.settled.items() if path not in whole.kept}
        return msgspec.structs.replace(whole, settled=settled, kept=())

    patch.setattr("tests.property.memory_merge_laws.plan_merge", plan)


def one_sides_change_stands(patch: Patch) -> None:
    """The local tree wins wherever the two differ."""

    def plan(base: Tree, local: Tree, remote: Tree) -> MergePlan:
        return plan_merge({path: entry for path, entry in base.items() if path not in local}, local, remote)

    patch.setattr("tests.property.memory_merge_laws.plan_merge", plan)


def the_other_version_is_kept_beside(patch: Patch) -> None:
    def file(both: BothChanged, contents: Contents) -> MergedFile:
        return msgspec.structs.replace(merge_files.merge_file(both, contents), beside=None)

    patch.setattr(merge, "merge_file", file)


def the_later_side_is_the_same_for_both(patch: Patch) -> None:
    patch.setattr(merge_files, "later_side", lambda local, remote: "local")


def the_later_version_stands(patch: Patch) -> None:
    patch.setattr(merge_files, "later_side", lambda local, remote: "local" if local < remote else "remote")


def a_handoff_is_as_late_as_it_says(patch: Patch) -> None:
    patch.setattr(merge_files, "parse_time", lambda text: None)


def handoffs_never_merge_as_text(patch: Patch) -> None:
    _other_rule(patch, "handoff", "summary")


def what_is_dangerous_is_withheld(patch: Patch) -> None:
    patch.setattr(merge, "withheld", lambda tree: {})


def bytes_stay_as_they_are(patch: Patch) -> None:
    _other_rule(patch, "attributes", "conflict")


def status_goes_by_its_order(patch: Patch) -> None:
    patch.setattr(merge_records, "RUN_STATUSES", RUN_STATUSES[::-1])


def phases_go_by_their_order(patch: Patch) -> None:
    patch.setattr(merge_records, "PHASE_STATUSES", PHASE_STATUSES[::-1])


def a_status_is_weighed_only_if_both_changed_it(patch: Patch) -> None:
    patch.setattr(merge_records, "pick", lambda base, local, remote, both: both(local, remote))


def every_phase_of_a_run_stays(patch: Patch) -> None:
    patch.setattr(
        merge_records, "keys_of_both", lambda base, local, remote: sorted(local.keys() & remote.keys())
    )


def every_stint_stays(patch: Patch) -> None:
    patch.setattr(
        merge_records, "_merge_stints", lambda base, local, remote, settle: max(local, remote, key=repr)
    )


def who_left_has_left(patch: Patch) -> None:
    patch.setattr(merge_records, "_later_leave", lambda one, other: min(one or "", other or "") or None)


def every_phase_of_a_project_stays(patch: Patch) -> None:
    patch.setattr(merge_records, "merge_sequences", lambda base, local, remote: max(local, remote))


def publish_goes_by_the_more_careful(patch: Patch) -> None:
    patch.setattr(merge_records, "_more_careful", lambda one, other: True if True in (one, other) else one)


def unknown_fields_of_both_stay(patch: Patch) -> None:
    patch.setattr(
        merge_records,
        "merge_mappings",
        lambda base, local, remote, settle, path=(): max(local, remote, key=repr),
    )


def a_clash_of_fields_is_told(patch: Patch) -> None:
    def settled(settle: Any, name: str, base: Any, local: Any, remote: Any) -> Any:
        return local if settle.later == "local" else remote

    patch.setattr(merge_records, "settled_field", settled)


def every_pointer_stays(patch: Patch) -> None:
    patch.setattr(
        merge_artifacts, "keys_of_both", lambda base, local, remote: sorted(local.keys() & remote.keys())
    )


def two_contents_are_two_artifacts(patch: Patch) -> None:
    patch.setattr(merge_artifacts._Union, "_rename", lambda self, artifact, side: None)


def the_earlier_artifact_keeps_its_id(patch: Patch) -> None:
    whole = merge_artifacts._age
    patch.setattr(merge_artifacts, "_age", lambda artifact: (-whole(artifact)[0], artifact.sha256))


def bytes_move_with_their_pointer(patch: Patch) -> None:
    patch.setattr(merge._Draft, "place_artifacts", lambda self, placed: None)


def two_artifacts_do_not_share_a_file(patch: Patch) -> None:
    patch.setattr(merge_artifacts._Union, "part_files", lambda self: None)


def a_new_name_is_the_same_wherever_it_is_made(patch: Patch) -> None:
    """By whom it was made instead of by what it holds."""
    calls = iter(range(10**9))
    whole = derived_ulid
    patch.setattr(merge, "derived_ulid", lambda at, *parts: whole(at + next(calls) * 1_000, *parts))


def twins_get_names_of_their_own(patch: Patch) -> None:
    patch.setattr(merge._Draft, "part_names", lambda self: None)


def a_folder_has_one_spelling(patch: Patch) -> None:
    patch.setattr(merge._Names, "respelled", lambda self, path, other: path)


def unicode_forms_are_one_name(patch: Patch) -> None:
    patch.setattr(merge, "folded", str.casefold)


def texts_merge_by_lines(patch: Patch) -> None:
    """The later text alone, and nothing beside it."""
    patch.setattr(merge_texts, "merge_texts", lambda base, local, remote: max(local, remote))
    patch.setattr(merge_files, "merge_texts", lambda base, local, remote: max(local, remote))


def a_line_that_both_changed_is_a_clash(patch: Patch) -> None:
    whole = three_way.merge_texts

    def first_come(base: str, local: str, remote: str) -> str:
        merged = whole(base, local, remote)
        return max(local, remote) if merged is None else merged

    patch.setattr(merge_texts, "merge_texts", first_come)
    patch.setattr(merge_files, "merge_texts", first_come)


def a_tag_that_was_taken_off_stays_off(patch: Patch) -> None:
    patch.setattr(merge_texts, "_merge_tags", lambda base, local, remote: tuple(sorted({*local, *remote})))


def a_tag_that_was_put_on_stays_on(patch: Patch) -> None:
    patch.setattr(merge_texts, "_merge_tags", lambda base, local, remote: max(local, remote))


def the_last_write_is_when_a_memory_was_written(patch: Patch) -> None:
    patch.setattr(merge_texts, "latest", min)


def front_matter_merges_by_its_fields(patch: Patch) -> None:
    """By lines: two nodes that only stamp their writes clash each time."""

    def by_lines(base: str | None, local: str, remote: str, later: str) -> str | None:
        return three_way.merge_texts(base or "", local, remote)

    patch.setattr(merge_files, "merge_memories", by_lines)


def what_a_newer_raddle_wrote_stands(patch: Patch) -> None:
    whole = merge_files._readability
    patch.setattr(merge_files, "_readability", lambda merge, data, sides: min(whole(merge, data, sides), 1))


def what_can_be_read_stands_before_what_cannot(patch: Patch) -> None:
    patch.setattr(merge_files, "_readability", lambda merge, data, sides: 0)


def _other_rule(patch: Patch, kind: str, other: str) -> None:
    rules: Mapping[Any, Any] = merge_files._RULES
    patch.setattr(merge_files, "_RULES", {**rules, kind: rules[other]})


MEMORY: Acts = (changes_of_memory,)
TAGS: Acts = (changes_of_tags,)
TWINS: Acts = (changes_of_twins,)
RUN: Acts = (changes_of_run,)
PROJECT: Acts = (changes_of_project,)
ARTIFACTS: Acts = (new_artifact,)
HANDOFF: Acts = (new_handoff,)
ACCIDENTS: Acts = (rare_accident, changes_of_run)

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(a_change_outweighs_a_removal, MEMORY),
    Mutation(one_sides_change_stands, MEMORY),
    Mutation(the_other_version_is_kept_beside, (changes_of_summary, new_handoff)),
    Mutation(the_later_side_is_the_same_for_both, HANDOFF),
    Mutation(the_later_version_stands, (changes_of_summary,)),
    Mutation(a_handoff_is_as_late_as_it_says, HANDOFF),
    Mutation(handoffs_never_merge_as_text, HANDOFF),
    Mutation(what_is_dangerous_is_withheld, ACCIDENTS),
    Mutation(bytes_stay_as_they_are, ACCIDENTS),
    Mutation(status_goes_by_its_order, (changes_of_status,)),
    Mutation(phases_go_by_their_order, (changes_of_status,)),
    Mutation(a_status_is_weighed_only_if_both_changed_it, RUN),
    Mutation(every_phase_of_a_run_stays, RUN),
    Mutation(every_stint_stays, (changes_of_stints,)),
    Mutation(who_left_has_left, (changes_of_stints,)),
    Mutation(every_phase_of_a_project_stays, PROJECT),
    Mutation(publish_goes_by_the_more_careful, PROJECT),
    Mutation(unknown_fields_of_both_stay, (changes_of_run, changes_of_project)),
    Mutation(a_clash_of_fields_is_told, (changes_of_run, changes_of_project)),
    Mutation(every_pointer_stays, ARTIFACTS),
    Mutation(two_contents_are_two_artifacts, ARTIFACTS),
    Mutation(the_earlier_artifact_keeps_its_id, ARTIFACTS),
    Mutation(bytes_move_with_their_pointer, ARTIFACTS),
    Mutation(two_artifacts_do_not_share_a_file, (new_twin_artifact,)),
    Mutation(a_new_name_is_the_same_wherever_it_is_made, (changes_of_summary, changes_of_memory)),
    Mutation(twins_get_names_of_their_own, TWINS),
    Mutation(a_folder_has_one_spelling, MEMORY),
    Mutation(unicode_forms_are_one_name, TWINS),
    Mutation(texts_merge_by_lines, (changes_of_memory, changes_of_summary)),
    Mutation(a_line_that_both_changed_is_a_clash, (changes_of_memory, changes_of_summary)),
    Mutation(a_tag_that_was_taken_off_stays_off, TAGS),
    Mutation(a_tag_that_was_put_on_stays_on, TAGS),
    Mutation(the_last_write_is_when_a_memory_was_written, TAGS),
    Mutation(front_matter_merges_by_its_fields, TAGS),
    Mutation(what_a_newer_raddle_wrote_stands, ACCIDENTS),
    Mutation(what_can_be_read_stands_before_what_cannot, ACCIDENTS),
)
"""Every rule of docs/formats/memory-repo.md on two versions, each with what makes its absence show."""
