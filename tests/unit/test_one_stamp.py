"""What is done in one go bears one stamp, whatever the clock does meanwhile."""

from __future__ import annotations

from raddle.model.ids import MonotonicIds
from raddle.model.threads.edits import Author, Editor
from raddle.model.threads.thread import Thread


def running_author() -> Author:
    """A device whose clock goes on with every look at it."""
    time = iter(range(1_796_000_000_000_000, 1_797_000_000_000_000, 250))
    return Author(device="a1b2c3d4", now=lambda: next(time), new_id=MonotonicIds(lambda: next(time)))


def test_an_undone_turn_comes_back_whole_under_a_clock_that_runs() -> None:
    author = running_author()
    thread = Thread("T-" + author.new_id())
    for role, text in (("user", "one"), ("assistant", "1"), ("user", "two"), ("assistant", "2")):
        editor = Editor(thread, author)
        editor.append(role, text)
        editor.delta()
    for _ in range(2):
        editor = Editor(thread, author)
        assert len(editor.undo()) == 2
        editor.delta()
    assert list(thread.tree.shown()) == []
    editor = Editor(thread, author)
    assert len(editor.redo(2)) == 4
    assert [message.content for message in thread.tree.shown()] == ["one", "1", "two", "2"]
