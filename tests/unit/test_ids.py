"""Ids: strictly increasing when new, equal on every machine when derived, and parsed before they are used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.model.errors import InvalidInput
from raddle.model.ids import (
    MonotonicIds,
    canonical_json,
    derived_id,
    derived_thread_id,
    is_thread_id,
    new_token,
    parse_message_id,
    parse_thread_id,
    parse_thread_id_prefix,
)
from tests.builders import DAY, NOON, WoundClock

WHOLE = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c"


@given(st.lists(st.integers(-DAY, DAY), min_size=1, max_size=60))
def test_ids_increase_whatever_the_clock_does(steps: list[int]) -> None:
    clock = WoundClock()
    new_id = MonotonicIds(clock)
    made = []
    for step in steps:
        clock.wind(step)
        made += [new_id(), new_id()]
    assert made == sorted(set(made))


def test_thousands_of_ids_within_one_millisecond_increase() -> None:
    new_id = MonotonicIds(WoundClock())
    made = [new_id() for _ in range(5000)]
    assert made == sorted(set(made))


def test_a_full_millisecond_borrows_the_next() -> None:
    new_id = MonotonicIds(WoundClock())
    first = new_id()
    new_id._tail = (1 << 74) - 1
    second = new_id()
    assert second > first
    assert int(second[:8] + second[9:13], 16) == NOON // 1000 + 1


def test_a_new_id_is_a_version_7_uuid_that_tells_its_time() -> None:
    made = MonotonicIds(WoundClock())()
    assert is_thread_id(f"T-{made}")
    assert (made[14], made[19] in "89ab") == ("7", True)
    assert int(made[:8] + made[9:13], 16) == NOON // 1000


def test_two_processes_do_not_make_the_same_id() -> None:
    clock = WoundClock()
    assert MonotonicIds(clock)() != MonotonicIds(clock)()


def test_a_derived_id_depends_on_its_parts_and_nothing_else() -> None:
    assert derived_id("job", "42", "text") == derived_id("job", "42", "text")
    different = {
        derived_id("job", "42", "text"),
        derived_id("job", "4", "2text"),
        derived_id("linear", "42", "text"),
    }
    assert len(different) == 3
    made = derived_id("job", "42", "text")
    assert (made[14], made[19] in "89ab") == ("8", True)


def test_the_form_of_a_derived_id_never_changes() -> None:
    """Threads on disk hold these: another value for the same parts would double every imported turn."""
    assert derived_id("job", "42", "answer ✓") == "84617bde-0598-8b18-bf54-28112d2c3f7c"
    assert derived_thread_id(NOON, "thread", "x", "1") == "T-01a22c53-8200-7027-9a29-3463dbae6f3c"


def test_the_order_of_keys_in_a_part_does_not_matter() -> None:
    assert derived_id("x", {"a": 1, "b": 2}) == derived_id("x", {"b": 2, "a": 1})
    assert canonical_json({"b": [1, None], "a": "é"}) == '{"a":"é","b":[1,null]}'.encode()


def test_a_derived_thread_id_sorts_by_the_sessions_time_where_there_is_one() -> None:
    early, late = derived_thread_id(NOON, "x", "1"), derived_thread_id(NOON + DAY, "x", "1")
    assert early < late
    assert all(
        map(is_thread_id, (early, late, derived_thread_id(None, "x", "1"), derived_thread_id(-1, "x")))
    )


@pytest.mark.parametrize("text", [WHOLE, WHOLE.upper(), WHOLE[2:], f"  {WHOLE}\n", "t" + WHOLE[1:]])
def test_a_thread_id_is_read_in_any_case_and_without_its_prefix(text: str) -> None:
    assert parse_thread_id(text) == WHOLE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "T-",
        "T-T-" + WHOLE[2:],
        WHOLE + "0",
        WHOLE[:-1],
        "../../etc/passwd",
        WHOLE.replace("8", "g"),
        WHOLE + "\0",
    ],
)
def test_what_is_no_thread_id_never_reaches_a_path(text: str) -> None:
    assert not is_thread_id(text)
    with pytest.raises(InvalidInput):
        parse_thread_id(text)


def test_a_prefix_is_read_with_or_without_t() -> None:
    assert parse_thread_id_prefix("018E2b") == parse_thread_id_prefix("T-018e2b") == "T-018e2b"
    for text in ("", "T-", "xyz", "018e2b/..", WHOLE + "0"):
        with pytest.raises(InvalidInput):
            parse_thread_id_prefix(text)


@pytest.mark.parametrize("text", ["a1", "msg_01.x:y-z", "0" * 200])
def test_a_message_id_may_be_another_programs(text: str) -> None:
    assert parse_message_id(text) == text


@pytest.mark.parametrize("text", ["", "-x", "a b", "a/b", "ü", "a\n", "0" * 201])
def test_a_message_id_cannot_be_a_path_or_an_option(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_message_id(text)


@given(st.text(max_size=60))
def test_parsing_an_id_either_gives_a_whole_one_or_refuses(text: str) -> None:
    try:
        found = parse_thread_id(text)
    except InvalidInput:
        return
    assert is_thread_id(found)


def test_a_token_is_another_each_time_and_fits_into_a_url() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert {len(token) for token in tokens} == {43}
    assert set("".join(tokens)) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
