"""Sessions that are one printed document, as Gemini CLI wrote them until 2026."""

from __future__ import annotations

import json
import re

import pytest

from raddle.actions.importing.gemini_cli import GeminiCli
from tests.builders_gemini_cli import SESSION, GeminiSession, a_short_session, an_old_session, as_text
from tests.reading import Reading, difference, named, read, same_thread

FILE = named(f"session-2026-06-03T08-00-{SESSION[:8]}.json", "kiln", "chats")


def read_document(lines: list[bytes]) -> Reading:
    return read(GeminiCli(), FILE, b"\n".join(lines))


def test_a_session_is_the_same_from_a_document_and_from_lines() -> None:
    session = an_old_session()
    document, lines = read_document(session.document()), read(GeminiCli(), FILE, session.data)
    assert document.problems == lines.problems == []
    assert document.thread.messages == lines.thread.messages
    assert same_thread(document.thread, lines.thread), difference(document.thread, lines.thread)


@pytest.mark.parametrize("indent", [None, 1, 2, 4, "\t"])
def test_it_does_not_matter_how_a_document_is_printed(indent: int | str | None) -> None:
    session = an_old_session()
    whole = {**session.header, "messages": session.records}
    reading = read_document(json.dumps(whole, indent=indent).encode().split(b"\n"))
    assert reading.problems == []
    assert reading.thread.messages == read_document(session.document()).thread.messages


def test_a_document_is_read_anew_whenever_it_changed() -> None:
    session = an_old_session()
    before = read_document(session.document())
    session.says("Closed.")
    again = read(GeminiCli(), FILE, b"", before=before)
    assert again.ending.needs_whole
    after = read_document(session.document())
    after.thread.join(before.thread.whole())
    assert after.texts() == [*before.texts(), "Closed."]


def test_an_answer_that_got_its_calls_between_two_saves_is_the_fuller_one() -> None:
    session = GeminiSession()
    session.user("look")
    session.says("I'll look.")
    before = read_document(session.document())
    session.calls(("c1", "ls", {}, {"output": "a"}))
    after = read_document(session.document())
    for one, other in ((before, after), (after, before)):
        joined = one.thread.copy()
        joined.join(other.thread.whole())
        assert [len(m.tool_calls) for m in joined.messages if m.content == "I'll look."] == [1]


def test_messages_that_a_document_lost_are_kept() -> None:
    session = an_old_session()
    before = read_document(session.document())
    session.records = session.records[:2]
    session.user("typed again")
    after = read_document(session.document())
    after.thread.join(before.thread.whole())
    assert after.thread.tree.lost() == []
    assert set(before.texts()) <= set(after.texts())
    assert "typed again" in after.texts()


def test_a_document_that_ends_in_the_middle_is_read_as_far_as_it_is_whole() -> None:
    session = an_old_session()
    lines = session.document()
    whole = read_document(lines)
    for cut in range(1, len(lines) - 4):
        reading = read_document([*lines[:cut], lines[cut][: len(lines[cut]) // 2]])
        assert set(reading.texts()) <= set(whole.texts())
        for message in reading.thread.messages:
            assert message == whole.thread.tree.get(message.id)


def test_a_document_that_is_not_finished_says_so() -> None:
    lines = an_old_session().document()
    reading = read_document(lines[:-6])
    (problem,) = reading.problems
    assert problem.reason == "the document is not finished"
    assert lines[problem.line - 1] == b"    {"


def test_damage_in_a_document_costs_the_bytes_that_are_damaged() -> None:
    session = an_old_session()
    lines = session.document()
    (at,) = [number for number, line in enumerate(lines) if b"Then close it" in line]
    lines[at] = lines[at].replace(b"close", b"clo\0se").replace(b"it", b"\xff\xfeit")
    reading = read_document(lines)
    assert "Then close \ufffd\ufffdit" in reading.texts()
    assert {problem.line for problem in reading.problems} <= set(range(at - 3, at + 2))
    assert any("NUL" in problem.reason for problem in reading.problems)


def test_a_message_that_cannot_be_mended_costs_itself() -> None:
    session = an_old_session()
    lines = session.document()
    (at,) = [number for number, line in enumerate(lines) if b"Then close it" in line]
    lines[at - 3 : at + 1] = [b"      garbage " + bytes([number]) for number in range(60, 90)]
    reading = read_document(lines)
    assert len(reading.thread.messages) == len(read_document(session.document()).thread.messages) - 1
    assert "a message that cannot be read" in {problem.reason for problem in reading.problems}


def test_fields_that_are_not_known_are_passed_over() -> None:
    session = an_old_session()
    more = {"directories": ["/a", "/b"], "memoryScratchpad": {"steps": [{"id": "x", "type": "user"}], "n": 1}}
    reading = read_document(session.document(**more))
    assert reading.problems == []
    assert reading.thread.messages == read_document(session.document()).thread.messages


def test_a_document_that_lists_parts_by_role_is_read() -> None:
    listed = [
        {"role": "user", "parts": [{"text": "hello"}], "ts": 1695000000},
        {"role": "model", "parts": [{"text": "hi"}], "ts": 1695000005000},
    ]
    reading = read_document(json.dumps({"history": listed}, indent=2).encode().split(b"\n"))
    assert [(m.role, m.content, m.ts[:19]) for m in reading.thread.messages] == [
        ("user", "hello", "2023-09-18T01:20:00"),
        ("assistant", "hi", "2023-09-18T01:20:05"),
    ]


def test_a_document_that_says_last_that_it_is_a_sub_agents_is_one() -> None:
    session = an_old_session()
    reading = read_document(session.document(kind="subagent"))
    assert reading.ending.session_id == SESSION
    assert all(message.is_sidechain for message in reading.thread.messages)
    assert reading.register("title") is None


def test_a_line_in_a_document_that_is_a_record_of_its_own_is_read() -> None:
    lines = an_old_session().document()
    extra = {"id": "extra", "timestamp": "2026-06-03T09:00:00.000Z", "type": "user", "content": "and this"}
    reading = read_document([*lines, as_text(extra)])
    assert reading.texts()[-1] == "and this"


def test_lines_stay_lines_where_one_of_them_is_torn() -> None:
    lines = a_short_session().lines
    whole = read(GeminiCli(), FILE, lines)
    torn = re.sub(rb"\\n- \*\*Work", b"\n  - **Work", lines[1])
    reading = read(GeminiCli(), FILE, [lines[0], *torn.split(b"\n"), *lines[2:]])
    assert len(reading.thread.messages) == len(whole.thread.messages)
    assert [problem.line for problem in reading.problems] == [2]
