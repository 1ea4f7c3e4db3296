"""The commit plan: which file stands, what has to be read, what a disk is told to do and what it never gets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from raddle.model.memory.merge_trees import (
    BothChanged,
    DiskStep,
    changed_paths,
    disk_steps,
    plan_merge,
    tree_of,
    withheld,
)

trees = st.dictionaries(
    st.sampled_from(("a", "b", "a/b", "project.yaml", "m/.git/x")),
    st.sampled_from(("1", "2", "3", "120000 9")),
    max_size=4,
)


def test_each_file_stands_as_the_one_side_that_changed_it_has_it() -> None:
    base = {
        "same": "1",
        "here": "1",
        "there": "1",
        "gone here": "1",
        "gone there": "1",
        "both": "1",
        "alike": "1",
    }
    local = {
        "same": "1",
        "here": "2",
        "there": "1",
        "gone there": "1",
        "both": "2",
        "alike": "2",
        "new here": "5",
    }
    remote = {
        "same": "1",
        "here": "1",
        "there": "3",
        "gone here": "1",
        "both": "3",
        "alike": "2",
        "new there": "6",
    }
    plan = plan_merge(base, local, remote)
    assert plan.settled == {
        "same": "1",
        "here": "2",
        "there": "3",
        "alike": "2",
        "new here": "5",
        "new there": "6",
    }
    assert plan.both_changed == (BothChanged(path="both", base="1", local="2", remote="3"),)
    assert plan.wanted == ("1", "2", "3")
    assert plan.kept == ()


def test_a_change_outweighs_a_removal_and_is_told() -> None:
    plan = plan_merge({"a": "1", "b": "1"}, {"a": "2"}, {"b": "2"})
    assert (plan.settled, plan.kept) == ({"a": "2", "b": "2"}, ("a", "b"))


def test_a_link_is_never_merged_and_gives_way_to_a_file() -> None:
    plan = plan_merge({}, {"a": "120000 1", "b": "120000 1"}, {"a": "2", "b": "160000 1"})
    assert (plan.settled, plan.both_changed) == ({"a": "2", "b": "160000 1"}, ())


def test_the_project_of_either_side_is_always_asked_for() -> None:
    assert plan_merge({}, {"project.yaml": "1"}, {"project.yaml": "2"}).wanted == ("1", "2")
    assert plan_merge({"project.yaml": "1"}, {"project.yaml": "1"}, {"project.yaml": "2"}).wanted == (
        "1",
        "2",
    )


@given(trees, trees, trees)
def test_a_plan_is_the_same_from_both_sides_and_names_every_file_once(
    base: dict[str, str], local: dict[str, str], remote: dict[str, str]
) -> None:
    plan, other = plan_merge(base, local, remote), plan_merge(base, remote, local)
    assert (plan.settled, plan.kept) == (other.settled, other.kept)
    open_paths = {both.path for both in plan.both_changed}
    assert not open_paths & plan.settled.keys()
    assert local.keys() & remote.keys() <= open_paths | plan.settled.keys()


@given(trees, trees)
def test_steps_bring_a_disk_to_the_merged_tree_but_for_what_is_withheld(
    held: dict[str, str], merged: dict[str, str]
) -> None:
    disk = {path: entry for path, entry in held.items() if path not in withheld(held)}
    for step in disk_steps(disk, merged):
        assert disk.get(step.path) == step.expects
        if step.becomes is None:
            del disk[step.path]
        else:
            disk[step.path] = step.becomes
    blocked = {path for path in disk if path in withheld(merged)}
    assert {path: entry for path, entry in disk.items() if path not in blocked} == {
        path: entry for path, entry in merged.items() if path not in withheld(merged)
    }
    if not blocked:
        assert tree_of(disk, merged) == merged


def test_a_file_goes_before_a_folder_takes_its_name() -> None:
    assert disk_steps({"a": "1"}, {"a/b": "2"}) == (
        DiskStep(path="a", expects="1", becomes=None),
        DiskStep(path="a/b", expects=None, becomes="2"),
    )


def test_what_is_dangerous_stays_in_the_tree_and_off_the_disk() -> None:
    head = {"memory/n/.git/hooks/x": "1", "memory/n/link": "120000 2", "memory/n/a": "3"}
    assert disk_steps({}, head) == (DiskStep(path="memory/n/a", expects=None, becomes="3"),)
    assert tree_of({"memory/n/a": "3"}, head) == head


def test_changes_are_named_with_what_they_lead_to() -> None:
    assert changed_paths({"a": "1", "b": "1", "c": "1"}, {"a": "1", "b": "2", "d": "4"}) == {
        "b": "2",
        "c": None,
        "d": "4",
    }
