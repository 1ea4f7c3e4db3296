"""Real shapes of ChatGPT exports, on machines that have them: all that was said is there, and in reach."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raddle.actions.importing.chatgpt import ChatGPT
from raddle.actions.importing.chatgpt_layout import conversation_lines
from tests.reading import Reading, named, read, same_thread

pytestmark = pytest.mark.samples


@pytest.fixture
def files(samples: Path) -> list[Path]:
    return sorted((samples / "chatgpt").rglob("*.json"))


def imported(path: Path) -> Reading:
    return read(ChatGPT(), named(path.name), conversation_lines(path.read_bytes()))


def conversation(path: Path) -> dict[str, Any]:
    """The conversation in a file, by another reader than the one that is tried."""
    value = json.loads(path.read_bytes())
    return dict(value.get("raw_provider_payload", value))


def said(talk: dict[str, Any]) -> Iterator[str]:
    """Every text of a conversation's messages."""
    for node in talk["mapping"].values():
        content = (node["message"] or {}).get("content") or {}
        for name, value in content.items():
            if name == "content_type":
                continue
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, str) and one.strip():
                    yield one


def words_of(reading: Reading) -> str:
    return "\x1e".join(
        f"{message.content}\x1f{message.thinking}\x1f"
        + "".join(json.dumps(call.arguments_json, separators=(",", ":")) for call in message.tool_calls)
        for message in reading.thread.messages
    )


def test_everything_that_was_said_is_in_some_message(files: list[Path]) -> None:
    assert files
    for path in files:
        words = words_of(imported(path))
        assert [text for text in said(conversation(path)) if text not in words] == [], path.name


def test_the_branch_that_was_shown_is_on_the_way_to_the_tip(files: list[Path]) -> None:
    for path in files:
        reading, talk = imported(path), conversation(path)
        nodes, at = talk["mapping"], talk["current_node"]
        count = 0
        while at is not None:
            count += nodes[at]["message"] is not None
            at = nodes[at]["parent"]
        assert len(reading.path()) == count, path.name
        assert reading.thread.tree.lost() == []
        assert reading.problems == []


def test_a_capture_and_the_conversation_itself_are_one_thread(files: list[Path]) -> None:
    first, *others = (imported(path) for path in files)
    for other in others:
        assert other.ending.thread_id == first.ending.thread_id
        assert same_thread(first.thread, other.thread)
