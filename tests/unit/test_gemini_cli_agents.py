"""Sub-agents of Gemini CLI: their files, the calls that started them, and which file belongs to which session."""

from __future__ import annotations

from typing import Any

import pytest

from raddle.actions.importing.gemini_cli import GeminiCli
from raddle.actions.importing.importer import Place
from tests.builders_gemini_cli import (
    SESSION,
    SUB_AGENT,
    GeminiSession,
    a_short_session,
    a_sub_agent,
    an_old_session,
)
from tests.reading import Reading, named, read, read_session

MAIN = named(f"session-2026-06-03T08-00-{SESSION[:8]}.jsonl", "kiln", "chats")
PART = named(f"{SUB_AGENT}.jsonl", "kiln", "chats", SESSION)


def a_session_with_a_sub_agent(
    args: dict[str, Any], tool: str = "invoke_agent", **more: Any
) -> GeminiSession:
    session = GeminiSession()
    session.user("where is it?")
    session.says("I'll ask.")
    session.calls(("c1", tool, args, {"output": "Subagent 'scout' finished."}), **more)
    session.says("Shelf 4.")
    return session


def together(session: GeminiSession, agent: GeminiSession) -> Reading:
    return read_session(GeminiCli(), (MAIN, session.data), (PART, agent.data))


@pytest.mark.parametrize(
    ("args", "tool", "prompt", "more"),
    [
        ({"agent_name": "scout"}, "invoke_agent", "anything", {"agentId": SUB_AGENT}),
        ({"agent_name": "scout"}, "a_tool_of_tomorrow", "anything", {"agentId": SUB_AGENT}),
        ({"request": "find the shelf"}, "generalist", "find the shelf", {}),
        (
            {"objective": "find the shelf"},
            "codebase_investigator",
            "Your task:\n<objective>\nfind the shelf\n</objective>",
            {},
        ),
    ],
)
def test_a_sub_agent_hangs_on_the_call_that_started_it(
    args: dict[str, Any], tool: str, prompt: str, more: dict[str, Any]
) -> None:
    reading = together(a_session_with_a_sub_agent(args, tool, **more), a_sub_agent(prompt))
    first = reading.message(prompt)
    assert first.parent_id == reading.message("I'll ask.").id
    assert first.is_sidechain
    assert first.extra["agent_id"] == SUB_AGENT
    assert reading.thread.tree.lost() == []
    assert reading.path() == ["where is it?", "I'll ask.", "Subagent 'scout' finished.", "Shelf 4."]


def test_a_sub_agent_is_of_its_sessions_thread_and_titles_nothing() -> None:
    session = a_session_with_a_sub_agent({}, agentId=SUB_AGENT)
    reading = together(session, a_sub_agent())
    part = read(GeminiCli(), PART, a_sub_agent().data)
    assert part.ending.thread_id == reading.ending.thread_id
    assert reading.register("title") == "where is it?"


def test_a_sub_agent_whose_call_is_not_known_yet_waits_for_its_place() -> None:
    session = a_session_with_a_sub_agent({}, agentId=SUB_AGENT)
    running = read(GeminiCli(), MAIN, session.lines[:5])
    part = read(GeminiCli(), PART, a_sub_agent().data, links=running.ending.links)
    assert part.ending.is_unplaced
    assert part.thread.messages[0].parent_id is None
    done = read(GeminiCli(), MAIN, session.data)
    placed = read(GeminiCli(), PART, a_sub_agent().data, links=done.ending.links)
    assert not placed.ending.is_unplaced
    assert [m.id for m in placed.thread.messages] == [m.id for m in part.thread.messages]


def test_links_are_remembered_in_a_state() -> None:
    for data in (
        a_session_with_a_sub_agent({}, agentId=SUB_AGENT).data,
        b"\n".join(a_session_with_a_sub_agent({}, agentId=SUB_AGENT).document()),
    ):
        reading = read(GeminiCli(), MAIN, data)
        links = GeminiCli().links(reading.ending.state)
        assert links == reading.ending.links
        assert links is not None
        assert links.agents == {SUB_AGENT: "c1"}


def test_files_are_placed_by_what_they_say_and_where_they_lie() -> None:
    importer = GeminiCli()
    lines, document = a_short_session().data, b"\n".join(an_old_session().document())
    assert importer.place(MAIN, lines) == Place(session=SESSION)
    assert importer.place(named("copy.jsonl"), lines) == Place(session=SESSION)
    assert importer.place(named("copy.json"), document) == Place(session=SESSION)
    assert importer.place(PART, a_sub_agent().data) == Place(session=SESSION, is_part=True)
    assert importer.place(named("x.json", "kiln", "chats", SESSION), b"\0\0") == Place(
        session=SESSION, is_part=True
    )
    assert importer.place(MAIN, b"\0\0") == Place(session=MAIN.name.removesuffix(".jsonl"))
    beside = b"\n".join(an_old_session().document(kind="subagent"))
    assert importer.place(MAIN, beside) == Place(session=SESSION, is_part=True)


@pytest.mark.parametrize(
    "head",
    [b"", b"{}", b'{"sessionId":"x"}', b'{"projects":{"/a":"a"}}', b'{"messages":[],"id":"T-1"}', b"\x7fELF"],
)
def test_a_file_that_is_no_session_is_placed_nowhere(head: bytes) -> None:
    assert GeminiCli().place(named("anything.json", "home"), head) is None


def test_words_about_sub_agents_make_no_part_of_a_session() -> None:
    session = GeminiSession()
    session.user('what does "kind":"subagent" mean?')
    assert GeminiCli().place(MAIN, session.data) == Place(session=SESSION)
