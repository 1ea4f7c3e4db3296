"""Conversations that go on in an agent: what is written for each, and that read again as an import reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from raddle.actions.importing.registry import importer_of
from raddle.actions.resuming.opencode import document
from raddle.actions.resuming.registry import AGENTS, FORMS, OPENCODE
from raddle.actions.resuming.session import Header
from raddle.actions.resuming.told import BytesOf, Told, told_path
from raddle.model.clock import format_time
from raddle.model.threads.message import Attachment, Message, ToolCall
from raddle.model.threads.thread import Thread
from tests.builders import DAY, NOON, SECOND, a_message, a_thread
from tests.reading import Reading, named, read

SESSION = dict.fromkeys(AGENTS, "01a22dde-0000-7000-8000-000000000001") | {
    OPENCODE: "ses_dd2245a4cffecYzDUXzw6I3pC3"
}
WORKSPACE = "/home/dev/src/kiln"
PNG = b"\x89PNG\r\n\x1a\n made up"
PICTURE = Attachment(sha256="a" * 64, media_type="image/png", name="dot.png", size=len(PNG))
PAPER = Attachment(sha256="b" * 64, media_type="application/pdf", name="plan.pdf", size=9)


class Asked(NamedTuple):
    """A call or a result as an API would get it: its id, and of a result its text."""

    call_id: str
    said: str = ""


def told(thread: Thread, leaf: str = "", bytes_of: BytesOf = lambda _: None) -> Told:
    """The path to a leaf, or to the tip."""
    tip = thread.tree.tip()
    return told_path(thread, leaf or (tip.id if tip is not None else ""), bytes_of)


def written(agent: str, path: Told, title: str = "Cold kiln") -> bytes:
    """The session that tells this path."""
    header = Header(
        session_id=SESSION[agent],
        workspace=WORKSPACE,
        title=title,
        began=path.turns[0].message.order,
        ends=path.last.order,
        now=NOON + 30 * DAY,
        model="mock/m",
    )
    if agent == OPENCODE:
        return document(header, path.turns)
    return b"".join(line + b"\n" for line in FORMS[agent].write(header, path.turns))


def read_back(agent: str, data: bytes, before: Reading | None = None) -> Reading:
    """The session as an import reads it; what follows what was read `before`."""
    name = f"{SESSION[agent]}.jsonl"
    if agent == "codex":
        name = f"rollout-2026-06-15T12-00-00-{name}"
    elif agent == "gemini":
        name = f"session-2026-06-15T12-00-{name[:8]}.jsonl"
    folders = ("kiln", "chats") if agent == "gemini" else ("projects", "-home-dev-src-kiln")
    importer = importer_of("gemini-cli" if agent == "gemini" else agent)
    rows = as_rows(data) if agent == OPENCODE else data
    return read(importer, named(name, *folders), rows, before=before)


def as_rows(data: bytes) -> Iterator[bytes]:
    """A document of OpenCode's as the lines that its database gives once it was brought in."""
    whole = json.loads(data)
    session = whole["info"]["id"]
    yield json.dumps({"opencode": "session", **whole["info"]}).encode()
    after = None
    for message in whole["messages"]:
        name = message["info"]["id"]
        line = {"opencode": "message", "id": name, "session": session, "after": after, **message}
        yield json.dumps(line).encode()
        after = name


def calls_and_results(agent: str, data: bytes) -> list[list[Asked]]:
    """[calls, results] in the order in which the agent would send them."""
    if agent == OPENCODE:
        parts = [part for message in json.loads(data)["messages"] for part in message["parts"]]
        tools = [part for part in parts if part["type"] == "tool"]
        states = [part["state"] for part in tools]
        assert all(state["status"] in ("completed", "error") for state in states)
        ids = [part["callID"] for part in tools]
        texts = [state.get("output", state.get("error")) for state in states]
        return [[Asked(one) for one in ids], list(map(Asked, ids, texts))]
    calls: list[Asked] = []
    results: list[Asked] = []
    for line in map(json.loads, data.splitlines()):
        for block in _blocks(agent, line):
            _sort(block, calls, results)
    return [calls, results]


def _blocks(agent: str, line: dict[str, Any]) -> Iterable[dict[str, Any]]:
    if agent == "claude-code":
        content = line["message"]["content"]
        return content if isinstance(content, list) else []
    if agent == "codex":
        return [line["payload"]] if line["type"] == "response_item" else []
    content = line.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    return [*({"gemini": call} for call in line.get("toolCalls", ())), *parts]


def _sort(block: dict[str, Any], calls: list[Asked], results: list[Asked]) -> None:
    if "gemini" in block:
        calls.append(Asked(block["gemini"]["id"]))
    elif "functionResponse" in block:
        response = block["functionResponse"]
        results.append(Asked(response["id"], next(iter(response["response"].values()))))
    elif block.get("type") == "tool_use":
        calls.append(Asked(block["id"]))
    elif block.get("type") == "tool_result":
        results.append(Asked(block["tool_use_id"], str(block["content"])))
    elif block.get("type") == "function_call":
        calls.append(Asked(block["call_id"]))
    elif block.get("type") == "function_call_output":
        results.append(Asked(block["call_id"], str(block["output"])))


def call(call_id: str, name: str = "shell", **arguments: Any) -> ToolCall:
    return ToolCall(id=call_id, tool_name=name, arguments_json=arguments)


def a_conversation(*, is_imported: bool = True) -> Thread:
    """Everything once: a notice, calls with a result, without one and with a name that no API takes, pictures, a
    summary, a role that nobody knows, a branch that is not gone on with."""
    turns = [
        a_message("n1", "<environment_context>", kind="notice"),
        a_message("q1", "Why is the kiln cold?", attachments=(PICTURE, PAPER)),
        a_message(
            "a1",
            "I look.",
            role="assistant",
            model="m-1",
            provider="maker",
            thinking="Hm.",
            tool_calls=(call("c1", command="ls"), call("c2", "read", path="x")),
        ),
        a_message("r1", "kiln.txt", role="tool", tool_call_id="c1", tool_name="shell"),
        a_message("a2", "", role="assistant", tool_calls=(call("c 3", "mcp.fetch", url="u"),)),
        a_message("r3", "a page", role="tool", tool_call_id="c 3", tool_name="mcp.fetch"),
        a_message("s1", "So far: the kiln is cold.", kind="compaction"),
        a_message("o1", "Mind the gas.", role="narrator"),
        a_message("q2", "/bin/fire is what I mean"),
        a_message("a3", "It is out of gas.", role="assistant"),
    ]
    device = "" if is_imported else "aaaaaaaa"
    placed = [
        Message(
            **{
                **{name: getattr(turn, name) for name in Message.__struct_fields__},
                "parent_id": turns[at - 1].id if at else None,
                "branch_id": "n1",
                "ts": format_time(NOON + at * SECOND),
                "device": device,
            }
        )
        for at, turn in enumerate(turns)
    ]
    beside = a_message("x1", "Or else?", parent_id="q1", ts=format_time(NOON + SECOND * 3), device=device)
    return a_thread(*placed, beside, title="Cold kiln")


ON_PATH = ["q1", "a1", "r1", "a2", "r3", "s1", "o1", "q2", "a3"]
"""What of it is told."""
