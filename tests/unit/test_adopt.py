"""Files that another program or a person wrote: what they say is taken in, what they do not know is kept."""

from __future__ import annotations

import json
from typing import Any

from raddle.actions.exporting.loom import to_loom
from raddle.model.threads.adopt import adopt, first_sight, migrated_messages, open_file, with_new_words
from raddle.model.threads.codec import Decoded, decode_file, encode_thread
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Editor
from raddle.model.threads.message import changed
from raddle.model.threads.thread import Thread, diff, merge
from tests.builders import NOON, SECOND, THREAD_ID, WoundClock, a_line, a_message, a_thread, an_author, texts


def a_loom_file(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A file of the first seed's program: no ids, no times on its messages, no stamps."""
    return {
        "id": THREAD_ID,
        "version": 3,
        "created_at": "2026-11-30T09:00:00Z",
        "updated_at": "2026-11-30T10:00:00Z",
        "last_activity_at": "2026-11-30T10:00:00Z",
        "workspace_root": "/home/user/project",
        "cwd": "/home/user/project/src",
        "loom_version": "0.1.0",
        "git_branch": "main",
        "git_remote_url": "github.com/user/repo",
        "git_initial_branch": "main",
        "git_initial_commit_sha": "a1",
        "git_current_commit_sha": "b2",
        "git_commits": ["a1", "b2"],
        "git_start_dirty": False,
        "git_end_dirty": True,
        "provider": "anthropic",
        "model": "claude",
        "conversation": {"messages": list(messages) or LOOM_MESSAGES},
        "agent_state": {
            "kind": "executing_tools",
            "retries": 1,
            "last_error": None,
            "pending_tool_calls": [{"call_id": "c9", "tool_name": "bash"}],
        },
        "metadata": {"title": "Login", "tags": ["auth"], "is_pinned": True, "extra": {"mine": 1}},
        "is_private": False,
        "visibility": "organization",
        "is_shared_with_support": False,
        **fields,
    }


LOOM_MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Add error handling to login function"},
    {
        "role": "assistant",
        "content": "I'll add it.",
        "tool_calls": [
            {"id": "call_abc123", "tool_name": "read_file", "arguments_json": {"path": "src/auth.rs"}}
        ],
    },
    {
        "role": "tool",
        "content": '{"contents": "..."}',
        "tool_call_id": "call_abc123",
        "tool_name": "read_file",
    },
]


def opened(plain: Any, known: Thread | None = None, clock: WoundClock | None = None) -> Thread:
    return open_file(decode_file(json.dumps(plain).encode()), known, an_author(clock=clock))


def decoded(plain: Any) -> Decoded:
    return decode_file(json.dumps(plain).encode())


def merged(thread: Thread, news: Delta) -> list[str]:
    again = thread.copy()
    again.join(news)
    return texts(again.messages)


def as_the_seed_writes(thread: Thread) -> dict[str, Any]:
    """What its program makes of one of our files: the fields it knows, all messages in the file's order."""
    known = json.loads(encode_thread(thread))
    plain = json.loads(to_loom(thread))
    fields = ("role", "content", "tool_calls", "tool_call_id", "tool_name")
    plain["conversation"]["messages"] = [
        {key: message[key] for key in fields if key in message}
        for message in known["conversation"]["messages"]
    ]
    plain["metadata"]["extra"] = known["metadata"].get("extra", {})
    plain["loom_version"] = known.get("client_version")
    result: dict[str, Any] = plain
    return result


class TestFirstSight:
    def test_a_linear_list_becomes_one_branch_with_parents_and_ids(self) -> None:
        thread = opened(a_loom_file())
        messages = thread.messages
        assert texts(messages) == [m["content"] for m in LOOM_MESSAGES]
        assert [m.parent_id for m in messages] == [None, messages[0].id, messages[1].id]
        assert {thread.tree.branch_of(m.id) for m in messages} == {messages[0].id}
        assert messages[1].tool_calls[0].arguments_json == {"path": "src/auth.rs"}

    def test_every_field_of_the_seed_has_its_place(self) -> None:
        thread = opened(a_loom_file())
        assert (thread.title, thread.tags, thread.is_pinned) == ("Login", ["auth"], True)
        assert thread.git_commits == ["a1", "b2"]
        assert thread.plain("git_end_dirty") is True
        assert thread.shows("client_version") == "0.1.0"
        assert thread.agent_state.pending_tool_calls[0].call_id == "c9"
        assert thread.version == 3

    def test_loading_one_file_twice_or_on_two_machines_gives_one_thread(self) -> None:
        one, other = opened(a_loom_file()), opened(a_loom_file())
        assert one.whole() == other.whole() == merge(one, other).whole()

    def test_copies_that_went_on_differently_share_their_beginning_and_fork(self) -> None:
        one = opened(a_loom_file(*LOOM_MESSAGES, {"role": "user", "content": "x"}))
        other = opened(
            a_loom_file(*LOOM_MESSAGES, {"role": "user", "content": "y"}, metadata={"title": "Other"})
        )
        both = merge(one, other)
        assert len(both.messages) == 5
        assert texts(both.tree.children(both.messages[2].id)) in (["x", "y"], ["y", "x"])
        assert set(both.registers["title"].values) == {"Login", "Other"}

    def test_a_first_sight_is_nobodys_edit(self) -> None:
        thread = opened(a_loom_file())
        assert thread.edit_clock == {}
        assert {write.device[:1] for register in thread.registers.values() for write in register.writes} == {
            "~"
        }

    def test_a_deleted_file_is_deleted(self) -> None:
        assert opened(a_loom_file(deleted_at="2026-11-30T10:00:00Z")).is_deleted

    def test_the_seeds_own_fields_go_out_as_they_came_in(self) -> None:
        plain = a_loom_file()
        thread = opened(plain)
        assert json.loads(to_loom(thread)) == plain
        assert json.loads(to_loom(decode_file(encode_thread(thread)).thread())) == plain


class TestMigration:
    def test_it_is_a_no_op_where_every_message_has_an_id(self) -> None:
        line = a_line("one", "two")
        assert migrated_messages(THREAD_ID, line, NOON) == line

    def test_a_mix_keeps_what_is_there_and_fills_what_is_missing(self) -> None:
        first = a_message("m1", "one")
        after = a_message("m9", "nine", parent_id="m1")
        bare = {"role": "assistant", "content": "two"}
        one, two, nine = migrated_messages(THREAD_ID, [first, bare, after], NOON)
        assert (one, nine) == (first, after)
        assert (two.parent_id, two.branch_id) == ("m1", "m1")

    def test_times_that_are_there_order_the_messages_and_the_list_orders_the_rest(self) -> None:
        late = {"role": "user", "content": "late", "ts": "2026-11-30T12:00:09.000000Z"}
        early = {"role": "user", "content": "early", "ts": "2026-11-30T12:00:01.000000Z"}
        messages = migrated_messages(THREAD_ID, [late, early, {"role": "user", "content": "timeless"}], NOON)
        assert [m.order for m in messages] == [
            NOON + 9 * SECOND,
            NOON + 9 * SECOND + 1,
            NOON + 9 * SECOND + 2,
        ]
        assert messages[0].seq is None
        assert messages[1].ts == early["ts"]

    def test_an_empty_parent_or_branch_is_a_missing_one(self) -> None:
        bare = [{"role": "user", "content": x, "id": "", "parent_id": "", "branch_id": ""} for x in "ab"]
        one, two = migrated_messages(THREAD_ID, bare, NOON)
        assert (one.parent_id, two.parent_id, two.branch_id) == (None, one.id, one.id)


class TestRewrittenByTheSeed:
    def ours(self, clock: WoundClock) -> Thread:
        thread = a_thread(*a_line("one", "1", "two", "2"), author=an_author(clock=clock), title="Ours")
        editor = Editor(thread, an_author(clock=clock))
        editor.start(workspace_root="/w", client_version="1.0")
        editor.tag("keep")
        editor.set_model("anthropic", "claude")
        editor.write("x/metadata/extra/mine", 1)
        editor.set_draft("m4", "unsent")
        editor.name_branch("m1", "main line")
        editor.archive(True)
        editor.undo()
        editor.delta()
        return thread

    def test_an_untouched_rewrite_changes_nothing(self) -> None:
        clock = WoundClock()
        thread = self.ours(clock)
        clock.wind()
        again = opened(as_the_seed_writes(thread), thread, clock)
        assert diff(thread, again).is_empty
        assert again.version == thread.version

    def test_each_field_that_reads_otherwise_is_one_more_edit(self) -> None:
        clock = WoundClock()
        thread = self.ours(clock)
        clock.wind()
        plain = as_the_seed_writes(thread)
        plain |= {"cwd": "/w/src", "version": 9, "updated_at": "2026-11-30T12:30:00.000000Z"}
        plain["metadata"] |= {"title": "Theirs", "tags": ["new"], "is_pinned": True}
        again = opened(plain, thread, clock)
        assert (again.title, again.tags, again.is_pinned, again.shows("cwd")) == (
            "Theirs",
            ["new"],
            True,
            "/w/src",
        )
        assert again.registers["title"].latest.device == "aaaaaaaa"
        assert again.version == 10

    def test_what_its_program_does_not_know_is_not_lost(self) -> None:
        clock = WoundClock()
        thread = self.ours(clock)
        plain = as_the_seed_writes(thread)
        plain["metadata"]["title"] = "Theirs"
        again = opened(plain, thread, clock)
        assert (again.is_archived, again.drafts, again.branch_marks) == (
            True,
            thread.drafts,
            thread.branch_marks,
        )
        assert again.removed_messages == thread.removed_messages

    def test_a_title_it_took_away_is_gone(self) -> None:
        thread = self.ours(WoundClock())
        plain = as_the_seed_writes(thread)
        plain["metadata"]["title"] = None
        assert opened(plain, thread).title == ""

    def test_turns_it_added_are_appended_once(self) -> None:
        clock = WoundClock()
        thread = self.ours(clock)
        clock.wind()
        plain = as_the_seed_writes(thread)
        plain["conversation"]["messages"].append({"role": "user", "content": "three"})
        again = opened(plain, thread, clock)
        assert texts(again.messages) == ["one", "1", "two", "2", "three"]
        assert again.messages[-1].parent_id == "m4"
        assert opened(plain, again, clock).whole() == again.whole()

    def test_the_known_thread_itself_is_not_changed(self) -> None:
        thread = self.ours(WoundClock())
        before = thread.whole()
        plain = as_the_seed_writes(thread)
        plain["metadata"]["title"] = "Theirs"
        adopt(thread, decode_file(json.dumps(plain).encode()), an_author())
        assert thread.whole() == before


class TestEditedByHand:
    def edited(self, **fields: Any) -> tuple[Thread, dict[str, Any]]:
        thread = a_thread(*a_line("one"), title="Ours", is_archived=False)
        plain = json.loads(encode_thread(thread))
        return thread, {**plain, **fields}

    def test_a_changed_field_is_an_edit_of_this_device(self) -> None:
        thread, plain = self.edited()
        plain["metadata"] |= {"title": "By hand", "is_archived": True}
        again = opened(plain, thread)
        assert (again.title, again.is_archived) == ("By hand", True)
        assert again.registers["title"].clock > thread.registers["title"].clock

    def test_a_tag_that_was_added_is_kept_even_where_nothing_else_is_known(self) -> None:
        _, plain = self.edited(new_field=1)
        plain["metadata"]["tags"] = ["by-hand"]
        again = opened(plain)
        assert again.tags == ["by-hand"]
        assert again.shows("x/new_field") == 1

    def test_a_turn_without_an_id_is_one_more_turn(self) -> None:
        thread, plain = self.edited()
        plain["conversation"]["messages"].append({"role": "user", "content": "typed in an editor"})
        for known in (thread, None):
            again = opened(plain, known)
            assert texts(again.messages) == ["one", "typed in an editor"]
            assert again.messages[1].parent_id == "m1"

    def test_a_turn_with_an_id_that_is_not_known_is_taken_in(self) -> None:
        thread, plain = self.edited(cwd="/elsewhere")
        plain["conversation"]["messages"].append(
            {"id": "m2", "parent_id": "m1", "role": "user", "content": "two"}
        )
        assert texts(opened(plain, thread).messages) == ["two", "one"]

    def test_a_job_is_not_launched_anew_by_what_the_file_still_says(self) -> None:
        thread = a_thread(*a_line("one"))
        Editor(thread, an_author()).launch_job("job-1", "m1", "openai")
        plain = json.loads(encode_thread(thread))
        plain["cwd"] = "/elsewhere"
        plain["pending_jobs"][0]["parent_id"] = None
        assert opened(plain, thread).pending_jobs == thread.pending_jobs

    def test_changed_words_are_a_later_form_whichever_sorts_first(self) -> None:
        for words in ("A", "zzz"):
            thread, plain = self.edited()
            plain["conversation"]["messages"][0]["content"] = words
            news = with_new_words(thread, decoded(plain))
            assert merged(thread, news) == [words]
            thread.join(news)
            assert with_new_words(thread, decoded(plain)).is_empty

    def test_words_put_back_win_over_the_edit_and_older_forms_over_nothing(self) -> None:
        thread, good = self.edited()
        bad = json.loads(json.dumps(good))
        bad["conversation"]["messages"][0]["content"] = "bad"
        thread.join(with_new_words(thread, decoded(bad)))
        thread.join(with_new_words(thread, decoded(good)))
        assert texts(thread.messages) == ["one"]
        assert with_new_words(thread, decoded(good)).is_empty
        grown = a_thread(changed(a_line("one")[0], content="one and more", rev=1))
        assert with_new_words(grown, decoded(good)).is_empty

    def test_a_purged_message_gets_no_words_back(self) -> None:
        thread, plain = self.edited()
        stub = a_thread(thread.messages[0].purged())
        assert with_new_words(stub, decoded(plain)).is_empty

    def test_an_unedited_file_is_taken_as_it_is(self) -> None:
        thread, plain = self.edited()
        assert opened(plain).whole() == thread.whole()


def test_a_time_before_1970_makes_no_stamp_that_a_hub_refuses() -> None:
    decoded = decode_file(json.dumps(a_loom_file(updated_at="1901-01-01T00:00:00Z")).encode())
    assert all(register.clock >= 0 for register in first_sight(decoded).registers.values())
