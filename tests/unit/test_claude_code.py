"""What a Claude Code session is read as: messages, who said them, what they carry."""

from __future__ import annotations

import json
from typing import Any

import pytest

from raddle.actions.importing.claude_code import ClaudeCode
from raddle.actions.importing.fullness import fullness
from raddle.actions.importing.importer import Place
from raddle.actions.importing.other_agents import agent_of
from raddle.actions.importing.registry import agents, importer_of
from raddle.model.errors import NotFound
from raddle.model.threads.message import Message, Usage
from tests.builders_claude_code import (
    OTHER_SESSION,
    SESSION,
    ClaudeSession,
    a_short_session,
    calls,
    thinks,
    uuid_of,
)
from tests.reading import Reading, named, read, read_on

FILE = named(f"{SESSION}.jsonl", "projects", "-home-dev-src-kiln")


def imported(session: ClaudeSession | bytes) -> Reading:
    return read(ClaudeCode(), FILE, session if isinstance(session, bytes) else session.data)


def only(session: ClaudeSession) -> Message:
    (message,) = imported(session).thread.messages
    return message


def test_a_conversation_is_read_as_it_went() -> None:
    reading = imported(a_short_session())
    assert [(m.role, m.content) for m in reading.thread.messages] == [
        ("user", "Why is the kiln cold?"),
        ("assistant", "I'll look."),
        ("tool", "09:00 relay open"),
        ("assistant", "The relay is open."),
    ]
    assert reading.path() == reading.texts()


def test_a_line_that_comes_after_what_answers_it_keeps_the_id_that_its_uuid_gives() -> None:
    """Else the order of a file would say which ids its lines have, and a file put in order again would repeat them."""
    session = ClaudeSession()
    session.user("one")
    session.says("two", message="msg_1")
    session.user("three")
    session.says("four", message="msg_2")
    in_order = imported(session)
    ids = {message.content: message.id for message in in_order.thread.messages}
    lines = session.lines
    for cut in range(1, len(lines)):
        swapped = [*lines[: cut - 1], lines[cut], lines[cut - 1], *lines[cut + 1 :]]
        whole = read(ClaudeCode(), FILE, swapped)
        grown = read_on(ClaudeCode(), FILE, swapped[:cut], swapped[cut:])
        for reading in (whole, grown):
            assert {message.content: message.id for message in reading.thread.messages} == ids


def test_one_api_message_over_several_lines_is_one_message_whose_usage_counts_once() -> None:
    session = ClaudeSession()
    session.says(thinks("think"), message="msg_1", out=2)
    session.says("say", message="msg_1", out=2)
    session.says(calls("c1", "Read", file_path="a"), message="msg_1", out=250)
    session.says(calls("c2", "Read", file_path="b"), message="msg_1", out=2)
    message = only(session)
    assert (message.thinking, message.content) == ("think", "say")
    assert [call.id for call in message.tool_calls] == ["c1", "c2"]
    assert message.tool_calls[0].arguments_json == {"file_path": "a"}
    assert message.usage == Usage(
        input_tokens=10, output_tokens=250, cache_read_tokens=7, cache_write_tokens=5
    )
    assert message.rev == fullness(message)
    assert (message.provider, message.model) == ("anthropic", "claude-opus-4-5-20251101")


def test_an_api_message_is_whole_when_its_results_came_between_its_lines() -> None:
    session = ClaudeSession()
    session.says("two calls", calls("c1"), message="msg_1")
    session.result("c1", "one")
    session.says(calls("c2"), message="msg_1")
    session.result("c2", "two")
    reading = imported(session)
    assert reading.texts() == ["two calls", "one", "two"]
    assert [call.id for call in reading.thread.messages[0].tool_calls] == ["c1", "c2"]


def test_an_api_message_that_grew_after_it_was_saved_grows() -> None:
    session = ClaudeSession()
    session.user("go")
    session.says("begun", message="msg_1", out=1)
    first = list(session.lines)
    session.says("and ended", message="msg_1", out=9)
    half = read(ClaudeCode(), FILE, first)
    reading = read_on(ClaudeCode(), FILE, first, session.lines[len(first) :])
    assert reading.texts() == ["go", "begun\n\nand ended"]
    assert reading.thread.messages[1].rev > half.thread.messages[1].rev


def test_a_message_that_began_with_nothing_has_the_id_of_its_first_line() -> None:
    session = ClaudeSession()
    session.says("\n\n", message="msg_1", uuid=uuid_of("first"))
    session.says("words", message="msg_1")
    other = ClaudeSession()
    other.says("words", message="msg_1", uuid=uuid_of("first"))
    assert only(session).id == only(other).id
    assert only(session).rev == only(other).rev


def test_a_session_blanked_in_place_gives_nothing_that_beats_what_was_stored() -> None:
    whole = imported(a_short_session())
    blank = a_short_session()
    blank.lines = [
        line.replace(b'"text":"I\'ll look."', b'"text":""').replace(b"09:00 relay open", b"")
        for line in blank.lines
    ]
    archive = whole.thread.copy()
    archive.join(imported(blank).thread.whole())
    assert archive.messages == whole.thread.messages


def test_a_resumed_session_is_its_own_thread_with_the_same_first_turns() -> None:
    first = imported(a_short_session())
    session = a_short_session()
    session.lines = [line.replace(SESSION.encode(), OTHER_SESSION.encode()) for line in session.lines]
    session.session = OTHER_SESSION
    session.user("And now?")
    second = read(ClaudeCode(), named(f"{OTHER_SESSION}.jsonl"), session.data)
    assert second.ending.session_id == OTHER_SESSION
    assert second.ending.thread_id != first.ending.thread_id
    assert second.thread.messages[:-1] == first.thread.messages


def test_a_file_that_mixes_sessions_is_the_one_it_is_named_for() -> None:
    session = a_short_session()
    session.session = OTHER_SESSION
    session.user("And now?")
    session.session = "99999999-2222-4333-8444-555555555555"
    session.user("and then?")
    mixed = read(ClaudeCode(), named(f"{OTHER_SESSION}.jsonl"), session.data)
    assert mixed.ending.session_id == OTHER_SESSION
    renamed = read(ClaudeCode(), named("full.jsonl"), session.data)
    assert renamed.ending.session_id == "99999999-2222-4333-8444-555555555555"


def test_a_session_that_turns_out_to_be_another_one_asks_to_be_read_whole() -> None:
    session = a_short_session()
    first = list(session.lines)
    session.session = OTHER_SESSION
    session.user("And now?")
    file = named(f"{OTHER_SESSION}.jsonl")
    begun = read(ClaudeCode(), file, first)
    assert read(ClaudeCode(), file, session.lines[len(first) :], before=begun).ending.needs_whole


def test_lines_without_ids_have_ids_of_what_they_say() -> None:
    bare = ("uuid", "parentUuid")
    session = ClaudeSession()
    for content in ("again", "again", "other"):
        session.user(content, without=bare)
    reading = imported(session)
    assert reading.texts() == ["again", "again", "other"]
    assert len({message.id for message in reading.thread.messages}) == 3
    assert reading.path() == reading.texts()


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line.replace(b'"content":[', b'"content":{"a":1},"x":['),
        lambda line: line.replace(b'"usage":{', b'"usage":"much","x":{'),
        lambda line: line.replace(b'"output_tokens":12', b'"output_tokens":1e400'),
        lambda line: line.replace(b'"cwd":"', b'"cwd":7,"x":"'),
        lambda line: line.replace(b'"timestamp":"', b'"timestamp":5,"x":"'),
        lambda line: line.replace(b"The relay is open.", b"The \\ud800 relay"),
        lambda line: line.replace(b"The relay is open.", b"The \xe6\x97 relay"),
        lambda line: line.replace(b'"text":"The relay is open."', b'"text":null'),
    ],
)
def test_a_field_of_an_unknown_shape_costs_that_field_and_no_other_line(damage: Any) -> None:
    lines = a_short_session().lines
    lines[4] = damage(lines[4])
    reading = imported(b"".join(line + b"\n" for line in lines))
    assert reading.texts()[:3] == ["Why is the kiln cold?", "I'll look.", "09:00 relay open"]
    assert reading.thread.tree.lost() == []
    assert [problem.line for problem in reading.problems] in ([5], [])


def test_what_is_told_of_an_unknown_line_repeats_no_secret() -> None:
    told = " ".join(problem.reason for problem in imported(b'{"type":"sk-ant-A1b2C3d4E5"}\n').problems)
    assert "not known" in told
    assert "sk-ant" not in told


def test_a_kind_of_line_that_is_not_known_is_told_once() -> None:
    session = a_short_session()
    for _ in range(3):
        session.line("from-the-future", words="?")
    session.user("go on")
    reading = imported(session)
    assert len(reading.problems) == 1
    assert "from-the-future" in reading.problems[0].reason
    assert reading.path()[-1] == "go on"


def test_a_foreign_session_in_the_folder_is_named_and_left_out() -> None:
    gemini = {"sessionId": "x", "projectHash": "y", "startTime": "z", "messages": [{"type": "user"}]}
    codex = {"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "x"}}
    for foreign, agent in ((gemini, "gemini-cli"), (codex, "codex")):
        for indent in (None, 2):
            reading = imported(json.dumps(foreign, indent=indent).encode() + b"\n")
            assert reading.ending.other_agent == agent
            assert (reading.messages, reading.ending.thread_id) == ([], "")
            assert len(reading.problems) == 1


def test_files_know_where_they_belong() -> None:
    importer = ClaudeCode()
    head = f'{{"type":"user","sessionId":"{SESSION}"}}'.encode()
    assert importer.place(named("full.jsonl"), head) == Place(session=SESSION)
    assert importer.place(named(f"{SESSION}.jsonl"), b"") == Place(session=SESSION)
    assert importer.place(named("agent-a1.jsonl", "-home"), head) == Place(session=SESSION, is_part=True)
    inside = ("projects", "-home", SESSION, "subagents")
    assert importer.place(named("agent-a1.jsonl", *inside), b"") == Place(session=SESSION, is_part=True)
    assert importer.place(named("journal.jsonl", *inside, "workflows", "run-1"), b"") is None


def test_a_torn_line_with_the_next_one_glued_to_it_costs_one_line() -> None:
    lines = a_short_session().lines
    inner = json.dumps(
        {"type": "user", "uuid": "u", "message": {"role": "user", "content": "inside"}}
    ).encode()
    torn = lines[1][:90] + b',"data":{"message":' + inner
    reading = imported(b"\n".join([lines[0], torn + lines[2], *lines[3:], b""]))
    assert reading.texts() == [
        "Why is the kiln cold?",
        "I'll look.",
        "09:00 relay open",
        "The relay is open.",
    ]
    assert {problem.line for problem in reading.problems} == {2}


def test_a_document_of_log_lines_is_read_as_a_session() -> None:
    lines = [json.loads(line) for line in a_short_session().lines]
    reading = imported(json.dumps({"loglines": lines}, indent=2).encode())
    assert reading.texts() == imported(a_short_session()).texts()


def test_a_message_that_grows_but_is_not_stored_any_more_asks_for_the_whole_file() -> None:
    session = ClaudeSession()
    session.user("go")
    session.says("begun", message="msg_1")
    first = list(session.lines)
    session.says("and ended", message="msg_1")
    begun = read(ClaudeCode(), FILE, first)
    reader = ClaudeCode().open(FILE, state=begun.ending.state, lookup=lambda _: None)
    reader.feed(session.lines[len(first) :])
    assert reader.finish().needs_whole


def test_a_purged_message_does_not_grow_again() -> None:
    session = ClaudeSession()
    session.says("secret", message="msg_1")
    begun = read(ClaudeCode(), FILE, session.lines)
    stub = begun.thread.messages[0].purged()
    reader = ClaudeCode().open(FILE, state=begun.ending.state, lookup=lambda _: stub)
    session.says("more of it", message="msg_1")
    reader.feed(session.lines[1:])
    assert not reader.finish().needs_whole
    assert reader.take().messages == []


def test_a_message_that_stays_open_holds_up_nothing_for_ever() -> None:
    session = ClaudeSession()
    session.says("open", message="msg_1")
    for number in range(600):
        session.user(f"prompt {number}")
    reader = ClaudeCode().open(FILE)
    reader.feed(session.lines)
    assert len(reader.take().messages) > 300


def test_a_state_remembers_which_call_started_which_agent() -> None:
    session = ClaudeSession()
    session.says(calls("c1", "Task", prompt="look", subagent_type="x"), message="m")
    session.result("c1", "agentId: a1")
    ending = imported(session).ending
    links = ClaudeCode().links(ending.state)
    assert links == ending.links
    assert links.agents == {"a1": "c1"}


def test_a_leap_second_and_a_time_with_a_zone_are_times() -> None:
    session = ClaudeSession()
    for text in ("2016-12-31T23:59:60.500Z", "2017-01-01T02:00:00+02:00", "2017-01-01 00:00:01.000Z"):
        session.user(text)
        session.lines[-1] = session.lines[-1][: session.lines[-1].rindex(b'"timestamp"')] + (
            f'"timestamp":"{text}"}}'.encode()
        )
    assert [message.ts for message in imported(session).thread.messages] == [
        "2017-01-01T00:00:00.500000Z",
        "2017-01-01T00:00:00.000000Z",
        "2017-01-01T00:00:01.000000Z",
    ]


def test_every_importer_is_known_by_the_name_of_its_agent() -> None:
    assert all(importer_of(agent).agent == agent for agent in agents())
    assert "claude-code" in agents()
    with pytest.raises(NotFound, match="clippy"):
        importer_of("clippy")


@pytest.mark.parametrize(
    ("record", "agent"),
    [
        ({"type": "session.start", "data": {}}, "copilot-cli"),
        ({"type": "session", "version": 3, "cwd": "/"}, "pi"),
        ({"mapping": {}, "current_node": "x"}, "chatgpt"),
        ({"type": "user", "message": {}}, ""),
        ([], ""),
    ],
)
def test_foreign_records_are_known_by_their_marks(record: Any, agent: str) -> None:
    assert agent_of(record) == agent
