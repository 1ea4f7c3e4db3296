"""What another reader sees of a thread, and what stays its owner's."""

from __future__ import annotations

import json

import pytest

from raddle.model.threads.codec import decode_file, encode_thread
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Editor
from raddle.model.threads.message import Attachment, Message, ToolCall
from raddle.model.threads.register import one_write
from raddle.model.threads.thread import Thread, merge
from raddle.model.threads.view import as_others_see, only_path, view_for
from tests.builders import THREAD_ID, a_line, a_message, a_thread, an_author, texts

SECRETS = (
    "DEVICE",
    "bbbbbbbb",
    "/home/ada",
    "unsent words",
    "taken-back words",
    "job-secret",
    "notice words",
    "policy-host",
    "session-secret",
    "other title",
    "extra-secret",
    "unknown-secret",
    "error-secret",
    "draft-target",
)


def a_thread_full_of_secrets() -> Thread:
    thread = Thread(THREAD_ID)
    editor = Editor(thread, an_author("DEVICE00", name="Ada"))
    editor.start(workspace_root="/home/ada/w", cwd="/home/ada/w/src", client_version="1.0")
    editor.rename("Open title")
    editor.tag("open-tag")
    editor.pin(True)
    editor.set_visibility("organization")
    editor.set_model("anthropic", "claude")
    editor.set_context("orchestrator", "https://policy-host")
    editor.set_context("server_thread", "session-secret")
    editor.write("source", {"agent": "codex", "session_id": "session-secret"})
    editor.write("x/metadata/extra/k", "extra-secret")
    editor.write("x/new", "unknown-secret")
    editor.write("git", {"git_branch": "main", "git_current_commit_sha": "abc", "git_end_dirty": True})
    editor.write("commit/abc", True)
    editor.write("agent_state", {"kind": "error", "last_error": "error-secret"})
    notice = editor.append("user", "notice words", kind="notice")
    question = editor.append("user", "open question", extra={"cwd": "/home/ada", "k": "extra-secret"})
    editor.append(
        "assistant",
        "open answer",
        tool_calls=(ToolCall(id="c1", tool_name="bash", arguments_json={"command": "ls"}),),
        attachments=(Attachment(sha256="0" * 64, name="/home/ada/shot.png", size=1),),
        job_id="job-secret",
        unknown={"k": "unknown-secret"},
    )
    editor.name_branch(notice.id, "open branch")
    editor.archive_branch(notice.id, True)
    editor.launch_job("job-secret-2", question.id, "openai")
    editor.set_draft("draft-target", "unsent words")
    gone = editor.append("user", "taken-back words")
    editor.name_branch(gone.id, "taken-back words")
    editor.undo()
    editor.delta()
    other = Thread(THREAD_ID)
    Editor(other, an_author("bbbbbbbb")).rename("other title")
    seen = merge(thread, other)
    Editor(seen, an_author("DEVICE00")).rename("Open title")
    return seen


class TestOthers:
    def test_none_of_the_owners_secrets_is_in_the_file_they_get(self) -> None:
        data = encode_thread(view_for(a_thread_full_of_secrets(), viewer_is_owner=False)).decode()
        assert [secret for secret in SECRETS if secret in data] == []

    def test_the_test_above_would_notice_every_one_of_them(self) -> None:
        data = encode_thread(a_thread_full_of_secrets()).decode()
        missing = [secret for secret in SECRETS if secret not in data]
        assert missing == ["other title"], "it was settled, so even the owner's file has it no more"

    def test_what_is_open_is_all_there(self) -> None:
        thread = a_thread_full_of_secrets()
        view = view_for(thread, viewer_is_owner=False)
        assert texts(view.tree.shown()) == ["", "open question", "open answer"]
        assert (view.title, view.tags, view.visibility) == ("Open title", ["open-tag"], "organization")
        assert (view.plain("model"), view.plain("git_branch"), view.git_commits) == (
            "claude",
            "main",
            ["abc"],
        )
        assert view.source is not None
        assert (view.source.agent, view.source.session_id) == ("codex", "")
        assert list(view.branch_marks.values()) == [{"name": "open branch"}]
        assert (view.version, view.time("created_at")) == (thread.version, thread.time("created_at"))
        answer = view.messages[2]
        assert (answer.author, answer.tool_calls[0].tool_name, answer.attachments[0].name) == (
            "Ada",
            "bash",
            "shot.png",
        )

    def test_branches_stay_where_they_are(self) -> None:
        thread = a_thread_full_of_secrets()
        view = view_for(thread, viewer_is_owner=False)
        assert [m.id for m in view.tree.path_to_root(view.messages[2].id)] == [m.id for m in view.messages]
        assert {view.tree.branch_of(m.id) for m in view.messages} == {
            thread.tree.branch_of(view.messages[0].id)
        }

    def test_a_removed_turn_that_was_answered_is_shown_as_it_is_to_everybody(self) -> None:
        thread = a_thread(*a_line("one", "two"))
        Editor(thread, an_author()).write("gone/m1", True)
        view = view_for(thread, viewer_is_owner=False)
        assert texts(view.tree.shown()) == ["one", "two"]
        assert view.removed_messages == []

    def test_values_that_nobody_settled_are_shown_as_one(self) -> None:
        one, other = a_thread(*a_line("x"), title="one"), Thread(THREAD_ID)
        Editor(other, an_author("bbbbbbbb")).rename("two")
        view = view_for(merge(one, other), viewer_is_owner=False)
        assert view.conflicts == []
        assert len(view.registers["title"].writes) == 1

    def test_a_field_that_a_newer_raddle_adds_is_closed(self) -> None:
        thread = a_thread(*a_line("one"))
        thread.join(
            Delta(
                registers={"hologram": one_write(9, "aaaaaaaa", "x"), "branch/m1/colour": one_write(9, "", 1)}
            )
        )
        assert set(view_for(thread, viewer_is_owner=False).registers) == set()

    @pytest.mark.parametrize("flag", ["is_private", "deleted"])
    def test_a_private_or_deleted_thread_has_nothing_open(self, flag: str) -> None:
        value = (
            True
            if flag == "is_private"
            else {"at": "2026-11-30T12:00:00.000000Z", "seen": {"aaaaaaaa": 1 << 62}}
        )
        thread = a_thread(*a_line("one"), title="secret")
        Editor(thread, an_author()).write(flag, value)
        view = view_for(thread, viewer_is_owner=False)
        assert (view.messages, view.registers) == ([], {})

    def test_a_view_of_a_view_is_the_view(self) -> None:
        view = view_for(a_thread_full_of_secrets(), viewer_is_owner=False)
        assert view_for(view, viewer_is_owner=False).whole() == view.whole()
        assert decode_file(encode_thread(view)).thread().whole() == view.whole()

    def test_every_field_of_a_message_is_decided(self) -> None:
        """A field that is added to Message is neither open nor closed until this list says so."""
        closed = {"device", "job_id", "extra", "unknown"}
        whole = {name: getattr(_everything(), name) for name in Message.__struct_fields__}
        seen = as_others_see(_everything())
        kept = {name for name in whole if getattr(seen, name) == whole[name]}
        assert set(Message.__struct_fields__) - kept == closed


def _everything() -> Message:
    return a_message(
        "m1",
        parent_id="m0",
        seq=1,
        rev=2,
        device="aaaaaaaa",
        author="Ada",
        tool_calls=(ToolCall(id="c", tool_name="t"),),
        tool_call_id="c",
        tool_name="t",
        is_error=True,
        thinking="hm",
        attachments=(Attachment(sha256="0" * 64, name="a.png"),),
        provider="p",
        model="m",
        policy_id="p",
        job_id="j",
        is_sidechain=True,
        kind="summary",
        extra={"x": 1},
        unknown={"y": 2},
    )


def test_the_owner_sees_the_thread_itself() -> None:
    thread = a_thread_full_of_secrets()
    assert view_for(thread, viewer_is_owner=True) is thread


class TestOnlyPath:
    def test_it_holds_the_turns_on_the_path_and_no_mark_of_another(self) -> None:
        thread = a_thread(*a_line("one", "two"), title="x")
        editor = Editor(thread, an_author())
        other = editor.reply("m1", "user", "other way")
        editor.name_branch(other.id, "other")
        editor.name_branch("m1", "main")
        editor.launch_job("job-1", other.id, "openai")
        editor.launch_job("job-2", "m2", "openai")
        editor.set_draft(other.id, "unsent")
        part = only_path(thread, "m2")
        assert texts(part.messages) == ["one", "two"]
        assert part.branch_marks == {"m1": {"name": "main"}}
        assert [job.job_id for job in part.pending_jobs] == ["job-2"]
        assert (part.drafts, part.title) == ({}, "x")

    def test_joining_it_into_the_thread_changes_nothing(self) -> None:
        thread = a_thread_full_of_secrets()
        part = only_path(thread, thread.messages[1].id)
        assert merge(thread, part).whole() == thread.whole()
        assert json.loads(encode_thread(part))["id"] == thread.id
