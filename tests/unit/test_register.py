"""The one kind of register, case by case; the laws of its join are in `tests/property/test_merge_laws.py`."""

from __future__ import annotations

from raddle.model.threads.register import Register, Write, join_registers, one_write, overwrite, register_of

ANNA, BERT = "aaaaaaaa", "bbbbbbbb"


def test_a_first_write_stands_alone() -> None:
    register = one_write(5, ANNA, "x")
    assert register.values == ["x"]
    assert register.saw == {ANNA: 5}
    assert register.first == register.latest == Write(5, ANNA, "x")


def test_an_edit_replaces_what_its_author_could_see() -> None:
    register = overwrite(one_write(5, ANNA, "x"), 9, BERT, "y")
    assert register == Register((Write(9, BERT, "y"),), {ANNA: 5, BERT: 9})


def test_an_edit_of_nothing_is_a_first_write() -> None:
    assert overwrite(None, 5, ANNA, "x") == one_write(5, ANNA, "x")


def test_an_older_copy_does_not_bring_an_overwritten_value_back() -> None:
    old = one_write(5, ANNA, "x")
    new = overwrite(old, 9, BERT, "y")
    assert join_registers(new, old) is new
    assert join_registers(old, new) == new


def test_a_later_clock_does_not_overwrite_what_its_author_had_not_seen() -> None:
    joined = join_registers(one_write(5, ANNA, "x"), one_write(9, BERT, "y"))
    assert joined.values == ["x", "y"]
    assert joined.saw == {ANNA: 5, BERT: 9}


def test_an_earlier_clock_overwrites_what_its_author_had_seen() -> None:
    """Bert's clock is behind, but he saw Anna's value."""
    seen = one_write(500, ANNA, "x")
    settled = Register((Write(9, BERT, "y"),), {**seen.saw, BERT: 9})
    assert join_registers(seen, settled) == settled


def test_the_next_write_settles_a_conflict_for_all() -> None:
    conflict = join_registers(one_write(5, ANNA, "x"), one_write(9, BERT, "y"))
    settled = overwrite(conflict, 10, ANNA, "z")
    assert join_registers(conflict, settled) == settled
    assert join_registers(one_write(9, BERT, "y"), settled) == settled


def test_a_write_that_nobody_saw_stands_beside_the_settlement() -> None:
    conflict = join_registers(one_write(5, ANNA, "x"), one_write(9, BERT, "y"))
    settled = overwrite(conflict, 10, ANNA, "z")
    later = overwrite(one_write(9, BERT, "y"), 11, BERT, "w")
    assert join_registers(settled, later).values == ["z", "w"]


def test_a_device_never_leaves_two_values() -> None:
    first = one_write(5, ANNA, "x")
    second = overwrite(first, 7, ANNA, "y")
    beside = join_registers(first, one_write(6, BERT, "b"))
    assert join_registers(beside, second).values == ["b", "y"]


def test_two_values_of_one_stamp_are_the_same_value_on_every_device() -> None:
    """A broken writer; Python takes 1, 1.0 and true for one another, JSON does not."""
    for one, other in (("x", "y"), (1, True), (1.0, 1), ({"a": 1}, {"a": True}), ([], None)):
        here = join_registers(one_write(5, ANNA, one), one_write(5, ANNA, other))
        there = join_registers(one_write(5, ANNA, other), one_write(5, ANNA, one))
        assert repr(here) == repr(there)


def test_a_join_that_brings_nothing_gives_back_what_was_there() -> None:
    register = overwrite(one_write(5, ANNA, {"a": [1]}), 9, BERT, {"b": [2]})
    assert join_registers(register, register_of([(9, BERT, {"b": [2]})], {ANNA: 3})) is register


def test_what_was_overwritten_counts_for_the_clock() -> None:
    assert overwrite(one_write(500, ANNA, "x"), 9, BERT, "y").clock == 500


def test_stored_parts_are_put_in_order_and_saw_covers_what_stands() -> None:
    register = register_of([(9, BERT, "y"), (5, ANNA, "x")], {BERT: 3})
    assert register.values == ["x", "y"]
    assert register.saw == {ANNA: 5, BERT: 9}
