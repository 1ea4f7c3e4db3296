"""Laws of counting: equal to a plain count, the same in any order, and whole however it is cut."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from raddle.model.threads.message import Usage
from raddle.model.threads.usage import (
    WAYS,
    Counted,
    Holder,
    Response,
    Tally,
    Tokens,
    counted_once,
    sum_of,
    tally,
)
from raddle.model.threads.usage_scope import UTC_DAYS
from tests.builders import DAY, NOON

Threads = list[tuple[Holder, list[Response]]]

TOKENS = st.one_of(st.none(), st.integers(-1, 40))
COSTS = st.one_of(st.none(), st.sampled_from((0.0, 0.1, 0.25, 1e-9, -1.0, float("inf"))))
FIELDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def responses() -> st.SearchStrategy[Response]:
    usage = st.builds(
        Usage,
        input_tokens=TOKENS,
        output_tokens=TOKENS,
        cache_read_tokens=TOKENS,
        cache_write_tokens=TOKENS,
        cost_usd=COSTS,
    )
    return st.builds(
        Response,
        id=st.sampled_from(("m1", "m2", "m3", "m4")),
        usage=usage,
        at=st.sampled_from((None, NOON, NOON + DAY)),
        role=st.sampled_from(("", "assistant", "user")),
        model=st.sampled_from(("", "opus", "haiku")),
        rev=st.integers(0, 2),
        is_sidechain=st.booleans(),
        is_copied=st.booleans(),
    )


@st.composite
def stores(draw: st.DrawFn) -> Threads:
    """Threads that share turns, as forks and resumed sessions do; now and then one has an id twice."""
    held = []
    for name in draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=4)):
        holder = Holder(
            id=name,
            created_at=draw(st.sampled_from((None, NOON, NOON + 1))),
            last_activity_at=draw(st.sampled_from((None, NOON + 2, NOON + 3))),
            repository=draw(st.sampled_from(("", "moth", "kiln"))),
            agent=draw(st.sampled_from(("raddle", "codex"))),
        )
        held.append((holder, draw(st.lists(responses(), max_size=5))))
    return held


def plainly(threads: Threads) -> dict[str, tuple[str, Usage]]:
    """Message id -> (the thread it counts for, its usage): one id at a time, through everything there is."""
    told: dict[str, tuple[str, Usage]] = {}
    for message_id in {one.id for _, held in threads for one in held}:
        forms = [one for _, held in threads for one in held if one.id == message_id]
        own = [form for form in forms if not form.is_copied] or forms
        holders = [holder for holder, held in threads if any(one in own for one in held)]
        holders = _least(holders, lambda holder: holder.created_at)
        holders = _least(holders, lambda holder: holder.last_activity_at)
        oldest = min(holders, key=lambda holder: holder.id)
        most = max(forms, key=_known)
        told[message_id] = (oldest.id, most.usage)
    return told


def _least(holders: list[Holder], time_of: Callable[[Holder], int | None]) -> list[Holder]:
    """Those with the least time; all of them where none has one."""
    times = [at for holder in holders if (at := time_of(holder)) is not None]
    return [holder for holder in holders if time_of(holder) == min(times)] if times else holders


def _known(one: Response) -> list[float]:
    used = one.usage
    said = [used.output_tokens, one.rev, used.input_tokens]
    said += [used.cache_read_tokens, used.cache_write_tokens]
    cost = -1 if used.cost_usd is None else used.cost_usd
    return [*(-1 if number is None else number for number in said), cost]


@given(stores())
def test_each_turn_counts_once_for_the_oldest_thread_that_has_it(threads: Threads) -> None:
    found = {one.response.id: (one.holder.id, one.response.usage) for one in counted_once(threads)}
    assert len(counted_once(threads)) == len(found)
    assert found == plainly(threads)


def plain_rows(found: Tally) -> list[tuple[str | None, Tokens, Tokens, int, str | None]]:
    """What is printed of a tally."""
    return [
        (row.key, row.tokens, row.sidechain, row.threads, row.holder.id if row.holder else None)
        for row in (*found.rows, found.total)
    ]


@given(stores(), st.data())
def test_the_order_of_threads_and_turns_changes_no_sum(threads: Threads, data: st.DataObject) -> None:
    mixed = [(holder, data.draw(st.permutations(held))) for holder, held in threads]
    mixed = data.draw(st.permutations(mixed))
    for way in WAYS:
        one, other = (tally(counted_once(each), way, day_of=UTC_DAYS.day_of) for each in (threads, mixed))
        assert plain_rows(one) == plain_rows(other)


@given(stores(), st.sampled_from(WAYS))
def test_the_rows_of_every_way_add_up_to_the_straight_count(threads: Threads, way: str) -> None:
    found = tally(counted_once(threads), way, day_of=UTC_DAYS.day_of)
    plain = [usage for _, usage in plainly(threads).values()]
    assert found.total.tokens.messages == len(plain)
    for name in FIELDS:
        known = [number for usage in plain if (number := getattr(usage, name)) is not None and number >= 0]
        assert getattr(found.total.tokens, name) == (sum(known) if known else None)
    whole = sum_of(found.rows)
    assert (whole.tokens, whole.sidechain) == (found.total.tokens, found.total.sidechain)


@given(stores(), st.sampled_from(("repo", "agent", "thread", "model")))
def test_what_is_chosen_and_what_is_left_add_up_to_all(threads: Threads, way: str) -> None:
    counted = counted_once(threads)

    def total(part: list[Counted]) -> int:
        return tally(part, way, day_of=UTC_DAYS.day_of).total.tokens.together

    chosen = [one for one in counted if one.holder.repository == "moth"]
    left = [one for one in counted if one.holder.repository != "moth"]
    assert total(chosen) + total(left) == total(counted)


@given(stores())
def test_another_fork_adds_nothing(threads: Threads) -> None:
    fork = Holder(id="z", created_at=NOON + DAY)
    shared = [one for holder, held in threads if holder.created_at is not None for one in held]
    before = tally(counted_once(threads), "thread", day_of=UTC_DAYS.day_of)
    assert tally(counted_once([*threads, (fork, shared)]), "thread", day_of=UTC_DAYS.day_of) == before
