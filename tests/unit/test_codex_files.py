"""Codex's importer: damaged rollouts, which files are Codex's, how much is remembered, and compactions."""

from __future__ import annotations

import json

from raddle.actions.importing.codex import Codex
from raddle.actions.importing.importer import Place
from raddle.model.threads.delta import Delta
from raddle.model.threads.message import COMPACTION
from raddle.model.tolerant_json import DEEPEST
from tests.builders_codex import (
    OLD_SESSION,
    SESSION,
    CodexSession,
    a_bare_session,
    a_short_session,
    begun,
    call_id,
    imported,
    kept,
    only,
    said,
    uuid7,
)
from tests.reading import named, read

# -- damage


def test_a_record_without_an_ordinal_and_one_that_has_it_twice_are_read() -> None:
    session = a_short_session()
    first, *rest = session.lines
    record = json.loads(rest[2])
    del record["ordinal"]
    session.lines = [first, *rest[:2], json.dumps(record).encode(), *rest[3:5], *rest[5:]]
    session.ordinal -= 1
    session.types("go on")
    reading = imported(session)
    assert reading.problems == []
    assert [text for role, text in said(reading) if role == "user"] == ["Why is the kiln cold?", "go on"]


def test_a_torn_record_and_the_whole_one_behind_it_are_one_message() -> None:
    session = a_short_session()
    whole = imported(session)
    at = next(at for at, line in enumerate(session.lines) if b"The relay is open" in line)
    line = session.lines[at]
    session.lines[at] = line[:-20] + line
    reading = imported(session)
    assert reading.texts() == whole.texts()
    assert [problem.line for problem in reading.problems] == [at + 1]


def test_a_record_that_is_there_twice_is_one_message_and_another_of_its_id_is_another() -> None:
    session = begun()
    own = f"msg_{uuid7(session.now, 'own')}"
    session.says("One.", id=own)
    session.lines.append(session.lines[-1])
    session.types("and")
    session.says("Two.", id=own)
    assert [text for _, text in said(imported(session))] == ["One.", "and", "Two."]


def test_line_separators_inside_a_record_end_no_line() -> None:
    session = begun()
    session.types("one\u2028two\u2029three\x85four")
    assert b"\xe2\x80\xa8" in session.data
    assert said(imported(session)) == [("user", "one\u2028two\u2029three\x85four")]


def test_a_field_of_another_type_costs_itself() -> None:
    session = begun()
    session.line("turn_context", {"cwd": 7, "model": "gpt-9"})
    session.says("Hello.")
    reading = imported(session)
    assert only(reading, "assistant").model == "gpt-9"
    assert [problem.reason for problem in reading.problems] == [
        "fields of a type that is not known: payload.cwd"
    ]


def test_an_unknown_kind_is_told_once_without_what_it_says() -> None:
    session = begun()
    for _ in range(2):
        session.line("from_the_future", {"secret": "s3cret"})
        session.item("hologram", image="s3cret")
        session.item("S3CRET", image="s3cret")
        session.event("never_heard_of", text="s3cret")
    reasons = [problem.reason for problem in imported(session).problems]
    assert reasons == [
        "a kind of line that is not known: 'from_the_future'",
        "a kind of line that is not known: 'hologram'",
        "a kind of line that is not known: one whose name is no plain word",
    ]


def test_deep_nesting_costs_no_more_than_its_depth() -> None:
    session = begun()
    session.calls(call_id("a"), deep=json.loads("[" * 300 + "]" * 300))
    session.types("still here")
    reading = imported(session)
    assert said(reading)[-1] == ("user", "still here")
    (call,) = only(reading, "assistant").tool_calls
    assert json.dumps(call.arguments_json).count("[") <= DEEPEST


# -- which files are Codex's, and which of one session


def test_a_file_belongs_to_the_session_that_its_header_names() -> None:
    session = a_short_session()
    for name in (session.name, "copy.jsonl"):
        assert Codex().place(named(name), session.data[:65536]) == Place(session=SESSION)
    assert Codex().place(named("x.jsonl"), a_bare_session().data) == Place(session=OLD_SESSION)


def test_keys_in_another_order_are_a_header_too() -> None:
    line = b'{"payload":{"cwd":"/tmp","id":"abc"},"timestamp":"2024-01-01T10:00:00Z","type":"session_meta"}\n'
    assert Codex().place(named("x.jsonl"), line) == Place(session="abc")


def test_a_header_longer_than_what_is_looked_at_is_known_by_its_ids() -> None:
    session = CodexSession()
    session.meta(parent_thread_id=None, base_instructions={"text": "x" * 70_000})
    assert Codex().place(named("x.jsonl"), session.data[:65536]) == Place(session=SESSION)


def test_a_file_without_a_header_belongs_to_the_session_in_its_name() -> None:
    session = a_short_session()
    place = Codex().place(named(session.name), b"\0\0\0")
    assert place == Place(session=SESSION)
    reading = read(Codex(), named(session.name), session.lines[1:])
    assert reading.ending.session_id == SESSION


def test_other_agents_files_are_left_to_them() -> None:
    claude = b'{"parentUuid":null,"type":"user","message":{"content":"\\"type\\":\\"session_meta\\""},"uuid":"x"}\n'
    amp = b'{"id":"T-1","v":3,"created":1,"messages":[]}\n'
    pi = b'{"type":"session","version":3,"id":"x","timestamp":"2026-01-01T00:00:00Z","cwd":"/"}\n'
    for head in (claude, amp, pi, b"", b"hello"):
        assert Codex().place(named("x.jsonl"), head) is None


def test_a_foreign_file_with_a_rollouts_name_is_named() -> None:
    gemini = b'{"sessionId":"x","projectHash":"y","startTime":"2026-01-01T00:00:00Z"}'
    reading = read(Codex(), named(a_short_session().name), [gemini])
    assert reading.ending.other_agent == "gemini-cli"
    assert reading.messages == []


# -- memory


def test_a_state_does_not_grow_with_the_session() -> None:
    session = a_short_session()
    sizes = []
    for at in range(3):
        for number in range(400):
            session.begin_turn()
            session.types(f"question {at} {number}")
            session.says(f"answer {at} {number}")
            session.tokens()
        sizes.append(len(imported(session).ending.state))
    assert sizes[-1] - sizes[-2] < 1000
    assert sizes[-1] < 64 << 10


def test_records_without_ids_are_counted_as_long_as_a_state_can_hold_them() -> None:
    session = begun("plain")
    for number in range(4_200):
        session.user(f"{number}")
    assert imported(session).ending.state == b""
    session.lines = session.lines[:4_000]
    assert 0 < len(imported(session).ending.state) < 128 << 10


def test_nothing_waits_for_long() -> None:
    session = begun()
    session.calls(call_id("a"))
    for number in range(500):
        session.result(call_id(f"{number}"), "x")
    reader = Codex().open(named(session.name))
    reader.feed(session.lines)
    assert len(reader.take().messages) > 350


# -- compaction


def test_what_stood_before_a_compaction_stays_on_the_way_to_the_tip() -> None:
    session = a_short_session()
    session.compacts("So far: it is cold.", kept("Why is the kiln cold?"))
    session.says("Going on.")
    reading = imported(session)
    assert reading.message("So far: it is cold.").kind == COMPACTION
    assert reading.path()[2:] == [*reading.texts()[2:]]
    assert reading.texts().count("Why is the kiln cold?") == 1


def test_a_compaction_in_place_takes_nothing_from_the_archive() -> None:
    for age in ("new", "plain"):
        session = a_short_session(age)
        archive = imported(session)
        own = json.loads(next(line for line in session.lines if b"Why is the kiln" in line))["payload"]
        after = CodexSession(age=age)
        after.lines = session.lines[:1]
        after.now = session.now
        after.compacts("So far: it is cold.", own, kept("So far: it is cold."))
        after.says("Going on.")
        small = imported(after)
        assert [text for _, text in said(small)] == ["Why is the kiln cold?", "Going on."]
        before = archive.thread.messages
        archive.thread.join(small.thread.whole())
        assert all(archive.thread.tree.get(message.id) == message for message in before)
        assert len(archive.thread.messages) == len(before) + 2


def test_what_a_compaction_kept_and_what_it_says_again_is_given_once() -> None:
    session = a_short_session()
    own = json.loads(next(line for line in session.lines if b"Why is the kiln" in line))["payload"]
    before = read(Codex(), named(session.name), session.lines)
    at = len(session.lines)
    session.compacts("So far: it is cold.", own)
    session.lines.append(session.lines[-1])
    for reading in (
        imported(session),
        read(Codex(), named(session.name), session.lines[at:], before=before),
    ):
        given = [message.content for message in reading.messages]
        assert given.count("So far: it is cold.") == 1
        assert given.count("Why is the kiln cold?") == (reading.messages[0].role == "system")


def test_what_a_compaction_kept_of_a_message_in_part_is_not_news() -> None:
    session = a_short_session()
    own = json.loads(next(line for line in session.lines if b"Why is the kiln" in line))["payload"]["id"]
    for number in range(600):
        session.types(f"{number}")
    before = imported(session)
    at = len(session.lines)
    session.compacts("So far: much.", kept("Why is", id=own))
    for reading in (
        imported(session),
        read(Codex(), named(session.name), session.lines[at:], before=before),
    ):
        assert "Why is" not in [message.content for message in reading.messages]


def test_a_compaction_that_tells_nothing_is_marked_all_the_same() -> None:
    session = a_short_session()
    session.line("compacted", {"message": "", "window_id": "w"})
    assert imported(session).thread.messages[-1].kind == COMPACTION


def test_a_text_that_the_source_cut_does_not_replace_the_fuller_one() -> None:
    session = begun()
    own = f"msg_{uuid7(session.now, 'own')}"
    session.says("Answer, with all that belongs to it.", id=own)
    cut = begun()
    cut.says("Ans", id=own)
    archive = imported(session).thread
    reader = Codex().open(named(session.name), lookup=archive.tree.get)
    reader.feed(cut.lines)
    reader.finish()
    archive.join(Delta(messages=tuple(reader.take().messages)))
    assert [message.content for message in archive.messages] == ["Answer, with all that belongs to it."]
