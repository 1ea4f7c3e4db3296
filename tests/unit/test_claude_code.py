"""What a Claude Code session is read as: messages, who said them, what they carry."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest

from raddle.actions.importing.bodies import MAX_BODY_BYTES
from raddle.actions.importing.claude_code import ClaudeCode
from raddle.actions.importing.importer import Place
from raddle.model.threads.message import COMPACTION, NOTICE, TURN, Message, Usage
from tests.builders_claude_code import (
    OTHER_SESSION,
    SESSION,
    ClaudeSession,
    a_short_session,
    calls,
    picture,
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
    assert message.rev == 4
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
    reading = read_on(ClaudeCode(), FILE, first, session.lines[len(first) :])
    assert reading.texts() == ["go", "begun\n\nand ended"]
    assert reading.thread.messages[1].rev == 2


def test_a_message_that_began_with_nothing_has_the_id_of_its_first_line() -> None:
    session = ClaudeSession()
    session.says("\n\n", message="msg_1", uuid=uuid_of("first"))
    session.says("words", message="msg_1")
    other = ClaudeSession()
    other.says("words", message="msg_1", uuid=uuid_of("first"))
    assert only(session).id == only(other).id
    assert only(session).rev == 1


def test_results_are_messages_of_their_own_with_the_name_of_their_tool() -> None:
    session = ClaudeSession()
    session.says(calls("c1", "Read"), calls("c2", "Bash"), message="msg_1")
    block = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "file"}]}
    bad = {"type": "tool_result", "tool_use_id": "c2", "content": "exit 1", "is_error": True}
    session.user([block, bad])
    _, one, two = imported(session).thread.messages
    assert (one.role, one.content, one.tool_call_id, one.tool_name, one.is_error) == (
        "tool",
        "file",
        "c1",
        "Read",
        False,
    )
    assert (two.content, two.tool_call_id, two.tool_name, two.is_error) == ("exit 1", "c2", "Bash", True)
    assert two.parent_id == one.id


def test_a_result_that_says_nothing_answers_its_call_all_the_same() -> None:
    session = ClaudeSession()
    session.says(calls("c1"), message="msg_1")
    session.result("c1", "")
    result = imported(session).thread.messages[-1]
    assert (result.role, result.content, result.rev) == ("tool", "", 0)


@pytest.mark.parametrize(
    "content",
    [
        "<command-name>/exit</command-name>\n<command-args></command-args>",
        "<local-command-stdout>bye</local-command-stdout>",
        "<local-command-caveat>Caveat: …</local-command-caveat>",
        "<system-reminder>be kind</system-reminder>",
        "<bash-stdout>a b c</bash-stdout><bash-stderr></bash-stderr>",
        "<task-notification><task-id>a1</task-id></task-notification>",
        "[Request interrupted by user for tool use]",
        "[Request interrupted by user]",
        "Caveat: The messages below were generated by the user while running local commands. DO NOT respond",
    ],
)
def test_what_a_program_put_in_the_users_mouth_is_a_notice(content: str) -> None:
    session = ClaudeSession()
    session.user(content)
    assert (only(session).kind, only(session).content) == (NOTICE, content)


@pytest.mark.parametrize(
    "more",
    [
        {"isMeta": True},
        {"isVisibleInTranscriptOnly": True},
        {"origin": {"kind": "task-notification"}},
        {"origin": {"kind": "other", "senderTaskId": "t1"}},
    ],
)
def test_a_line_that_says_it_is_not_a_persons_is_a_notice(more: dict[str, Any]) -> None:
    session = ClaudeSession()
    session.user("page of instructions", **more)
    assert only(session).kind == NOTICE


@pytest.mark.parametrize("more", [{}, {"isMeta": False}, {"origin": {"kind": "human"}}, {"origin": None}])
def test_what_a_person_typed_is_a_turn(more: dict[str, Any]) -> None:
    session = ClaudeSession()
    session.user("<div> is not closed, why?", **more)
    assert only(session).kind == TURN


def test_a_command_given_to_the_model_is_a_turn_and_its_page_a_notice() -> None:
    session = ClaudeSession()
    session.user("<command-message>review</command-message>\n<command-name>/review</command-name>")
    session.user([{"type": "text", "text": "# Review\n…"}], isMeta=True)
    assert [message.kind for message in imported(session).thread.messages] == [TURN, NOTICE]


def test_words_beside_injected_ones_stay_the_persons() -> None:
    session = ClaudeSession()
    opened = {"type": "text", "text": "<ide_opened_file>The user opened a.py</ide_opened_file>"}
    session.user([opened, {"type": "text", "text": "what does it do?"}])
    notice, turn = imported(session).thread.messages
    assert (notice.kind, turn.kind, turn.content) == (NOTICE, TURN, "what does it do?")


def test_a_prompt_typed_while_the_agent_worked_is_a_turn() -> None:
    session = ClaudeSession()
    queued = {"type": "queued_command", "prompt": "and the lids", "commandMode": "prompt"}
    session.line("attachment", attachment=queued)
    session.line("attachment", attachment={**queued, "prompt": [{"type": "text", "text": "also"}]})
    session.line("attachment", attachment={**queued, "prompt": "<task-notification>done</task-notification>"})
    session.line("attachment", attachment={"type": "skill_listing", "content": "a long list"})
    messages = imported(session).thread.messages
    assert [(m.kind, m.content) for m in messages] == [
        (TURN, "and the lids"),
        (TURN, "also"),
        (NOTICE, "<task-notification>done</task-notification>"),
    ]


@pytest.mark.parametrize(
    ("attachment", "words"),
    [
        ({"type": "file", "filename": "a.py", "content": {"file": {"content": "print()"}}}, "a.py\nprint()"),
        ({"type": "hook_additional_context", "content": ["run make", "be brief"]}, "run make\n\nbe brief"),
        ({"type": "hook_additional_context", "content": "run make"}, "run make"),
        ({"type": "hook_blocking_error", "blockingError": {"blockingError": "no!"}}, "no!"),
        ({"type": "edited_text_file", "filename": "a.py", "snippet": "1 print()"}, "a.py\n1 print()"),
    ],
)
def test_what_the_model_was_shown_beside_a_prompt_is_a_notice(
    attachment: dict[str, Any], words: str
) -> None:
    session = ClaudeSession()
    session.line("attachment", attachment=attachment)
    assert (only(session).kind, only(session).content) == (NOTICE, words)


def test_a_compaction_is_told_and_what_was_said_before_stays_readable() -> None:
    session = a_short_session()
    session.compacts("The relay was open.")
    session.says("Going on.", message="msg_9")
    reading = imported(session)
    assert reading.path() == [
        "Why is the kiln cold?",
        "I'll look.",
        "09:00 relay open",
        "The relay is open.",
        "Conversation compacted",
        "The relay was open.",
        "Going on.",
    ]
    assert reading.message("The relay was open.").kind == COMPACTION


def test_an_error_of_the_api_is_a_notice_that_says_so() -> None:
    session = ClaudeSession()
    session.says("API Error: overloaded", model="<synthetic>", isApiErrorMessage=True)
    session.line("system", subtype="api_error", error={"error": {"error": {"message": "Overloaded"}}})
    session.line("system", subtype="api_error", error={"status": 529})
    said, told, bare = imported(session).thread.messages
    assert (said.kind, said.is_error, said.model, said.usage) == (NOTICE, True, "", None)
    assert (told.role, told.kind, told.content, told.is_error) == ("system", NOTICE, "Overloaded", True)
    assert bare.content == '{"status":529}'


def test_a_picture_is_an_attachment_and_its_bytes_are_handed_over() -> None:
    session = ClaudeSession()
    session.user([picture(base64.b64encode(b"a picture").decode()), {"type": "text", "text": "see"}])
    session.says(calls("c1"), message="m")
    session.result("c1", [picture(base64.b64encode(b"a screenshot").decode()), {"type": "text", "text": "shot"}])
    reading = imported(session)
    sha256 = hashlib.sha256(b"a picture").hexdigest()
    (attachment,) = reading.message("see").attachments
    assert (attachment.sha256, attachment.media_type, attachment.size) == (sha256, "image/png", 9)
    assert [(blob.sha256, blob.body) for blob in reading.blobs][0] == (sha256, b"a picture")
    assert reading.message("shot").attachments[0].sha256 == hashlib.sha256(b"a screenshot").hexdigest()


def test_a_picture_whose_end_is_missing_is_kept_as_far_as_it_goes() -> None:
    session = ClaudeSession()
    session.user([picture(base64.b64encode(b"a picture").decode() + "x"), {"type": "text", "text": "see"}])
    reading = imported(session)
    assert reading.blobs[0].body == b"a picture"
    assert "base64" in reading.problems[0].reason


def test_a_body_over_a_mebibyte_keeps_head_and_tail_and_becomes_an_attachment() -> None:
    body = "head " + "ü" * MAX_BODY_BYTES + " tail"
    session = ClaudeSession()
    session.says(calls("c1"), message="m")
    session.result("c1", body)
    reading = imported(session)
    message = reading.thread.messages[-1]
    (attachment,) = message.attachments
    assert attachment.is_body
    assert attachment.sha256 == hashlib.sha256(body.encode()).hexdigest()
    assert reading.blobs[0].body == body.encode()
    assert message.content.startswith("head ü")
    assert message.content.endswith("ü tail")
    assert len(message.content.encode()) <= MAX_BODY_BYTES


def test_a_session_blanked_in_place_gives_nothing_that_beats_what_was_stored() -> None:
    whole = imported(a_short_session())
    blank = a_short_session()
    blank.lines = [
        line.replace(b'"text":"I\'ll look."', b'"text":""').replace(b"09:00 relay open", b"") for line in blank.lines
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


def test_calls_and_results_on_lines_of_their_own_are_read() -> None:
    session = ClaudeSession()
    session.line("tool_use", name="bash", input={"command": "cat kiln.md"})
    session.line("tool_result", name="bash", output="# Kiln")
    call, result = imported(session).thread.messages
    assert (call.role, call.tool_calls[0].tool_name) == ("assistant", "bash")
    assert (result.role, result.tool_name, result.content) == ("tool", "bash", "# Kiln")


def test_an_assistant_line_with_a_plain_text_is_read() -> None:
    session = ClaudeSession()
    session.line("assistant", message={"role": "assistant", "content": "plain"})
    assert only(session).content == "plain"


def test_a_call_the_server_answered_itself_has_its_result() -> None:
    session = ClaudeSession()
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "glaze"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "text", "text": "hit"}]}
    session.says(search, found, "found it", message="m")
    message, result = imported(session).thread.messages
    assert [call.tool_name for call in message.tool_calls] == ["web_search"]
    assert (result.role, result.content, result.parent_id) == ("tool", "hit", message.id)


def test_arguments_nested_too_deeply_are_cut_and_told() -> None:
    deep = json.loads("[" * 400 + "]" * 400)
    session = ClaudeSession()
    session.says(calls("c1", value=deep), message="m")
    reading = imported(session)
    assert "\ufffd" in json.dumps(reading.thread.messages[0].tool_calls[0].arguments_json, ensure_ascii=False)
    assert "nesting" in reading.problems[0].reason


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
