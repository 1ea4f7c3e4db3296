"""The join as algebra: of registers, of messages, of whole threads, and of what arrives in pieces."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from raddle.model.ids import canonical_json
from raddle.model.threads.delta import (
    Delta,
    decode_delta,
    decode_register,
    delta_from_json,
    delta_to_json,
    encode_delta,
    encode_register,
)
from raddle.model.threads.message import Message
from raddle.model.threads.message_codec import encode_message
from raddle.model.threads.register import Register, join_registers, overwrite
from raddle.model.threads.thread import Thread, diff, join_messages, merge
from tests.builders import THREAD_ID
from tests.property.merge_laws import check_in_order, check_tree, readings_of, state_of
from tests.property.strategies import (
    clocks,
    deltas,
    json_values,
    messages,
    registers,
    sound_threads,
    threads,
)

ONE_ID = st.just("m1")


def of_register(register: Register) -> bytes:
    return canonical_json(encode_register(register))


def of_message(message: Message) -> bytes:
    return canonical_json(encode_message(message))


@given(registers(), registers())
def test_joining_registers_is_commutative(one: Register, other: Register) -> None:
    assert of_register(join_registers(one, other)) == of_register(join_registers(other, one))


@given(registers(), registers(), registers())
def test_joining_registers_is_associative(one: Register, two: Register, three: Register) -> None:
    left = join_registers(join_registers(one, two), three)
    assert of_register(left) == of_register(join_registers(one, join_registers(two, three)))


@given(registers(), registers())
def test_joining_a_register_again_changes_nothing(one: Register, other: Register) -> None:
    joined = join_registers(one, other)
    assert join_registers(joined, other) is joined
    assert join_registers(joined, one) is joined
    assert join_registers(joined, joined) is joined


@given(registers(), st.sampled_from(("aaaaaaaa", "bbbbbbbb", "cccccccc")), json_values())
def test_an_edit_settles_all_that_its_author_saw(register: Register, device: str, value: object) -> None:
    edited = overwrite(register, register.clock + 1, device, value)
    assert [write.value for write in edited.writes] == [value]
    assert of_register(join_registers(register, edited)) == of_register(edited)
    assert of_register(join_registers(edited, register)) == of_register(edited)


@given(registers(), registers(), clocks(), clocks())
def test_edits_by_two_who_did_not_know_of_each_other_both_stand(
    one: Register, other: Register, first: int, second: int
) -> None:
    seen = join_registers(one, other)
    mine = overwrite(seen, seen.clock + 1 + first, "cccccccc", "mine")
    yours = overwrite(seen, seen.clock + 1 + second, "dddddddd", "yours")
    assert sorted(join_registers(mine, yours).values) == ["mine", "yours"]


@given(messages(ONE_ID), messages(ONE_ID))
def test_joining_messages_is_commutative_and_idempotent(one: Message, other: Message) -> None:
    joined = join_messages(one, other)
    assert of_message(joined) == of_message(join_messages(other, one))
    kept = (one, other) if not joined.is_purged else (one, other, one.purged(), other.purged())
    assert of_message(joined) in [of_message(form) for form in kept]
    assert of_message(join_messages(joined, one)) == of_message(joined)


@given(messages(ONE_ID), messages(ONE_ID))
def test_a_turn_is_purged_for_all_in_the_place_where_it_would_stand(one: Message, other: Message) -> None:
    joined = join_messages(one, other)
    assert joined.is_purged == (one.is_purged or other.is_purged)
    if one.rev == other.rev:
        assert joined.order == min(one.order, other.order)


@given(messages(ONE_ID), messages(ONE_ID), messages(ONE_ID))
def test_joining_messages_is_associative(one: Message, two: Message, three: Message) -> None:
    left = join_messages(join_messages(one, two), three)
    assert of_message(left) == of_message(join_messages(one, join_messages(two, three)))


@given(threads(), threads(), threads())
def test_merging_threads_is_a_join(one: Thread, two: Thread, three: Thread) -> None:
    before = state_of(one), state_of(two)
    both = merge(one, two)
    assert state_of(both) == state_of(merge(two, one))
    assert both.version == merge(two, one).version == max(one.version, two.version)
    assert state_of(merge(both, three)) == state_of(merge(one, merge(two, three)))
    assert state_of(merge(both, two)) == state_of(both)
    assert (state_of(one), state_of(two)) == before


@given(threads(), threads())
def test_an_older_state_and_the_diff_make_the_newer_one(one: Thread, two: Thread) -> None:
    newer = merge(one, two)
    older = one.copy()
    older.join(diff(one, newer))
    assert (state_of(older), older.version) == (state_of(newer), newer.version)
    nothing = Thread(THREAD_ID)
    joined = one.copy()
    joined.join(diff(nothing, two))
    assert state_of(joined) == state_of(newer)


@given(threads(), threads())
def test_a_join_says_whether_it_brought_anything(one: Thread, two: Thread) -> None:
    joined = one.copy()
    before = state_of(joined), joined.version
    news = joined.join(two.whole())
    assert news == ((state_of(joined), joined.version) != before)
    assert not joined.join(two.whole())
    assert not joined.join(one.whole())


@given(st.lists(deltas(), max_size=4), st.data())
def test_pieces_in_any_order_and_any_number_make_one_thread(pieces: list[Delta], data: st.DataObject) -> None:
    in_order = Thread(THREAD_ID)
    for piece in pieces:
        in_order.join(piece)
    shuffled = Thread(THREAD_ID)
    again = data.draw(st.permutations(pieces + pieces[:2]))
    for piece in again:
        shuffled.join(piece)
        readings_of(shuffled)
    assert (state_of(shuffled), shuffled.version) == (state_of(in_order), in_order.version)
    fresh = in_order.copy()
    assert readings_of(shuffled) == readings_of(in_order) == readings_of(fresh)


@given(st.lists(messages(), max_size=6), st.lists(deltas(), max_size=3))
def test_turns_that_move_in_the_tree_leave_no_trace_of_where_they_stood(
    forms: list[Message], pieces: list[Delta]
) -> None:
    """`rev` may give a turn another parent or another place in the order."""
    thread = Thread(THREAD_ID)
    for piece in pieces:
        thread.join(Delta(registers=piece.registers))
    for form in forms:
        thread.join(Delta(messages=(form,)))
        readings_of(thread)
    assert readings_of(thread) == readings_of(thread.copy())


@given(registers())
def test_a_register_reads_back_from_json(register: Register) -> None:
    read = decode_register(encode_register(register))
    assert of_register(read) == of_register(register)


@given(deltas())
def test_a_delta_reads_back_from_a_line_of_json(delta: Delta) -> None:
    line = delta_to_json(delta)
    assert b"\n" not in line
    read = delta_from_json(line)
    assert canonical_json(encode_delta(read)) == canonical_json(encode_delta(delta))
    assert delta_to_json(read) == line
    assert canonical_json(encode_delta(decode_delta(encode_plain(delta)))) == canonical_json(
        encode_delta(delta)
    )


def encode_plain(delta: Delta) -> object:
    """`delta` as plain JSON, messages included."""
    import msgspec

    return msgspec.to_builtins(encode_delta(delta))


@given(sound_threads())
def test_what_shows_of_a_sound_tree_keeps_its_shape(thread: Thread) -> None:
    check_tree(thread)
    check_in_order(thread)
    assert thread.tree.lost() == []


@given(threads())
def test_each_branch_id_starts_once_whatever_the_messages_say(thread: Thread) -> None:
    tree = thread.tree
    starts = [
        tree.branch_of(message.id)
        for message in tree
        if message.parent_id not in tree
        or tree.branch_of(message.id) != tree.branch_of(message.parent_id or "")
    ]
    assert len(starts) == len(set(starts))
    assert sum(branch.length for branch in tree.branches()) == len(list(tree.shown()))
