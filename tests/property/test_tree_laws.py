"""Laws of the tree, against a plain model of the second seed's rules and whatever people do to a thread."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from raddle.model.threads.branching import list_branches
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import Editor
from raddle.model.threads.message import Message
from raddle.model.threads.register import one_write
from raddle.model.threads.thread import Thread
from raddle.model.threads.tree import MessageTree
from tests.builders import THREAD_ID, WoundClock, an_author


class Plain(NamedTuple):
    """A message of the second seed, as its page describes it."""

    id: str
    parent_id: str | None
    branch_id: str


class PlainThread:
    """The second seed's tree, by its page: a list, and a walk over it for every question."""

    def __init__(self) -> None:
        self.messages: list[Plain] = []

    def children(self, parent_id: str | None) -> list[str]:
        return [message.id for message in self.messages if message.parent_id == parent_id]

    def is_leaf(self, message_id: str) -> bool:
        return not self.children(message_id)

    def path_to_root(self, message_id: str) -> list[Plain]:
        known = {message.id: message for message in self.messages}
        path = []
        at: str | None = message_id
        while at is not None:
            path.append(known[at])
            at = known[at].parent_id
        return path[::-1]

    def fork_depth(self, message_id: str) -> int:
        return len({message.branch_id for message in self.path_to_root(message_id)}) - 1

    def reply(self, message_id: str, parent_id: str | None) -> None:
        branch_id = message_id
        if parent_id is not None and self.is_leaf(parent_id):
            branch_id = self.path_to_root(parent_id)[-1].branch_id
        self.messages.append(Plain(message_id, parent_id, branch_id))


@given(st.lists(st.integers(0, 30), max_size=30))
def test_the_tree_answers_as_the_second_seed_does(targets: list[int]) -> None:
    plain, thread, clock = PlainThread(), Thread(THREAD_ID), WoundClock()
    for target in targets:
        clock.wind()
        known = [None, *(message.id for message in plain.messages)]
        parent_id = known[target % len(known)]
        message = Editor(thread, an_author(clock=clock)).reply(parent_id, "user", "x", id=f"m{len(known):03}")
        plain.reply(message.id, parent_id)
    tree = thread.tree
    assert [m.id for m in tree.children(None)] == plain.children(None)
    for known_id, _, branch_id in plain.messages:
        assert [m.id for m in tree.children(known_id)] == plain.children(known_id)
        assert tree.is_leaf(known_id) == plain.is_leaf(known_id)
        assert [m.id for m in tree.path_to_root(known_id)] == [m.id for m in plain.path_to_root(known_id)]
        assert tree.fork_depth(known_id) == plain.fork_depth(known_id)
        assert tree.branch_of(known_id) == branch_id
    tip = tree.tip()
    assert (tip.id if tip else None) == (plain.messages[-1].id if plain.messages else None)


Act = Callable[[Editor, int], object]


def _known(editor: Editor, choice: int) -> str | None:
    known = [None, *(message.id for message in editor.thread.tree)]
    return known[choice % len(known)]


ACTS: dict[str, Act] = {
    "say": lambda editor, _: editor.append("user", "say"),
    "answer": lambda editor, _: editor.append("assistant", "answer"),
    "reply": lambda editor, n: editor.reply(_known(editor, n), "user", "reply"),
    "sub-agent": lambda editor, n: editor.reply(_known(editor, n), "user", "sub", is_sidechain=True),
    "undo": lambda editor, n: editor.undo(n % 3),
    "redo": lambda editor, n: editor.redo(n % 3),
    "rollback": lambda editor, _: editor.rollback_last_user_turn(),
}


@st.composite
def threads(draw: st.DrawFn) -> Thread:
    """A thread that two devices worked on, now and then offline, with clocks that wander."""
    clocks = WoundClock(), WoundClock()
    replicas = Thread(THREAD_ID), Thread(THREAD_ID)
    acts = st.tuples(st.sampled_from(sorted(ACTS)), st.integers(0, 40), st.integers(0, 1), st.booleans())
    for name, choice, who, is_synced in draw(st.lists(acts, max_size=25)):
        clocks[who].wind(draw(st.sampled_from([1, 1_000_000, -5_000_000])))
        new_id = functools.partial(_fresh, replicas, "ab"[who])
        author = an_author("ab"[who] * 8, clocks[who], new_id=new_id)
        ACTS[name](Editor(replicas[who], author), choice)
        if is_synced:
            replicas[0].join(replicas[1].whole())
            replicas[1].join(replicas[0].whole())
    replicas[0].join(replicas[1].whole())
    return replicas[0]


def _fresh(replicas: Sequence[Thread], letter: str) -> str:
    return f"{letter}{sum(m.id.startswith(letter) for replica in replicas for m in replica.tree):03}"


@given(threads())
def test_nothing_is_lost_and_every_parent_comes_first(thread: Thread) -> None:
    tree = thread.tree
    assert tree.lost() == []
    for message in tree:
        assert message.parent_id is None or tree.key(message.parent_id) < tree.key(message.id)


@given(threads())
def test_what_shows_stands_under_what_shows(thread: Thread) -> None:
    shown = {message.id for message in thread.tree.shown()}
    assert all(message.parent_id in shown for message in thread.tree.shown() if message.parent_id is not None)


@given(threads())
def test_what_is_hidden_was_removed_and_nothing_shown_stands_under_it(thread: Thread) -> None:
    tree = thread.tree
    shown, removed = {message.id for message in tree.shown()}, set(thread.removed_messages)
    for message in tree:
        under = {below.id for below in tree.below(message.id)} - {message.id}
        assert (message.id in shown) == (message.id not in removed or bool(under & shown))
        assert tree.is_removed(message.id) == (message.id not in shown)


@given(threads())
def test_each_branch_starts_once_and_goes_on_through_one_child_at_a_time(thread: Thread) -> None:
    tree = thread.tree
    starts = []
    for message in tree:
        parent_id = message.parent_id
        goes_on = parent_id is not None and tree.branch_of(parent_id) == tree.branch_of(message.id)
        if not goes_on:
            starts.append(tree.branch_of(message.id))
        followers = [
            c
            for c in tree.children(message.id, removed=True)
            if tree.branch_of(c.id) == tree.branch_of(message.id)
        ]
        assert len(followers) <= 1
    assert len(starts) == len(set(starts))


@given(threads())
def test_branches_cover_what_shows_and_their_tips_are_where_nothing_goes_on(thread: Thread) -> None:
    tree = thread.tree
    branches = tree.branches()
    assert sum(branch.length for branch in branches) == len(list(tree.shown()))
    for branch in branches:
        assert tree.branch_of(branch.start) == tree.branch_of(branch.tip) == branch.id
        assert tree.continuation(branch.tip) is None


@given(threads())
def test_fork_depth_is_the_number_of_branches_that_were_left(thread: Thread) -> None:
    for message in thread.tree:
        path = [thread.tree.branch_of(m.id) for m in thread.tree.path_to_root(message.id)]
        changes = sum(one != other for one, other in itertools.pairwise(path))
        assert thread.tree.fork_depth(message.id) == changes


@given(threads())
def test_the_list_of_branches_says_of_each_what_the_tree_says(thread: Thread) -> None:
    for row in list_branches(thread):
        assert row.fork_depth == thread.tree.fork_depth(row.start)
        assert row.is_current == (row.tip == getattr(thread.tree.tip(), "id", None))


@given(threads())
def test_the_tip_and_the_heads_are_leaves_of_the_conversation(thread: Thread) -> None:
    tree = thread.tree
    heads = [message.id for message in tree.heads()]
    assert all(tree.is_leaf(name) and not tree.is_removed(name) for name in heads)
    tip = tree.tip()
    main = [message.id for message in tree.shown() if not message.is_sidechain]
    assert (tip.id if tip else None) == (main[-1] if main else None)
    assert tip is None or tip.id in heads


@given(threads())
def test_undo_then_redo_shows_what_showed_before(thread: Thread) -> None:
    author = an_author("cccccccc", WoundClock())
    before = [message.id for message in thread.tree.shown()]
    if Editor(thread, author).undo():
        Editor(thread, author).redo()
    after = [message.id for message in thread.tree.shown()]
    assert after == before


@given(threads(), st.randoms(use_true_random=False))
def test_the_order_in_which_messages_and_removals_arrive_does_not_show(
    thread: Thread, random: object
) -> None:
    pieces: list[Message | str] = [*thread.tree, *thread.removed_messages]
    random.shuffle(pieces)  # type: ignore[attr-defined]
    other, asked = Thread(THREAD_ID), []
    for number, piece in enumerate(pieces):
        if isinstance(piece, str):
            other.join(Delta(registers={f"gone/{piece}": one_write(number + 1, "", True)}))
        else:
            other.join(Delta(messages=(piece,)))
        asked.append(other.tree.tip())
    assert len(asked) == len(pieces)
    assert [m.id for m in other.tree.shown()] == [m.id for m in thread.tree.shown()]
    for message in thread.tree:
        assert other.tree.branch_of(message.id) == thread.tree.branch_of(message.id)


@st.composite
def broken_trees(draw: st.DrawFn) -> tuple[list[Message], list[str]]:
    """Messages whose parents may be missing, later, themselves or on a cycle; and which were removed."""
    names = [f"m{n}" for n in range(draw(st.integers(0, 8)))]
    messages = [
        Message(
            id=name,
            parent_id=draw(st.sampled_from([None, "nobody", *names])),
            branch_id=draw(st.sampled_from(["", "b", *names])),
            role="user",
            seq=draw(st.integers(0, 5)),
            is_sidechain=draw(st.booleans()),
        )
        for name in names
    ]
    return messages, draw(st.lists(st.sampled_from([*names, "nobody"]), unique=True))


@given(broken_trees())
def test_every_question_has_an_answer_however_broken_the_tree(
    broken: tuple[list[Message], list[str]],
) -> None:
    messages, gone = broken
    tree = MessageTree(messages, gone)
    assert len(list(tree)) == len(messages)
    lost = {message.id for message in tree.lost()}
    for message in messages:
        path = tree.path_to_root(message.id)
        assert path[-1].id == message.id
        assert len({m.id for m in path}) == len(path)
        assert (message.id in lost) == (path[0].parent_id is not None)
        assert message.id in {m.id for m in tree.below(message.id)}
        assert tree.fork_depth(message.id) < len(path)
        tree.is_leaf(message.id)
    assert {m.id for m in tree.shown()} | set(gone) >= {m.id for m in messages}
    tree.tip(), tree.heads(), tree.branches()


@given(broken_trees())
def test_a_broken_tree_shows_the_same_in_whatever_order_it_arrives(
    broken: tuple[list[Message], list[str]],
) -> None:
    messages, gone = broken
    at_once = MessageTree(messages, gone)
    one_by_one = MessageTree(gone=gone)
    for message in reversed(messages):
        one_by_one.put(message)
        list(one_by_one.shown())
    assert [m.id for m in one_by_one.shown()] == [m.id for m in at_once.shown()]
    assert [one_by_one.branch_of(m.id) for m in messages] == [at_once.branch_of(m.id) for m in messages]
