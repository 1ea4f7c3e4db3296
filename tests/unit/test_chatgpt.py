"""What a ChatGPT conversation is read as: messages, who said them, which branch they are on, what they carry."""

from __future__ import annotations

import json
from typing import Any

import pytest

from raddle.actions.importing.chatgpt import ChatGPT, is_conversations
from raddle.actions.importing.chatgpt_layout import conversation_lines
from raddle.actions.importing.importer import Place
from raddle.actions.importing.other_agents import agent_of
from raddle.actions.importing.registry import agents
from raddle.model.threads.message import Message
from raddle.model.threads.thread import merge
from tests.builders_chatgpt import (
    OTHER_SESSION,
    SESSION,
    START,
    Conversation,
    a_conversation_of_another_exporter,
    a_conversation_with_everything,
    a_short_conversation,
    export_of,
    uuid_of,
)
from tests.reading import Reading, named, read

FILE = named(SESSION)


def imported(talk: Conversation) -> Reading:
    return read(ChatGPT(), FILE, talk.lines)


def only(talk: Conversation) -> Message:
    (message,) = imported(talk).thread.messages
    return message


def content(kind: str, **fields: Any) -> dict[str, Any]:
    return {"content_type": kind, **fields}


def test_a_conversation_is_read_as_it_went() -> None:
    reading = imported(a_short_conversation())
    assert [(m.role, m.content) for m in reading.thread.messages] == [
        ("user", "Why is the kiln cold?"),
        ("assistant", "The relay may be open."),
        ("user", "How do I see that?"),
        ("assistant", "Look at the log."),
    ]
    assert reading.path() == reading.texts()
    assert reading.problems == []


def test_an_answer_asked_for_again_and_an_edited_question_keep_both() -> None:
    talk = Conversation()
    question = talk.user("Why?")
    talk.assistant("Because.")
    again = talk.assistant("Because of the relay.", under=question)
    talk.user("Which?", under=again)
    talk.user("Which relay?", under=again)
    thread = imported(talk).thread
    said = {message.content: message for message in thread.messages}
    assert [m.content for m in thread.tree.children(said["Why?"].id)] == ["Because.", "Because of the relay."]
    above = said["Because of the relay."].id
    assert [m.content for m in thread.tree.children(above)] == ["Which?", "Which relay?"]
    assert len(thread.tree.branches()) == 3
    assert thread.tree.lost() == []


def test_what_says_nothing_is_no_message_and_what_hangs_on_it_hangs_above_it() -> None:
    talk = Conversation()
    talk.hidden("system", "", at=None)
    question = talk.user("Why?")
    talk.assistant("")
    talk.assistant("Because.")
    question_read, answer = imported(talk).thread.messages
    assert question_read.parent_id is None
    assert answer.parent_id == question_read.id
    assert question in talk.mapping


def test_times_are_those_of_the_record() -> None:
    talk = Conversation()
    talk.user("when", at=1.5)
    talk.assistant("nobody knows", at=None)
    when, unknown = imported(talk).thread.messages
    assert when.ts == "2026-02-01T09:00:01.500000Z"
    assert when.seq is None
    assert unknown.ts == ""
    assert unknown.order > when.order


@pytest.mark.parametrize("time", [0, -5, 1e300, "2026-02-01", True])
def test_a_time_that_is_none_is_none(time: Any) -> None:
    talk = Conversation()
    talk.user("when")
    talk.mapping[talk.last or ""]["message"]["create_time"] = time
    assert only(talk).ts == ""


def test_an_answer_with_a_time_before_its_question_stands_under_it() -> None:
    talk = Conversation()
    talk.user("one", at=100)
    talk.assistant("two", at=50)
    talk.user("three", at=120)
    reading = imported(talk)
    assert reading.texts() == ["one", "two", "three"]
    assert reading.thread.messages[1].ts < reading.thread.messages[0].ts


def test_the_newest_words_are_at_the_tip() -> None:
    talk = Conversation()
    question = talk.user("Why?", at=10)
    talk.assistant("old answer", at=20)
    talk.assistant("new answer", under=question, at=30)
    assert imported(talk).path() == ["Why?", "new answer"]


def test_a_message_that_two_conversations_share_has_one_id() -> None:
    mine, copy = a_short_conversation(), a_short_conversation()
    copy.session = OTHER_SESSION
    first, second = imported(mine).thread, read(ChatGPT(), FILE, copy.lines).thread
    assert [m.id for m in first.messages] == [m.id for m in second.messages]
    assert first.id != second.id


def test_ids_that_are_no_uuids_are_of_their_own_conversation_only() -> None:
    mine, other = a_conversation_of_another_exporter(), a_conversation_of_another_exporter()
    other.session = "another conversation"
    first, second = imported(mine).thread, imported(other).thread
    assert not {m.id for m in first.messages} & {m.id for m in second.messages}


def test_two_nodes_with_one_message_id_are_both_kept() -> None:
    talk = Conversation()
    talk.user("one")
    talk.assistant("two")
    talk.mapping[talk.last or ""]["message"]["id"] = next(iter(talk.mapping.values()))["children"][0]
    assert imported(talk).texts() == ["one", "two"]


def test_a_later_export_adds_what_is_new_and_an_earlier_one_takes_nothing_away() -> None:
    talk = a_short_conversation()
    early = imported(talk).thread
    answer = list(talk.mapping)[2]
    talk.assistant("The relay is open, I think.", under=list(talk.mapping)[1])
    talk.user("More")
    del talk.mapping[answer]["message"]["content"]["parts"][0]
    late = imported(talk).thread
    both, again = merge(early, late), merge(late, early)
    assert [m.content for m in both.messages] == [
        "Why is the kiln cold?",
        "The relay may be open.",
        "How do I see that?",
        "Look at the log.",
        "The relay is open, I think.",
        "More",
    ]
    assert both.messages == again.messages
    assert both.tree.lost() == []


def test_an_answer_that_was_exported_half_finishes() -> None:
    talk = Conversation()
    talk.user("Tell me")
    talk.assistant("The kil", status="in_progress", node=uuid_of("answer"))
    half = imported(talk).thread
    said = talk.mapping[uuid_of("answer")]["message"]
    said["content"]["parts"], said["status"] = ["The kiln is cold."], "finished_successfully"
    whole = imported(talk).thread
    for both in (merge(half, whole), merge(whole, half)):
        assert [m.content for m in both.messages] == ["Tell me", "The kiln is cold."]
        assert both.messages[1].extra == {}


def test_an_answer_that_was_blanked_or_cut_later_stays_as_it_was() -> None:
    for later in ("", "The kil"):
        talk = Conversation()
        talk.user("Tell me")
        talk.assistant("The kiln is cold.", node=uuid_of("answer"))
        whole = imported(talk).thread
        talk.mapping[uuid_of("answer")]["message"]["content"]["parts"] = [later]
        both = merge(whole, imported(talk).thread)
        assert [m.content for m in both.messages] == ["Tell me", "The kiln is cold."]


def test_a_title_that_was_changed_in_chatgpt_is_changed_here() -> None:
    early = Conversation(title="Old", update_time=START + 100)
    early.user("Why?")
    late = Conversation(title="New", update_time=START + 200)
    late.user("Why?")
    for both in (
        merge(imported(early).thread, imported(late).thread),
        merge(imported(late).thread, imported(early).thread),
    ):
        assert both.title == "New"


def test_the_model_is_that_of_the_last_answer() -> None:
    talk = Conversation()
    talk.assistant("one", model="gpt-4o")
    talk.assistant("two", model="o3")
    assert imported(talk).register("model") == {"provider": "openai", "model": "o3"}


def test_a_line_that_was_copied_is_one_message() -> None:
    lines = a_short_conversation().lines
    reading = read(ChatGPT(), FILE, [*lines, lines[3], lines[2]])
    assert len(reading.messages) == 4
    assert reading.path() == reading.texts()


@pytest.mark.parametrize("title", [None, "", "New chat", "  "])
def test_a_conversation_without_a_title_is_called_by_its_first_typed_line(title: str | None) -> None:
    talk = Conversation(title=title)
    talk.hidden("user", "Be short.")
    talk.user("\nWhy is the kiln cold?\nIt should not be.")
    writes = {path: (n, value) for path, n, value in imported(talk).ending.registers}
    assert writes["title"] == (round((START + 20.25) * 1e6), "Why is the kiln cold?")


def test_a_conversation_that_has_only_an_id_is_known_by_it() -> None:
    talk = a_short_conversation()
    value = talk.value
    del value["conversation_id"]
    reading = read(ChatGPT(), FILE, conversation_lines(json.dumps(value).encode()))
    assert reading.ending.thread_id == imported(talk).ending.thread_id


def test_the_thread_says_when_it_began_and_when_something_was_last_said() -> None:
    talk = Conversation(update_time=START + 500)
    talk.user("one", at=10)
    talk.assistant("two", at=20)
    reading = imported(talk)
    assert reading.register("created_at") == "2026-02-01T09:00:00.125000Z"
    assert reading.register("last_activity_at") == "2026-02-01T09:00:20.000000Z"
    assert reading.register("updated_at") == "2026-02-01T09:08:20.000000Z"
    assert reading.register("source") == {"agent": "chatgpt", "session_id": SESSION}


def test_no_token_is_invented() -> None:
    assert all(m.usage is None for m in imported(a_conversation_with_everything()).thread.messages)


def test_lines_that_lost_their_header_keep_their_words_and_say_so() -> None:
    talk = a_short_conversation()
    reading = read(ChatGPT(), FILE, talk.lines[1:])
    assert len(reading.messages) == 4
    assert reading.ending.needs_whole
    again = read(ChatGPT(), FILE, talk.lines[1:3])
    assert again.ending.thread_id == reading.ending.thread_id


def test_a_parent_that_is_missing_is_told_and_costs_nothing() -> None:
    talk = a_short_conversation()
    lines = talk.lines
    reading = read(ChatGPT(), FILE, [*lines[:3], *lines[4:]])
    assert len(reading.messages) == 3
    assert reading.path() == reading.texts()
    assert [(one.line, one.reason) for one in reading.problems] == [(4, "its parent is not known here")]


def test_a_circle_of_nodes_is_read() -> None:
    talk = a_short_conversation()
    first, *_, last = [key for key, node in talk.mapping.items() if node["message"]]
    talk.mapping[first]["parent"] = last
    reading = imported(talk)
    assert len(reading.messages) == 4
    assert reading.thread.tree.lost() == []


def test_a_node_that_is_its_own_parent_is_told_as_such() -> None:
    talk = a_short_conversation()
    first, *_ = [key for key, node in talk.mapping.items() if node["message"]]
    talk.mapping[first]["parent"] = first
    reading = imported(talk)
    assert len(reading.messages) == 4
    assert [one.reason for one in reading.problems] == ["it is its own parent"]


def test_fields_of_the_wrong_type_cost_themselves() -> None:
    talk = Conversation()
    talk.user("one", metadata={"attachments": "none", "gizmo_id": "g-1", "aggregate_result": 5})
    talk.mapping[talk.last or ""]["message"]["author"]["name"] = 4
    talk.assistant(
        content("multimodal_text", parts=["two", 3, {"content_type": 4, "text": "four"}]), status=7
    )
    reading = imported(talk)
    assert reading.texts() == ["one", "two\n3\nfour"]
    assert reading.thread.messages[0].extra == {"gizmo_id": "g-1"}
    assert reading.thread.messages[0].role == "user"
    assert {problem.reason for problem in reading.problems} == {
        "fields of a type that is not known: message.author.name",
        "fields of a type that is not known: message.content.parts[1]",
    }


def test_a_long_answer_is_kept_whole_beside_its_ends() -> None:
    talk = Conversation()
    talk.assistant("x" * (2 << 20))
    reading = imported(talk)
    (message,), (blob,) = reading.thread.messages, reading.blobs
    assert len(blob.body) == 2 << 20
    assert message.attachments[0].sha256 == blob.sha256
    assert len(message.content) <= 1 << 20


def test_the_oldest_exports_name_the_role_without_an_author() -> None:
    talk = Conversation()
    talk.user("one")
    message = talk.mapping[talk.last or ""]["message"]
    del message["author"]
    message["role"] = "user"
    assert only(talk).role == "user"


def test_a_conversation_alone_is_read_on_one_line_and_over_many() -> None:
    talk = a_conversation_with_everything()
    whole = imported(talk)
    for text in (json.dumps(talk.value), json.dumps(talk.value, indent=2)):
        reading = read(ChatGPT(), named("talk.json"), text.encode())
        assert reading.texts() == whole.texts()
        assert reading.ending.thread_id == whole.ending.thread_id


def test_a_conversation_without_a_word_is_no_thread() -> None:
    assert imported(Conversation()).ending.thread_id == ""


def test_the_importer_is_known_by_name_and_its_records_to_the_others() -> None:
    assert "chatgpt" in agents()
    talk = a_short_conversation()
    assert agent_of(talk.value) == "chatgpt"
    assert agent_of(json.loads(talk.lines[0])) == "chatgpt"


def test_a_file_is_placed_by_what_is_in_it() -> None:
    importer = ChatGPT()
    talk = a_short_conversation()
    assert importer.place(named("a.json"), talk.lines[0]) == Place(session=SESSION)
    assert importer.place(named("b.json"), talk.data) == Place(session=SESSION)
    assert importer.place(named("conversations.json"), export_of(talk)) is None
    other = json.dumps({"sessionId": "x", "projectHash": "y", "messages": []}).encode()
    assert importer.place(named("conversations.json"), other) is None


@pytest.mark.parametrize(
    ("name", "head", "known"),
    [
        ("a.json", export_of(a_short_conversation()), True),
        ("a.json", b"\xef\xbb\xbf \n" + a_short_conversation().data, True),
        ("a.json", json.dumps([a_short_conversation().value], indent=4).encode(), True),
        ("a.json", b'[{"title": "x", "mapping": {"6745a1b2": {"id": "674', True),
        ("conversations.json", b"[]", True),
        ("conversations-014.json", b'[{"safe_urls": ["', True),
        ("Conversations.json", b"[{", True),
        ("conversations.json", b'[{"uuid": "x", "name": "y", "chat_messages": []}]', False),
        ("shared_conversations.json", b'[{"id": "x", "title": "y"}]', False),
        ("a.json", b'{"mapping": {"a": {"type": "keyword"}}' + b" " * 500 + b"}", False),
        ("conversations.json", b"not json", False),
        ("a.json", b"", False),
    ],
)
def test_an_export_is_known_by_its_first_bytes_and_its_name(name: str, head: bytes, known: bool) -> None:
    assert is_conversations(name, head[:4096]) is known
