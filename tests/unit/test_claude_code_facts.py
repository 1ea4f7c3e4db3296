"""What a Claude Code session says about itself: the registers of its thread."""

from __future__ import annotations

import pytest

from raddle.actions.importing.claude_code import ClaudeCode
from raddle.actions.importing.titles import LONGEST, title_from
from raddle.model.clock import parse_time
from tests.builders_claude_code import SESSION, ClaudeSession, a_short_session, a_sub_agent, uuid_of
from tests.reading import Reading, named, read

FILE = named(f"{SESSION}.jsonl")


def imported(session: ClaudeSession) -> Reading:
    return read(ClaudeCode(), FILE, session.data)


def test_a_session_tells_where_when_and_with_whom_it_was() -> None:
    session = a_short_session()
    session.fields |= {"gitBranch": "glaze", "version": "2.1.42", "cwd": "/home/dev/src/kiln/lid"}
    session.says("moved", message="m9", model="claude-haiku-4-5-20251001")
    session.says("failed", message="m10", model="<synthetic>")
    reading = imported(session)
    begun = "2026-02-01T09:00:01.000000Z"
    assert reading.register("source") == {"agent": "claude-code", "session_id": SESSION}
    assert reading.register("created_at") == begun
    assert reading.register("last_activity_at") == "2026-02-01T09:00:09.000000Z"
    assert reading.register("updated_at") == reading.register("last_activity_at")
    assert reading.register("workspace_root") == "/home/dev/src/kiln"
    assert reading.register("cwd") == "/home/dev/src/kiln/lid"
    assert reading.register("client_version") == "2.1.42"
    assert reading.register("model") == {"provider": "anthropic", "model": "claude-haiku-4-5-20251001"}
    assert reading.register("git") == {
        "git_branch": "glaze",
        "git_current_commit_sha": None,
        "git_end_dirty": None,
    }
    assert reading.register("git_initial") == {
        "git_initial_branch": "main",
        "git_initial_commit_sha": None,
        "git_start_dirty": None,
    }


def test_a_register_is_written_with_the_time_its_value_began() -> None:
    session = a_short_session()
    first = imported(session)
    session.user("more")
    second = imported(session)
    times = {path: n for path, n, _ in first.ending.registers}
    later = {path: n for path, n, _ in second.ending.registers}
    assert times["cwd"] == parse_time("2026-02-01T09:00:01Z")
    moved = {path for path in later if later[path] != times[path]}
    assert moved == {"updated_at", "last_activity_at"}


def test_nothing_is_said_of_what_is_not_known() -> None:
    session = ClaudeSession()
    session.fields = {}
    session.user("hello", without=("timestamp",))
    paths = [path for path, _, _ in imported(session).ending.registers]
    assert paths == ["source", "title"]
    (message,) = imported(session).thread.messages
    assert message.ts == ""


def test_the_title_is_the_first_line_typed() -> None:
    session = ClaudeSession()
    session.user("<command-name>/clear</command-name>")
    session.user("page", isMeta=True)
    session.user("\n\n  Glaze   the bowls  \nall of them")
    session.user("then fire them")
    assert imported(session).register("title") == "Glaze the bowls"


def test_a_command_is_the_title_until_words_are_typed() -> None:
    session = ClaudeSession()
    session.user(
        "<command-message>review</command-message>\n<command-name>/review</command-name>\n"
        "<command-args>the kiln</command-args>"
    )
    assert imported(session).register("title") == "/review the kiln"
    session.user("and the lid")
    assert imported(session).register("title") == "and the lid"


def test_the_agents_own_title_wins_and_the_persons_wins_over_it() -> None:
    session = a_short_session()
    session.bare(type="custom-title", customTitle="By hand", sessionId=SESSION)
    session.bare(type="ai-title", aiTitle="By machine", sessionId=SESSION)
    session.bare(type="custom-title", customTitle="Of another", sessionId=uuid_of("another"))
    assert imported(session).register("title") == "By hand"
    session.bare(type="custom-title", customTitle="By hand, again", sessionId=SESSION)
    assert imported(session).register("title") == "By hand, again"


def test_a_later_title_replaces_the_one_that_was_stored() -> None:
    session = a_short_session()
    thread = imported(session).thread
    session.bare(type="ai-title", aiTitle="By machine", sessionId=SESSION)
    thread.join(imported(session).thread.whole())
    assert thread.title == "By machine"
    assert thread.conflicts == []


def test_a_summary_is_the_title_if_it_is_of_this_session() -> None:
    session = ClaudeSession()
    session.bare(type="summary", summary="Somebody else's", leafUuid=uuid_of("nowhere"))
    session.bare(type="summary", summary="To come", leafUuid=uuid_of("leaf"))
    session.user("hello")
    assert imported(session).register("title") == "hello"
    session.says("hi", message="m1", uuid=uuid_of("leaf"))
    assert imported(session).register("title") == "To come"
    session.bare(type="summary", summary="Looking back", leafUuid=uuid_of("leaf"))
    assert imported(session).register("title") == "Looking back"


def test_a_sub_agent_tells_only_that_the_session_was_active() -> None:
    reading = read(ClaudeCode(), named("agent-a1b2c3d.jsonl", SESSION, "subagents"), a_sub_agent().data)
    assert [path for path, _, _ in reading.ending.registers] == ["source", "updated_at", "last_activity_at"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("", ""),
        ("\n \t\n", ""),
        ("short", "short"),
        ("word " * 30, "word " * 14 + "word word…"),
        ("x" * 100, "x" * 79 + "…"),
        ("日" * 100, "日" * 79 + "…"),
        ("a" * 78 + "e\u0301" + "b" * 9, "a" * 78 + "…"),
        ("a" * 76 + "👩\u200d👩\u200d👧" + "b" * 9, "a" * 76 + "…"),
        ("a" * 78 + "👍🏽" + "b" * 9, "a" * 78 + "…"),
    ],
)
def test_a_title_is_cut_on_a_word_and_never_inside_a_character(text: str, title: str) -> None:
    assert title_from(text) == title
    assert len(title) <= LONGEST
