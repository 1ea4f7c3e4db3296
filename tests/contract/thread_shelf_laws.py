"""What every shelf of threads does alike, so that an agent finds the same on its machine and on a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

import pytest

from raddle.apps.mcp_server.recalled import recalled
from raddle.apps.mcp_server.thread_shelf import ThreadShelf
from raddle.model.clock import format_time
from raddle.model.errors import InvalidInput, NotFound
from raddle.model.threads.edits import Editor
from raddle.model.threads.thread import Thread
from tests.builders import NOON, SECOND, a_line, a_message, a_thread, an_author, texts


class Shelves(NamedTuple):
    """A shelf, and how a thread comes onto it."""

    shelf: ThreadShelf
    keep: Callable[[Thread], None]


def an_id(number: int) -> str:
    return f"T-018e2b3c-4d5e-7f8a-9b0c-{number:012x}"


def a_conversation(number: int, *contents: str) -> Thread:
    """A thread of its own age."""
    at = format_time(NOON + number * 100 * SECOND)
    return a_thread(
        *a_line(*contents),
        thread_id=an_id(number),
        title=f"talk {number}",
        last_activity_at=at,
        created_at=at,
    )


class ThreadShelfLaws:
    """Inherited by the tests of each; `shelves` is its fixture, without any thread."""

    def test_a_word_is_found_best_first_and_counted(self, shelves: Shelves) -> None:
        for number in range(1, 4):
            shelves.keep(a_conversation(number, f"hippogriff {number}", "asleep"))
        shelves.keep(a_conversation(4, "nothing"))
        found = shelves.shelf.search("hippogriff", limit=2, cursor="")
        assert [hit.thread.id for hit in found.hits] == [an_id(3), an_id(2)]
        assert (found.total_threads, found.scope.threads) == (3, 4)
        more = shelves.shelf.search("hippogriff", limit=2, cursor=found.cursor)
        assert ([hit.thread.id for hit in more.hits], more.cursor) == ([an_id(1)], "")
        assert more.hits[0].message_id == "m1"

    def test_what_a_query_does_not_mean_is_said(self, shelves: Shelves) -> None:
        assert "after:" in shelves.shelf.search("after:whenever", limit=2, cursor="").scope.notes[-1]

    def test_a_list_is_newest_first_and_goes_on_by_its_cursor(self, shelves: Shelves) -> None:
        for number in range(1, 6):
            shelves.keep(a_conversation(number, f"hippogriff {number}"))
        shown: list[str] = []
        cursor = ""
        while True:
            page = shelves.shelf.listed("", limit=2, cursor=cursor)
            shown += [row.id for row in page.rows]
            cursor = page.cursor
            if not cursor:
                break
        assert shown == [an_id(number) for number in range(5, 0, -1)]
        assert [row.title for row in shelves.shelf.listed('"hippogriff 2"', limit=9, cursor="").rows] == [
            "talk 2"
        ]
        with pytest.raises(InvalidInput):
            shelves.shelf.listed("", limit=2, cursor="page 2")

    def test_a_thread_is_had_by_its_id_as_long_as_it_is_there(self, shelves: Shelves) -> None:
        shelves.keep(a_conversation(1, "one", "two"))
        thread = shelves.shelf.load(an_id(1))
        assert texts(thread.tree) == ["one", "two"]
        assert shelves.shelf.end(thread) == "m2"
        gone = a_conversation(2, "three")
        editor = Editor(gone, an_author())
        editor.delete()
        editor.delta()
        shelves.keep(gone)
        for missing in (an_id(3), an_id(2)):
            with pytest.raises(NotFound) as refused:
                shelves.shelf.load(missing)
            assert refused.value.hint == "thread_list and thread_search show those that there are"

    def test_a_turn_is_added_at_the_end_or_under_a_message_and_found(self, shelves: Shelves) -> None:
        shelves.keep(a_conversation(1, "one", "two"))
        shelf = shelves.shelf
        thread = shelf.load(an_id(1))
        last = shelf.append(thread, "three", parent=None, role="user", author="a tester")
        other = shelf.append(thread, "hippogriff", parent="m1", role="assistant", author="a tester")
        assert (last.parent_id, last.author, last.role) == ("m2", "a tester", "user")
        assert (other.parent_id, other.author, other.role) == ("m1", "a tester", "assistant")
        assert {head.id for head in shelf.load(an_id(1)).tree.heads()} == {last.id, other.id}
        found = shelf.search("hippogriff", limit=9, cursor="")
        assert [hit.message_id for hit in found.hits] == [other.id]

    def test_a_fork_is_a_thread_of_its_own(self, shelves: Shelves) -> None:
        shelves.keep(a_conversation(1, "one", "two", "three"))
        source = shelves.shelf.load(an_id(1))
        part = shelves.shelf.load(shelves.shelf.fork(source, at="m2", title="a try"))
        whole = shelves.shelf.load(shelves.shelf.fork(source, at=None, title=""))
        assert (part.title, texts(part.tree)) == ("a try", ["one", "two"])
        assert (whole.title, texts(whole.tree)) == ("talk 1", ["one", "two", "three"])
        assert len({part.id, whole.id, source.id}) == 3
        assert len(shelves.shelf.listed("", limit=9, cursor="").rows) == 3

    def test_what_raddle_answered_an_agent_is_found_where_it_came_from_alone(self, shelves: Shelves) -> None:
        shelves.keep(a_conversation(1, "the hippogriff sleeps"))
        answer = json.dumps(recalled({"hits": ["the hippogriff sleeps"]}))
        wrapped = json.dumps({"content": [{"type": "text", "text": answer}]})
        for number, content in ((2, answer), (3, wrapped)):
            output = a_message("m1", content, role="tool", tool_name="mcp__raddle__thread_search")
            shelves.keep(a_thread(output, thread_id=an_id(number), title="asked"))
        found = shelves.shelf.search("hippogriff", limit=9, cursor="")
        assert ([hit.thread.id for hit in found.hits], found.total_threads) == ([an_id(1)], 1)
        assert len(shelves.shelf.search("tool:raddle", limit=9, cursor="").hits) == 2
        assert texts(shelves.shelf.load(an_id(2)).tree) == [answer]
