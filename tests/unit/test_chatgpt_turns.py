"""What one message of ChatGPT says: words, thoughts, calls and their results, files, and what is a notice."""

from __future__ import annotations

from typing import Any

import pytest

from raddle.actions.importing.chatgpt import ChatGPT
from raddle.model.threads.message import NOTICE, TURN, Message
from tests.builders_chatgpt import SESSION, Conversation
from tests.reading import Reading, named, read

FILE = named(SESSION)


def imported(talk: Conversation) -> Reading:
    return read(ChatGPT(), FILE, talk.lines)


def only(talk: Conversation) -> Message:
    (message,) = imported(talk).thread.messages
    return message


def content(kind: str, **fields: Any) -> dict[str, Any]:
    return {"content_type": kind, **fields}


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool", "developer"])
def test_hidden_messages_are_notices(role: str) -> None:
    talk = Conversation()
    talk.hidden(role, "You are helpful.")
    assert (only(talk).kind, only(talk).content) == (NOTICE, "You are helpful.")


def test_custom_instructions_are_a_notice_in_both_of_their_forms() -> None:
    talk = Conversation()
    talk.says(
        "user", content("user_editable_context", user_profile="I fire pots.", user_instructions="Be short.")
    )
    old = Conversation()
    told = {"about_user_message": "I fire pots.", "about_model_message": "Be short."}
    old.says(
        "user", "", metadata={"is_user_system_message": True, "user_context_message_data": told}, at=None
    )
    for message in (only(talk), only(old)):
        assert message.kind == NOTICE
        assert message.content.split() == ["I", "fire", "pots.", "Be", "short."]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (content("text", parts=["one", "", "two"]), "one\ntwo"),
        (content("code", language="python", text="print(1)"), "print(1)"),
        (content("execution_output", text="1"), "1"),
        (content("tether_browsing_display", result="found it", summary="", assets=None), "found it"),
        (content("tether_browsing_display", result="", summary="in short"), "in short"),
        (content("tether_quote", url="https://a", domain="a", text="says", title="A"), "A\nhttps://a\nsays"),
        (content("sonic_webpage", url="u", title="A", text="all of it", snippet="all"), "A\nu\nall of it"),
        (content("sonic_webpage", url="u", title="A", text="", snippet="all"), "A\nu\nall"),
        (content("system_error", name="tool_error", text="Error: no"), "tool_error\nError: no"),
        (content("citable_code_output", output_str="4"), "4"),
        (content("reasoning_recap", content="Thought for 4s"), "Thought for 4s"),
        (content("model_editable_context", model_set_context="1. Fires pots."), "1. Fires pots."),
        (
            content("multimodal_text", parts=[{"content_type": "audio_transcription", "text": "heard"}]),
            "heard",
        ),
        (content("multimodal_text", parts=["a", {"content_type": "text", "text": "b"}, None]), "a\nb"),
    ],
)
def test_every_kind_of_content_gives_its_words(said: dict[str, Any], words: str) -> None:
    talk = Conversation()
    talk.assistant(said)
    assert only(talk).content == words
    assert imported(talk).problems == []


@pytest.mark.parametrize(
    "said",
    [
        content("thoughts", thoughts=[{"summary": "Looking", "content": "It is dark.", "finished": True}]),
        content("thoughts", thoughts="Looking\nIt is dark."),
        content("thoughts", parts=["Looking\nIt is dark."]),
    ],
)
def test_thoughts_are_thinking_and_not_words(said: dict[str, Any]) -> None:
    talk = Conversation()
    talk.assistant(said)
    assert (only(talk).thinking, only(talk).content) == ("Looking\nIt is dark.", "")


def test_a_kind_of_content_that_is_not_known_gives_its_words_and_is_told_once() -> None:
    talk = Conversation()
    for number in range(3):
        talk.assistant(content("hologram", parts=[f"turn {number}"], depth=3))
    reading = imported(talk)
    assert reading.texts() == ["turn 0", "turn 1", "turn 2"]
    (problem,) = reading.problems
    assert problem.reason == "a kind of content that is not known: 'hologram'"
    assert problem.line == 3


def test_a_name_that_is_no_plain_word_is_not_repeated() -> None:
    talk = Conversation()
    talk.assistant(content("sk-LIVE secret", parts=["x", {"content_type": "my password", "text": "y"}]))
    told = [problem.reason for problem in imported(talk).problems]
    assert len(told) == 2
    assert not any("secret" in reason or "password" in reason for reason in told)


def test_a_call_and_its_results_are_paired() -> None:
    talk = Conversation()
    talk.user("Add it up")
    call = talk.calls("python", "print(2 + 2)", language="python")
    talk.tool("python", content("execution_output", text="4"))
    search = talk.calls("browser.search", '{"query":"sums"}')
    talk.tool("browser", content("tether_quote", title="A", text="a"))
    talk.tool("browser", content("tether_quote", title="B", text="b"))
    talk.assistant("Four.")
    messages = imported(talk).thread.messages
    made = [call for message in messages for call in message.tool_calls]
    assert [(one.id, one.tool_name, one.arguments_json) for one in made] == [
        (call, "python", "print(2 + 2)"),
        (search, "browser.search", {"query": "sums"}),
    ]
    assert [(m.tool_call_id, m.tool_name) for m in messages if m.role == "tool"] == [
        (call, "python"),
        (search, "browser"),
        (search, "browser"),
    ]
    assert [m.content for m in messages if m.tool_calls] == ["", ""]


def test_a_result_belongs_to_the_last_call_of_its_tool_on_its_own_branch() -> None:
    talk = Conversation()
    question = talk.user("Go")
    first = talk.calls("web.run", "{}")
    python = talk.calls("python", "1")
    talk.tool("web.run", "pages")
    talk.tool("python", "1")
    other = talk.calls("python", "2", under=question)
    talk.tool("python", "2")
    talk.user("And?")
    talk.tool("python", "nobody asked")
    results = {m.content: m.tool_call_id for m in imported(talk).thread.messages if m.role == "tool"}
    assert results == {"pages": first, "1": python, "2": other, "nobody asked": ""}


def test_a_call_that_was_answered_with_nothing_was_answered() -> None:
    talk = Conversation()
    call = talk.calls("python", "x = 1")
    talk.tool("python", content("execution_output", text=""))
    talk.assistant("Done.")
    result = imported(talk).thread.messages[1]
    assert (result.role, result.tool_call_id, result.content) == ("tool", call, "")


def test_arguments_are_kept_as_they_are_read() -> None:
    for said, kept in [('{"a":1}', {"a": 1}), ("{not json", "{not json"), ("[1]", "[1]"), ("", None)]:
        talk = Conversation()
        talk.calls("bio", said)
        assert only(talk).tool_calls[0].arguments_json == kept


def test_what_failed_is_an_error() -> None:
    talk = Conversation()
    talk.calls("python", "1/0")
    failed = {"aggregate_result": {"status": "failed_with_in_kernel_exception", "run_id": "x"}}
    talk.tool("python", content("execution_output", text="ZeroDivisionError"), metadata=failed)
    talk.tool("web", content("system_error", name="e", text="Error"))
    talk.tool("web", "half", status="error")
    talk.tool("web", "fine", metadata={"aggregate_result": {"status": "success"}})
    assert [m.is_error for m in imported(talk).thread.messages] == [False, True, True, True, False]


def test_each_answer_says_its_model_and_nothing_else_does() -> None:
    talk = Conversation(default_model_slug="gpt-4o")
    talk.user("Why?", metadata={"model_slug": "gpt-4"})
    talk.assistant("Because.", model="o3")
    talk.tool("web", "page", metadata={"model_slug": "o3"})
    talk.assistant(content("reasoning_recap", content="Thought for 4s"), model="gpt-5")
    reading = imported(talk)
    assert [(m.provider, m.model) for m in reading.thread.messages] == [
        ("", ""),
        ("openai", "o3"),
        ("", ""),
        ("", ""),
    ]
    assert reading.register("model") == {"provider": "openai", "model": "o3"}


def test_a_conversation_without_an_answer_has_the_model_that_it_was_begun_with() -> None:
    talk = Conversation(default_model_slug="gpt-4o")
    talk.user("Why?")
    assert imported(talk).register("model") == {"provider": "openai", "model": "gpt-4o"}
    talk = Conversation(default_model_slug="auto")
    talk.user("Why?")
    assert "model" not in [path for path, _, _ in imported(talk).ending.registers]


def test_files_are_named_though_their_bytes_are_elsewhere() -> None:
    talk = Conversation()
    picture = {
        "content_type": "image_asset_pointer",
        "asset_pointer": "file-service://file-a1B2",
        "size_bytes": 9,
    }
    sound = {
        "content_type": "real_time_user_audio_video_asset_pointer",
        "audio_asset_pointer": {
            "content_type": "audio_asset_pointer",
            "asset_pointer": "sediment://file_00c3",
        },
    }
    attached = [
        {"id": "file-a1B2", "name": "kiln.png", "mime_type": "image/png", "size": 9, "width": 1},
        {"id": "file-d4", "name": "log.txt", "mimeType": "text/plain"},
    ]
    talk.user(content("multimodal_text", parts=[picture, sound, "See"]), metadata={"attachments": attached})
    assert only(talk).content == "See"
    assert only(talk).extra["files"] == [
        {"id": "file-a1B2", "name": "kiln.png", "media_type": "image/png", "size": 9},
        {"id": "file-d4", "name": "log.txt", "media_type": "text/plain"},
        {"id": "file_00c3"},
    ]


def test_a_picture_without_a_word_is_a_turn() -> None:
    talk = Conversation()
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-a1B2"}
    talk.user(content("multimodal_text", parts=[picture]))
    assert (only(talk).kind, only(talk).content) == (TURN, "")


def test_facts_that_have_no_field_are_kept_beside_the_words() -> None:
    talk = Conversation()
    talk.assistant(
        "half",
        status="in_progress",
        weight=0.0,
        metadata={"gizmo_id": "g-kiln", "canvas": {"textdoc_id": "d1", "title": "Plan"}},
    )
    assert only(talk).extra == {
        "status": "in_progress",
        "weight": 0,
        "gizmo_id": "g-kiln",
        "textdoc_id": "d1",
    }


def test_marks_of_citations_are_left_as_they_are() -> None:
    words = "It clicks \ue200cite\ue202turn0search0\ue201 【1†source】."
    talk = Conversation()
    talk.assistant(words)
    assert only(talk).content == words
