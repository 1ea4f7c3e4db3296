"""What every writer of an agent's format and that agent's importer mean by one line: an added turn is the same message
when it is read, wherever an import stopped."""

from __future__ import annotations

import json

import msgspec
import pytest

from raddle.actions.exporting.native import NativeWriter, SourceEnd
from raddle.actions.exporting.native_claude_code import ClaudeCodeWriter
from raddle.actions.exporting.native_codex import CodexWriter
from raddle.actions.exporting.native_gemini_cli import GeminiCliWriter
from raddle.actions.importing.claude_code import ClaudeCode
from raddle.actions.importing.codex import Codex
from raddle.actions.importing.gemini_cli import GeminiCli
from raddle.actions.importing.importer import Importer, SourceName
from tests.builders_claude_code import a_session_with_everything as claude_session
from tests.builders_claude_code import a_short_session as short_claude_session
from tests.builders_codex import a_bare_session
from tests.builders_codex import a_session_with_everything as codex_session
from tests.builders_gemini_cli import a_session_with_everything as gemini_session
from tests.builders_gemini_cli import an_old_session
from tests.builders_native import inserted, with_turns, written_by
from tests.reading import difference, named, read, read_on, same_thread

FILES: tuple[tuple[Importer, NativeWriter, SourceName, list[bytes]], ...] = (
    (ClaudeCode(), ClaudeCodeWriter(set()), named("a.jsonl"), claude_session().lines),
    (ClaudeCode(), ClaudeCodeWriter(set()), named("a.jsonl"), short_claude_session().lines),
    (Codex(), CodexWriter(), named(codex_session().name), codex_session().lines),
    (Codex(), CodexWriter(), named(codex_session("plain").name), codex_session("plain").lines),
    (Codex(), CodexWriter(), named(a_bare_session().name), a_bare_session().lines),
    (GeminiCli(), GeminiCliWriter(), named("session-1.jsonl"), gemini_session().lines),
)
"""Sessions of every age that gets lines at its end."""


def test_a_turn_added_to_an_old_document_is_read_as_the_same_message() -> None:
    data = b"\n".join(an_old_session().document())
    before = read(GeminiCli(), named("session-1.json"), data).thread
    added, _ = with_turns(before)
    writer = GeminiCliWriter()
    writer.scan(data)
    made = inserted(data, writer.insertion(added, "s", SourceEnd(size=len(data), is_ended=False)))
    again = read(GeminiCli(), named("session-1.json"), made)
    assert again.thread.messages == before.messages
    assert again.problems == []


def test_gemini_may_list_an_added_turn_again_without_our_field() -> None:
    """As version 0.61 does when a session is resumed: the ids stay, times and unknown fields do not."""
    session = gemini_session()
    before = read(GeminiCli(), named("session-1.jsonl"), session.lines).thread
    added, _ = with_turns(before)
    data = written_by(GeminiCliWriter(), session.lines, added).data
    listed = [{k: v for k, v in json.loads(line).items() if k != "raddle"} for line in data.splitlines()]
    again = [*session.lines, *data.splitlines(), msgspec.json.encode({"$set": {"messages": listed}})]
    assert read(GeminiCli(), named("session-1.jsonl"), again).thread.messages == before.messages


@pytest.mark.parametrize(
    ("importer", "writer", "source", "lines"), FILES, ids=lambda one: getattr(one, "agent", "")
)
def test_an_added_turn_is_read_as_the_same_message(
    importer: Importer, writer: NativeWriter, source: SourceName, lines: list[bytes]
) -> None:
    before = read(importer, source, lines).thread
    added, fork = with_turns(before)
    written_lines = written_by(writer, lines, added).data.splitlines()
    again = read(importer, source, [*lines, *written_lines, *written_lines])
    assert again.thread.messages == before.messages
    assert again.thread.tree.get(fork.id) == fork
    assert len(again.problems) == len(read(importer, source, lines).problems)


@pytest.mark.parametrize(
    ("importer", "writer", "source", "lines"), FILES, ids=lambda one: getattr(one, "agent", "")
)
def test_a_file_that_grows_by_added_turns_gives_what_it_gives_at_once(
    importer: Importer, writer: NativeWriter, source: SourceName, lines: list[bytes]
) -> None:
    """Wherever an import stopped: before, between and behind the added turns, with the agent's own behind them."""
    added, _ = with_turns(read(importer, source, lines).thread)
    session_id = read(importer, source, lines).ending.session_id
    ours = written_by(writer, lines, added, session_id=session_id).data.splitlines()
    whole = [*lines[:-3], *ours, *lines[-3:]]
    at_once = read(importer, source, whole)
    for cut in range(len(lines) - 4, len(whole)):
        grown = read_on(importer, source, whole[:cut], whole[cut:])
        assert same_thread(grown.thread, at_once.thread), difference(grown.thread, at_once.thread)
