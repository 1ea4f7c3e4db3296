"""The tree over messages: replies, leaves, paths, branches, removals, and broken input kept whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from raddle.model.clock import format_time
from raddle.model.threads.message import Message
from raddle.model.threads.tree import TWIN_OF, MessageTree
from tests.builders import NOON, SECOND, a_line, a_message, texts


def at(
    second: int, message_id: str, parent_id: str | None = None, branch_id: str = "", **fields: Any
) -> Message:
    """A message that many seconds past noon; on a branch of its own unless it names one."""
    return a_message(
        message_id,
        message_id,
        parent_id=parent_id,
        branch_id=branch_id or message_id,
        ts=format_time(NOON + second * SECOND),
        **fields,
    )


def ids(messages: list[Message]) -> list[str]:
    return [message.id for message in messages]


def a_fork() -> MessageTree:
    """wsup, hi under it, foo under hi, and beside foo a second answer: other, with its own answer."""
    return MessageTree(
        [
            at(0, "wsup"),
            at(1, "hi", "wsup", "wsup"),
            at(2, "foo", "hi", "wsup"),
            at(3, "other", "hi"),
            at(4, "reply", "other", "other"),
        ]
    )


class TestWhoAnswersWhom:
    def test_children_are_the_direct_replies_in_their_order(self) -> None:
        assert ids(a_fork().children("hi")) == ["foo", "other"]
        assert a_fork().children("reply") == []

    def test_the_children_of_nothing_are_the_root_turns(self) -> None:
        tree = a_fork()
        tree.put(at(9, "again"))
        assert ids(tree.children(None)) == ["wsup", "again"]

    def test_get_finds_a_message_by_its_id(self) -> None:
        found = a_fork().get("hi")
        assert found is not None
        assert found.content == "hi"
        assert a_fork().get("nobody") is None

    def test_a_leaf_is_a_message_that_is_there_and_has_no_replies(self) -> None:
        tree = a_fork()
        assert [name for name in ("wsup", "hi", "foo", "other", "reply") if tree.is_leaf(name)] == [
            "foo",
            "reply",
        ]
        assert not tree.is_leaf("nobody")

    def test_heads_are_the_leaves_newest_last(self) -> None:
        assert ids(a_fork().heads()) == ["foo", "reply"]

    def test_path_to_root_begins_at_the_root(self) -> None:
        assert ids(a_fork().path_to_root("reply")) == ["wsup", "hi", "other", "reply"]

    def test_the_path_to_an_unknown_message_is_empty(self) -> None:
        assert a_fork().path_to_root("nobody") == []
        assert a_fork().path_to_root(None) == []

    def test_below_has_the_message_first_and_parents_before_children(self) -> None:
        assert ids(a_fork().below("hi")) == ["hi", "foo", "other", "reply"]
        assert a_fork().below("nobody") == []


class TestTip:
    def test_the_tip_is_the_newest_message_overall(self) -> None:
        tip = a_fork().tip()
        assert tip is not None
        assert tip.id == "reply"

    def test_an_empty_thread_has_no_tip(self) -> None:
        assert MessageTree().tip() is None

    def test_of_two_messages_at_one_time_the_one_with_the_greater_id_is_the_tip(self) -> None:
        tip = MessageTree([at(0, "a"), at(0, "b")]).tip()
        assert tip is not None
        assert tip.id == "b"

    def test_a_clock_that_ran_ahead_cannot_pin_the_tip(self) -> None:
        ahead = at(3600, "ahead")
        after = at(1, "after", "ahead", seq=ahead.order + 1)
        tip = MessageTree([ahead, after]).tip()
        assert tip is not None
        assert tip.id == "after"

    def test_a_sub_agents_turn_is_never_the_tip(self) -> None:
        tree = a_fork()
        tree.put(at(9, "sub", "reply", is_sidechain=True))
        tip = tree.tip()
        assert tip is not None
        assert tip.id == "reply"


class TestBranches:
    def test_the_first_reply_goes_on_and_the_second_forks(self) -> None:
        tree = a_fork()
        assert tree.branch_of("foo") == tree.branch_of("wsup")
        assert tree.branch_of("other") == "other"

    def test_fork_depth_counts_the_forks_on_the_way(self) -> None:
        tree = a_fork()
        tree.put(at(5, "deeper", "other"))
        assert [tree.fork_depth(name) for name in ("wsup", "foo", "reply", "deeper")] == [0, 0, 1, 2]
        assert tree.fork_depth("nobody") == 0

    def test_branches_run_from_their_start_to_their_last_message(self) -> None:
        found = [(branch.start, branch.tip, branch.length) for branch in a_fork().branches()]
        assert found == [("wsup", "foo", 3), ("other", "reply", 2)]

    def test_the_child_on_the_same_branch_continues_it(self) -> None:
        tree = a_fork()
        goes_on = tree.continuation("hi")
        assert goes_on is not None
        assert goes_on.id == "foo"
        assert tree.continuation("foo") is None

    def test_of_two_offline_replies_to_one_leaf_the_earlier_keeps_the_branch_id(self) -> None:
        late = at(2, "late", "root", "root")
        early = at(1, "early", "root", "root")
        for messages in ([at(0, "root"), late, early], [early, at(0, "root"), late]):
            tree = MessageTree(messages)
            assert (tree.branch_of("early"), tree.branch_of("late")) == ("root", "late")

    def test_no_two_branches_share_an_id(self) -> None:
        tree = MessageTree([at(0, "a", None, "b1"), at(1, "b", None, "b1"), at(2, "c", "b", "b1")])
        assert (tree.branch_of("a"), tree.branch_of("b"), tree.branch_of("c")) == ("b1", "b", "b")

    def test_messages_without_branch_ids_form_one_branch(self) -> None:
        line = [
            Message(id=f"m{n}", parent_id=f"m{n - 1}" if n else None, role="user", seq=n) for n in range(3)
        ]
        tree = MessageTree(line)
        assert {tree.branch_of(message.id) for message in line} == {"m0"}

    def test_a_sub_agents_line_is_a_branch_of_its_own_and_no_reply(self) -> None:
        tree = a_fork()
        tree.put(at(5, "ask", "reply", is_sidechain=True))
        tree.put(at(6, "answer", "ask", "ask", is_sidechain=True))
        assert tree.is_leaf("reply")
        assert not tree.is_leaf("ask")
        assert tree.branch_of("answer") == "ask"
        assert ids(tree.heads()) == ["foo", "reply"]


class TestRemoved:
    def test_a_removed_leaf_does_not_show(self) -> None:
        tree = a_fork()
        tree.set_gone(["foo"])
        assert ids(list(tree.shown())) == ["wsup", "hi", "other", "reply"]
        assert tree.is_removed("foo")
        assert ids(tree.children("hi")) == ["other"]
        assert ids(tree.children("hi", removed=True)) == ["foo", "other"]

    def test_a_removed_message_shows_while_something_shown_stands_under_it(self) -> None:
        tree = a_fork()
        tree.set_gone(["other"])
        assert not tree.is_removed("other")
        tree.set_gone(["other", "reply"])
        assert tree.is_removed("other")

    def test_a_reply_that_arrives_under_a_removed_turn_brings_the_way_to_it_back(self) -> None:
        tree = a_fork()
        tree.set_gone(["other", "reply"])
        assert tree.is_removed("reply")
        tree.put(at(9, "late", "reply", "other"))
        assert ids(tree.path_to_root("late")) == ["wsup", "hi", "other", "reply", "late"]
        assert not any(tree.is_removed(name) for name in ("other", "reply", "late"))

    def test_a_message_that_arrives_after_its_removal_does_not_show(self) -> None:
        tree = MessageTree([at(0, "root")], gone=["late"])
        assert ids(list(tree.shown())) == ["root"]
        tree.put(at(1, "late", "root"))
        assert ids(list(tree.shown())) == ["root"]
        assert tree.is_leaf("root")

    def test_a_removed_turn_is_neither_tip_nor_head(self) -> None:
        tree = a_fork()
        tree.set_gone(["reply", "other"])
        tip = tree.tip()
        assert tip is not None
        assert tip.id == "foo"
        assert ids(tree.heads()) == ["foo"]

    def test_the_second_reply_takes_the_branch_over_when_the_first_is_removed(self) -> None:
        tree = MessageTree([at(0, "root"), at(1, "one", "root", "root"), at(2, "two", "root", "root")])
        assert tree.branch_of("two") == "two"
        tree.set_gone(["one"])
        assert tree.branch_of("two") == "root"

    def test_a_reply_older_than_its_parent_is_removed_with_it(self) -> None:
        tree = MessageTree([at(5, "parent"), at(1, "child", "parent")], gone=["parent", "child"])
        assert tree.is_removed("parent")
        assert tree.is_removed("child")


class TestBrokenInput:
    def test_an_orphan_is_kept_and_named(self) -> None:
        tree = a_fork()
        tree.put(at(7, "orphan", "never-seen"))
        tree.put(at(8, "under", "orphan", "orphan"))
        assert ids(tree.lost()) == ["orphan", "under"]
        assert ids(tree.path_to_root("under")) == ["orphan", "under"]
        assert "orphan" in ids(list(tree.shown()))

    def test_a_cycle_is_kept_and_named_and_every_walk_ends(self) -> None:
        tree = MessageTree([at(0, "root"), at(1, "a", "b"), at(2, "b", "a"), at(3, "self", "self")])
        assert ids(tree.lost()) == ["a", "b", "self"]
        assert len(tree.path_to_root("a")) == 2
        assert ids(tree.path_to_root("self")) == ["self"]
        assert ids(tree.below("a")) == ["a", "b"]
        assert tree.fork_depth("a") <= 1
        tree.set_gone(["a", "b", "self"])
        assert ids(list(tree.shown()))[:1] == ["root"]

    def test_a_parent_that_comes_later_ends_the_loss(self) -> None:
        tree = MessageTree([at(2, "child", "parent")])
        assert ids(tree.lost()) == ["child"]
        tree.put(at(1, "parent"))
        assert tree.lost() == []

    def test_a_second_message_of_one_id_is_named_lost_where_it_stands(self) -> None:
        tree = a_fork()
        tree.put(at(6, "twin", "hi", extra={TWIN_OF: "foo"}))
        assert ids(tree.lost()) == ["twin"]
        assert "twin" in ids(tree.children("hi"))

    def test_nothing_of_a_whole_tree_is_lost(self) -> None:
        assert a_fork().lost() == []


class TestGrowing:
    def test_a_fuller_message_takes_the_place_of_its_earlier_form(self) -> None:
        tree = a_fork()
        tree.put(at(2, "foo", "hi", "wsup", rev=1))
        assert len(tree) == 5
        assert ids(tree.children("hi")) == ["foo", "other"]
        tree.put(at(9, "foo", "wsup", "wsup", rev=2))
        assert ids(tree.children("hi")) == ["other"]
        assert ids(list(tree)) == ["wsup", "hi", "other", "reply", "foo"]

    def test_the_order_of_arrival_does_not_show(self) -> None:
        line = a_line("one", "two", "three")
        assert texts(MessageTree(reversed(line))) == ["one", "two", "three"]


class CountingTree(MessageTree):
    """A tree that counts how many of its messages are looked at one by one."""

    def __init__(self, messages: list[Message]) -> None:
        super().__init__(messages)
        self.looks = 0
        self._messages = _Counted(self)
        self._messages.update({message.id: message for message in messages})

    def __iter__(self) -> Iterator[Message]:
        raise AssertionError("a walk over the whole thread")


class _Counted(dict[str, Message]):
    def __init__(self, tree: CountingTree) -> None:
        super().__init__()
        self.tree = tree

    def __getitem__(self, key: str) -> Message:
        self.tree.looks += 1
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.tree.looks += 1
        return super().get(key, default)


@pytest.fixture(scope="module")
def large() -> CountingTree:
    """100,000 messages: a line, and at its 50,000th message one second answer."""
    line = [
        Message(id=f"{n}", parent_id=f"{n - 1}" if n else None, branch_id="0", role="user", seq=n)
        for n in range(100_000)
    ]
    return CountingTree(
        [*line, Message(id="fork", parent_id="50000", branch_id="fork", role="user", seq=100_000)]
    )


class TestAHundredThousandMessages:
    @pytest.mark.parametrize("name", ["0", "50000", "99999", "fork", "nobody"])
    def test_get_children_and_is_leaf_look_at_their_own_message_and_its_replies_only(
        self, large: CountingTree, name: str
    ) -> None:
        large.looks = 0
        large.get(name)
        large.children(name)
        large.is_leaf(name)
        assert large.looks <= 8

    def test_a_path_looks_at_the_messages_on_it_only(self, large: CountingTree) -> None:
        large.looks = 0
        assert len(large.path_to_root("100")) == 101
        assert large.looks <= 102
        assert len(large.path_to_root("99999")) == 100_000

    def test_the_tip_is_found_at_the_end(self, large: CountingTree) -> None:
        large.looks = 0
        assert large.tip() is large.get("fork")
        assert large.looks <= 3

    def test_an_append_at_the_end_looks_at_no_other_message(self, large: CountingTree) -> None:
        large.looks = 0
        large.put(Message(id="next", parent_id="fork", branch_id="fork", role="user", seq=100_001))
        assert large.looks == 0
        assert not large.is_leaf("fork")
