"""What an agent adds to threads, and what it says in the project's memory that rests on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from raddle.apps.mcp_server.session import Session
from raddle.model.errors import InvalidInput, NotFound
from tests.mcp_places import EVERYTHING, Place, said
from tests.mcp_sessions import call
from tests.memory_clones import git

A_PARAGRAPH = "The kiln cools too fast because its door has been open since the second firing of the spring."


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class TestAppendAndFork:
    def test_a_turn_is_the_agents_whichever_its_role(self, place: Place) -> None:
        thread_id = place.start("question")
        for role in ("assistant", "user"):
            call(place.agent, "thread_append", thread_id=thread_id, text=f"as {role}", role=role)
        told = call(place.agent, "thread_read", thread_id=thread_id)
        assert [(one["role"], one.get("author")) for one in told["messages"]] == [
            ("user", None),
            ("assistant", "tester"),
            ("user", "tester"),
        ]
        with pytest.raises(InvalidInput):
            call(place.agent, "thread_append", thread_id=thread_id, text="x", role="system")

    def test_a_turn_goes_under_the_message_that_it_answers_and_both_branches_stay(self, place: Place) -> None:
        thread_id = place.start("question")
        first = call(place.agent, "thread_append", thread_id=thread_id, text="one")
        assert "note" not in first
        told = call(
            place.agent, "thread_append", thread_id=thread_id, text="two", message_id=first["parent_id"]
        )
        assert "began a branch" in told["note"]
        with place.agent.stores() as stores:
            stores.active.set(thread_id, first["message_id"])
        on = call(place.agent, "thread_append", thread_id=thread_id, text="three")
        assert on["parent_id"] == first["message_id"]
        assert said(call(place.agent, "thread_read", thread_id=thread_id))[-1] == "three"

    def test_a_turn_that_says_nothing_new_or_too_much_is_refused(self, place: Place) -> None:
        thread_id = place.start(A_PARAGRAPH)
        call(place.agent, "thread_read", thread_id=thread_id)
        for text in (A_PARAGRAPH, " ", "x" * 1_000_001):
            with pytest.raises(InvalidInput):
                call(place.agent, "thread_append", thread_id=thread_id, text=text)
        call(place.agent, "thread_append", thread_id=thread_id, text="Close the door after the firing.")

    def test_a_found_snippet_is_known_again_as_recalled(self, place: Place) -> None:
        thread_id = place.start(A_PARAGRAPH)
        (hit,) = call(place.agent, "thread_search", query="kiln")["hits"]
        with pytest.raises(InvalidInput):
            call(place.agent, "thread_append", thread_id=thread_id, text=hit["text"])

    def test_a_fork_holds_the_path_to_its_message_and_the_old_one_stays(self, place: Place) -> None:
        thread_id = place.start("question")
        answer = place.say(thread_id, "assistant", "answer")
        place.say(thread_id, "user", "no")
        told = call(place.agent, "thread_fork", thread_id=thread_id, message_id=answer, title=" a  try ")
        assert told["forked_from"] == thread_id
        copy = call(place.agent, "thread_read", thread_id=told["thread_id"])
        assert (copy["thread"]["title"], said(copy)) == ("a try", ["question", "answer"])
        assert len(said(call(place.agent, "thread_read", thread_id=thread_id))) == 3
        whole = call(place.agent, "thread_fork", thread_id=thread_id)
        assert len(said(call(place.agent, "thread_read", thread_id=whole["thread_id"]))) == 3

    def test_a_fork_of_what_is_private_is_private(self, place: Place) -> None:
        private = place.start("question", is_private=True)
        trusted = place.session(access=EVERYTHING)
        forked = call(trusted, "thread_fork", thread_id=private)["thread_id"]
        assert call(trusted, "thread_read", thread_id=forked)["thread"]["is_private"] is True
        with pytest.raises(NotFound):
            call(place.agent, "thread_read", thread_id=forked)


class TestLink:
    @pytest.fixture
    def agent(self, place: Place) -> Session:
        git("remote", "remove", "origin", cwd=place.kiln)
        call(place.agent, "store_init", project_id="kiln", phases=["build", "test"])
        call(place.agent, "run_start")
        return place.agent

    def test_an_entry_gets_a_note_that_names_it_and_the_message(self, place: Place, agent: Session) -> None:
        thread_id = place.start("why", remote=None)
        message = place.say(thread_id, "assistant", "because")
        entry = call(agent, "context_log", type="decision", payload="close the door")
        told = call(
            agent,
            "thread_link",
            thread_id=thread_id[:14],
            message_id=message,
            entry_id=entry["entry_id"][:20],
            note="the reasons",
        )
        read = call(agent, "context_read", type="note")["entries"]
        assert [one["entry_id"] for one in read] == [told["entry_id"]]
        assert read[0]["links"] == (entry["entry_id"],)
        assert (read[0]["thread_id"], read[0]["message_id"]) == (thread_id, message)
        assert read[0]["payload"] == {"text": "the reasons"}

    def test_a_handoff_gets_its_evidence_once_and_keeps_what_it_said(
        self, place: Place, agent: Session
    ) -> None:
        thread_id = place.start("why", remote=None)
        call(agent, "handoff_publish", headline="it holds", decisions=["close the door"])
        for state in ("linked", "unchanged"):
            told = call(agent, "thread_link", thread_id=thread_id, handoff="build")
            assert told["state"] == state
        handoff = call(agent, "handoff_get", phase="build")
        assert handoff["evidence"] == [{"thread_id": thread_id}]
        assert (handoff["headline"], handoff["decisions"]) == ("it holds", ["close the door"])

    def test_a_link_to_nothing_or_to_two_things_is_refused(self, place: Place, agent: Session) -> None:
        thread_id = place.start("why", remote=None)
        for wrong in ({}, {"entry_id": "01", "handoff": "build"}, {"handoff": "nope"}):
            with pytest.raises(InvalidInput):
                call(agent, "thread_link", thread_id=thread_id, **wrong)
        for missing in ({"entry_id": "01ZZ"}, {"handoff": "build"}):
            with pytest.raises(NotFound):
                call(agent, "thread_link", thread_id=thread_id, **missing)
