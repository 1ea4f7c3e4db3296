"""Branches as a person handles them: listed, named, compared, forked, promoted, grafted."""

from __future__ import annotations

import pytest

from raddle.model.errors import InvalidInput, NotFound
from raddle.model.ids import MonotonicIds
from raddle.model.threads.branching import compare, fork_into, graft, list_branches, promote_into
from raddle.model.threads.edits import Editor
from raddle.model.threads.message import Usage
from raddle.model.threads.rendering import to_deliberation_query_from
from raddle.model.threads.thread import Thread, merge
from raddle.model.threads.view import view_for
from tests.builders import THREAD_ID, WoundClock, a_line, a_message, a_thread, an_author, texts


def a_fork() -> Thread:
    """one, two, three; and beside three: other, with an answer and a sub-agent under it."""
    thread = a_thread(
        *a_line("one", "two", "three"),
        a_message("o1", "other", parent_id="m2", seq=1 << 60),
        a_message("o2", "answer", parent_id="o1", branch_id="o1", role="assistant", seq=(1 << 60) + 1),
        a_message("s1", "sub", parent_id="o2", is_sidechain=True, seq=(1 << 60) + 2),
        title="Plan",
    )
    editor = Editor(thread, an_author())
    editor.tag("bug")
    editor.set_model("anthropic", "claude")
    editor.start(workspace_root="/w")
    return thread


def a_new_thread() -> Editor:
    clock = WoundClock()
    return Editor(Thread("T-" + MonotonicIds(clock)()), an_author("nnnnnnnn", clock))


class TestList:
    def test_each_branch_says_where_it_starts_leaves_and_ends(self) -> None:
        rows = [
            (row.start, row.under, row.tip, row.length, row.fork_depth) for row in list_branches(a_fork())
        ]
        assert rows == [("m1", None, "m3", 3, 0), ("o1", "m2", "o2", 2, 1), ("s1", "o2", "s1", 1, 2)]

    def test_the_branch_of_the_tip_is_the_current_one(self) -> None:
        assert [row.start for row in list_branches(a_fork()) if row.is_current] == ["o1"]
        assert [row.start for row in list_branches(a_fork()) if row.is_sidechain] == ["s1"]
        assert list_branches(Thread(THREAD_ID)) == []

    def test_names_and_archive_marks_are_shown_wherever_on_the_branch_they_were_made(self) -> None:
        thread = a_fork()
        editor = Editor(thread, an_author())
        editor.name_branch("m3", "first name")
        editor.name_branch("m1", "last name")
        editor.archive_branch("o2", True)
        rows = list_branches(thread)
        assert [(row.name, row.is_archived) for row in rows] == [
            ("last name", False),
            ("", True),
            ("", False),
        ]

    def test_a_name_stays_with_its_words_when_a_late_reply_takes_the_branch_over(self) -> None:
        thread = a_thread(
            a_message("m1", "one", seq=1), a_message("late", "late", parent_id="m1", branch_id="m1", seq=9)
        )
        Editor(thread, an_author()).name_branch("late", "mine")
        thread.join(a_thread(a_message("early", "early", parent_id="m1", branch_id="m1", seq=5)).whole())
        assert [(row.start, row.name) for row in list_branches(thread)] == [("m1", ""), ("late", "mine")]

    def test_a_removed_branch_is_not_listed(self) -> None:
        thread = a_fork()
        Editor(thread, an_author()).undo()
        assert [row.start for row in list_branches(thread)] == ["m1"]


class TestCompare:
    def test_two_leaves_are_told_from_the_fork_on(self) -> None:
        found = compare(a_fork(), "m3", "o2")
        assert found.fork is not None
        assert (found.fork.id, texts(found.one), texts(found.other)) == ("m2", ["three"], ["other", "answer"])

    def test_a_message_and_one_above_it_differ_on_one_side_only(self) -> None:
        found = compare(a_fork(), "m1", "m3")
        assert (found.one, texts(found.other)) == ([], ["two", "three"])

    def test_two_roots_share_nothing(self) -> None:
        thread = a_thread(a_message("a"), a_message("b"))
        assert compare(thread, "a", "b").fork is None

    def test_an_unknown_message_is_an_error(self) -> None:
        with pytest.raises(NotFound):
            compare(a_fork(), "m1", "nobody")


class TestNewThreads:
    def test_a_fork_is_the_path_to_a_message_and_its_turns_keep_their_ids(self) -> None:
        new = a_new_thread()
        fork_into(new, a_fork(), "o2")
        assert [m.id for m in new.thread.messages] == ["m1", "m2", "o1", "o2"]
        assert (new.thread.title, new.thread.tags) == ("Plan", ["bug"])
        assert (new.thread.plain("model"), new.thread.shows("workspace_root")) == ("claude", "/w")
        assert new.thread.shows("x/metadata/extra/forked_from") == {
            "thread_id": THREAD_ID,
            "message_id": "o2",
        }
        assert new.delta().version == 1

    def test_a_fork_of_the_whole_has_all_that_shows(self) -> None:
        source = a_fork()
        Editor(source, an_author()).write("gone/m3", True)
        new = a_new_thread()
        fork_into(new, source, title="Mine")
        assert texts(new.thread.tree.shown()) == ["one", "two", "other", "answer", "sub"]
        assert new.thread.title == "Mine"
        tip = new.thread.tree.tip()
        assert tip is not None
        assert tip.id == "o2"

    def test_a_promoted_branch_takes_what_leads_there_and_all_under_its_start(self) -> None:
        source = a_fork()
        Editor(source, an_author()).name_branch("o1", "the other way")
        new = a_new_thread()
        before = source.whole()
        promote_into(new, source, "o2")
        assert [m.id for m in new.thread.messages] == ["m1", "m2", "o1", "o2", "s1"]
        assert new.thread.title == "the other way"
        assert source.whole() == before

    def test_it_goes_on_like_any_thread(self) -> None:
        new = a_new_thread()
        fork_into(new, a_fork(), "m2")
        new.append("user", "on with it")
        assert texts(new.thread.tree.path_to_root("n1")) == ["one", "two", "on with it"]
        assert new.thread.tree.fork_depth("n1") == 0

    @pytest.mark.parametrize(("field", "value"), [("is_private", True), ("visibility", "private")])
    def test_what_was_private_stays_private(self, field: str, value: object) -> None:
        source = a_fork()
        Editor(source, an_author()).write(field, value)
        new = a_new_thread()
        fork_into(new, source)
        assert new.thread.visibility == "private"
        assert new.thread.is_private == (field == "is_private")

    def test_what_was_public_does_not_become_public_by_itself(self) -> None:
        source = a_fork()
        Editor(source, an_author()).set_visibility("public")
        new = a_new_thread()
        fork_into(new, source)
        assert new.thread.visibility == "organization"

    def test_the_owners_drafts_jobs_and_marks_stay_behind(self) -> None:
        source = a_fork()
        editor = Editor(source, an_author())
        editor.set_draft("m3", "unsent")
        editor.launch_job("job-1", "m3", "openai")
        editor.pin(True)
        new = a_new_thread()
        fork_into(new, source)
        assert (new.thread.drafts, new.thread.pending_jobs, new.thread.is_pinned) == ({}, [], False)

    def test_another_readers_view_can_be_forked(self) -> None:
        new = a_new_thread()
        fork_into(new, view_for(a_fork(), viewer_is_owner=False))
        assert texts(new.thread.messages)[:3] == ["one", "two", "three"]
        assert new.thread.shows("workspace_root") is None

    def test_nothing_to_copy_and_an_unknown_message_are_errors(self) -> None:
        with pytest.raises(InvalidInput):
            fork_into(a_new_thread(), Thread(THREAD_ID))
        for verb in (fork_into, promote_into):
            with pytest.raises(NotFound):
                verb(a_new_thread(), a_fork(), "nobody")


class TestGraft:
    def test_a_path_is_copied_under_another_message_from_where_the_two_part(self) -> None:
        thread = a_fork()
        copies = graft(Editor(thread, an_author()), "o2", "m3")
        assert texts(copies) == ["other", "answer"]
        assert texts(thread.tree.path_to_root(copies[-1].id)) == ["one", "two", "three", "other", "answer"]
        assert [m.role for m in copies] == ["user", "assistant"]
        assert to_deliberation_query_from(thread, copies[-1].id, "go").count("[user] other") == 1

    def test_copies_are_turns_of_their_own_that_say_where_they_come_from(self) -> None:
        thread = a_fork()
        editor = Editor(thread, an_author("gggggggg"))
        (copy,) = graft(editor, "o1", "m3")
        assert copy.id not in {"o1", "m3"}
        assert (copy.device, copy.branch_id) == ("gggggggg", "m1")
        assert copy.extra == {"copied_from": {"thread_id": THREAD_ID, "message_id": "o1"}}
        assert editor.delta().messages == (copy,)

    def test_nothing_is_spent_and_no_draft_is_touched(self) -> None:
        thread = a_thread(
            *a_line("one", "two"), a_message("x", "x", parent_id="m1", usage=Usage(input_tokens=9))
        )
        editor = Editor(thread, an_author())
        editor.set_draft("m2", "unsent")
        (copy,) = graft(editor, "x", "m2")
        assert copy.usage is None
        assert thread.drafts == {"aaaaaaaa": {"m2": "unsent"}}

    def test_it_can_begin_further_down_and_end_as_a_new_root(self) -> None:
        copies = graft(Editor(a_fork(), an_author()), "o2", None, start="o2")
        assert [(m.content, m.parent_id) for m in copies] == [("answer", None)]

    def test_a_path_of_another_thread_is_copied_whole(self) -> None:
        source = a_thread(*a_line("there", "and back"), thread_id="T-018e2b3c-4d5e-7f8a-9b0c-000000000000")
        thread = a_fork()
        copies = graft(Editor(thread, an_author()), "m2", "m3", source=source)
        assert texts(copies) == ["there", "and back"]
        assert copies[0].extra["copied_from"]["thread_id"] == source.id

    def test_purged_and_removed_turns_are_passed_over(self) -> None:
        thread = a_fork()
        Editor(thread, an_author()).purge(["o1"])
        copies = graft(Editor(thread, an_author()), "o2", "m3")
        assert texts(copies) == ["answer"]

    def test_what_makes_no_sense_is_refused_and_changes_nothing(self) -> None:
        thread = a_fork()
        before = thread.whole()
        with pytest.raises(InvalidInput):
            graft(Editor(thread, an_author()), "m2", "m3")
        with pytest.raises(InvalidInput):
            graft(Editor(thread, an_author()), "o2", "m3", start="m3")
        for leaf, under in (("nobody", "m3"), ("o2", "nobody")):
            with pytest.raises(NotFound):
                graft(Editor(thread, an_author()), leaf, under)
        assert thread.whole() == before

    def test_the_same_graft_on_two_devices_is_two_grafts(self) -> None:
        one, other = a_fork(), a_fork()
        graft(Editor(one, an_author("aaaaaaaa")), "o1", "m3")
        graft(Editor(other, an_author("bbbbbbbb")), "o1", "m3")
        assert texts(merge(one, other).tree.children("m3")) == ["other", "other"]
