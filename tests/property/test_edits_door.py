"""Any Python value into any verb of the editor: refused and nothing written, or it reads back equal."""

from __future__ import annotations

import decimal
import enum
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.model.errors import InvalidInput, NotFound
from raddle.model.threads.agent_state import AgentState, PendingToolCall
from raddle.model.threads.delta import delta_from_json, delta_to_json
from raddle.model.threads.edits import CONTEXT, Editor
from raddle.model.threads.git_facts import GitSnapshot
from raddle.model.threads.message import Attachment, Message, ToolCall, Usage
from raddle.model.threads.thread import Thread
from tests.builders import THREAD_ID, a_line, a_thread, an_author
from tests.property.strategies import json_values, texts


class Label(str):
    """A text of a class of its own, as libraries for HTML have them."""

    __slots__ = ()


class Speaker(enum.StrEnum):
    USER = "user"


class Level(enum.IntEnum):
    LOW = 1


def _deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


_circle: list[Any] = []
_circle.append(_circle)
ODD: tuple[Any, ...] = (
    b"x",
    bytearray(b"x"),
    {1, 2},
    object(),
    object,
    1j,
    decimal.Decimal("0.1"),
    float("nan"),
    float("inf"),
    10**30,
    10**5000,
    -1,
    1.5,
    Label("x"),
    Speaker.USER,
    Level.LOW,
    {Label("k"): Label("v")},
    {1: "x"},
    {None: 1},
    [{"type": "text", "text": "hi"}],
    ("a", 1),
    _deep(50),
    _deep(3000),
    _circle,
    "yes",
    "m1",
    "m2",
    "root",
    "private",
    ToolCall(id="c", tool_name="t", arguments_json={"x": float("nan")}),
    [ToolCall(id=5, tool_name="t")],  # type: ignore[arg-type]
    [ToolCall(id="c", tool_name="t", arguments_json=[Label("x"), 1])],
    [Attachment(sha256="ab", size="many")],  # type: ignore[arg-type]
    Usage(input_tokens=1.5),  # type: ignore[arg-type]
    Usage(input_tokens=3, cost_usd=0.5),
    AgentState(kind=5),  # type: ignore[arg-type]
    AgentState(kind="error", pending_tool_calls=(PendingToolCall(call_id="c"),)),
    GitSnapshot(branch=b"main"),  # type: ignore[arg-type]
    GitSnapshot(branch="main", head="a" * 40, is_dirty=False),
    Message(id="m9", role="user"),
)

values = st.one_of(st.sampled_from(ODD), json_values(), texts())
field_names = st.sampled_from([*Message.__struct_fields__, "id", "colour"])

VERBS: dict[str, Callable[[Editor, Any, Any], Any]] = {
    "append a role": lambda e, v, w: e.append(v, "x"),
    "append a content": lambda e, v, w: e.append("user", v),
    "append": lambda e, v, w: e.append(v, w),
    "reply": lambda e, v, w: e.reply(v, "user", w),
    "set_draft": lambda e, v, w: e.set_draft(v, w),
    "clear_draft": lambda e, v, w: e.clear_draft(v, w),
    "launch_job": lambda e, v, w: e.launch_job("j", v, w),
    "launch a job": lambda e, v, w: e.launch_job(v, "m1", w),
    "land_job": lambda e, v, w: e.land_job(v, w, parent_id="m1"),
    "clear_job": lambda e, v, w: e.clear_job(v),
    "rename_job": lambda e, v, w: e.rename_job("j", v),
    "rename a job": lambda e, v, w: e.rename_job(v, w),
    "remove": lambda e, v, w: e.remove(v),
    "take_back": lambda e, v, w: e.take_back(v),
    "rename": lambda e, v, w: e.rename(v),
    "tag": lambda e, v, w: e.tag(v),
    "untag": lambda e, v, w: e.untag(v),
    "pin": lambda e, v, w: e.pin(v),
    "archive": lambda e, v, w: e.archive(v),
    "set_private": lambda e, v, w: e.set_private(v),
    "set_visibility": lambda e, v, w: e.set_visibility(v),
    "share_with_support": lambda e, v, w: e.share_with_support(v),
    "name_branch": lambda e, v, w: e.name_branch(v, w),
    "archive_branch": lambda e, v, w: e.archive_branch("m1", v),
    "undo": lambda e, v, w: e.undo(v if not isinstance(v, int) else min(v, 3)),
    "redo": lambda e, v, w: e.redo(v if not isinstance(v, int) else min(v, 3)),
    "purge": lambda e, v, w: e.purge(v),
    "set_agent_state": lambda e, v, w: e.set_agent_state(v),
    "set_model": lambda e, v, w: e.set_model(v, w),
    "set_context": lambda e, v, w: e.set_context(v if v == "m1" else CONTEXT[0], w),
    "set any context": lambda e, v, w: e.set_context(v, w),
    "snapshot_git": lambda e, v, w: e.snapshot_git(v),
    "snapshot_git with commits": lambda e, v, w: e.snapshot_git(GitSnapshot(head="b" * 40), v),
    "start": lambda e, v, w: e.start(workspace_root=v, cwd=w),
    "write": lambda e, v, w: e.write("x/any", v),
    "write to a path": lambda e, v, w: e.write(v, w),
    "write_all": lambda e, v, w: e.write_all([("x/a", 1), ("x/b", v)]),
    "put": lambda e, v, w: e.put(v),
}


def _a_thread() -> Thread:
    return a_thread(*a_line("why?", "because", "and?"), title="Kiln", tags=None)


def _check(act: Callable[[Editor], Any]) -> None:
    thread = _a_thread()
    before = thread.copy()
    editor = Editor(thread, an_author())
    refused: InvalidInput | NotFound | None = None
    try:
        act(editor)
    except (InvalidInput, NotFound) as error:
        refused = error
    if refused is not None:
        assert refused.message
        assert "\n" not in refused.message
        assert editor.delta().is_empty
        return
    delta = editor.delta()
    read = delta_from_json(delta_to_json(delta))
    assert read == delta
    before.join(read)
    assert before.messages == thread.messages
    assert dict(before.registers) == dict(thread.registers)
    assert all(type(message.role) is str and type(message.content) is str for message in thread.messages)


@pytest.mark.parametrize("verb", sorted(VERBS))
@given(value=values, other=values)
def test_any_value_is_refused_or_reads_back_equal(verb: str, value: Any, other: Any) -> None:
    _check(lambda editor: VERBS[verb](editor, value, other))


@given(name=field_names, value=values)
def test_any_field_of_a_message_is_refused_or_reads_back_equal(name: str, value: Any) -> None:
    given_apart = {"role", "content", "parent_id"}
    _check(lambda editor: editor.append("user", "x", **({} if name in given_apart else {name: value})))


def test_every_verb_is_tried() -> None:
    verbs = {name for name in vars(Editor) if not name.startswith("_")}
    tried = " ".join(VERBS)
    looks = {"delta", "add", "delete", "restore", "rollback_last_user_turn"}
    assert [name for name in sorted(verbs - looks) if name not in tried] == []


def test_a_flag_is_true_or_false_and_nothing_that_counts_as_one() -> None:
    editor = Editor(Thread(THREAD_ID), an_author())
    for given_instead in (1, "yes", "no", None, [1]):
        with pytest.raises(InvalidInput, match="is True or False"):
            editor.set_private(given_instead)  # type: ignore[arg-type]
    editor.set_private(True)
    assert editor.thread.is_private
