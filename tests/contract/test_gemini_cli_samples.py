"""Real Gemini CLI sessions, on machines that have them: all that was said is there, once, and in reach."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raddle.actions.importing.gemini_cli import GeminiCli
from raddle.model.threads.message import NOTICE, Message
from tests.reading import Reading, difference, named, read, read_on, same_thread

pytestmark = pytest.mark.samples


@pytest.fixture
def files(samples: Path) -> list[Path]:
    found = sorted(path for path in (samples / "gemini").rglob("session*.json*") if path.is_file())
    found += sorted(path for path in (samples / "gemini").rglob("*.json*") if path not in found)
    return [path for path in found if path.name != "projects.json"]


def imported(path: Path) -> Reading:
    return read(GeminiCli(), named(path.name, "proj", "chats"), path.read_bytes(), batch=64)


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Every message of a file, by another reader than the one that is tried, as often as it is written."""
    data = path.read_bytes()
    try:
        values = [json.loads(data)]
    except json.JSONDecodeError:
        values = [json.loads(line) for line in data.split(b"\n") if line]
    for value in values:
        yield value
        yield from value.get("messages") or value.get("history") or []
        yield from value.get("$set", {}).get("messages", [])


def said(record: dict[str, Any]) -> Iterator[str]:
    """Every text, thought, argument and result of a record."""
    content = record.get("content", record.get("parts"))
    parts: list[dict[str, Any]] = [{"text": content}] if isinstance(content, str) else content or []
    for part in parts:
        yield part.get("text", "")
        yield from leaves(part.get("functionResponse", {}).get("response"))
        yield from leaves(part.get("functionCall", {}).get("args"))
    for thought in record.get("thoughts") or []:
        yield from (thought.get("subject", ""), thought["description"])
    for call in record.get("toolCalls", []):
        yield from leaves(call["args"])
        for part in call.get("result", []):
            yield from leaves(part["functionResponse"]["response"])


def leaves(value: Any) -> Iterator[str]:
    """The texts inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from leaves(one)


def words_of(message: Message) -> str:
    arguments = [text for call in message.tool_calls for text in leaves(call.arguments_json)]
    return "\x1f".join([message.content, message.thinking, *arguments])


def is_talk(path: Path) -> bool:
    """Did anybody say anything, but the program?"""
    return any(
        record.get("type", record.get("role")) in ("gemini", "model", "user")
        and not any("<session_context>" in text for text in said(record))
        for record in records(path)
    )


def test_everything_that_was_said_is_in_some_message(files: list[Path]) -> None:
    assert files
    for path in filter(is_talk, files):
        words = "\x1e".join(words_of(message) for message in imported(path).thread.messages)
        missing = [
            text for record in records(path) for text in said(record) if text.strip() and text not in words
        ]
        assert missing == [], path.name


def test_a_file_in_which_only_the_program_spoke_is_no_session(files: list[Path]) -> None:
    silent = [path for path in files if not is_talk(path)]
    assert silent
    assert [imported(path).ending.thread_id for path in silent] == [""] * len(silent)


def test_everything_is_on_the_way_to_the_tip_and_nothing_is_told_twice(files: list[Path]) -> None:
    for path in filter(is_talk, files):
        reading = imported(path)
        thread = reading.thread
        tip = thread.tree.tip()
        on_the_way = thread.tree.path_to_root(tip.id if tip else None)
        assert [message.id for message in on_the_way] == [message.id for message in thread.messages], (
            path.name
        )
        asked = [call.id for message in thread.messages for call in message.tool_calls if call.id]
        answered = [message.tool_call_id for message in thread.messages if message.role == "tool"]
        assert len(asked) == len(set(asked)), path.name
        assert sorted(answered) == sorted(set(answered)), path.name
        assert reading.problems == [], path.name


def test_each_answer_counts_its_tokens_once(files: list[Path]) -> None:
    for path in filter(is_talk, files):
        used = {
            record["id"]: record["tokens"]
            for record in records(path)
            if record.get("tokens") and record["tokens"]["total"]
        }
        usages = [message.usage for message in imported(path).thread.messages if message.usage is not None]
        total = sum(
            (u.input_tokens or 0) + (u.output_tokens or 0) + (u.cache_read_tokens or 0) for u in usages
        )
        assert total == sum(one["total"] for one in used.values()), path.name


def test_one_session_at_three_points_of_its_growth_is_one_thread(files: list[Path]) -> None:
    stages = sorted(
        (path for path in files if path.name.startswith("f7633853__")), key=lambda p: p.stat().st_size
    )
    assert len(stages) == 3
    last = imported(stages[-1])
    for order in (stages, stages[::-1]):
        archive = imported(order[0]).thread
        for path in order[1:]:
            archive.join(imported(path).thread.whole())
        assert archive.messages == last.thread.messages


def test_a_session_resumed_on_a_second_machine_is_one_thread_from_all_its_files(files: list[Path]) -> None:
    first, *others = [imported(path) for path in files if path.parent.name.startswith("generated")]
    resumed = max((first, *others), key=lambda reading: len(reading.thread.messages))
    thread = resumed.thread.copy()
    for reading in (first, *others):
        assert reading.ending.thread_id in ("", thread.id)
        assert not thread.join(reading.thread.whole()) or reading.ending.thread_id
    assert thread.messages == resumed.thread.messages
    typed = [m.content for m in thread.messages if m.role == "user" and m.kind != NOTICE]
    assert typed == ["list files and fix the parser; 请修复", "continue"]


def test_a_real_session_read_in_two_goes_is_the_same(files: list[Path]) -> None:
    for path in files:
        *lines, last = path.read_bytes().split(b"\n")
        lines += [last] if last else []
        source = named(path.name, "proj", "chats")
        whole = read(GeminiCli(), source, lines)
        for cut in range(1, len(lines), max(len(lines) // 40, 1)):
            grown = read_on(GeminiCli(), source, lines[:cut], lines[cut:])
            assert same_thread(grown.thread, whole.thread), (
                path.name,
                difference(grown.thread, whole.thread),
            )
