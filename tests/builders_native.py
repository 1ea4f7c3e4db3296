"""Turns written here, and the lines that a writer of another agent's format makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from raddle.actions.exporting.native import (
    Added,
    Insertion,
    NativeWriter,
    SourceEnd,
    added_turns,
    candidates_of,
)
from raddle.model.clock import format_time
from raddle.model.threads.edits import Editor
from raddle.model.threads.message import Message, ToolCall
from raddle.model.threads.thread import Thread
from tests.builders import NOON, SECOND, a_message, an_author

DEVICE = "aaaaaaaa"


def written(message_id: str = "x1", content: str = "and then?", **fields: Any) -> Message:
    """A turn that was written here."""
    given: dict[str, Any] = {"ts": format_time(NOON + 60 * SECOND + 7), "device": DEVICE, **fields}
    return a_message(message_id, content, **given)


ANSWER = written(
    "x2",
    "I look.",
    role="assistant",
    parent_id="x1",
    model="m-1",
    tool_calls=(ToolCall(id="c1", tool_name="Bash", arguments_json={"command": "ls"}),),
)


def written_by(
    writer: NativeWriter,
    lines: list[bytes],
    added: Iterable[Added],
    after: dict[str, str] | None = None,
    session_id: str = "s1",
) -> Insertion:
    """What a writer makes of these turns behind a file of these lines."""
    data = b"".join(line + b"\n" for line in lines)
    for at in range(0, len(data), 701):
        writer.scan(data[at : at + 701])
    for line in lines:
        writer.see(line, lambda uuid: (after or {}).get(uuid, ""))
    return writer.insertion(list(added), session_id, SourceEnd(size=len(data), is_ended=True))


def inserted(data: bytes, insertion: Insertion) -> bytes:
    return data[: insertion.at] + insertion.data + data[insertion.at :]


def with_turns(thread: Thread) -> tuple[list[Added], Message]:
    """The thread with four turns more: those, and the one among them that forks."""
    held = {message.id for message in thread.messages}
    editor = Editor(thread, an_author(DEVICE))
    editor.append("user", "<system-reminder> is what I typed</system-reminder>\n\n \n")
    editor.append("assistant", "x" * (1 << 20) + "…" * 9, tool_calls=ANSWER.tool_calls)
    editor.append("tool", "Exit code: 3", tool_call_id="c1", tool_name="Bash")
    fork = editor.reply(thread.messages[0].id, "user", "or else?")
    added = added_turns(thread, candidates_of(thread, None, is_tree=True), held)
    assert len(added) == 4
    return added, fork
