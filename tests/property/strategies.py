"""Values for laws: any JSON, any register, any message, any delta; small pools of names, so that they meet.

`*_of_one_thread` and the like are bounded on purpose: a law about merging says little about two states that
have no path, no id and no device in common.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from raddle.model.clock import format_time
from raddle.model.threads.delta import Delta
from raddle.model.threads.message import Attachment, Message, ToolCall, Usage
from raddle.model.threads.register import Register, register_of
from raddle.model.threads.thread import Thread
from tests.builders import NOON, SECOND, THREAD_ID

DEVICES = ("", "aaaaaaaa", "bbbbbbbb", "~12345678")
IDS = tuple(f"m{number}" for number in range(6))
ROLES = ("user", "assistant", "tool", "system", "narrator")
PATHS = (
    *("title", "is_pinned", "is_archived", "visibility", "is_private", "is_shared_with_support", "deleted"),
    *("model", "git", "git_initial", "agent_state", "created_at", "updated_at", "source", "workspace_root"),
    *("tag/a", "tag/b/c", "gone/m0", "gone/m1", "gone/m2", "gone/m3", "job/j1", "draft/aaaaaaaa"),
    *("commit/0abc", "branch/m1/name", "branch/m1/is_archived", "x/future", "x/metadata/extra/k~1ey"),
    *("x/metadata/future", "x/conversation/future", "newer/path", "newer"),
)
KEYS = ("a", "b", "messages", "title", "~", "/", "")


def texts(max_size: int = 12) -> st.SearchStrategy[str]:
    """Any text that UTF-8 can hold."""
    return st.text(st.characters(codec="utf-8"), max_size=max_size)


def json_values() -> st.SearchStrategy[Any]:
    """Any kind of JSON value; those that Python takes for one another more often than chance has it."""
    return st.one_of(
        st.sampled_from((None, True, False, 0, 1, 1.0, -0.0, 0.5, "", "a", 2**60, -5)),
        texts(4),
        st.sampled_from(
            ([], {}, [1], [True], {"a": 1}, {"a": 1.0}, {"messages": [0]}, {"": {"/~": [None, ""]}})
        ),
    )


def clocks() -> st.SearchStrategy[int]:
    """A few moments that tie and follow each other, and now and then the first or the last there is."""
    return st.one_of(st.integers(1, 6), st.integers(NOON, NOON + 3), st.sampled_from((0, 2**63 - 1)))


def registers(values: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[Register]:
    """Any register: at most one write a device, and what it saw covers at least those."""
    stamps = st.dictionaries(st.sampled_from(DEVICES), clocks(), min_size=1, max_size=3)
    saw = st.dictionaries(st.sampled_from(DEVICES), clocks(), max_size=2)
    what = values if values is not None else json_values()

    def build(writes: dict[str, int], seen: dict[str, int], said: list[Any]) -> Register:
        return register_of(
            ((n, device, value) for (device, n), value in zip(writes.items(), said, strict=False)), seen
        )

    return st.builds(build, stamps, saw, st.lists(what, min_size=3, max_size=3))


def _plain_values(path: str) -> st.SearchStrategy[Any]:
    """What a sane writer puts at a path, and sometimes anything at all."""
    family = path.partition("/")[0]
    flags = st.booleans()
    sane: dict[str, st.SearchStrategy[Any]] = {
        "title": st.one_of(st.none(), texts()),
        "is_pinned": flags,
        "is_archived": flags,
        "visibility": st.sampled_from(("private", "organization", "public")),
        "is_private": flags,
        "is_shared_with_support": flags,
        "deleted": st.one_of(
            st.none(),
            st.fixed_dictionaries(
                {"at": times(), "seen": st.dictionaries(st.sampled_from(DEVICES), clocks(), max_size=2)}
            ),
        ),
        "created_at": times(),
        "updated_at": times(),
        "workspace_root": st.one_of(st.none(), texts()),
        "tag": flags,
        "gone": flags,
        "commit": st.just(True),
        "job": st.one_of(st.none(), st.fixed_dictionaries({"parent_id": st.sampled_from(IDS)})),
        "draft": st.one_of(st.none(), st.dictionaries(st.sampled_from(IDS), texts(), max_size=2)),
    }
    return st.one_of(sane.get(path, sane.get(family, json_values())), json_values())


def times() -> st.SearchStrategy[str]:
    """RFC 3339 text of a few moments."""
    return st.integers(0, 5).map(lambda seconds: format_time(NOON + seconds * SECOND))


def tool_calls() -> st.SearchStrategy[tuple[ToolCall, ...]]:
    """Up to two calls, with any arguments."""
    return st.lists(
        st.builds(ToolCall, id=texts(4), tool_name=texts(6), arguments_json=json_values()), max_size=2
    ).map(tuple)


def messages(ids: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[Message]:
    """Any message of few words, broken ones too: its parent may be missing, later than itself, or itself."""
    return st.builds(
        Message,
        id=ids if ids is not None else st.sampled_from(IDS),
        parent_id=st.sampled_from((None, *IDS[:4])),
        branch_id=st.sampled_from(("", *IDS[:3])),
        role=st.just("user"),
        content=st.sampled_from(("", "a", "b")),
        seq=st.integers(NOON, NOON + 4),
        rev=st.sampled_from((0, 0, 1, 2)),
        device=st.sampled_from(("", "aaaaaaaa", "bbbbbbbb")),
        is_sidechain=st.sampled_from((False, False, True)),
        kind=st.sampled_from(("turn", "turn", "purged")),
        extra=st.sampled_from(({}, {}, {"a": 1}, {"a": True})),
    )


def rich_messages() -> st.SearchStrategy[Message]:
    """Any message with any of its fields, unknown ones too."""
    return st.builds(
        Message,
        id=st.sampled_from(IDS),
        parent_id=st.sampled_from((None, *IDS[:4])),
        branch_id=st.sampled_from(("", *IDS[:3])),
        role=st.sampled_from(ROLES),
        content=texts(),
        ts=st.one_of(st.just(""), times()),
        seq=st.one_of(st.none(), st.integers(NOON, NOON + 8)),
        tool_calls=tool_calls(),
        tool_call_id=st.sampled_from(("", "c1")),
        is_error=st.booleans(),
        thinking=texts(4),
        attachments=st.lists(
            st.builds(Attachment, sha256=st.just("0" * 64), size=st.integers(0, 9)), max_size=1
        ).map(tuple),
        usage=st.one_of(st.none(), st.builds(Usage, input_tokens=st.integers(0, 9), cost_usd=st.just(0.5))),
        kind=st.sampled_from(("turn", "summary", "future")),
        extra=st.dictionaries(st.sampled_from(KEYS), json_values(), max_size=1),
        unknown=st.dictionaries(st.sampled_from(("future", "other")), json_values(), max_size=1),
    )


@st.composite
def sound_messages(draw: st.DrawFn, most: int = 7) -> list[Message]:
    """The turns of a sound tree: each parent is there and comes before its children."""
    made: list[Message] = []
    for number in range(draw(st.integers(0, most))):
        parent = draw(st.one_of(st.none(), st.sampled_from(made))) if made else None
        message_id = f"m{number}"
        own = draw(st.booleans()) or parent is None
        made.append(
            Message(
                id=message_id,
                parent_id=parent.id if parent else None,
                branch_id=message_id if own or parent is None else parent.branch_id,
                role=draw(st.sampled_from(ROLES[:3])),
                content=draw(texts()),
                ts=format_time(NOON + number),
                device=draw(st.sampled_from(("", "aaaaaaaa"))),
                is_sidechain=draw(st.integers(0, 5)) == 0,
            )
        )
    return made


@st.composite
def register_maps(draw: st.DrawFn, most: int = 4) -> dict[str, Register]:
    """Registers at some of the paths."""
    paths = draw(st.lists(st.sampled_from(PATHS), max_size=most, unique=True))
    return {path: draw(registers(_plain_values(path))) for path in paths}


def deltas() -> st.SearchStrategy[Delta]:
    """Any delta."""
    return st.builds(
        Delta,
        base_version=st.integers(0, 3),
        version=st.integers(0, 5),
        messages=st.lists(messages(), max_size=3, unique_by=lambda message: message.id).map(tuple),
        registers=register_maps(3),
    )


def threads() -> st.SearchStrategy[Thread]:
    """Any thread of few messages, its tree sound or broken."""
    turns = st.lists(messages(), max_size=4, unique_by=lambda message: message.id)
    return st.builds(_thread, turns, register_maps(), st.integers(0, 5))


def rich_threads() -> st.SearchStrategy[Thread]:
    """Any thread with any fields in its messages and many registers."""
    turns = st.lists(rich_messages(), max_size=3, unique_by=lambda message: message.id)
    return st.builds(_thread, turns, register_maps(8), st.integers(0, 5))


def sound_threads() -> st.SearchStrategy[Thread]:
    """Any thread whose tree is sound."""
    return st.builds(_thread, sound_messages(), register_maps(), st.integers(0, 5))


def _thread(turns: list[Message], found: dict[str, Register], version: int) -> Thread:
    thread = Thread(THREAD_ID)
    thread.join(Delta(version=version, messages=tuple(turns), registers=found))
    return thread
