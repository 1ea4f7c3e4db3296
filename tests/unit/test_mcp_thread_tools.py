"""What an agent finds of threads, and what is not there for it, by the tools as functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from raddle.apps.mcp_server.evidence import evidence_of
from raddle.apps.mcp_server.session import Access
from raddle.apps.mcp_server.thread_shelf import local_shelf
from raddle.model.errors import Ambiguous, Forbidden, InvalidInput, NotFound
from raddle.model.threads.recalled import RECALLED_KEY
from tests.mcp_places import EVERYTHING, KILN, LOOM, Place, found
from tests.mcp_sessions import call


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class TestScope:
    def test_a_search_looks_into_the_repository_of_the_workspace_alone(self, place: Place) -> None:
        here, there = place.start("a hippogriff here"), place.start("a hippogriff there", remote=LOOM)
        told = call(place.agent, "thread_search", query="hippogriff")
        assert [hit["thread_id"] for hit in told["hits"]] == [here]
        assert (told["total_threads"], told["scope"]["threads"]) == (1, 1)
        assert told["scope"]["looked_in"] == KILN
        assert told["scope"]["private"] == "left out"
        wide = place.session(access=Access(all_repositories=True))
        assert found(wide, "hippogriff") == {here, there}
        assert {hit["repository"] for hit in call(wide, "thread_search", query="hippogriff")["hits"]} == {
            KILN,
            LOOM,
        }

    def test_names_of_the_same_words_are_other_repositories(self, place: Place) -> None:
        place.start("a hippogriff", remote="example.org/dev-kiln")
        place.start("a hippogriff", remote="example.org/dev/KILN")
        assert found(place.agent, "hippogriff") == set()

    def test_what_is_private_is_in_no_answer_and_no_count(self, place: Place) -> None:
        place.start("a hippogriff", is_private=True, title="quagmire")
        for query in ("hippogriff", "quagmire", "is:private", "", "-nothing"):
            told = call(place.agent, "thread_search", query=query)
            assert (told["hits"], told["total_threads"], told["scope"]["threads"]) == ([], 0, 0), query
        assert call(place.agent, "thread_list")["threads"] == []
        assert call(place.agent, "thread_list", query="is:private")["threads"] == []
        assert call(place.agent, "thread_list", query="private")["threads"] == []
        assert len(found(place.session(access=EVERYTHING), "hippogriff")) == 1

    def test_a_thread_made_private_while_an_import_holds_the_index_is_not_shown(self, place: Place) -> None:
        thread_id = place.start("a hippogriff")
        assert found(place.agent, "hippogriff") == {thread_id}
        with place.agent.stores() as stores, stores.index.bulk():
            with stores.threads.edit(thread_id) as editor:
                editor.set_private(True)
            shelf = local_shelf(stores, all_repositories=False, include_private=False)
            answer = shelf.search("hippogriff", limit=9, cursor="")
            assert (answer.hits, answer.scope.pending) == ((), 1)
            assert shelf.listed("", limit=9, cursor="").rows == []

    def test_what_is_not_to_be_seen_is_not_there_for_any_tool(self, place: Place) -> None:
        hidden = [
            place.start("x", remote=LOOM),
            place.start("x", is_private=True),
            place.start("x", remote=None, root=place.loom),
            "T-018e2b3c-4d5e-7f8a-9b0c-000000000001",
        ]
        with place.agent.stores() as stores:
            deleted = place.start("x")
            with stores.threads.edit(deleted) as editor:
                editor.delete()
        calls: list[tuple[str, dict[str, Any]]] = [
            ("thread_read", {}),
            ("thread_append", {"text": "y"}),
            ("thread_fork", {}),
            ("thread_link", {"entry_id": "01"}),
        ]
        for tool, arguments in calls:
            told = set()
            for thread_id in (*hidden, deleted):
                with pytest.raises(NotFound) as refused:
                    call(place.agent, tool, thread_id=thread_id, **arguments)
                told.add((refused.value.message.replace(thread_id, "ID"), refused.value.hint))
            assert len(told) == 1, tool

    def test_the_start_of_an_id_is_asked_of_what_may_be_seen_alone(self, place: Place) -> None:
        one = place.start("one")
        place.start("private", is_private=True)
        place.start("elsewhere", remote=LOOM)
        assert call(place.agent, "thread_read", thread_id="T-0")["thread"]["thread_id"] == one
        other = place.start("two")
        with pytest.raises(Ambiguous) as refused:
            call(place.agent, "thread_read", thread_id="T-0")
        assert set(refused.value.candidates) == {one, other}
        with pytest.raises(NotFound):
            call(place.agent, "thread_read", thread_id="T-f")

    def test_a_damaged_thread_of_another_repository_is_as_one_that_never_was(self, place: Place) -> None:
        thread_id = place.start("x", remote=LOOM)
        with place.agent.stores() as stores:
            stores.index.refresh()
            stores.paths.thread_file(thread_id).write_text("{")
        with pytest.raises(NotFound):
            call(place.agent, "thread_read", thread_id=thread_id)

    def test_threads_without_a_repository_belong_to_the_folder_that_they_are_below(
        self, place: Place, tmp_path: Path
    ) -> None:
        below = place.start("a hippogriff", remote=None, root=place.kiln / "src")
        place.start("a hippogriff", remote=None, root=tmp_path / "kiln-of-others")
        assert found(place.agent, "hippogriff") == {below}
        plain = tmp_path / "plain"
        (plain / "deeper").mkdir(parents=True)
        here = place.start("a hippogriff", remote=None, root=plain)
        place.start("a hippogriff", remote=None, root=plain / "deeper")
        assert found(place.session(plain), "hippogriff") == {here}

    def test_which_threads_are_shown_is_not_for_an_agent_to_say(self, place: Place) -> None:
        there = place.start("a hippogriff", remote=LOOM)
        with pytest.raises(Forbidden):
            call(place.agent, "thread_search", query="hippogriff", workspace=str(place.loom))
        with pytest.raises(Forbidden):
            call(place.agent, "thread_read", thread_id=there, workspace=str(place.loom))
        assert found(place.agent, "x", workspace=str(place.kiln)) == set()
        both = place.session()
        both.roots = (place.kiln, place.loom)
        assert found(both, "hippogriff", workspace=str(place.loom)) == {there}

    def test_an_agent_that_works_in_no_repository_says_which_one_it_means(
        self, place: Place, tmp_path: Path
    ) -> None:
        there = place.start("a hippogriff", remote=LOOM)
        anywhere = place.session(tmp_path)
        assert found(anywhere, "hippogriff") == set()
        assert found(anywhere, "hippogriff", workspace=str(place.loom)) == {there}

    def test_evidence_is_asked_of_no_thread_that_may_not_be_seen(self, place: Place) -> None:
        mine, hidden = place.start("mine"), place.start("hidden", is_private=True)
        with place.agent.stores() as stores:
            message = next(iter(stores.threads.load(mine).tree)).id
            secret = next(iter(stores.threads.load(hidden).tree)).id
            assert evidence_of(stores, f"{mine[:30]}:{message[-8:]}").message_id == message
            assert evidence_of(stores, hidden).thread_id == hidden
            with pytest.raises(NotFound):
                evidence_of(stores, hidden[:-1])
            told = evidence_of(stores, f"{hidden}:{secret[:20]}")
            assert told.message_id == secret[:20], "what is given is kept, and nothing is looked up"


class TestSearchAndList:
    def test_an_answer_is_marked_as_recalled_and_goes_on_by_its_cursor(self, place: Place) -> None:
        ids = {place.start(f"a hippogriff {number}") for number in range(3)}
        told = call(place.agent, "thread_search", query="hippogriff", limit=2)
        assert next(iter(told)) == RECALLED_KEY
        more = call(place.agent, "thread_search", query="hippogriff", limit=2, cursor=told["cursor"])
        assert "cursor" not in more
        assert {hit["thread_id"] for hit in (*told["hits"], *more["hits"])} == ids

    def test_a_filter_that_was_not_read_is_said_to_be_text(self, place: Place) -> None:
        told = call(place.agent, "thread_search", query="after:whenever")
        assert "after:" in told["scope"]["notes"][0]

    def test_a_list_takes_the_filters_of_a_search_and_pages(self, place: Place) -> None:
        ids = [place.start(f"turn {number}", title=f"title {number}") for number in range(5)]
        with place.agent.stores() as stores, stores.threads.edit(ids[1]) as editor:
            editor.write("is_pinned", True)
            editor.tag("hot")
        shown: list[str] = []
        cursor = None
        while True:
            page = call(place.agent, "thread_list", limit=2, cursor=cursor)
            shown += [row["thread_id"] for row in page["threads"]]
            cursor = page.get("cursor")
            if cursor is None:
                break
        assert shown == [ids[1], ids[4], ids[3], ids[2], ids[0]]
        rows = call(place.agent, "thread_list", query="tag:hot")["threads"]
        assert [(row["title"], row["tags"]) for row in rows] == [("title 1", ("hot",))]
        assert len(call(place.agent, "thread_list", query="-tag:hot title")["threads"]) == 4
        with pytest.raises(InvalidInput):
            call(place.agent, "thread_list", cursor="page 2")
