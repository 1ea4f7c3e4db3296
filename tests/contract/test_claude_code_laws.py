"""Claude Code's importer keeps the laws of every importer."""

from __future__ import annotations

from raddle.actions.importing.claude_code import ClaudeCode
from tests.builders_claude_code import (
    OTHER_SESSION,
    SESSION,
    ClaudeSession,
    a_file_without_a_tree,
    a_session_with_everything,
    a_short_session,
    a_sub_agent,
)
from tests.contract.importer_laws import ImporterLaws, SessionFile
from tests.reading import named


def _resumed() -> ClaudeSession:
    """A session that began as a copy of an earlier one's lines, under their own uuids."""
    session = a_short_session()
    session.lines = [line.replace(SESSION.encode(), OTHER_SESSION.encode()) for line in session.lines]
    session.session = OTHER_SESSION
    session.user("And now?")
    session.says("Now it is warm.")
    return session


def _with_sub_agents_inside() -> ClaudeSession:
    """The oldest layout: two sub-agents at once, their lines among the session's own."""
    session = ClaudeSession()
    session.user("look twice")
    session.says(
        {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "look left"}}, message="m1"
    )
    main = session.says(
        {"type": "tool_use", "id": "t2", "name": "Task", "input": {"prompt": "look right"}}, message="m1"
    )
    left = session.user("look left", under=None, isSidechain=True)
    right = session.user("look right", under=None, isSidechain=True)
    left = session.says("left is clear", under=left, isSidechain=True, message="s1")
    session.says("right is clear", under=right, isSidechain=True, message="s2")
    session.says("quite clear", under=left, isSidechain=True, message="s3")
    session.result("t1", "clear", under=main)
    session.result("t2", "clear")
    session.says("Both clear.")
    return session


class TestClaudeCode(ImporterLaws):
    importer = ClaudeCode()
    files = (
        SessionFile(name="short", source=named(f"{SESSION}.jsonl"), lines=a_short_session().lines),
        SessionFile(
            name="everything", source=named(f"{SESSION}.jsonl"), lines=a_session_with_everything().lines
        ),
        SessionFile(name="resumed", source=named(f"{OTHER_SESSION}.jsonl"), lines=_resumed().lines),
        SessionFile(
            name="sub-agents inside", source=named(f"{SESSION}.jsonl"), lines=_with_sub_agents_inside().lines
        ),
        SessionFile(name="no tree", source=named("old.jsonl"), lines=a_file_without_a_tree()),
        SessionFile(
            name="a sub-agent's file",
            source=named("agent-a1b2c3d.jsonl", "projects", "-home-dev", SESSION, "subagents"),
            lines=a_sub_agent().lines,
        ),
    )
