"""What a source writes again under an id that was read before: which of the two forms stands, for every importer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import pytest

from raddle.actions.importing.importer import Importer
from raddle.actions.importing.registry import importers
from raddle.model.threads.message import Message
from raddle.model.threads.thread import Thread, merge
from tests import (
    builders_chatgpt,
    builders_claude_code,
    builders_codex,
    builders_gemini_cli,
    builders_opencode,
)
from tests.reading import named, read

FIRST, LONGER, SHORTER = "zzz the first words", "aaa other words, and more of them", "aaa cut"
"""The shorter one comes before the others in the order of letters, and the longer one before the first."""


def of_claude_code(text: str) -> bytes:
    session = builders_claude_code.ClaudeSession()
    session.user("why?", uuid=builders_claude_code.uuid_of("why"))
    session.says(text, message="msg_1", uuid=builders_claude_code.uuid_of("says"))
    return session.data


def typed_in_claude_code(text: str) -> bytes:
    session = builders_claude_code.ClaudeSession()
    session.user(text, uuid=builders_claude_code.uuid_of("why"))
    return session.data


def of_codex(text: str) -> bytes:
    session = builders_codex.begun()
    session.user("why?")
    session.item(
        "message",
        id="msg_0123456789abcdef",
        role="assistant",
        content=[{"type": "output_text", "text": text}],
    )
    return session.data


def result_of_codex(text: str) -> bytes:
    session = builders_codex.begun()
    session.calls(builders_codex.call_id("a"))
    session.result(builders_codex.call_id("a"), text)
    return session.data


def of_gemini_cli(text: str) -> bytes:
    session = builders_gemini_cli.GeminiSession()
    session.user("why?")
    session.says(text, id=builders_gemini_cli.id_of("says"))
    return session.data


def of_opencode(text: str) -> bytes:
    session = builders_opencode.OpenCodeSession()
    session.says(session.user("why?"), {"type": "text", "text": text})
    return session.data


def of_chatgpt(text: str) -> bytes:
    conversation = builders_chatgpt.Conversation()
    conversation.user("why?")
    conversation.assistant(text)
    return b"".join(line + b"\n" for line in conversation.lines)


SOURCES: dict[str, tuple[str, Callable[[str], bytes]]] = {
    made.__name__: (agent, made)
    for agent, made in (
        ("claude-code", of_claude_code),
        ("claude-code", typed_in_claude_code),
        ("codex", of_codex),
        ("codex", result_of_codex),
        ("gemini-cli", of_gemini_cli),
        ("opencode", of_opencode),
        ("chatgpt", of_chatgpt),
    )
}


@pytest.fixture(params=SOURCES)
def forms(request: pytest.FixtureRequest) -> dict[str, Thread]:
    """Text -> the thread of a session that says it, always under the same record's id."""
    agent, made = SOURCES[request.param]
    importer: Importer = next(one for one in importers() if one.agent == agent)
    name = named(
        f"rollout-2026-01-01T00-00-00-{builders_codex.SESSION}.jsonl" if agent == "codex" else "a.jsonl"
    )
    return {
        text: read(importer, name, made(text)).thread
        for text in (FIRST, LONGER, SHORTER, f"{FIRST}, grown", "")
    }


def said(thread: Thread) -> str:
    (message,) = [one for one in thread.messages if _is_the_one(one)]
    return message.content


def _is_the_one(message: Message) -> bool:
    return message.content.startswith((FIRST, LONGER, SHORTER))


@pytest.mark.parametrize(
    ("texts", "stands"),
    [
        ((FIRST, f"{FIRST}, grown"), f"{FIRST}, grown"),
        ((FIRST, SHORTER), FIRST),
        ((FIRST, ""), FIRST),
        ((FIRST, LONGER), LONGER),
        ((FIRST, LONGER, SHORTER), LONGER),
    ],
)
def test_the_form_that_says_more_stands_in_whatever_order_they_were_read(
    forms: dict[str, Thread], texts: tuple[str, ...], stands: str
) -> None:
    for order in permutations(texts):
        thread = forms[order[0]]
        for text in order[1:]:
            thread = merge(thread, forms[text])
        assert said(thread) == stands
        assert len(thread.messages) == len(forms[FIRST].messages)
