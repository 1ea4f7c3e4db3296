"""What a thread file holds, and what is made of files that another program wrote: nothing is lost either way."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from raddle.model.threads.adopt import adopt, first_sight, migrated_messages, open_file
from raddle.model.threads.codec import decode_file, encode_frame, encode_thread, pretty_message
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Editor
from raddle.model.threads.thread import Thread, diff
from tests.builders import DAY, NOON, THREAD_ID, WoundClock, a_line, a_thread, an_author
from tests.property.merge_laws import state_of
from tests.property.merge_sources import legacy_copy, rewritten_by_the_seed
from tests.property.strategies import json_values, rich_threads, sound_threads, texts

SAID = st.sampled_from(("", "hello", "yes", "no"))
LINES = st.lists(st.tuples(st.sampled_from(("user", "assistant")), SAID), max_size=5)


@given(rich_threads())
def test_a_file_holds_the_whole_state(thread: Thread) -> None:
    data = encode_thread(thread)
    decoded = decode_file(data)
    assert decoded.problems == ()
    assert decoded.is_as_written
    read = open_file(decoded, None, an_author())
    assert (state_of(read), read.version) == (state_of(thread), thread.version)
    assert encode_thread(read) == data


@given(rich_threads())
def test_a_streamed_file_is_the_same_file(thread: Thread) -> None:
    before, after = encode_frame(thread)
    streamed = before + b",".join(pretty_message(message) for message in thread.tree) + after
    if len(thread.tree):
        assert streamed == encode_thread(thread)
    else:
        assert msgspec.json.decode(streamed) == msgspec.json.decode(encode_thread(thread))


@given(json_values().filter(lambda value: value is not None))
def test_unknown_fields_survive_at_every_level(value: Any) -> None:
    plain = msgspec.json.decode(legacy_copy("q0", "a0", title="t", minute=1))
    messages = plain["conversation"]["messages"]
    messages[0] |= {
        "future": value,
        "tool_calls": [{"id": "c", "tool_name": "read", "arguments_json": {}, "future": value}],
        "usage": {"input_tokens": 1, "future": value},
        "attachments": [{"sha256": "0" * 64, "future": value}],
    }
    for level in (plain, plain["conversation"], plain["metadata"], plain["agent_state"]):
        level["future"] = value
    plain["metadata"]["extra"] = {"future": value, "a/b~c": value}
    thread = open_file(decode_file(msgspec.json.encode(plain)), None, an_author())
    again = open_file(decode_file(encode_thread(thread)), None, an_author())
    written = msgspec.json.decode(encode_thread(again))
    message = written["conversation"]["messages"][0]
    for level in (
        *(written, written["conversation"], written["metadata"], written["agent_state"], message),
        *(
            written["metadata"]["extra"],
            message["tool_calls"][0],
            message["usage"],
            message["attachments"][0],
        ),
    ):
        assert level["future"] == value
    assert written["metadata"]["extra"]["a/b~c"] == value


@given(LINES, LINES)
def test_linear_copies_share_their_beginning_and_fork_where_they_differ(
    one: list[tuple[str, str]], other: list[tuple[str, str]]
) -> None:
    first = migrated_messages(THREAD_ID, _linear(one), NOON)
    second = migrated_messages(THREAD_ID, _linear(other), NOON)
    assert first == migrated_messages(THREAD_ID, _linear(one), NOON)
    shared = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    shared = min(len(one), len(other)) if shared is None else shared
    assert [message.id for message in first[:shared]] == [message.id for message in second[:shared]]
    assert not {m.id for m in first[shared:]} & {m.id for m in second[shared:]}
    thread = a_thread(*first, *second)
    assert not thread.tree.lost()
    assert len(thread.tree) == len(first) + len(second) - shared
    for line in (first, second):
        said = [message.content for message in thread.tree.path_to_root(line[-1].id)] if line else []
        assert said == [message.content for message in line]


def _linear(line: list[tuple[str, str]]) -> list[dict[str, Any]]:
    return [{"role": role, "content": content} for role, content in line]


@given(LINES)
def test_loading_a_legacy_file_twice_gives_one_thread(line: list[tuple[str, str]]) -> None:
    data = legacy_copy(*(content for _, content in line), title="legacy", minute=1)
    once = first_sight(decode_file(data))
    twice = first_sight(decode_file(data))
    assert not twice.join(once.whole())
    assert not once.join(twice.whole())
    stamped = open_file(decode_file(encode_thread(once)), None, an_author())
    assert state_of(stamped) == state_of(once)


@given(rich_threads())
def test_adopting_a_file_as_raddle_wrote_it_changes_nothing(thread: Thread) -> None:
    adopted = adopt(thread, decode_file(encode_thread(thread)), an_author(clock=WoundClock(NOON * 2)))
    assert (state_of(adopted), adopted.version) == (state_of(thread), thread.version)


@given(sound_threads())
def test_a_rewrite_by_the_first_seeds_program_that_touched_nothing_changes_nothing(thread: Thread) -> None:
    adopted = adopt(thread, decode_file(rewritten_by_the_seed(thread)), an_author("dddddddd"))
    assert (state_of(adopted), adopted.version) == (state_of(thread), thread.version)


@given(sound_threads(), texts(4).map(lambda text: f"seed's {text}"))
def test_an_edit_by_the_first_seeds_program_is_that_edit_and_no_other(thread: Thread, title: str) -> None:
    decoded = decode_file(rewritten_by_the_seed(thread, title=title))
    adopted = adopt(thread, decoded, an_author("dddddddd", WoundClock(NOON + DAY)))
    changed = diff(thread, adopted)
    assert set(changed.registers) - {"deleted"} == {"title", "updated_at"}
    assert not changed.messages
    assert adopted.title == title
    assert adopted.version == thread.version + 1
    again = adopt(adopted, decode_file(rewritten_by_the_seed(adopted)), an_author("dddddddd"))
    assert state_of(again) == state_of(adopted)


@given(sound_threads(), st.sampled_from(("", "hello", "something new")))
def test_a_turn_by_the_first_seeds_program_goes_under_the_last_one(thread: Thread, content: str) -> None:
    adopted = adopt(thread, decode_file(rewritten_by_the_seed(thread, turn=content)), an_author("dddddddd"))
    new = diff(thread, adopted).messages
    assert [message.content for message in new] == [content]
    last = list(thread.tree)[-1:]
    assert new[0].parent_id == (last[0].id if last else None)
    assert adopted.tree.tip() == new[0]


@given(sound_threads(), sound_threads(), st.booleans())
def test_a_file_edited_by_hand_loses_nothing_that_was_known(
    known: Thread, written: Thread, is_private: bool
) -> None:
    """The stamps are still there, the fields are not what they were."""
    known.join(written.whole())
    plain = msgspec.json.decode(encode_thread(written))
    plain["metadata"]["title"] = "by hand"
    plain["is_private"] = is_private
    adopted = open_file(decode_file(msgspec.json.encode(plain)), known, an_author("dddddddd"))
    assert adopted.title == "by hand"
    assert adopted.is_private == is_private
    assert {message.id for message in adopted.tree} == {message.id for message in known.tree}
    assert set(adopted.registers) >= set(known.registers)


def test_a_turn_that_the_seeds_program_saw_removed_stays_removed() -> None:
    author = an_author()
    thread = a_thread(*a_line("one", "two", "three"))
    Editor(thread, author).write("gone/m3", value=True)
    adopted = adopt(thread, decode_file(rewritten_by_the_seed(thread)), author)
    assert state_of(adopted) == state_of(thread)
    assert adopted.tree.is_removed("m3")


def test_an_empty_journal_line_is_no_edit() -> None:
    thread = a_thread(*a_line("one"))
    before = state_of(thread)
    assert not thread.join(Delta())
    assert state_of(thread) == before
