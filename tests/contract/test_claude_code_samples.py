"""Real Claude Code sessions, on machines that have them: all that was said is there, and in reach."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raddle.actions.importing.claude_code import ClaudeCode
from raddle.actions.importing.importer import SourceName
from raddle.model.threads.message import Message
from tests.reading import Reading, difference, read, read_on, read_session, same_thread

pytestmark = pytest.mark.samples

SCHEMA_ONLY = "small.jsonl"
"""A list of every shape of line with all ids overwritten by one: it has no tree to speak of."""


def source_of(path: Path, root: Path) -> SourceName:
    sidecar = path.with_suffix(".meta.json")
    return SourceName(
        name=path.name,
        folders=path.relative_to(root).parts[:-1],
        sidecar=sidecar.read_bytes() if sidecar.exists() else b"",
    )


@pytest.fixture
def files(samples: Path) -> list[Path]:
    return sorted((samples / "claude-code").rglob("*.jsonl"))


def imported(path: Path) -> Reading:
    return read(ClaudeCode(), source_of(path, path.parents[3]), path.read_bytes(), batch=64)


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file that are plain JSON, by another reader than the one that is tried."""
    for line in path.read_bytes().split(b"\n"):
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def said(record: dict[str, Any]) -> Iterator[str]:
    """Every text, thought, argument and result of a line."""
    message = record.get("message") or {}
    content = message.get("content")
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content or []:
        if block["type"] in ("text", "thinking"):
            yield block[block["type"]]
        elif block["type"] == "tool_use":
            yield from leaves(block["input"])
        elif block["type"] == "tool_result":
            inner = block.get("content")
            yield from [inner] if isinstance(inner, str) else [one.get("text", "") for one in inner or []]


def leaves(value: Any) -> Iterator[str]:
    """The texts inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from leaves(one)


def words_of(message: Message) -> str:
    arguments = [text for call in message.tool_calls for text in leaves(call.arguments_json)]
    return "\x1f".join([message.content, message.thinking, *arguments])


def test_everything_that_was_said_is_in_some_message(files: list[Path]) -> None:
    for path in files:
        words = "\x1e".join(words_of(message) for message in imported(path).thread.messages)
        missing = [
            text for record in records(path) for text in said(record) if text.strip() and text not in words
        ]
        assert missing == [], path.name


def test_everything_is_on_the_way_to_the_tip(files: list[Path]) -> None:
    for path in files:
        thread = imported(path).thread
        assert thread.tree.lost() == [], path.name
        if path.name == SCHEMA_ONLY:
            continue
        main = [message.id for message in thread.messages if not message.is_sidechain]
        tip = thread.tree.tip()
        assert [message.id for message in thread.tree.path_to_root(tip.id if tip else None)] == main, (
            path.name
        )


def test_each_file_is_one_thread_and_every_bad_line_is_named(files: list[Path]) -> None:
    for path in files:
        reading = imported(path)
        assert reading.ending.thread_id, path.name
        lines = path.read_bytes().split(b"\n")
        bad = {number for number, line in enumerate(lines, 1) if line.strip() and not _is_json(line)}
        assert bad <= {problem.line for problem in reading.problems}, path.name
        if path.name != SCHEMA_ONLY:
            assert {problem.line for problem in reading.problems} == bad, path.name


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except json.JSONDecodeError:
        return False
    return True


def test_one_session_at_four_points_of_its_growth_is_one_thread(files: list[Path]) -> None:
    stages = sorted(
        (path for path in files if path.name.startswith("768de5d6__")), key=lambda path: path.stat().st_size
    )
    assert len(stages) == 4
    last = imported(stages[-1])
    archive = imported(stages[0]).thread
    for path in stages:
        stage = imported(path)
        assert stage.ending.thread_id == last.ending.thread_id
        archive.join(stage.thread.whole())
    assert same_thread(archive, last.thread), difference(archive, last.thread)


def test_a_real_session_read_in_two_goes_is_the_same(files: list[Path]) -> None:
    for path in files:
        *lines, _ = path.read_bytes().split(b"\n")
        whole = read(ClaudeCode(), source_of(path, path.parents[3]), lines)
        for cut in sorted({1, 2, 3, len(lines) // 2, len(lines) - 1}):
            if 0 < cut < len(lines):
                grown = read_on(ClaudeCode(), source_of(path, path.parents[3]), lines[:cut], lines[cut:])
                assert same_thread(grown.thread, whole.thread), (path.name, cut)


def test_a_sub_agent_joins_its_sessions_thread(samples: Path) -> None:
    folder = samples / "claude-code" / "agent-sessions" / "subagent"
    (main,) = folder.glob("*.jsonl")
    (part,) = folder.rglob("agent-*.jsonl")
    reading = read_session(
        ClaudeCode(),
        (source_of(main, folder), main.read_bytes()),
        (source_of(part, folder), part.read_bytes()),
    )
    assert len([message for message in reading.thread.messages if message.is_sidechain]) == 3
    assert reading.thread.tree.lost() == []


def test_usage_counts_each_api_message_once(files: list[Path]) -> None:
    for path in files:
        if path.name == SCHEMA_ONLY:
            continue
        most: dict[str, int] = {}
        for record in records(path):
            message = record.get("message") or {}
            if (
                record.get("type") == "assistant"
                and message.get("id")
                and message.get("model") != "<synthetic>"
            ):
                used = message["usage"]["output_tokens"]
                most[message["id"]] = max(most.get(message["id"], 0), used)
        counted = sum(m.usage.output_tokens or 0 for m in imported(path).thread.messages if m.usage)
        if most:
            assert counted == sum(most.values()), path.name
