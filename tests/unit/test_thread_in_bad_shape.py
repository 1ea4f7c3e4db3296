"""A thread stays readable whatever a broken writer, a restored snapshot or a hostile hub put into it."""

from __future__ import annotations

import pytest

from raddle.model.threads.codec import decode_file, encode_thread
from raddle.model.threads.delta import Delta, decode_register, encode_register
from raddle.model.threads.fields import FAMILIES, FIELDS
from raddle.model.threads.register import join_registers, register_of
from raddle.model.threads.thread import Thread

ID = "T-01a22bee-8da7-754b-8e45-c88af09d2906"
EMPTY = join_registers(register_of([(7, "me", "x")], {"B": 9}), register_of([(9, "B", "y")], {"me": 8}))
PATHS = [*FIELDS, *(f"{family}/name" for family in FAMILIES), "branch/m/name", "branch/m/is_archived"]
ODD = [
    None,
    True,
    3,
    -1.5,
    "text",
    "",
    [],
    [1],
    {},
    {"seen": "x"},
    {"seen": {"d": "1"}},
    {"at": 1, "seen": []},
]


def read_all(thread: Thread) -> None:
    """Everything that anybody reads of a thread."""
    thread.summary()
    assert isinstance(thread.conflicts, list)
    assert isinstance(thread.is_deleted, bool)
    assert isinstance(thread.is_shared_with_support, bool)
    assert thread.pending_jobs is not None
    assert thread.drafts is not None
    assert thread.branch_marks is not None
    assert thread.agent_state.kind


def test_two_sides_that_each_dropped_what_the_other_holds_leave_nothing() -> None:
    assert EMPTY.writes == ()


@pytest.mark.parametrize("path", PATHS)
def test_a_register_in_which_nothing_stands_reads_as_null(path: str) -> None:
    thread = Thread(ID)
    thread.join(Delta(registers={path: EMPTY}))
    assert not thread.shows(path) or path == "visibility"
    read_all(thread)


@pytest.mark.parametrize("path", PATHS)
def test_a_register_in_which_nothing_stands_travels_and_is_stored(path: str) -> None:
    thread = Thread(ID)
    thread.join(Delta(registers={path: EMPTY}))
    assert decode_register(encode_register(EMPTY)) == EMPTY
    assert decode_file(encode_thread(thread)).thread().registers[path] == EMPTY


@pytest.mark.parametrize("value", ODD, ids=repr)
@pytest.mark.parametrize("path", PATHS)
def test_a_value_of_the_wrong_shape_costs_its_own_field_at_most(path: str, value: object) -> None:
    thread = Thread(ID)
    thread.join(Delta(registers={path: register_of([(5, "a1b2c3d4", value)])}))
    read_all(thread)
    assert decode_file(encode_thread(thread)).thread().registers == thread.registers
