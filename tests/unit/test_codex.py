"""Codex's importer: what a rollout becomes, in each age of its format."""

from __future__ import annotations

import json

from raddle.actions.importing.codex import Codex
from raddle.actions.importing.fullness import fullness
from raddle.actions.importing.importer import SourceName
from raddle.model.threads.message import NOTICE, TURN, changed
from tests.builders_codex import (
    FOLDER,
    OLD_SESSION,
    SESSION,
    CodexSession,
    a_bare_session,
    a_session_with_everything,
    a_short_session,
    begun,
    call_id,
    imported,
    only,
    said,
    uuid7,
)
from tests.reading import read

# -- what is said, once


def test_what_an_event_repeats_is_there_once() -> None:
    for age in ("new", "plain"):
        assert said(imported(a_short_session(age))) == [
            ("user", "Why is the kiln cold?"),
            ("assistant", ""),
            ("tool", "Exit code: 0\nWall time: 0 seconds\nOutput:\n09:00 relay open"),
            ("assistant", "The relay is open."),
        ]


def test_thoughts_words_and_calls_of_one_response_are_one_message() -> None:
    session = begun()
    session.thinks("Look first.", "Then act.")
    session.says("I look.")
    session.calls(call_id("a"), command=["ls"])
    session.calls(call_id("b"), command=["pwd"])
    message = only(imported(session), "assistant")
    assert (message.thinking, message.content) == ("Look first.\n\nThen act.", "I look.")
    assert [call.id for call in message.tool_calls] == [call_id("a"), call_id("b")]
    assert message.rev == fullness(message)


def test_two_responses_without_anything_between_them_are_two_messages() -> None:
    session = begun()
    session.says("One.")
    session.tokens()
    session.says("Two.")
    session.end_turn()
    session.begin_turn()
    session.says("Three.")
    assert [text for _, text in said(imported(session))] == ["One.", "Two.", "Three."]


def test_nothing_that_was_dropped_or_that_another_turn_said_is_part_of_a_response() -> None:
    session = begun("plain")
    session.says("One.")
    session.event("thread_rolled_back", num_turns=1)
    session.says("Two.")
    session.event("turn_aborted", reason="interrupted")
    session.says("Three.")
    assert [text for _, text in said(imported(session))] == ["One.", "Two.", "Three."]


def test_what_is_encrypted_makes_no_message() -> None:
    session = begun()
    session.thinks()
    session.types("hello")
    assert said(imported(session)) == [("user", "hello")]
    assert "gAAAAABoqqqq" not in str(imported(session).messages)


def test_raw_thoughts_and_their_summary_are_both_kept_and_equal_ones_once() -> None:
    session = begun()
    summary = [{"type": "summary_text", "text": "short"}, {"type": "summary_text", "text": "short"}]
    session.item("reasoning", summary=summary, content=[{"type": "reasoning_text", "text": "long"}])
    assert only(imported(session), "assistant").thinking == "short\n\nlong"


def test_the_same_words_twice_are_two_messages() -> None:
    for age in ("new", "plain"):
        session = begun(age)
        session.types("go on")
        session.types("go on")
        assert said(imported(session)) == [("user", "go on")] * 2


def test_ids_that_a_server_counts_name_nothing_by_themselves() -> None:
    session = begun()
    session.says("Done.", id="msg_1")
    session.types("again")
    session.says("Done.", id="msg_1")
    other = CodexSession(uuid7(session.now, "other"), start=session.now)
    other.meta()
    other.begin_turn()
    other.says("Done.", id="msg_1")
    reading = imported(session)
    assert len(said(reading)) == 3
    ids = {message.id for message in reading.thread.messages}
    assert not ids & {message.id for message in imported(other).thread.messages}


# -- what a person said, and what was put in their mouth


def test_injected_context_is_a_notice() -> None:
    session = begun("plain")
    injected = (
        f"<environment_context>\n  <cwd>{FOLDER}</cwd>\n</environment_context>",
        "# AGENTS.md instructions for /home/dev\n\n<INSTRUCTIONS>be kind</INSTRUCTIONS>",
        "<user_instructions>\n\nbe kind\n\n</user_instructions>",
        '<codex_internal_context source="goal">go on</codex_internal_context>',
        "<turn_aborted>\nbecause\n</turn_aborted>",
        "<user_shell_command>\n<command>ls</command>\n</user_shell_command>",
        '<subagent_notification>\n{"agent_id":"x"}\n</subagent_notification>',
    )
    for text in injected:
        session.user(text)
    session.item("message", role="developer", content=[{"type": "input_text", "text": "be careful"}])
    session.types("<task>Paint it blue</task>")
    reading = imported(session)
    notices = [message.content for message in reading.thread.messages if message.kind == NOTICE]
    assert notices == [*injected, "be careful"]
    assert said(reading) == [("user", "<task>Paint it blue</task>")]
    assert reading.register("title") == "<task>Paint it blue</task>"


def test_where_an_item_says_what_its_texts_are_that_decides() -> None:
    session = begun()
    session.line(
        "response_item",
        {
            "type": "message",
            "id": f"msg_{uuid7(session.now)}",
            "role": "user",
            "content": [{"type": "input_text", "text": "a hint"}, {"type": "input_text", "text": "<skill> of mine"}],
            "internal_chat_message_metadata_passthrough": {
                "turn_id": session.turn,
                "content_item_kinds": ["hints.hint", "user.text"],
            },
        },
    )  # fmt: skip
    kinds = [(message.kind, message.content) for message in imported(session).thread.messages]
    assert kinds == [(NOTICE, "a hint"), (TURN, "<skill> of mine")]


def test_what_an_editor_puts_before_a_request_is_a_notice() -> None:
    session = begun()
    context = "# Context from my IDE setup:\n\n## Active file: kiln.py"
    session.types(f"{context}\n\n## My request for Codex:\nMake it warm\n")
    messages = imported(session).thread.messages
    assert [(one.kind, one.content) for one in messages] == [(NOTICE, context), (TURN, "Make it warm")]


# -- calls and their results


def test_every_kind_of_call_has_its_name_its_arguments_and_its_result() -> None:
    reading = imported(a_session_with_everything())
    calls = {call.id: call for message in reading.thread.messages for call in message.tool_calls}
    assert calls[call_id("a")].arguments_json == {"command": ["ls"]}
    assert calls[call_id("b")].arguments_json == "*** Begin Patch"
    assert (calls[call_id("c")].tool_name, calls[call_id("c")].arguments_json) == (
        "local_shell",
        {"type": "exec", "command": ["pwd"]},
    )
    results = {message.tool_call_id: message for message in reading.thread.messages if message.role == "tool"}
    assert [(results[one].tool_name, results[one].content, results[one].is_error) for one in map(call_id, "abc")] == [
        ("shell", "no such", True),
        ("apply_patch", "patched", False),
        ("local_shell", "denied", True),
    ]  # fmt: skip


def test_a_command_that_failed_is_an_error() -> None:
    session = begun()
    for name, output in (
        ("a", "Exit code: 1\nWall time: 0 seconds\nOutput:\n"),
        ("b", "Chunk ID: 1\nWall time: 0.0 seconds\nProcess exited with code 127\nOutput:\n"),
        ("c", "Exit code: 0\nProcess exited with code 1 says a log"),
        ("d", [{"type": "input_text", "text": "Exit code: 3"}]),
        ("e", {"type": "input_text", "text": "a.txt"}),
    ):
        session.calls(call_id(name))
        session.result(call_id(name), output)
    results = [message for message in imported(session).thread.messages if message.role == "tool"]
    assert [message.is_error for message in results] == [True, True, False, True, False]
    assert results[-1].content == "a.txt"


def test_arguments_that_are_no_json_stay_a_text() -> None:
    session = begun()
    for arguments in ("{torn", "[1]", "12", ""):
        session.item("function_call", name="shell", arguments=arguments, call_id=call_id(arguments))
    session.item("function_call", name="shell", arguments={"patch": "x"}, call_id=call_id("x"))
    session.item("function_call", name="get", namespace="mcp__kiln", arguments="{}", call_id=call_id("y"))
    calls = only(imported(session), "assistant").tool_calls
    assert [call.arguments_json for call in calls] == ["{torn", "[1]", "12", "", {"patch": "x"}, {}]
    assert calls[-1].tool_name == "mcp__kiln.get"


def test_a_result_in_the_first_versions_shape_is_unwrapped() -> None:
    reading = imported(a_bare_session())
    result = only(reading, "tool")
    assert (result.content, result.tool_name, result.tool_call_id) == ("a.txt\n", "shell", "call_1")


def test_pictures_become_attachments_and_the_tags_around_them_nothing() -> None:
    reading = imported(a_session_with_everything())
    message = reading.message("like this — ‹blue›, 青")
    (picture,) = message.attachments
    assert (picture.media_type, picture.name, picture.size) == ("image/png", "[Image #1]", 5)
    assert [blob.body for blob in reading.blobs] == [b"hello"]


def test_a_picture_that_the_model_drew_is_an_attachment() -> None:
    session = begun()
    session.item("image_generation_call", status="completed", revised_prompt="a kiln", result="aGVsbG8=")
    reading = imported(session)
    message = only(reading, "assistant")
    assert message.tool_calls[0].arguments_json == {"prompt": "a kiln"}
    assert [blob.body for blob in reading.blobs] == [b"hello"]


def test_a_picture_that_lies_elsewhere_and_one_that_is_torn_cost_nothing_else() -> None:
    session = begun()
    content = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": None},
        {"type": "input_image", "image_url": "https://example.com/kiln.png"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGVsb!"},
    ]
    session.item("message", role="user", content=content)
    reading = imported(session)
    assert said(reading) == [("user", "look")]
    assert len(reading.blobs) == 1
    assert "not whole base64" in reading.problems[0].reason


# -- what it cost


def test_a_response_has_its_usage_once_with_cached_tokens_apart() -> None:
    for age in ("new", "plain"):
        answer = imported(a_short_session(age)).message("The relay is open.").usage
        assert answer is not None
        assert (answer.input_tokens, answer.cache_read_tokens, answer.output_tokens) == (400, 800, 12)


def test_the_usage_of_a_response_may_come_behind_the_results_of_its_calls() -> None:
    session = begun("plain")
    session.calls(call_id("a"))
    session.result(call_id("a"), "ok")
    session.tokens()
    message = only(imported(session), "assistant")
    assert message.usage is not None
    assert message.rev > fullness(changed(message, usage=None))


def test_a_count_that_is_told_again_is_not_counted_again() -> None:
    session = begun("plain")
    session.says("One.")
    session.tokens()
    again = session.lines[-1]
    session.lines.append(again)
    session.says("Two.")
    session.lines.append(again)
    messages = [message for message in imported(session).thread.messages if message.role == "assistant"]
    assert [message.usage is not None for message in messages] == [True, False]


def test_counts_of_nothing_are_no_usage() -> None:
    session = begun("plain")
    session.says("One.")
    session.tokens()
    session.says("Two.")
    session.event("token_count", info=None, rate_limits={})
    session.event(
        "token_count",
        info={"total_token_usage": {"input_tokens": 7}, "last_token_usage": {"input_tokens": 0}},
    )
    assert imported(session).message("One.").usage is not None
    assert imported(session).message("Two.").usage is None


def test_a_count_that_belongs_to_no_message_does_not_wait_for_a_later_summary() -> None:
    session = begun("plain")
    session.says("One.")
    session.tokens(output_tokens=5)
    session.tokens(output_tokens=900)
    session.says("Two.")
    session.compacts("So far: two.")
    assert imported(session).message("So far: two.").usage is None


def test_what_a_compaction_cost_stands_with_its_summary() -> None:
    for age in ("new", "plain"):
        session = begun(age)
        session.says("One.")
        session.tokens(output_tokens=5)
        session.tokens(output_tokens=900)
        session.compacts("So far: one.")
        session.says("Two.")
        session.tokens(output_tokens=6)
        used = {
            message.content: message.usage.output_tokens
            for message in imported(session).thread.messages
            if message.usage
        }
        assert used == {"One.": 5, "So far: one.": 900, "Two.": 6}


# -- what stands in the header, and in the context of a turn


def test_a_session_knows_its_folder_repository_model_and_version() -> None:
    session = a_short_session()
    session.begin_turn(model="gpt-5.2", cwd="/home/dev/src/kiln/shelf")
    session.types("and there")
    reading = imported(session)
    shows = {path: reading.register(path) for path, _, _ in reading.ending.registers}
    assert shows["workspace_root"] == FOLDER
    assert shows["cwd"] == "/home/dev/src/kiln/shelf"
    assert shows["client_version"] == "0.171.0"
    assert shows["git_remote_url"] == "example.com/a/kiln"
    assert shows["model"] == {"provider": "openai", "model": "gpt-5.2"}
    assert shows["created_at"] == "2026-02-01T09:00:00.000000Z"
    assert shows["git"]["git_branch"] == "main"  # type: ignore[index]
    assert shows["git_initial"]["git_initial_commit_sha"] == "ab" * 20  # type: ignore[index]


def test_where_a_session_began_stays_and_the_context_does_not_overrule_the_header() -> None:
    session = a_short_session()
    session.meta(git={"branch": "fix", "commit_hash": "cd" * 20})
    session.user("<environment_context>\n  <cwd>/elsewhere</cwd>\n</environment_context>")
    reading = imported(session)
    assert reading.register("cwd") == FOLDER
    first, now = reading.register("git_initial"), reading.register("git")
    assert first["git_initial_branch"] == "main"  # type: ignore[index]
    assert now["git_branch"] == "fix"  # type: ignore[index]


def test_the_password_in_a_remote_and_the_instructions_go_nowhere() -> None:
    reading = imported(a_short_session())
    everything = str((reading.messages, reading.ending.registers))
    assert "pw@" not in everything
    assert "Secret sauce" not in everything


def test_each_answer_has_the_model_and_provider_of_its_time() -> None:
    session = a_short_session()
    settings = {"model": "qwen3", "model_provider_id": "ollama"}
    session.event("thread_settings_applied", thread_settings=settings)
    session.says("Hello from elsewhere.")
    reading = imported(session)
    models = [(one.provider, one.model) for one in reading.thread.messages if one.role == "assistant"]
    assert models == [("openai", "gpt-5-codex")] * 2 + [("ollama", "qwen3")]


def test_a_name_that_was_given_beats_what_was_typed_and_another_sessions_name_is_not_taken() -> None:
    session = a_short_session()
    assert imported(session).register("title") == "Why is the kiln cold?"
    session.event("thread_name_updated", thread_id=SESSION, thread_name="Kilns")
    session.event("thread_name_updated", thread_id=uuid7(1, "x"), thread_name="Bowls")
    session.types("and now")
    assert imported(session).register("title") == "Kilns"


def test_a_name_in_the_index_beside_the_sessions_is_taken_unless_the_rollout_has_a_later_one() -> None:
    def index(*names: tuple[str, str, str]) -> bytes:
        keys = ("id", "thread_name", "updated_at")
        return b"".join(json.dumps(dict(zip(keys, one, strict=True))).encode() + b"\n" for one in names)

    session = a_short_session()
    other = uuid7(1, "x")
    names = index(
        (SESSION, "First", "2026-02-02T09:00:00Z"),
        (SESSION, "Second", "2026-02-03T09:00:00Z"),
        (other, f"not {SESSION}", "2026-02-04T09:00:00Z"),
    )
    for companion, title in (
        (names, "Second"),
        (b"{torn\n" + names + b'{"id":', "Second"),
        (b"", "Why is the kiln cold?"),
    ):
        source = SourceName(name=session.name, companions={"session_index.jsonl": companion})
        assert read(Codex(), source, session.data).register("title") == title  # fmt: skip
    session.event("thread_name_updated", thread_id=SESSION, thread_name="Third")
    source = SourceName(name=session.name, companions={"session_index.jsonl": names})
    assert read(Codex(), source, session.data).register("title") == "Second"
    session.now += 3 * 86_400_000_000
    session.event("thread_name_updated", thread_id=SESSION, thread_name="Fourth")
    assert read(Codex(), source, session.data).register("title") == "Fourth"


def test_bare_items_have_a_folder_and_no_time() -> None:
    reading = imported(a_bare_session())
    assert reading.ending.session_id == OLD_SESSION
    assert reading.register("cwd") == FOLDER
    assert reading.register("git_remote_url") == "example.com/a/kiln"
    assert reading.register("updated_at") is None
    assert {message.ts for message in reading.thread.messages} == {""}
    assert [text for _, text in said(reading)] == ["hello", "hi", "hello", "", "a.txt\n", "a.txt"]


def test_an_error_is_told_as_a_notice() -> None:
    notice = imported(a_session_with_everything()).message("stream disconnected")
    assert (notice.role, notice.kind, notice.is_error) == ("system", NOTICE, True)


FIRST = "/" + "root"  # what Codex calls the agent that a person talks to


def test_what_agents_tell_each_other_is_a_notice() -> None:
    session = begun()
    content = [
        {"type": "input_text", "text": "found it"},
        {"type": "encrypted_content", "encrypted_content": "x"},
    ]
    session.item("agent_message", author=f"{FIRST}/otter", recipient=FIRST, content=content)
    (message,) = imported(session).thread.messages
    assert (message.kind, message.content) == (NOTICE, "found it")
    assert message.extra == {"author": f"{FIRST}/otter", "recipient": FIRST}
