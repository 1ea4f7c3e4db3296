"""Real Codex sessions, on machines that have them: all that was said is there, and in reach."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raddle.actions.importing.codex import Codex
from raddle.actions.importing.importer import SourceName
from raddle.model.threads.message import Message
from tests.reading import Reading, difference, read, read_on, same_thread

pytestmark = pytest.mark.samples

SCHEMA_ONLY = "small.jsonl"
"""A list of every shape of line, most of them with one time, one id and one text."""
NO_HEADER = "schema_drift.jsonl"


def source_of(path: Path) -> SourceName:
    return SourceName(name=path.name.removeprefix("machine2__"))


@pytest.fixture
def files(samples: Path) -> list[Path]:
    return sorted((samples / "codex").rglob("*.jsonl"))


def imported(path: Path) -> Reading:
    return read(Codex(), source_of(path), path.read_bytes(), batch=64)


def items(path: Path) -> Iterator[dict[str, Any]]:
    """The items of a file, by another reader than the one that is tried; what else says something, too."""
    for line in path.read_bytes().split(b"\n"):
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        if record.get("type") in ("response_item", "event_msg", "compacted"):
            yield record["payload"]
        elif "payload" not in record:
            yield record


def said(item: dict[str, Any]) -> Iterator[str]:
    """Every text of an item, and of the events that tell of messages."""
    kind, told = item.get("type", "message"), item.get("message")
    if isinstance(told, str):
        yield told
    elif kind == "agent_reasoning":
        yield item["text"]
    elif kind.endswith(("_call", "_output")):
        yield from leaves([item.get(one) for one in ("arguments", "input", "action", "output")])
    elif kind in ("message", "reasoning", "agent_message"):
        for part in [*(item.get("content") or []), *(item.get("summary") or [])]:
            yield part if isinstance(part, str) else part.get("text") or ""


def leaves(value: Any) -> Iterator[str]:
    """The texts inside a JSON value, and inside the JSON in its texts."""
    if isinstance(value, str):
        try:
            inner = json.loads(value)
        except ValueError:
            inner = None
        yield from leaves(inner) if isinstance(inner, dict) else [value]
    elif isinstance(value, dict):
        for name, one in value.items():
            if name not in ("type", "detail", "image_url"):
                yield from leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from leaves(one)


def words_of(message: Message) -> str:
    arguments = [text for call in message.tool_calls for text in leaves(call.arguments_json)]
    return "\x1f".join([message.content, message.thinking, *arguments])


def test_everything_that_was_said_is_in_some_message(files: list[Path]) -> None:
    assert files
    for path in files:
        words = "\x1e".join(words_of(message) for message in imported(path).thread.messages)
        missing = [text for item in items(path) for text in said(item) if text.strip() and text not in words]
        assert missing == [], path.name


def test_nothing_that_was_said_is_said_twice(files: list[Path]) -> None:
    for path in files:
        if path.name == SCHEMA_ONLY:
            continue
        messages = [item for item in items(path) if item.get("role") in ("user", "assistant", "developer")]
        turns = [message for message in imported(path).thread.messages if message.role != "tool"]
        assert sum(bool(message.content) for message in turns) == len(messages), path.name


def test_everything_is_on_the_way_to_the_tip(files: list[Path]) -> None:
    for path in files:
        thread = imported(path).thread
        assert thread.tree.lost() == [], path.name
        tip = thread.tree.tip()
        way = thread.tree.path_to_root(tip.id if tip else None)
        assert [message.id for message in way] == [message.id for message in thread.messages], path.name


def test_each_file_is_one_thread_and_every_bad_line_is_named(files: list[Path]) -> None:
    for path in files:
        reading = imported(path)
        assert reading.ending.thread_id, path.name
        lines = path.read_bytes().split(b"\n")
        bad = {number for number, line in enumerate(lines, 1) if line.strip() and not _is_json(line)}
        told = {problem.line for problem in reading.problems}
        assert bad <= told, path.name
        if path.name != SCHEMA_ONLY:  # in which every picture is the same few words
            assert told == bad, path.name


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except json.JSONDecodeError:
        return False
    return True


def test_every_file_with_a_header_is_known_as_codexs(files: list[Path]) -> None:
    for path in files:
        place = Codex().place(SourceName(name="some.jsonl"), path.read_bytes()[:65536])
        if path.name == NO_HEADER:
            assert place is None
        else:
            assert place is not None, path.name
            assert place.session == imported(path).ending.session_id, path.name


def test_a_session_resumed_on_another_machine_is_the_same_thread(samples: Path) -> None:
    folder = samples / "codex" / "generated-0.171.0"
    first, second = sorted(folder.glob("*-01a22b69-*"), key=lambda path: path.stat().st_size)
    archive, later = imported(first), imported(second)
    assert archive.ending.thread_id == later.ending.thread_id
    archive.thread.join(later.thread.whole())
    assert same_thread(archive.thread, later.thread), difference(archive.thread, later.thread)
    assert later.register("cwd") != later.register("workspace_root")


def test_a_real_session_read_in_two_goes_is_the_same(files: list[Path]) -> None:
    for path in files:
        *lines, _ = path.read_bytes().split(b"\n")
        whole = read(Codex(), source_of(path), lines)
        for cut in range(1, len(lines)):
            grown = read_on(Codex(), source_of(path), lines[:cut], lines[cut:])
            assert same_thread(grown.thread, whole.thread), (path.name, cut)


def test_usage_counts_each_response_once(samples: Path) -> None:
    for path in sorted((samples / "codex" / "generated-0.171.0").glob("*.jsonl")):
        records = [
            json.loads(line) for line in path.read_bytes().split(b"\n") if b"token_usage_record" in line
        ]
        used = sum(record["payload"]["usage"]["output_tokens"] for record in records)
        messages = imported(path).thread.messages
        assert sum(one.usage.output_tokens or 0 for one in messages if one.usage) == used, path.name
        assert sum(one.usage.input_tokens or 0 for one in messages if one.usage) == 400 * len(records)
