"""Everything that can be done to a thread, and how each edit is stamped."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from raddle.model.clock import parse_time
from raddle.model.errors import InvalidInput, NotFound
from raddle.model.threads.agent_state import ERROR, AgentState, PendingToolCall
from raddle.model.threads.edits import ROOT, Editor, imported_registers
from raddle.model.threads.git_facts import GitSnapshot
from raddle.model.threads.thread import Thread, merge
from tests.builders import NOON, SECOND, THREAD_ID, WoundClock, an_author, texts


class Desk:
    """One person at one thread; every edit is a second after the one before."""

    def __init__(self, device: str = "aaaaaaaa") -> None:
        self.clock = WoundClock()
        self.author = an_author(device, self.clock)
        self.thread = Thread(THREAD_ID)

    def edit(self) -> Editor:
        """A fresh editor on the newest state."""
        self.clock.wind()
        return Editor(self.thread, self.author)

    def say(self, *turns: str) -> list[str]:
        """Turns under the tip, user and assistant in turn; their ids."""
        said = []
        for number, text in enumerate(turns):
            editor = self.edit()
            said.append(editor.append("assistant" if number % 2 else "user", text).id)
            editor.delta()
        return said

    def shown(self) -> list[str]:
        """What shows, in order."""
        return texts(self.thread.tree.shown())


@pytest.fixture
def desk() -> Desk:
    return Desk()


class TestReplies:
    def test_append_without_a_parent_continues_the_tip(self, desk: Desk) -> None:
        one, two = desk.say("wsup?", "Hi!")
        message = desk.thread.tree.get(two)
        assert message is not None
        assert message.parent_id == one

    def test_a_reply_to_a_leaf_inherits_its_branch_and_the_second_one_forks(self, desk: Desk) -> None:
        root, answer = desk.say("wsup?", "Hi!")
        first = desk.edit().reply(answer, "user", "foo")
        second = desk.edit().reply(answer, "user", "other")
        assert first.branch_id == desk.thread.tree.branch_of(root)
        assert second.branch_id == second.id

    def test_a_new_root_starts_a_branch(self, desk: Desk) -> None:
        desk.say("wsup?")
        root = desk.edit().reply(None, "user", "from the top")
        assert (root.parent_id, root.branch_id) == (None, root.id)

    def test_a_reply_to_a_removed_leaf_forks(self, desk: Desk) -> None:
        _, answer = desk.say("wsup?", "Hi!")
        desk.edit().undo()
        assert desk.edit().reply(answer, "user", "and yet").branch_id != answer

    def test_an_unknown_parent_is_an_error(self, desk: Desk) -> None:
        desk.say("wsup?")
        with pytest.raises(NotFound):
            desk.edit().reply("nobody", "user", "hello?")
        assert desk.shown() == ["wsup?"]

    def test_a_sub_agents_first_turn_starts_its_branch_and_the_next_goes_on(self, desk: Desk) -> None:
        _, answer = desk.say("go", "I'll ask")
        first = desk.edit().reply(answer, "user", "sub task", is_sidechain=True)
        second = desk.edit().reply(first.id, "assistant", "sub answer", is_sidechain=True)
        assert (first.branch_id, second.branch_id) == (first.id, first.id)
        assert desk.thread.tree.is_leaf(answer)

    def test_a_parent_always_has_the_smaller_order_however_the_clock_runs(self, desk: Desk) -> None:
        desk.say("one")
        desk.clock.wind(-3600 * SECOND)
        desk.say("two")
        desk.clock.wind(-3600 * SECOND)
        desk.say("three")
        assert desk.shown() == ["one", "two", "three"]
        path = desk.thread.tree.path_to_root("a3")
        assert [m.order for m in path] == sorted({m.order for m in path})

    def test_ts_stays_the_honest_clock_and_seq_is_written_only_where_it_differs(self, desk: Desk) -> None:
        desk.say("one")
        desk.clock.wind(-3600 * SECOND)
        desk.say("two")
        first, second = desk.thread.messages
        assert (first.seq, parse_time(first.ts)) == (None, NOON + SECOND)
        assert parse_time(second.ts) == desk.clock.now
        assert second.seq is not None
        assert second.seq > first.order

    def test_a_turn_is_signed_with_device_and_name(self, desk: Desk) -> None:
        author = an_author("cccccccc", desk.clock, name="Ada")
        message = Editor(desk.thread, author).append("user", "hello")
        assert (message.device, message.author) == ("cccccccc", "Ada")

    def test_the_same_id_twice_is_one_turn(self, desk: Desk) -> None:
        editor = desk.edit()
        assert editor.add(None, "user", "once", id="x") is editor.add(None, "user", "twice", id="x")
        assert desk.shown() == ["once"]


class TestRollback:
    def test_a_childless_user_turn_goes_with_its_job_and_its_text_returns_to_the_draft(
        self, desk: Desk
    ) -> None:
        _, answer = desk.say("wsup?", "Hi!")
        (turn,) = desk.say("foo")
        desk.edit().launch_job("job-1", turn, "orchestrator")
        assert desk.edit().rollback_last_user_turn()
        assert desk.shown() == ["wsup?", "Hi!"]
        assert desk.thread.pending_jobs == []
        assert desk.thread.drafts == {"aaaaaaaa": {answer: "foo"}}

    def test_the_first_turn_returns_to_the_draft_of_a_new_root(self, desk: Desk) -> None:
        desk.say("wsup?")
        assert desk.edit().rollback_last_user_turn()
        assert desk.thread.drafts == {"aaaaaaaa": {ROOT: "wsup?"}}

    def test_what_was_typed_meanwhile_is_kept_below_it(self, desk: Desk) -> None:
        desk.say("wsup?", "Hi!", "foo")
        desk.edit().set_draft("a2", "and bar")
        desk.edit().rollback_last_user_turn()
        assert desk.thread.drafts["aaaaaaaa"]["a2"] == "foo\n\nand bar"

    def test_nothing_goes_where_the_last_turn_is_not_the_users(self, desk: Desk) -> None:
        assert not desk.edit().rollback_last_user_turn()
        desk.say("wsup?", "Hi!")
        assert not desk.edit().rollback_last_user_turn()
        assert desk.shown() == ["wsup?", "Hi!"]

    def test_other_jobs_stay(self, desk: Desk) -> None:
        root, turn = desk.say("one", "two")
        desk.edit().launch_job("job-1", root, "orchestrator")
        desk.edit().reply(turn, "user", "three")
        desk.edit().rollback_last_user_turn()
        assert [job.job_id for job in desk.thread.pending_jobs] == ["job-1"]


class TestUndo:
    def test_undo_takes_back_the_last_turn_and_redo_brings_it_back(self, desk: Desk) -> None:
        desk.say("one", "1", "two", "2")
        assert len(desk.edit().undo()) == 2
        assert desk.shown() == ["one", "1"]
        assert len(desk.edit().redo()) == 2
        assert desk.shown() == ["one", "1", "two", "2"]

    def test_undos_stack_and_redos_unstack(self, desk: Desk) -> None:
        desk.say("one", "1", "two", "2", "three", "3")
        desk.edit().undo(2)
        desk.edit().undo()
        assert desk.shown() == []
        desk.edit().redo()
        assert desk.shown() == ["one", "1"]
        desk.edit().redo(5)
        assert desk.shown() == ["one", "1", "two", "2", "three", "3"]

    def test_nothing_leaves_the_thread(self, desk: Desk) -> None:
        desk.say("one", "1")
        desk.edit().undo()
        assert texts(desk.thread.messages) == ["one", "1"]

    def test_undo_without_a_turn_and_redo_without_an_undo_do_nothing(self, desk: Desk) -> None:
        assert desk.edit().undo(3) == []
        desk.say("one")
        assert desk.edit().redo() == []

    def test_a_turn_takes_its_sub_agents_and_tools_along_and_brings_them_back(self, desk: Desk) -> None:
        _, answer = desk.say("go", "I'll ask")
        asked = desk.edit().reply(answer, "user", "sub task", is_sidechain=True)
        desk.edit().reply(asked.id, "assistant", "sub answer", is_sidechain=True)
        desk.edit().reply(answer, "user", "<reminder>", kind="notice")
        assert len(desk.edit().undo()) == 5
        assert desk.shown() == []
        desk.edit().redo()
        assert len(desk.shown()) == 5

    def test_a_turn_that_somebody_answered_meanwhile_stays(self, desk: Desk) -> None:
        desk.say("one", "1")
        other = Desk("bbbbbbbb")
        other.thread = desk.thread.copy()
        desk.edit().undo()
        other.edit().append("user", "thanks")
        assert texts(merge(desk.thread, other.thread).tree.shown()) == ["one", "1", "thanks"]

    def test_undo_follows_the_path_to_the_tip_and_leaves_other_branches(self, desk: Desk) -> None:
        _, answer = desk.say("one", "1")
        desk.edit().reply(answer, "user", "left")
        desk.edit().reply(answer, "user", "right")
        desk.edit().undo()
        assert desk.shown() == ["one", "1", "left"]

    def test_a_turn_of_thousands_of_messages_is_undone_in_one_join(self, desk: Desk) -> None:
        desk.say("go")
        editor = desk.edit()
        for number in range(3000):
            editor.append("assistant", str(number))
        joins = 0
        thread = desk.thread

        class Counting(Editor):
            def _take(self, delta: object) -> None:
                nonlocal joins
                joins += 1
                super()._take(delta)  # type: ignore[arg-type]

        assert len(Counting(thread, desk.author).undo()) == 3001
        assert joins == 1
        assert desk.shown() == []

    def test_purge_erases_words_and_keeps_the_place(self, desk: Desk) -> None:
        root, answer, _ = desk.say("secret", "a secret answer", "go on")
        assert desk.edit().purge([root, answer, "nobody"]) == [root, answer]
        assert desk.edit().purge([root]) == []
        assert desk.shown() == ["", "", "go on"]
        assert len(desk.thread.tree.path_to_root("a3")) == 3


class TestDrafts:
    def test_a_sent_turn_clears_its_draft(self, desk: Desk) -> None:
        desk.edit().set_draft(None, "wsup")
        assert desk.thread.drafts == {"aaaaaaaa": {ROOT: "wsup"}}
        desk.say("wsup?")
        assert desk.thread.drafts == {}

    def test_each_reply_target_has_a_draft_of_its_own(self, desk: Desk) -> None:
        root, answer = desk.say("one", "1")
        desk.edit().set_draft(root, "other question")
        desk.edit().set_draft(answer, "next")
        desk.edit().set_draft(root, "")
        assert desk.thread.drafts == {"aaaaaaaa": {answer: "next"}}

    def test_an_answer_or_a_sub_agents_turn_leaves_the_draft(self, desk: Desk) -> None:
        (root,) = desk.say("one")
        desk.edit().set_draft(root, "impatient")
        desk.edit().append("assistant", "1")
        desk.edit().reply(root, "user", "sub task", is_sidechain=True)
        assert desk.thread.drafts == {"aaaaaaaa": {root: "impatient"}}

    def test_the_draft_of_another_device_is_there_until_it_is_cleared(self, desk: Desk) -> None:
        (root,) = desk.say("one")
        desk.edit().set_draft(root, "from the laptop")
        other = Editor(desk.thread, an_author("bbbbbbbb", desk.clock))
        other.set_draft(root, "from the desk")
        assert set(desk.thread.drafts) == {"aaaaaaaa", "bbbbbbbb"}
        other.clear_draft("aaaaaaaa", root)
        assert set(desk.thread.drafts) == {"bbbbbbbb"}


class TestJobs:
    def test_the_reply_lands_under_the_turn_that_launched_it(self, desk: Desk) -> None:
        (root,) = desk.say("question")
        desk.edit().launch_job("job-1", root, "orchestrator")
        desk.say("something else meanwhile")
        landed = desk.edit().land_job("job-1", "answer")
        assert (landed.parent_id, landed.job_id, landed.role) == (root, "job-1", "assistant")
        assert desk.thread.pending_jobs == []

    def test_landing_twice_adds_one_message_on_two_devices_too(self, desk: Desk) -> None:
        (root,) = desk.say("question")
        desk.edit().launch_job("job-1", root, "orchestrator")
        other = Desk("bbbbbbbb")
        other.thread = desk.thread.copy()
        desk.edit().land_job("job-1", "answer")
        desk.edit().land_job("job-1", "answer")
        other.edit().land_job("job-1", "answer")
        assert texts(merge(desk.thread, other.thread).tree.shown()) == ["question", "answer"]

    def test_several_jobs_may_be_live(self, desk: Desk) -> None:
        root, answer = desk.say("question", "answer")
        desk.edit().launch_job("job-1", root, "orchestrator")
        desk.edit().launch_job("job-2", answer, "openai")
        desk.edit().clear_job("job-1")
        assert [(job.job_id, job.responder) for job in desk.thread.pending_jobs] == [("job-2", "openai")]
        desk.edit().clear_job("never launched")


def test_a_clock_that_is_behind_does_not_take_a_thread_back_in_time(desk: Desk) -> None:
    desk.say("one")
    said = desk.thread.time("last_activity_at")
    slow = an_author("bbbbbbbb", lambda: desk.clock() - 400 * 86_400 * SECOND)
    editor = Editor(desk.thread, slow)
    editor.append("assistant", "two")
    editor.delta()
    assert desk.shown() == ["one", "two"]
    assert (desk.thread.time("last_activity_at"), desk.thread.time("updated_at")) == (said, said)
    desk.say("three")
    assert desk.thread.time("last_activity_at") > said


class TestMetadata:
    def test_a_title_is_set_and_taken_away(self, desk: Desk) -> None:
        desk.edit().rename("  Fix login ")
        assert desk.thread.title == "Fix login"
        desk.edit().rename("")
        assert desk.thread.title == ""

    def test_tags_come_and_go(self, desk: Desk) -> None:
        desk.edit().tag("#bug")
        desk.edit().tag("  two   words ")
        desk.edit().untag("bug")
        desk.edit().untag("never there")
        assert desk.thread.tags == ["two words"]
        with pytest.raises(InvalidInput):
            desk.edit().tag(" # ")

    def test_a_private_thread_is_also_narrowed(self, desk: Desk) -> None:
        desk.edit().set_visibility("Public")
        desk.edit().set_private(True)
        assert (desk.thread.is_private, desk.thread.visibility) == (True, "private")
        desk.edit().set_private(False)
        assert not desk.thread.is_private

    @pytest.mark.parametrize(
        ("path", "say"),
        [
            ("visibility", lambda editor: editor.set_visibility("private")),
            ("is_private", lambda editor: editor.set_private(True)),
        ],
    )
    def test_who_closes_a_thread_is_heard_though_it_reads_so_already(
        self, desk: Desk, path: str, say: Callable[[Editor], None]
    ) -> None:
        say(desk.edit())
        before = desk.thread.registers[path].latest
        say(desk.edit())
        after = desk.thread.registers[path].latest
        assert (after.value, after.n > before.n) == (before.value, True)

    def test_a_flag_that_was_never_set_leaves_no_register_when_it_is_taken_away(self, desk: Desk) -> None:
        editor = desk.edit()
        editor.pin(False)
        editor.archive(False)
        editor.share_with_support(False)
        assert desk.thread.registers == {}

    def test_a_deleted_thread_comes_back_with_the_next_edit(self, desk: Desk) -> None:
        desk.say("one")
        desk.edit().delete()
        was_deleted = desk.thread.is_deleted
        desk.say("two")
        assert (was_deleted, desk.thread.is_deleted) == (True, False)

    def test_a_deleted_thread_is_brought_back_by_hand(self, desk: Desk) -> None:
        desk.say("one")
        desk.edit().delete()
        desk.edit().restore()
        assert not desk.thread.is_deleted

    def test_a_branch_is_named_by_a_message_on_it(self, desk: Desk) -> None:
        (root,) = desk.say("one")
        desk.edit().name_branch(root, "main line")
        desk.edit().archive_branch(root, True)
        assert desk.thread.branch_marks == {root: {"name": "main line", "is_archived": True}}
        with pytest.raises(NotFound):
            desk.edit().name_branch("nobody", "x")


class TestContext:
    def test_initial_git_facts_are_set_once_and_the_current_ones_every_time(self, desk: Desk) -> None:
        first = GitSnapshot(branch="main", head="a1", is_dirty=False, remote="github.com/me/app")
        second = GitSnapshot(branch="fix", head="b2", is_dirty=True, remote="github.com/you/app")
        desk.edit().snapshot_git(first)
        desk.edit().snapshot_git(second, ["a2"])
        desk.edit().snapshot_git(None)
        assert desk.thread.plain("git_initial_branch") == "main"
        assert desk.thread.plain("git_branch") == "fix"
        assert desk.thread.plain("git_end_dirty") is True
        assert desk.thread.git_commits == ["a1", "a2", "b2"]
        assert desk.thread.plain("git_remote_url") == "github.com/me/app"

    def test_the_agents_state_is_one_register(self, desk: Desk) -> None:
        state = AgentState(
            kind=ERROR,
            retries=2,
            last_error="overloaded",
            pending_tool_calls=(PendingToolCall(call_id="c1", tool_name="bash"),),
        )
        desk.edit().set_agent_state(state)
        assert desk.thread.agent_state == state
        assert [path for path in desk.thread.registers if "agent" in path] == ["agent_state"]


class TestImportedRegisters:
    def test_what_a_person_wrote_is_left_alone(self, desk: Desk) -> None:
        desk.edit().rename("mine")
        made = imported_registers(desk.thread.registers, [("title", NOON * 2, "theirs"), ("cwd", 5, "/w")])
        assert set(made) == {"cwd"}
        assert made["cwd"].latest == (5, "", "/w")

    def test_what_is_set_once_keeps_what_it_has_and_all_else_takes_the_last(self) -> None:
        made = imported_registers({}, [("created_at", 5, "b"), ("created_at", 9, "c")])
        assert made["created_at"].values == ["b"]
        assert imported_registers({}, [("cwd", 5, "b"), ("cwd", 9, "c"), ("cwd", 1, "a")])["cwd"].values == [
            "c"
        ]


class TestStamps:
    def test_an_edit_adds_one_to_the_version_and_renews_updated_at(self, desk: Desk) -> None:
        desk.say("one")
        before, active = desk.thread.version, desk.thread.time("last_activity_at")
        editor = desk.edit()
        editor.rename("x")
        editor.tag("y")
        delta = editor.delta()
        assert (delta.base_version, delta.version, desk.thread.version) == (before, before + 1, before + 1)
        assert parse_time(desk.thread.time("updated_at")) == desk.clock.now
        assert desk.thread.time("last_activity_at") == active

    def test_a_written_updated_at_still_makes_a_version(self, desk: Desk) -> None:
        editor = desk.edit()
        editor.write("updated_at", "2026-01-01T00:00:00.000000Z")
        assert editor.delta().version == 1

    def test_an_edit_that_changes_nothing_is_no_delta(self, desk: Desk) -> None:
        desk.edit().rename("x")
        editor = desk.edit()
        editor.rename("x")
        editor.untag("never there")
        assert editor.delta().is_empty

    def test_the_delta_holds_all_that_changed(self, desk: Desk) -> None:
        before = desk.thread.copy()
        editor = desk.edit()
        editor.start(workspace_root="/w", cwd="/w/src", client_version="1.0")
        editor.append("user", "one")
        editor.set_model("anthropic", "claude")
        before.join(editor.delta())
        assert before.whole() == desk.thread.whole()

    def test_a_write_settles_what_its_author_could_see(self, desk: Desk) -> None:
        other = Desk("bbbbbbbb")
        desk.edit().rename("one")
        other.edit().rename("two")
        desk.thread.join(other.thread.whole())
        assert len(desk.thread.registers["title"].writes) == 2
        desk.edit().rename("both")
        assert desk.thread.registers["title"].values == ["both"]
        assert set(desk.thread.registers["title"].saw) == {"aaaaaaaa", "bbbbbbbb"}

    def test_a_stamp_is_always_later_than_all_the_thread_holds(self, desk: Desk) -> None:
        ahead = Desk("bbbbbbbb")
        ahead.clock.wind(365 * 86_400 * SECOND)
        ahead.edit().rename("from next year")
        desk.thread.join(ahead.thread.whole())
        desk.edit().rename("now")
        assert desk.thread.title == "now"
        assert desk.thread.registers["title"].clock > ahead.thread.clock
