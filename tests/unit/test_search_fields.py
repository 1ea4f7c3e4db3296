"""What of a thread is searched, and in which field."""

from __future__ import annotations

import pytest

from raddle.model.threads.message import Attachment, Message, ToolCall
from raddle.model.threads.search_fields import (
    FIELDS,
    cut_row,
    fields_of,
    fingerprint,
    flat_json,
    header_of,
    index_row,
    time_of,
)
from raddle.model.threads.search_text import Cutter
from raddle.model.threads.summary import Source, ThreadSummary

THREAD_ID = "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c"


def fields(**parts: object) -> dict[str, str]:
    text = fields_of(Message(id="m", **parts))  # type: ignore[arg-type]
    return {name: content for name, content in zip(FIELDS, text.texts, strict=True) if content}


@pytest.mark.parametrize(
    ("role", "kind", "field"),
    [
        ("user", "turn", "user"),
        ("assistant", "turn", "assistant"),
        ("tool", "turn", "output"),
        ("system", "turn", "output"),
        ("somebody", "turn", "output"),
        ("user", "notice", "output"),
        ("user", "compaction", "assistant"),
        ("system", "summary", "assistant"),
    ],
)
def test_content_belongs_to_the_one_who_said_it(role: str, kind: str, field: str) -> None:
    assert fields(role=role, kind=kind, content="hello") == {field: "hello"}


def test_calls_give_their_names_and_arguments() -> None:
    call = ToolCall(
        id="1",
        tool_name="Edit",
        arguments_json={"file_path": "src/a.py", "edits": [{"old": "x"}], "all": True},
    )
    found = fields(role="assistant", content="I will", thinking="hm", tool_calls=(call,))
    assert found == {
        "assistant": "I will",
        "thinking": "hm",
        "tools": "Edit\nfile_path: src/a.py\nedits:\nold: x\nall: true",
    }


def test_a_result_gives_its_tool_and_a_message_its_attached_files() -> None:
    assert fields(role="tool", tool_name="Read", content="1 line") == {"tools": "Read", "output": "1 line"}
    attached = (
        Attachment(sha256="0" * 64, name="login.png"),
        Attachment(sha256="1" * 64, name="body.txt", is_body=True),
    )
    assert fields(role="user", content="see", attachments=attached) == {"user": "see", "tools": "login.png"}


def test_arguments_that_are_json_in_a_string_are_opened() -> None:
    assert flat_json('{"command": ["bash", "-lc", "cat a\\nb"]}') == ["command:", "bash", "-lc", "cat a\nb"]
    assert flat_json("{not json") == ["{not json"]
    assert flat_json({"a": None, "b": 1.5}) == ["a:", "b: 1.5"]
    assert flat_json(None) == []


def test_deeply_nested_arguments_are_no_trouble() -> None:
    value: object = "leaf"
    for _ in range(50_000):
        value = [value]
    assert flat_json(value) == ["leaf"]
    assert flat_json("[" * 50_000) == ["[" * 50_000]


def test_a_purged_message_has_no_words() -> None:
    message = Message(id="m", role="user", content="secret", thinking="secret").purged()
    assert fields_of(message).texts == ("", "", "", "", "")


def test_surrogates_become_replacement_characters() -> None:
    assert fields(role="user", content="a\ud800b \ud83d\ude80") == {"user": "a\ufffdb 🚀"}


def test_the_fingerprint_tells_forms_of_a_message_apart() -> None:
    one = fields_of(Message(id="m", role="user", content="one"))
    assert fingerprint(one) == fingerprint(fields_of(Message(id="m", role="user", content="one")))
    assert fingerprint(one) != fingerprint(fields_of(Message(id="m", role="user", content="two")))
    assert fingerprint(one) != fingerprint(
        fields_of(Message(id="m", role="user", content="one", is_error=True))
    )


def test_a_row_holds_the_cut_of_each_field_that_has_text() -> None:
    row = index_row(Message(id="m", role="assistant", content="getUser", thinking="so"), Cutter())
    assert [(FIELDS[cut.field], cut.words.split(), cut.pieces) for cut in row.cuts] == [
        ("assistant", ["getuser"], "get user"),
        ("thinking", ["so"], ""),
    ]
    assert row.terms.split("\n") == ["get", "getuser", "so", "user"]
    assert cut_row(row.text, Cutter(collect=False)).cuts == row.cuts


def test_the_header_holds_what_the_summary_knows() -> None:
    header = header_of(
        ThreadSummary(
            id=THREAD_ID,
            title="Fix login",
            tags=("bug",),
            git_branch="main",
            git_branches=("feature/x", "main"),
            git_remote_url="github.com/me/project",
            git_commits=("A1B2C3D4", "not a sha"),
            workspace_root="/home/me/other",
            source=Source(agent="codex", session_id="1"),
            is_pinned=True,
        )
    )
    assert header.branches == ("main", "feature/x")
    assert header.shas == ("a1b2c3d4",)
    assert (header.repository, header.agent, header.is_pinned) == ("github.com/me/project", "codex", True)


def test_without_a_remote_the_repository_is_the_workspace() -> None:
    header = header_of(ThreadSummary(id=THREAD_ID, workspace_root="/home/me/notes/"))
    assert (header.repository, header.agent) == ("notes", "raddle")


def test_an_order_that_was_counted_out_is_no_time() -> None:
    assert time_of(7) is None
    assert time_of(1_796_000_000_000_000) == 1_796_000_000_000_000
