"""The thread file: written and read, with everything that other programs, people and bad disks do to it."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

from raddle.model.errors import BrokenFormat, NewerFormat, OlderFormat
from raddle.model.threads.adopt import first_sight, open_file
from raddle.model.threads.codec import FORMAT, decode_file, encode_frame, encode_thread, pretty_message
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Editor
from raddle.model.threads.git_facts import GitSnapshot
from raddle.model.threads.message import Attachment, Message, ToolCall, Usage
from raddle.model.threads.register import one_write
from raddle.model.threads.thread import Thread, merge
from raddle.model.threads.tree import TWIN_OF
from tests.builders import THREAD_ID, WoundClock, a_line, a_message, a_thread, an_author, texts


def a_full_thread() -> Thread:
    """A thread in which every kind of field holds something."""
    clock = WoundClock()
    thread = a_thread(author=an_author(clock=clock))
    editor = Editor(thread, an_author(clock=clock, name="Ada"))
    editor.start(workspace_root="/w", cwd="/w/src", client_version="1.2")
    editor.rename("Full")
    editor.tag("bug")
    editor.tag("old")
    editor.untag("old")
    editor.pin(True)
    editor.archive(False)
    editor.set_visibility("public")
    editor.share_with_support(True)
    editor.set_model("anthropic", "claude")
    editor.snapshot_git(GitSnapshot(branch="main", head="c1", is_dirty=False, remote="github.com/me/app"))
    editor.snapshot_git(GitSnapshot(branch="fix", head="c3", is_dirty=True), ["c2"])
    editor.set_context("active_policy", "nsed:review")
    editor.write("source", {"agent": "codex", "session_id": "s1"})
    editor.write("x/metadata/extra/k~1y", {"deep": [1]})
    root = editor.append("user", "question", attachments=(Attachment(sha256="0" * 64, name="a.png", size=3),))
    call = editor.append(
        "assistant",
        "let me see",
        thinking="hm",
        tool_calls=(ToolCall(id="c1", tool_name="bash", arguments_json={"command": "ls"}),),
        usage=Usage(input_tokens=3, output_tokens=4, cost_usd=0.01),
        provider="anthropic",
        model="claude",
        extra={"request_id": "r1"},
    )
    editor.append("tool", "a.txt", tool_call_id="c1", tool_name="bash", is_error=True)
    editor.reply(call.id, "user", "sub task", is_sidechain=True)
    editor.name_branch(root.id, "main line")
    editor.launch_job("job-1", root.id, "openai")
    editor.launch_job("job-2", root.id, "openai")
    editor.clear_job("job-2")
    editor.append("user", "taken back")
    editor.undo()
    editor.redo()
    editor.undo()
    editor.set_draft(root.id, "unsent")
    editor.delta()
    other = Thread(THREAD_ID)
    there = Editor(other, an_author("bbbbbbbb", clock))
    there.rename("Full, otherwise")
    there.set_visibility("private")
    there.append("user", "offline")
    there.delta()
    return merge(thread, other)


def plain_of_file(thread: Thread) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(encode_thread(thread))
    return plain


def reread(plain: Any) -> Thread:
    """The thread that a file of this JSON holds, nothing being known of it."""
    return open_file(decode_file(json.dumps(plain).encode()), None, an_author())


class TestRoundTrip:
    def test_nothing_of_a_thread_is_lost(self) -> None:
        thread = a_full_thread()
        decoded = decode_file(encode_thread(thread))
        assert (decoded.is_stamped, decoded.is_as_written, decoded.has_ids) == (True, True, True)
        assert decoded.problems == ()
        assert decoded.thread().whole() == thread.whole()
        assert encode_thread(decoded.thread()) == encode_thread(thread)

    def test_the_file_is_pretty_readable_json_that_ends_with_a_newline(self) -> None:
        thread = a_thread(a_message(content="schöne Grüße ✓"))
        data = encode_thread(thread)
        assert "schöne Grüße ✓".encode() in data
        assert data == json.dumps(json.loads(data), indent=2, ensure_ascii=False).encode() + b"\n"

    def test_absent_optionals_and_empty_lists_are_left_out(self) -> None:
        plain = plain_of_file(a_thread(a_message()))
        assert set(plain["conversation"]["messages"][0]) == {"id", "branch_id", "role", "content", "ts"}
        assert not {"git_commits", "drafts", "pending_jobs", "removed_messages", "cwd", "deleted_at"} & set(
            plain
        )

    def test_the_keys_stand_in_the_same_order_every_time(self) -> None:
        plain = plain_of_file(a_full_thread())
        assert list(plain)[:3] == ["id", "version", "created_at"]
        assert list(plain)[-2:] == ["stamps", "format"]
        assert list(plain) == list(plain_of_file(a_full_thread()))
        assert list(plain["stamps"]) == ["check", *sorted(set(plain["stamps"]) - {"check"})]

    @pytest.mark.parametrize("messages", [a_line("one"), a_line("one", "two\n\n   three", '"messages": [')])
    def test_messages_can_be_streamed_into_the_frame(self, messages: list[Message]) -> None:
        thread = a_thread(*messages, title='"messages": [\n      0\n    ]')
        before, after = encode_frame(thread)
        streamed = before + b",".join(pretty_message(message) for message in thread.tree) + after
        assert streamed == encode_thread(thread)

    def test_a_frame_without_messages_is_a_file_too(self) -> None:
        thread = a_thread(title="empty")
        assert decode_file(b"".join(encode_frame(thread))).thread().whole() == thread.whole()

    def test_no_register_can_move_the_frame(self) -> None:
        thread = a_thread(a_message(), source={"agent": "x", "messages": [0]}, cwd={"messages": [0]})
        before, after = encode_frame(thread)
        assert before + pretty_message(a_message()) + after == encode_thread(thread)


class TestStamps:
    def test_a_stamp_is_short_where_the_plain_field_reads_back(self) -> None:
        thread = a_thread(author=an_author(), title="x", is_pinned=False)
        stamps = plain_of_file(thread)["stamps"]
        assert isinstance(stamps["title"], str)
        assert stamps["title"].endswith("@aaaaaaaa")
        assert isinstance(stamps["is_pinned"], str)

    def test_a_stamp_names_what_its_author_had_seen(self) -> None:
        thread = a_thread(title="one")
        Editor(thread, an_author("bbbbbbbb")).rename("two")
        stamp = plain_of_file(thread)["stamps"]["title"]
        assert set(stamp) == {"at", "saw"}
        assert set(stamp["saw"]) == {"aaaaaaaa", "bbbbbbbb"}

    def test_values_that_nobody_settled_stand_in_full(self) -> None:
        plain = plain_of_file(a_full_thread())
        assert {write[2] for write in plain["stamps"]["visibility"]["is"]} == {"public", "private"}
        assert plain["visibility"] == "private"

    def test_a_stamp_that_is_damaged_costs_its_register_only(self) -> None:
        plain = plain_of_file(a_thread(a_message(), title="x", is_pinned=True))
        plain["stamps"]["title"] = "yesterday"
        decoded = decode_file(json.dumps(plain).encode())
        assert decoded.problems == ("stamp of title: 'yesterday' is not n@device",)
        assert set(decoded.stamps) == {"is_pinned", "updated_at"}


class TestUnknownFields:
    EXTRA: ClassVar[dict[str, Any]] = {"new_in_v9": {"a": [1, None]}, "~odd/key": "x"}

    def test_at_the_top_in_conversation_and_metadata_they_survive_a_rewrite(self) -> None:
        plain = plain_of_file(a_thread(a_message()))
        plain |= self.EXTRA
        plain["conversation"] |= self.EXTRA
        plain["metadata"] |= self.EXTRA
        plain["metadata"]["extra"] = dict(self.EXTRA)
        written = plain_of_file(reread(plain))
        again = plain_of_file(decode_file(json.dumps(written).encode()).thread())
        for place in (again, again["conversation"], again["metadata"], again["metadata"]["extra"]):
            assert {key: place[key] for key in self.EXTRA} == self.EXTRA

    def test_in_messages_and_their_parts_they_survive_a_rewrite(self) -> None:
        message = {
            "id": "m1",
            "role": "assistant",
            "content": "x",
            "new": 1,
            "tool_calls": [{"id": "c", "tool_name": "t", "arguments_json": {}, "new": 2}],
            "attachments": [{"sha256": "0" * 64, "new": 3}],
            "usage": {"input_tokens": 5, "new": 4},
            "extra": {"mine": True},
        }
        plain = plain_of_file(a_thread(a_message("m0")))
        plain["conversation"]["messages"].append(message)
        thread = reread(plain)
        assert plain_of_file(thread)["conversation"]["messages"][0] == message
        read = thread.tree.get("m1")
        assert read is not None
        assert (read.tool_calls[0].tool_name, read.attachments[0].sha256) == ("t", "0" * 64)
        assert read.usage == Usage(input_tokens=5)

    def test_in_the_agents_state_and_in_jobs_they_survive_a_rewrite(self) -> None:
        plain = plain_of_file(a_thread(a_message()))
        plain["agent_state"] |= {"kind": "dreaming", "new": 1}
        plain["pending_jobs"] = [{"job_id": "j", "parent_id": "m1", "new": 2}]
        thread = reread(plain)
        written = plain_of_file(thread)
        assert written["agent_state"]["new"] == 1
        assert written["pending_jobs"] == [{"job_id": "j", "parent_id": "m1", "new": 2}]
        assert (thread.agent_state.kind, thread.agent_state.is_known) == ("dreaming", False)

    def test_a_field_of_another_type_is_kept_as_it_was(self) -> None:
        message = {"id": "m1", "role": "user", "content": ["part"], "ts": 5, "is_error": "maybe", "rev": -1.5}
        plain = plain_of_file(a_thread(a_message("m0")))
        plain["conversation"]["messages"] = [message]
        assert plain_of_file(reread(plain))["conversation"]["messages"] == [message]

    def test_an_unknown_field_cannot_take_the_place_of_a_known_one(self) -> None:
        message = {"id": "m1", "role": "user", "content": "x", "~unknown": {"id": "evil", "content": "y"}}
        plain = plain_of_file(a_thread(a_message("m0")))
        plain["conversation"]["messages"] = [message]
        (written,) = plain_of_file(reread(plain))["conversation"]["messages"]
        assert (written["id"], written["content"]) == ("m1", "x")

    def test_a_register_of_a_newer_raddle_is_kept(self) -> None:
        thread = a_thread(a_message())
        thread.join(Delta(registers={"hologram/1": one_write(9, "aaaaaaaa", {"x": 1})}))
        assert decode_file(encode_thread(thread)).thread().registers["hologram/1"].latest.value == {"x": 1}


class TestOtherSpellings:
    @pytest.mark.parametrize(
        ("text", "read"),
        [
            ("Organisation", "organization"),
            ("ORGANIZATION", "organization"),
            ("Public", "public"),
            ("team", "private"),
        ],
    )
    def test_visibility_is_read_in_any_case_and_in_british(self, text: str, read: str) -> None:
        assert reread({"id": THREAD_ID, "visibility": text}).visibility == read

    def test_loom_version_is_the_client_version(self) -> None:
        assert reread({"id": THREAD_ID, "loom_version": "0.1.0"}).shows("client_version") == "0.1.0"

    def test_one_pending_job_and_one_draft_belong_to_the_last_turn(self) -> None:
        thread = reread(
            {
                "id": THREAD_ID,
                "conversation": {"messages": [{"role": "user", "content": "one"}]},
                "pending_job": "job-1",
                "draft": "and then",
            }
        )
        (turn,) = thread.messages
        assert [(job.job_id, job.parent_id) for job in thread.pending_jobs] == [("job-1", turn.id)]
        assert list(thread.drafts.values()) == [{turn.id: "and then"}]

    def test_an_id_in_capitals_or_without_its_prefix_is_the_same_thread(self) -> None:
        assert reread({"id": THREAD_ID[2:].upper()}).id == THREAD_ID


class TestErrors:
    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"{",
            b"[]",
            b"null",
            b"{}",
            b'{"id": 5}',
            b'{"id": "../../etc"}',
            b"\x00\x00\x00",
            b'{"id": "%s", "conversation": {"messages": {}}}' % THREAD_ID.encode(),
            b'{"id": "%s", "conversation": "gone"}' % THREAD_ID.encode(),
            b"[" * 100_000,
        ],
    )
    def test_what_is_no_thread_file_is_broken(self, data: bytes) -> None:
        with pytest.raises(BrokenFormat) as told:
            decode_file(data)
        assert told.value.message

    def test_a_file_of_a_newer_format_says_to_upgrade(self) -> None:
        with pytest.raises(NewerFormat) as told:
            decode_file(json.dumps({"id": THREAD_ID, "format": FORMAT + 1}).encode())
        assert "upgrade" in told.value.hint

    @pytest.mark.parametrize("found", [0, -1, "1", 0.5])
    def test_a_file_of_an_older_format_is_told_apart(self, found: Any) -> None:
        with pytest.raises(OlderFormat):
            decode_file(json.dumps({"id": THREAD_ID, "format": found}).encode())

    def test_groups_that_are_not_what_they_should_be_are_named(self) -> None:
        data = json.dumps({"id": THREAD_ID, "metadata": [], "drafts": "x", "git_commits": {}}).encode()
        assert decode_file(data).problems == (
            "metadata is not an object: left out",
            "drafts is not an object: left out",
            "git_commits is not a list: left out",
        )


class TestDamage:
    """Bad bytes cost the message they stand in, never the file."""

    def file_with(self, content: bytes) -> bytes:
        return (
            b'{"id": "%s", "metadata": {"title": "kept"}, "conversation": {"messages": ['
            b'{"id": "m1", "role": "user", "content": "before", "seq": 1},'
            b'{"id": "m2", "parent_id": "m1", "role": "user", "content": %s, "seq": 2},'
            b'{"id": "m3", "parent_id": "m2", "role": "user", "content": "after", "seq": 3}]}}'
        ) % (THREAD_ID.encode(), content)

    @pytest.mark.parametrize(
        ("content", "read"),
        [
            (b'"\\ud800 lone"', "\ufffd lone"),
            (b'"half \xc3"', "half \ufffd"),
            (b'"a\x00b"', "a\x00b"),
            (b"NaN", "NaN"),
            (b"1e400", "1e400"),
            (b"[" * 3000 + b"]" * 3000, ""),
        ],
    )
    def test_the_other_messages_and_the_title_are_whole(self, content: bytes, read: str) -> None:
        decoded = decode_file(self.file_with(content))
        thread = first_sight(decoded)
        assert texts(thread.messages) == ["before", read, "after"]
        assert thread.title == "kept"
        again = decode_file(encode_thread(thread))
        assert texts(again.thread().messages) == ["before", read, "after"]

    @pytest.mark.parametrize(
        "content", [b'"\\ud800"', b'"\xc3"', b"NaN", b"1e400", b"[" * 3000 + b"]" * 3000]
    )
    def test_each_repair_is_named(self, content: bytes) -> None:
        assert len(decode_file(self.file_with(content)).problems) == 1

    def test_whole_numbers_of_any_size_are_kept(self) -> None:
        number = 123456789012345678901234567890
        plain = {"id": THREAD_ID, "n": number, "conversation": {"messages": []}}
        assert plain_of_file(reread(plain))["n"] == number

    def test_a_message_that_is_no_object_and_one_without_a_role_are_kept(self) -> None:
        plain = {
            "id": THREAD_ID,
            "conversation": {"messages": ["hello", {"content": "x"}, {"id": "", "role": 5}]},
        }
        decoded = decode_file(json.dumps(plain).encode())
        thread = first_sight(decoded)
        assert [(m.role, m.content) for m in thread.messages] == [
            ("unknown", '"hello"'),
            ("unknown", "x"),
            ("unknown", ""),
        ]
        assert len(decoded.problems) == 3

    def test_duplicate_ids_orphans_and_cycles_are_kept_and_named(self) -> None:
        def message(name: str, content: str, parent_id: str | None, seq: int) -> dict[str, Any]:
            return {"id": name, "role": "user", "content": content, "seq": seq} | (
                {"parent_id": parent_id} if parent_id else {}
            )

        twice = message("m1", "one, otherwise", None, 3)
        plain = {
            "id": THREAD_ID,
            "conversation": {
                "messages": [
                    message("m1", "one", None, 1),
                    message("m1", "one", None, 1),
                    twice,
                    twice,
                    message("orphan", "orphan", "never", 4),
                    message("a", "a", "b", 5),
                    message("b", "b", "a", 6),
                ]
            },
        }
        decoded = decode_file(json.dumps(plain).encode())
        thread = first_sight(decoded)
        assert len(decoded.problems) == 3
        assert texts(thread.messages) == ["one", "one, otherwise", "orphan", "a", "b"]
        assert texts(thread.tree.lost()) == ["one, otherwise", "orphan", "a", "b"]
        assert [m.extra for m in thread.messages if m.extra] == [{TWIN_OF: "m1"}]
        assert decode_file(encode_thread(thread)).problems == ()


class TestEditedByHand:
    def test_an_untouched_file_reads_as_written(self) -> None:
        assert decode_file(json.dumps(plain_of_file(a_full_thread())).encode()).is_as_written

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("cwd", "/elsewhere"),
            ("git_branch", "fix"),
            ("is_private", True),
            ("brand_new", 1),
            ("drafts", {"x": {}}),
        ],
    )
    def test_a_field_that_reads_otherwise_is_noticed(self, key: str, value: Any) -> None:
        plain = plain_of_file(a_thread(a_message(), title="x"))
        plain[key] = value
        assert not decode_file(json.dumps(plain).encode()).is_as_written

    def test_other_white_space_and_key_order_are_no_edit(self) -> None:
        plain = plain_of_file(a_full_thread())
        turned = json.dumps(dict(reversed(plain.items())), separators=(",", ":")).encode()
        assert decode_file(turned).is_as_written


def test_a_bare_control_character_is_damage_in_a_file_of_ours_and_text_in_any_other() -> None:
    data = encode_thread(a_thread(*a_line("hello", "hi"))).replace(b"hello", b"he\0\0o")
    (first, _) = decode_file(data).messages
    assert first.content == "he\0\0o"
    with pytest.raises(BrokenFormat, match="control character"):
        decode_file(data, is_ours=True)
    told = encode_thread(a_thread(*a_line("he\0\0o", "hi")))
    assert decode_file(told, is_ours=True).messages[0].content == "he\0\0o"
