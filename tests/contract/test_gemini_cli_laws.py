"""Gemini CLI's importer keeps the laws of every importer, for lines and for documents."""

from __future__ import annotations

from raddle.actions.importing.gemini_cli import GeminiCli
from tests.builders_gemini_cli import (
    SESSION,
    SUB_AGENT,
    GeminiSession,
    a_session_resumed_elsewhere,
    a_session_with_everything,
    a_short_session,
    a_sub_agent,
    an_old_session,
)
from tests.contract.importer_laws import ImporterLaws, SessionFile
from tests.reading import named, read

NAME = f"session-2026-06-03T08-00-{SESSION[:8]}.jsonl"


def _without_ids() -> list[bytes]:
    """Lines without a header, and messages without ids."""
    session = GeminiSession()
    for _ in range(2):
        session.record("user", "hello", id="")
        session.record("gemini", "hi", id="", model="gemini-2.5-pro")
    session.record("user", "again", id="")
    return session.lines[1:]


class TestGeminiCli(ImporterLaws):
    importer = GeminiCli()
    files = (
        SessionFile(name="short", source=named(NAME), lines=a_short_session().lines),
        SessionFile(name="everything", source=named(NAME), lines=a_session_with_everything().lines),
        SessionFile(name="resumed elsewhere", source=named(NAME), lines=a_session_resumed_elsewhere().lines),
        SessionFile(name="no ids", source=named("session-old.jsonl"), lines=_without_ids()),
        SessionFile(
            name="a sub-agent's file",
            source=named(f"{SUB_AGENT}.jsonl", "kiln", "chats", SESSION),
            lines=a_sub_agent().lines,
        ),
    )


class TestGeminiCliDocuments(ImporterLaws):
    importer = GeminiCli()
    files = (
        SessionFile(
            name="document",
            source=named(NAME.replace("jsonl", "json")),
            lines=an_old_session().document(summary="A cold kiln"),
        ),
    )

    def test_a_torn_copy_of_a_line_costs_nothing_but_itself(self) -> None:
        """Half of a line that only holds a bracket is blank, and nothing to tell of."""
        for file, reading in self.each():
            for at, line in enumerate(file.lines):
                torn = line[: len(line) // 2]
                damaged = read(self.importer, file.source, [*file.lines[:at], torn, *file.lines[at:]])
                self.must_equal(damaged, reading, f"{file.name} torn before line {at + 1}: {torn!r}")
                told = {problem.line for problem in damaged.problems}
                assert not torn.strip() or at + 1 in told, f"line {at + 1}: {damaged.problems}"
