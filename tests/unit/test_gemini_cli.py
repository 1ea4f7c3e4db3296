"""What only Gemini CLI's format can show: repeated records, steps back, compressions, documents, stubs."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from raddle.actions.importing.gemini_cli import GeminiCli
from raddle.actions.importing.importer import SourceName
from raddle.model.threads.message import COMPACTION, NOTICE, Usage
from tests.builders_gemini_cli import (
    CONTEXT_ID,
    FOLDER,
    SESSION,
    GeminiSession,
    a_session_resumed_elsewhere,
    a_session_with_everything,
    a_short_session,
    an_old_session,
    answer,
    as_text,
    context,
    picture,
    tokens,
)
from tests.reading import Reading, named, read, read_on

FILE = named(f"session-2026-06-03T08-00-{SESSION[:8]}.jsonl")


def reading_of(session: GeminiSession) -> Reading:
    return read(GeminiCli(), FILE, session.data)


def path_of(reading: Reading) -> list[str]:
    """What the way to the tip says, without notices."""
    tip = reading.thread.tree.tip()
    path = reading.thread.tree.path_to_root(tip.id if tip else None)
    return [message.content for message in path if message.kind != NOTICE]


def test_a_result_that_stands_in_two_records_is_shown_once() -> None:
    reading = reading_of(a_short_session())
    assert [(m.role, m.tool_name) for m in reading.thread.messages if m.role == "tool"] == [
        ("tool", "read_file")
    ]
    assert path_of(reading) == [
        "Why is the kiln cold?",
        "I'll look.",
        "09:00 relay open",
        "The relay is open.",
    ]


def test_an_answer_that_is_written_again_with_its_calls_is_one_message() -> None:
    reading = reading_of(a_short_session())
    asked = reading.message("I'll look.")
    assert [(call.id, call.tool_name, call.arguments_json) for call in asked.tool_calls] == [
        ("read_file__1_0", "read_file", {"path": "kiln.log"})
    ]
    assert asked.thinking == "The log\nThe log, thoroughly"
    assert reading.message("09:00 relay open").tool_call_id == "read_file__1_0"
    assert reading.message("09:00 relay open").parent_id == asked.id


def test_cached_tokens_are_apart_and_thoughts_are_output() -> None:
    session = GeminiSession()
    session.user("count")
    session.says("one", tokens=tokens(given=1000, cached=900, out=20, thoughts=30, tool=5))
    usage = reading_of(session).message("one").usage
    assert usage == Usage(input_tokens=105, output_tokens=50, cache_read_tokens=900)


def test_a_count_of_nothing_is_no_count() -> None:
    session = GeminiSession()
    session.user("count")
    session.says("one", tokens=tokens(0, 0, 0, 0))
    session.says("two", tokens=None)
    assert [m.usage for m in reading_of(session).thread.messages] == [None, None, None]


def test_tokens_that_come_later_are_taken_once() -> None:
    session = GeminiSession()
    session.user("count")
    session.says("one", tokens=None)
    session.records[-1]["tokens"] = tokens()
    session.write(session.records[-1])
    session.write(session.records[-1])
    used = [m.usage for m in reading_of(session).thread.messages if m.usage is not None]
    assert used == [Usage(input_tokens=60, output_tokens=10, cache_read_tokens=40)]


def test_a_step_back_keeps_both_answers() -> None:
    session = GeminiSession()
    session.user("first")
    session.says("one")
    second = session.user("second")
    session.says("two")
    session.goes_back_to(second)
    session.user("other")
    session.says("three")
    reading = reading_of(session)
    assert path_of(reading) == ["first", "one", "other", "three"]
    assert [head.content for head in reading.thread.tree.heads()] == ["two", "three"]
    assert reading.message("other").parent_id == reading.message("one").id
    assert reading.message("three").branch_id == reading.message("other").id


def test_a_step_back_to_the_first_prompt_begins_anew() -> None:
    session = GeminiSession()
    first = session.user("first")
    session.says("one")
    session.goes_back_to(first)
    session.user("other")
    reading = reading_of(session)
    assert reading.message("other").parent_id is None
    assert path_of(reading) == ["other"]


def test_a_step_back_to_what_is_not_known_goes_on_and_is_told() -> None:
    session = GeminiSession()
    session.user("first")
    session.write({"$rewindTo": "nobody"})
    session.user("second")
    reading = reading_of(session)
    assert path_of(reading) == ["first", "second"]
    assert [problem.reason for problem in reading.problems] == ["a step back to a message that is not known"]


def test_a_compression_keeps_what_was_said_before_and_repeats_nothing() -> None:
    session = GeminiSession()
    session.user("first")
    session.says("one")
    session.user("second")
    session.says("two")
    session.compacts("So far: two.", kept=2)
    session.user("third")
    reading = reading_of(session)
    assert path_of(reading) == [
        *("first", "one", "second", "two"),
        "<state_snapshot>\nSo far: two.\n</state_snapshot>",
        "third",
    ]
    assert [m.kind for m in reading.thread.messages if m.content.startswith("<state_snapshot>")] == [
        COMPACTION
    ]
    assert reading.message("Got it. Thanks for the additional context!").kind == NOTICE


def test_a_prompt_typed_twice_is_there_twice() -> None:
    session = GeminiSession()
    for said in ("one", "two"):
        session.user("continue")
        session.says(said)
    session.compacts("So far.", kept=1)
    session.user("continue")
    assert path_of(reading_of(session)).count("continue") == 3


def test_masked_and_emptied_records_blank_nothing() -> None:
    session = a_short_session()
    before = reading_of(session)
    emptied = json.loads(json.dumps(session.records))
    for record in emptied:
        record["content"] = []
        for call in record.get("toolCalls", ()):
            call["result"] = [answer(call["id"], call["name"], {"output": "<masked>"})]
    session.lists(emptied)
    after = reading_of(session)
    assert after.thread.messages == before.thread.messages
    later = read(GeminiCli(), FILE, GeminiSession().lines + [as_text(one) for one in emptied])
    later.thread.join(before.thread.whole())
    assert [m.content for m in later.thread.messages] == [m.content for m in before.thread.messages]


def test_a_session_that_a_resume_overwrote_with_its_context_is_all_there() -> None:
    session = a_short_session()
    before = reading_of(session)
    session.lists(
        [{"id": CONTEXT_ID, "timestamp": session.time(), "type": "user", "content": context("/elsewhere")}]
    )
    grown = read_on(GeminiCli(), FILE, session.lines[:-1], session.lines[-1:])
    assert path_of(grown) == path_of(before)


@pytest.mark.parametrize("more", [[], [{"type": "warning", "content": "a hook failed", "id": "w1"}]])
def test_the_second_file_that_a_resume_leaves_says_nothing(more: list[dict[str, Any]]) -> None:
    stub = GeminiSession()
    stub.begins()
    for record in more:
        stub.write(record)
    reading = reading_of(stub)
    assert reading.ending.thread_id == ""
    assert reading.messages == []


def test_a_second_file_in_which_somebody_speaks_is_the_same_thread() -> None:
    first, second = a_short_session(), GeminiSession(start=a_short_session().now)
    second.begins("/elsewhere")
    second.user("and now?")
    thread = reading_of(first).thread
    other = reading_of(second)
    assert other.ending.thread_id == thread.id
    thread.join(other.thread.whole())
    assert [m.content for m in thread.messages if m.role == "user" and m.kind != NOTICE] == [
        *("Why is the kiln cold?", "and now?")
    ]


def test_what_the_program_tells_at_the_start_is_a_notice_in_every_form_of_it() -> None:
    reading = reading_of(a_session_resumed_elsewhere())
    told = [message for message in reading.thread.messages if message.content.startswith("<session_context>")]
    assert [message.kind for message in told] == [NOTICE, NOTICE]
    assert len({message.id for message in told}) == 2
    assert reading.register("title") == "Why is the kiln cold?"
    assert reading.register("workspace_root") == FOLDER
    assert reading.register("cwd") == "/home/dev/away/kiln"


def test_two_sessions_share_no_context_that_differs() -> None:
    one, other = GeminiSession(), GeminiSession("00000000-0000-4000-8000-000000000001")
    for session, folder in ((one, "/a"), (other, "/b")):
        session.begins(folder)
        session.user(f"hello from {folder}")
    ids = [{message.id for message in reading_of(session).thread.messages} for session in (one, other)]
    assert not ids[0] & ids[1]


def test_files_that_a_prompt_names_are_not_what_the_person_typed() -> None:
    session = GeminiSession()
    block = [
        "\n--- Content from referenced files ---",
        "\nContent from @a.md:\n",
        "# a",
        "\n--- End of content ---",
    ]
    session.user([{"text": one} for one in ["read @a.md", *block, "and be brief"]])
    session.user("in one text" + "".join(block))
    reading = reading_of(session)
    assert path_of(reading) == ["read @a.md\n\nand be brief", "in one text"]
    notices = [message.content for message in reading.thread.messages if message.kind == NOTICE]
    assert notices == ["".join(block).lstrip("\n")] * 2


def test_what_was_shown_as_typed_was_typed() -> None:
    session = GeminiSession()
    session.user([{"text": "Review this: {{args}} at length"}], displayContent=[{"text": "/review kiln.py"}])
    session.user([{"text": "look"}, {"text": "<hook_context>be careful</hook_context>"}])
    reading = reading_of(session)
    assert path_of(reading) == ["/review kiln.py", "look"]
    assert [m.content for m in reading.thread.messages if m.kind == NOTICE] == [
        *("Review this: {{args}} at length", "<hook_context>be careful</hook_context>")
    ]


@pytest.mark.parametrize(
    "injected",
    [
        "This is the Gemini CLI. We are setting up the context for our chat.\nToday is Monday.",
        "Here is the user's editor context as a JSON object. This is for your information only.",
        "[System: You previously generated thoughts but failed to answer]",
        "System: Potential loop detected. Details: none.",
    ],
)
def test_what_the_program_says_in_a_persons_name_is_a_notice(injected: str) -> None:
    session = GeminiSession()
    session.user(injected)
    session.user("hello")
    reading = reading_of(session)
    assert reading.message(injected).kind == NOTICE
    assert reading.register("title") == "hello"


def test_a_picture_is_an_attachment() -> None:
    session = GeminiSession()
    session.user([{"text": "like this"}, picture(), {"fileData": {"fileUri": "gs://kiln/bowl.png"}}])
    session.says()
    session.calls(("c1", "shot", {}, {"output": "taken"}))
    session.records[-1]["toolCalls"][0]["result"].append(picture("d29ybGQ="))
    session.write(session.records[-1])
    reading = reading_of(session)
    (typed,) = reading.message("like this").attachments
    assert (typed.sha256, typed.size) == (hashlib.sha256(b"hello").hexdigest(), 5)
    assert reading.message("like this").extra == {"files": ["gs://kiln/bowl.png"]}
    (shot,) = reading.message("taken").attachments
    assert {blob.sha256: blob.body for blob in reading.blobs}[shot.sha256] == b"world"


def test_the_agents_own_title_stands_and_a_command_is_one_only_until_words_are_typed() -> None:
    session = GeminiSession()
    session.user("/help")
    assert reading_of(session).register("title") == "/help"
    session.user("why is it cold")
    assert reading_of(session).register("title") == "why is it cold"
    session.change(summary="A cold kiln")
    assert reading_of(session).register("title") == "A cold kiln"
    session.user("and now")
    assert reading_of(session).register("title") == "A cold kiln"


def test_what_the_program_tells_a_person_is_a_notice_of_the_system() -> None:
    session = GeminiSession()
    session.user("hello")
    for kind in ("info", "warning", "error"):
        session.record(kind, f"{kind} text")
    told = [m for m in reading_of(session).thread.messages if m.role == "system"]
    assert [(m.content, m.kind, m.is_error, m.extra) for m in told] == [
        ("info text", NOTICE, False, {"level": "info"}),
        ("warning text", NOTICE, False, {"level": "warning"}),
        ("error text", NOTICE, True, {"level": "error"}),
    ]


def test_a_call_that_failed_or_was_cancelled_says_so() -> None:
    session = GeminiSession()
    session.user("go")
    session.says()
    session.calls(("c1", "rm", {}, {"error": "no such file"}))
    session.calls(("c2", "rm", {}, {"output": ""}), status="error")
    session.calls(("c3", "rm", {}, {"error": "[Operation Cancelled]"}), status="cancelled")
    results = {m.tool_call_id: m for m in reading_of(session).thread.messages if m.role == "tool"}
    assert [results[call].is_error for call in ("c1", "c2", "c3")] == [True, True, True]
    assert results["c3"].extra == {"status": "cancelled"}


def test_a_call_that_was_never_answered_has_no_result() -> None:
    session = GeminiSession()
    session.user("go")
    session.says([{"text": "now"}, {"functionCall": {"id": "c1", "name": "ls", "args": {"path": "."}}}])
    reading = reading_of(session)
    assert [call.arguments_json for call in reading.message("now").tool_calls] == [{"path": "."}]
    assert [m.role for m in reading.thread.messages] == ["user", "assistant"]


def test_results_of_one_call_id_in_two_answers_are_two() -> None:
    session = GeminiSession()
    session.user("go")
    for said in ("one", "two"):
        session.says(f"look {said}")
        session.calls(("call_0", "ls", {}, {"output": said}))
        session.results(answer("call_0", "ls", {"output": said}))
    results = [(m.content, m.parent_id) for m in reading_of(session).thread.messages if m.role == "tool"]
    assert [content for content, _ in results] == ["one", "two"]


def test_results_of_parallel_calls_stay_apart_when_they_are_put_into_each_call() -> None:
    session = GeminiSession()
    session.user("go")
    session.says()
    session.calls(("a", "ls", {}, {"output": "of a"}), ("b", "ls", {}, {"output": "of b"}))
    both = [answer("a", "ls", {"output": "of a"}), answer("b", "ls", {"output": "of b"})]
    for call in session.records[-1]["toolCalls"]:
        call["result"] = both
    session.lines[-1] = as_text(session.records[-1])
    results = {m.tool_call_id: m.content for m in reading_of(session).thread.messages if m.role == "tool"}
    assert results == {"a": "of a", "b": "of b"}


def test_a_result_that_is_no_text_is_there_as_json() -> None:
    session = GeminiSession()
    session.user("go")
    session.says()
    session.calls(("a", "ls", {}, {"files": ["x"], "total": 1}))
    session.records[-1]["toolCalls"].append({"id": "b", "name": "cat", "args": {}, "result": "plain text"})
    session.write(session.records[-1])
    results = {m.tool_call_id: m.content for m in reading_of(session).thread.messages if m.role == "tool"}
    assert results == {"a": '{"files":["x"],"total":1}', "b": "plain text"}


def test_raw_line_separators_inside_a_record_end_no_line() -> None:
    session = GeminiSession()
    session.user("one\u2028two\u2029three\x85four")
    reading = reading_of(session)
    assert path_of(reading) == ["one\u2028two\u2029three\x85four"]
    assert reading.problems == []


def test_an_unknown_kind_of_record_is_told_once_and_without_what_it_says() -> None:
    session = GeminiSession()
    session.user("hello")
    for _ in range(2):
        session.record("hologram", "a secret")
    session.record("MY SECRET", "a secret")
    reading = reading_of(session)
    assert [problem.reason for problem in reading.problems] == [
        "a kind of record that is not known: 'hologram'",
        "a kind of record that is not known: one whose name is no plain word",
    ]


def test_fields_of_a_type_that_is_not_known_cost_themselves() -> None:
    session = GeminiSession()
    session.user("hello")
    session.says("still read", tokens="many", thoughts=())
    session.lines[-2] = as_text({**session.records[-1], "thoughts": ["loose", {"subject": 1}], "model": 7})
    reading = reading_of(session)
    assert path_of(reading) == ["hello", "still read"]
    assert [problem.reason for problem in reading.problems] == [
        "fields of a type that is not known: thoughts[0]"
    ]


def test_a_file_whose_header_is_lost_is_a_session_all_the_same() -> None:
    session = a_short_session()
    lost = read(GeminiCli(), FILE, session.lines[1:])
    assert path_of(lost) == path_of(reading_of(session))
    assert lost.ending.session_id != SESSION
    told = read(GeminiCli(), FILE, [*session.lines[1:], as_text({"$set": {"sessionId": SESSION}})])
    assert told.ending.session_id == SESSION
    grown = read(GeminiCli(), FILE, [as_text({"$set": {"sessionId": SESSION}})], before=lost)
    assert grown.ending.needs_whole


def test_a_session_of_another_agent_is_named_and_not_read() -> None:
    line = as_text({"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "x"}})
    reading = read(GeminiCli(), FILE, [line])
    assert reading.messages == []


def test_a_long_session_that_is_listed_again_asks_for_the_whole_file() -> None:
    session = GeminiSession()
    for number in range(2100):
        session.record("user", f"prompt {number}")
    before = read(GeminiCli(), FILE, session.lines, batch=500)
    session.lists([*session.records, {**session.records[0], "id": "new", "content": "something new"}])
    grown = read(GeminiCli(), FILE, session.lines[-1:], before=before)
    assert grown.ending.needs_whole
    whole = read(GeminiCli(), FILE, session.lines, batch=500)
    assert len(whole.thread.messages) == 2101
    assert whole.thread.tree.tip() == whole.message("something new")


def test_what_is_remembered_of_a_long_session_is_small() -> None:
    session = a_session_with_everything()
    for number in range(3000):
        session.user(f"prompt {number}")
        session.says("yes")
        session.calls((f"call_{number}", "invoke_agent", {"prompt": f"do {number}"}, {"output": "done"}))
    assert len(read(GeminiCli(), FILE, session.data, batch=500).ending.state) < 128 << 10


def workspace(session: GeminiSession, *folders: str, **companions: bytes) -> object:
    source = SourceName(
        name=FILE.name,
        folders=folders,
        companions={name.replace("_json", ".json"): b for name, b in companions.items()},
    )
    return read(GeminiCli(), source, session.data).register("workspace_root")


def test_a_workspace_is_learnt_from_the_files_around_the_session() -> None:
    session = GeminiSession(projectHash=hashlib.sha256(b"/home/dev/tile").hexdigest())
    session.user("hello")
    registry = json.dumps({"projects": {"/home/dev/kiln": "kiln", "/home/dev/tile": "tile"}}).encode()
    hashed = session.header["projectHash"]
    assert workspace(session, str(hashed), "chats") is None
    assert workspace(session, str(hashed), "chats", projects_json=registry) == "/home/dev/tile"
    assert workspace(session, "kiln", "chats", projects_json=registry) == "/home/dev/tile"
    assert workspace(session, "x", "chats", **{".project_root": b"/home/dev/tile\n"}) == "/home/dev/tile"
    moved = GeminiSession()
    moved.user("hello")
    assert workspace(moved, "kiln", "chats", projects_json=registry) == "/home/dev/kiln"
    assert workspace(moved, "home", "kiln", "x", projects_json=registry) is None
    assert workspace(moved, "kiln", "chats", **{".project_root": b"/home/dev/kiln2"}) == "/home/dev/kiln2"
    assert workspace(moved, "kiln", "chats", projects_json=b"not json") is None


def test_what_the_session_says_of_its_workspace_outranks_a_note_that_may_be_anothers() -> None:
    session = GeminiSession()
    session.begins("/home/dev/told")
    session.user("hello")
    assert workspace(session, "kiln", "chats", **{".project_root": b"/home/dev/noted"}) == "/home/dev/told"


def test_a_rule_learns_the_same_workspace_before_anything_is_read() -> None:
    session = a_short_session()
    importer = GeminiCli()
    assert importer.workspace(FILE, iter(session.data.splitlines(keepends=True))) == FOLDER
    old = b"\n".join(an_old_session().document())
    source = SourceName(
        name=FILE.name, folders=("kiln", "chats"), companions={".project_root": b"/home/dev/kiln2"}
    )
    assert importer.workspace(source, iter(old.splitlines(keepends=True))) == "/home/dev/kiln2"
