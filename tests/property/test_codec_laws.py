"""Laws of the files: what is written reads back, what nobody knows survives, and no bytes are a traceback."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from raddle.model.errors import FormatError
from raddle.model.ids import canonical_json
from raddle.model.threads.adopt import first_sight, open_file
from raddle.model.threads.codec import decode_file, encode_frame, encode_thread, pretty_message
from raddle.model.threads.delta import Delta, delta_from_json, delta_to_json, encode_delta
from raddle.model.threads.message import Attachment, Message, ToolCall, Usage
from raddle.model.threads.message_codec import decode_message, encode_message
from raddle.model.threads.quorum import decode_quorum, encode_quorum
from raddle.model.threads.register import Register, register_of
from raddle.model.threads.thread import Thread, diff, merge
from tests.builders import THREAD_ID, WoundClock, an_author

texts = st.text(st.characters(codec="utf-8"), max_size=8)
names = st.sampled_from(["m1", "m2", "m3", "x"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)
clocks = st.integers(0, 2**53)
devices = st.sampled_from(["", "aaaaaaaa", "bbbbbbbb", "~12345678"])


@st.composite
def messages(draw: st.DrawFn, message_id: str) -> Message:
    """A message with any of its fields."""
    return Message(
        id=message_id,
        parent_id=draw(st.none() | names),
        branch_id=draw(texts),
        role=draw(st.sampled_from(["user", "assistant", "tool", "oracle"])),
        content=draw(texts),
        ts=draw(st.sampled_from(["", "2026-11-30T12:00:00.000000Z", "noon"])),
        seq=draw(st.none() | clocks),
        rev=draw(st.integers(0, 3)),
        device=draw(st.sampled_from(["", "aaaaaaaa"])),
        tool_calls=tuple(
            draw(st.lists(st.builds(ToolCall, id=texts, tool_name=texts, arguments_json=values), max_size=2))
        ),
        attachments=tuple(draw(st.lists(st.builds(Attachment, sha256=texts, size=clocks), max_size=1))),
        usage=draw(
            st.none() | st.builds(Usage, input_tokens=st.none() | clocks, cost_usd=st.none() | st.just(0.5))
        ),
        is_sidechain=draw(st.booleans()),
        kind=draw(st.sampled_from(["turn", "notice", "later"])),
        extra=draw(objects),
    )


paths = st.sampled_from(
    (
        *(
            "title",
            "is_pinned",
            "is_archived",
            "is_private",
            "is_shared_with_support",
            "visibility",
            "model",
            "git",
        ),
        *(
            "source",
            "created_at",
            "updated_at",
            "deleted",
            "cwd",
            "agent_state",
            "tag/a",
            "tag/b c",
            "commit/c1",
        ),
        *("commit/c2", "gone/m1", "gone/m2", "job/j1", "draft/aaaaaaaa", "draft/quorum", "branch/m1/name"),
        *(
            "branch/m1/is_archived",
            "x/new",
            "x/metadata/k",
            "x/metadata/extra/k~1y",
            "x/conversation/k",
            "hologram/1",
        ),
    )
)
fitting = (
    st.none() | st.booleans() | texts | objects | st.just({"at": "2026-11-30T12:00:00.000000Z", "seen": {}})
)
registers: st.SearchStrategy[Register] = st.builds(
    register_of,
    st.lists(st.tuples(clocks, devices, fitting), min_size=1, max_size=3, unique_by=lambda write: write[:2]),
    st.dictionaries(devices, clocks, max_size=2),
)


@st.composite
def threads(draw: st.DrawFn) -> Thread:
    """A thread with any messages and any registers, also such that no editor would write."""
    thread = Thread(THREAD_ID)
    chosen = draw(st.lists(names, unique=True, max_size=3))
    thread.join(
        Delta(
            version=draw(st.integers(0, 9)),
            messages=tuple(draw(messages(name)) for name in chosen),
            registers=draw(st.dictionaries(paths, registers, max_size=5)),
        )
    )
    return thread


def same(one: Thread, other: Thread) -> bool:
    """Is it the same state, to the byte that it is sent as?"""
    return canonical_json(encode_delta(one.whole())) == canonical_json(encode_delta(other.whole()))


@given(threads())
def test_a_file_reads_back_as_the_thread_it_was_written_from(thread: Thread) -> None:
    data = encode_thread(thread)
    decoded = decode_file(data)
    assert decoded.problems == ()
    assert decoded.is_as_written or not decoded.is_stamped
    assert same(decoded.thread(), thread)
    assert encode_thread(decoded.thread()) == data


@given(threads())
def test_a_file_is_json_that_every_reader_takes(thread: Thread) -> None:
    data = encode_thread(thread)
    assert (
        json.dumps(json.loads(data), indent=2, ensure_ascii=False).encode() == data.rstrip(b"\n")
        or b"e" in data
    )


@given(threads())
def test_messages_streamed_into_the_frame_make_the_same_file(thread: Thread) -> None:
    before, after = encode_frame(thread)
    streamed = before + b",".join(pretty_message(message) for message in thread.tree) + after
    assert same(decode_file(streamed).thread(), thread)
    assert streamed == encode_thread(thread) or not len(thread.tree)


@given(threads())
def test_a_delta_goes_over_the_wire_whole(thread: Thread) -> None:
    delta = diff(Thread(THREAD_ID), thread)
    assert delta_to_json(delta_from_json(delta_to_json(delta))) == delta_to_json(delta)


@given(
    st.fixed_dictionaries({"id": st.just("m1"), "role": st.just("user")}, optional={"new": values}).flatmap(
        lambda known: st.dictionaries(
            st.sampled_from([*Message.__struct_fields__, "new", "newer"]), values, max_size=5
        ).map(lambda more: {**more, **known})
    )
)
def test_a_message_of_any_shape_is_written_back_as_it_was_read(plain: dict[str, Any]) -> None:
    plain.pop("unknown", None)
    message = decode_message(plain)
    written = json.loads(canonical_json(encode_message(message)))
    assert decode_message(written) == message
    defaults = json.loads(
        canonical_json({name: value for name, value in plain.items() if name not in written})
    )
    assert all(value in (None, "", 0, False, [], {}, "turn") for value in defaults.values())
    assert {name: written[name] for name in plain if name in written} == {
        name: json.loads(canonical_json(value)) for name, value in plain.items() if name in written
    }


seed_fields = st.fixed_dictionaries(
    {"id": st.just(THREAD_ID)},
    optional={
        "version": st.integers(0, 9) | values,
        "updated_at": st.just("2026-11-30T10:00:00Z") | values,
        "created_at": st.just("2026-11-30T09:00:00Z") | values,
        "visibility": st.sampled_from(["Organisation", "public", "PRIVATE"]) | values,
        "is_private": values,
        "loom_version": values,
        "git_branch": values,
        "git_commits": st.lists(texts, max_size=3) | values,
        "agent_state": objects | values,
        "metadata": st.fixed_dictionaries(
            {}, optional={"title": values, "tags": st.lists(texts) | values, "extra": objects}
        )
        | values,
        "conversation": st.fixed_dictionaries({"messages": st.lists(objects | values, max_size=3)}),
        "drafts": values,
        "pending_jobs": values,
        "pending_job": values,
        "draft": values,
        "deleted_at": values,
        "stamps": objects | values,
        "removed_messages": values,
        "new": values,
    },
)


@given(seed_fields)
def test_a_file_of_any_shape_is_read_once_and_then_reads_back(plain: dict[str, Any]) -> None:
    data = canonical_json(plain)
    decoded = decode_file(data)
    thread = open_file(decoded, None, an_author(clock=WoundClock()))
    again = decode_file(encode_thread(thread))
    assert again.is_as_written or not thread.registers
    assert same(again.thread(), thread)
    if plain.get("new") is not None:
        assert canonical_json(again.thread().shows("x/new")) == canonical_json(plain["new"])


@given(seed_fields)
def test_a_first_sight_is_the_same_on_every_machine(plain: dict[str, Any]) -> None:
    data = canonical_json(plain)
    one, other = first_sight(decode_file(data)), first_sight(decode_file(data))
    assert same(one, other)
    assert same(merge(one, other), one)


@given(seed_fields, st.dictionaries(st.sampled_from(["cwd", "new", "is_private", "visibility"]), texts))
def test_adopting_a_file_twice_is_adopting_it_once(plain: dict[str, Any], edits: dict[str, str]) -> None:
    author = an_author(clock=WoundClock())
    known = first_sight(decode_file(canonical_json(plain)))
    rewritten = {name: value for name, value in plain.items() if name != "stamps"} | edits
    decoded = decode_file(canonical_json(rewritten))
    once = open_file(decoded, known, author)
    assert same(open_file(decoded, once, author), once)


@given(
    st.binary(max_size=60)
    | seed_fields.map(canonical_json).flatmap(
        lambda data: st.tuples(st.integers(0, len(data)), st.binary(max_size=3)).map(
            lambda cut: data[: cut[0]] + cut[1] + data[cut[0] + len(cut[1]) :]
        )
    )
)
def test_no_bytes_make_anything_but_a_file_or_a_named_error(data: bytes) -> None:
    for decode in (decode_file, decode_quorum):
        with contextlib.suppress(FormatError):
            decode(data)


replies = st.lists(st.tuples(st.integers(0, 20), st.booleans(), texts, st.integers(-3, 3)), max_size=12)


def a_quorum_file(turns: list[tuple[int, bool, str, int]], title: str, more: dict[str, Any]) -> bytes:
    """A file such as the second seed's program writes: a first reply goes on, any other forks."""
    listed: list[dict[str, Any]] = []
    for number, (target, is_user, content, skew) in enumerate(turns):
        known = [None, *listed]
        parent = known[target % len(known)]
        message: dict[str, Any] = {"id": f"{number:032x}"}
        branch_id = f"b{number:031x}"
        if parent is not None:
            is_leaf = all(other.get("parent_id") != parent["id"] for other in listed)
            branch_id = parent["branch_id"] if is_leaf else branch_id
            message["parent_id"] = parent["id"]
        message |= {"branch_id": branch_id, "role": "user" if is_user else "assistant", "content": content}
        if not is_user:
            message |= {"policy_id": "nsed:review", "job_id": f"job-{number}"}
        listed.append({**message, "ts": 1_790_000_000 + number + skew})
    plain = {"id": "thread-1", "subject": title, "created": 1_790_000_000, "updated": 1_790_000_099, **more}
    return json.dumps({**plain, "messages": listed}, indent=2, ensure_ascii=False).encode()


@given(
    replies,
    texts,
    st.dictionaries(st.sampled_from(["active_policy", "draft", "pending_job", "mood"]), texts.filter(bool)),
)
def test_a_quorum_file_comes_back_with_equal_branch_ids(
    turns: list[tuple[int, bool, str, int]], title: str, more: dict[str, Any]
) -> None:
    data = a_quorum_file(turns, title, more)
    file = decode_quorum(data)
    assert file.problems == ()
    assert json.loads(encode_quorum(file.thread())) == json.loads(data)
    stored = decode_file(encode_thread(file.thread())).thread()
    assert json.loads(encode_quorum(stored)) == json.loads(data)
    assert file.delta(stored).is_empty
