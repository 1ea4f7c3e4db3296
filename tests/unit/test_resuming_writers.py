"""A conversation written as each agent's own session, and read again by raddle's own importer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from raddle.actions.resuming.registry import AGENTS, FORMS, name_of
from raddle.actions.resuming.session import Move, as_copied
from raddle.actions.resuming.told import as_copies
from raddle.model.threads.carried import carried_form, carried_message, copied_form, copied_from
from tests.builders import a_message
from tests.builders_resuming import (
    ON_PATH,
    PNG,
    SESSION,
    WORKSPACE,
    a_conversation,
    calls_and_results,
    read_back,
    told,
    written,
)

every_agent = pytest.mark.parametrize("agent", AGENTS)


def lines(agent: str, data: bytes | None = None) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (data or written(agent, told(a_conversation()))).splitlines()]


@every_agent
@pytest.mark.parametrize("is_imported", [True, False])
def test_what_is_written_comes_back_as_the_same_messages(agent: str, *, is_imported: bool) -> None:
    thread = a_conversation(is_imported=is_imported)
    reading = read_back(agent, written(agent, told(thread)))
    assert reading.problems == []
    found = {message.id: message for message in reading.thread.messages}
    assert [name for name in found if name in ON_PATH] == ON_PATH
    for name in ON_PATH:
        message, before = found[name], thread.tree.get(name)
        assert before is not None
        assert (message.content, message.role, message.tool_calls, message.kind) == (
            before.content,
            before.role,
            before.tool_calls,
            before.kind,
        )
    assert [one.id for one in reading.thread.tree.path_to_root("a3") if one.id in ON_PATH] == ON_PATH


@every_agent
def test_only_a_stub_is_news_to_the_import(agent: str) -> None:
    reading = read_back(agent, written(agent, told(a_conversation())))
    news = [message.content for message in reading.thread.messages if message.id not in ON_PATH]
    assert news in (["no result recorded"], [])


@every_agent
def test_the_session_that_was_written_knows_its_title_and_its_folder(agent: str) -> None:
    reading = read_back(agent, written(agent, told(a_conversation())))
    assert reading.ending.session_id == SESSION[agent]
    assert reading.register("title") in ("Cold kiln", "Why is the kiln cold?")
    if agent != "gemini":  # its sessions hold a hash of the folder; the files around them name it
        assert reading.register("workspace_root") == WORKSPACE


@every_agent
def test_what_is_read_on_from_there_hangs_on_the_last_of_it(agent: str) -> None:
    data = written(agent, told(a_conversation()))
    shapes: dict[str, dict[str, Any]] = {
        "claude-code": {
            "type": "user",
            "uuid": "11111111-1111-4111-8111-111111111111",
            "parentUuid": None,
            "sessionId": SESSION[agent],
            "timestamp": "2026-06-16T12:00:00.000Z",
            "message": {"role": "user", "content": "and then?"},
        },
        "codex": {
            "timestamp": "2026-06-16T12:00:00.000Z",
            "type": "response_item",
            "payload": {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "and then?"}],
            },
        },
        "gemini": {
            "id": "g1",
            "timestamp": "2026-06-16T12:00:00.000Z",
            "type": "user",
            "content": [{"text": "and then?"}],
        },
        "opencode": {
            "info": {"id": "msg_z", "role": "user", "time": {"created": 1_781_600_000_000}},
            "parts": [{"id": "prt_z", "type": "text", "text": "and then?"}],
        },
    }
    more = shapes[agent]
    if agent == "opencode":
        whole = json.loads(data)
        whole["messages"].append(more)
        data = json.dumps(whole).encode()
    else:
        if agent == "claude-code":
            more["parentUuid"] = json.loads(data.splitlines()[-1])["uuid"]
        data += json.dumps(more).encode() + b"\n"
    whole_reading = read_back(agent, data)
    assert whole_reading.message("and then?").parent_id == "a3"
    # The same where the import goes on from the state of an earlier one. OpenCode tells again what places the news.
    first = written(agent, told(a_conversation()))
    rest = data if agent == "opencode" else data[len(first) :]
    grown = read_back(agent, rest, before=read_back(agent, first))
    assert not grown.ending.needs_whole
    assert grown.thread.messages == whole_reading.thread.messages


@every_agent
def test_every_call_is_answered_once(agent: str) -> None:
    calls, results = calls_and_results(agent, written(agent, told(a_conversation())))
    assert [one.call_id for one in calls] == ["c1", "c2"]
    assert [(one.call_id, one.said) for one in results] == [("c1", "kiln.txt"), ("c2", "no result recorded")]


@every_agent
def test_a_picture_is_in_the_session_as_the_agent_has_pictures(agent: str) -> None:
    path = told(a_conversation(), bytes_of=lambda sha256: PNG if sha256 == "a" * 64 else None)
    data = written(agent, path)
    assert b"iVBORw0KGgogbWFkZSB1cA==" in data
    assert b"plan.pdf" in data


@every_agent
def test_thoughts_are_told_to_nobody_but_the_import(agent: str) -> None:
    assert b"Hm." in written(agent, told(a_conversation()))
    shown = written(agent, told(a_conversation())).replace(b'"thinking":"Hm."', b"")
    assert b"Hm." not in shown


class TestClaudeCode:
    def test_its_lines_are_one_chain(self) -> None:
        found = lines("claude-code")
        ids = [line["uuid"] for line in found]
        assert len(set(ids)) == len(ids)
        assert [line["parentUuid"] for line in found] == [None, *ids[:-1]]
        assert {line["sessionId"] for line in found} == {SESSION["claude-code"]}
        assert {line["cwd"] for line in found} == {WORKSPACE}
        assert {line["type"] for line in found} == {"user", "assistant"}
        assert all(line["isSidechain"] is False for line in found)

    def test_every_result_stands_behind_its_call(self) -> None:
        open_calls: list[str] = []
        for line in lines("claude-code"):
            content = line["message"]["content"]
            blocks = content if isinstance(content, list) else []
            answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            assert all(one in open_calls for one in answered)
            open_calls = [one for one in open_calls if one not in answered]
            asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
            assert not (asked and open_calls)
            open_calls += asked
        assert open_calls == []

    def test_its_own_lines_are_moved_to_the_folder_here_and_nothing_else_of_them(self) -> None:
        move = Move(workspace="/a/b", to_workspace="/c", session="s1", to_session="s1")
        line = b'{"cwd":"/a/b/inner","n":1e2,"sessionId":"s1","text":"/a/b \xc3\xa9 \\u00e9"}'
        moved = FORMS["claude-code"].move_line(line, move)
        assert moved == line.replace(b'"/a/b/inner"', b'"/c/inner"')
        other = b'{"cwd": "/c", "sessionId": "s1"}'
        assert FORMS["claude-code"].move_line(other, move) is other
        assert FORMS["claude-code"].move_line(b'{"torn', move) == b'{"torn'


class TestCodex:
    def test_it_names_no_provider_that_might_not_be_set_up_here(self) -> None:
        assert "model_provider" not in lines("codex")[0]["payload"]

    def test_its_own_header_is_moved_and_tells_a_fork_by_its_name(self) -> None:
        move = Move(workspace="/a", to_workspace="/c", session="s1", to_session="s2", at=0)
        header = {"type": "session_meta", "payload": {"id": "s1", "cwd": "/a", "x": 1.50}}
        moved = json.loads(FORMS["codex"].move_line(json.dumps(header).encode(), move))
        assert moved["payload"] == {
            "id": "s2",
            "cwd": "/c",
            "x": 1.5,
            "forked_from_id": "s1",
            "timestamp": "1970-01-01T00:00:00.000Z",
        }
        item = b'{"type":"response_item","payload":{"cwd":"/a"}}'
        assert FORMS["codex"].move_line(item, move) == item


class TestGemini:
    def test_words_that_look_like_a_command_are_told_to_the_model(self) -> None:
        texts = [
            part["text"] for line in lines("gemini") for part in line.get("content") or () if "text" in part
        ]
        assert "[user] /bin/fire is what I mean" in texts

    def test_its_own_header_is_moved(self) -> None:
        move = Move(workspace="", to_workspace="/c", session="s1", to_session="s2")
        line = b'{"sessionId":"s1","projectHash":"aa","startTime":"x","kind":"main"}'
        moved = json.loads(FORMS["gemini"].move_line(line, move))
        assert moved["sessionId"] == "s2"
        assert len(moved["projectHash"]) == 64
        told_line = b'{"id":"m1","content":"\\"sessionId\\": \\"s1\\""}'
        assert FORMS["gemini"].move_line(told_line, move) == told_line


class TestOpenCode:
    def test_its_ids_are_in_the_order_of_time_and_before_what_is_typed_next(self) -> None:
        data = json.loads(written("opencode", told(a_conversation())))
        ids = [message["info"]["id"] for message in data["messages"]]
        assert ids == sorted(ids)
        assert len(set(ids)) == len(ids)
        parts = [part["id"] for message in data["messages"] for part in message["parts"]]
        assert len(set(parts)) == len(parts)

    def test_every_answer_names_what_it_answers(self) -> None:
        asked = ""
        for message in json.loads(written("opencode", told(a_conversation())))["messages"]:
            info = message["info"]
            if info["role"] == "user":
                asked = info["id"]
            else:
                assert info["parentID"] == asked


def test_agents_are_known_by_the_names_that_people_use() -> None:
    assert [name_of(name) for name in ("claude", "gemini-cli", "codex", "opencode", "vi")] == [
        "claude-code",
        "gemini",
        "codex",
        "opencode",
        "",
    ]


def test_an_imported_turn_is_carried_only_where_it_is_said_to_be_a_copy() -> None:
    message = a_message("m1", "hello", rev=7)
    form = copied_form(message, is_said=False)
    found = carried_message(form, "")
    assert found is not None
    assert (found.id, found.content, found.rev, found.device) == ("m1", "hello", 0, "")
    del form["is_copied"]
    assert carried_message(form, "") is None


def test_a_copy_says_where_it_was_said_and_a_copy_of_it_says_the_same() -> None:
    turn = told(a_conversation()).turns[0]
    (once,) = as_copies([turn], "T-first")
    (twice,) = as_copies([once], "T-second")
    found = carried_message(copied_form(twice.message, is_said=False), "")
    assert found is not None
    assert [copied_from(message) for message in (turn.message, once.message, found)] == [
        "",
        "T-first",
        "T-first",
    ]


def test_a_line_of_another_session_says_where_the_turn_that_it_carries_was_said() -> None:
    message = a_message("m1", "hello", device="aaaaaaaa")
    line = json.dumps({"type": "user", "raddle": carried_form(message, is_said=False)}).encode()
    found = carried_message(json.loads(as_copied(line, "T-first"))["raddle"], "")
    assert found is not None
    assert (found.content, copied_from(found)) == ("hello", "T-first")
    for other in (b'{"type":"user"}', b'{"raddle":{"id":"m1"}}', b'{"raddle":7}', b'"raddle"', b'{"raddle'):
        assert as_copied(other, "T-first") == other
