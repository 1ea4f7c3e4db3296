"""What an agent is shown of a thread: windows, branches, long outputs in parts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from raddle.model.errors import InvalidInput, NotFound
from raddle.model.threads.message import Attachment, ToolCall
from tests.mcp_places import Place, said
from tests.mcp_sessions import call


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def a_long_thread(place: Place, turns: int) -> tuple[str, list[str]]:
    """A thread of so many turns, and what they say."""
    texts = [f"turn {number} " + "word " * 40 for number in range(turns)]
    thread_id = place.start(texts[0])
    with place.agent.stores() as stores, stores.threads.edit(thread_id) as editor:
        for number, text in enumerate(texts[1:], 1):
            editor.append("assistant" if number % 2 else "user", text)
    return thread_id, texts


class TestRead:
    def test_the_end_is_shown_and_the_cursors_lead_through_all_of_it(self, place: Place) -> None:
        thread_id, texts = a_long_thread(place, 60)
        told = call(place.agent, "thread_read", thread_id=thread_id, tokens=1000)
        read = said(told)
        assert read == texts[-len(read) :]
        assert 4 < len(read) < 20
        while "earlier" in told:
            told = call(place.agent, "thread_read", thread_id=thread_id, tokens=1000, cursor=told["earlier"])
            read = said(told) + read
            assert len(json.dumps(told)) < 5000
        assert read == texts
        on = said(told)
        while "later" in told:
            told = call(place.agent, "thread_read", thread_id=thread_id, tokens=700, cursor=told["later"])
            on += said(told)
        assert on == texts

    def test_a_window_lies_around_the_message_that_was_found(self, place: Place) -> None:
        thread_id, texts = a_long_thread(place, 60)
        (hit,) = call(place.agent, "thread_search", query='"turn 30"')["hits"]
        told = call(
            place.agent, "thread_read", thread_id=thread_id, message_id=hit["message_id"], tokens=1000
        )
        read = said(told)
        assert 2 < read.index(texts[30]) < len(read) - 3
        assert {"earlier", "later"} <= told.keys()

    def test_a_branch_is_read_by_its_name_or_by_a_message_on_it(self, place: Place) -> None:
        thread_id = place.start("question")
        one = place.say(thread_id, "assistant", "one")
        with place.agent.stores() as stores, stores.threads.edit(thread_id) as editor:
            parent = editor.thread.tree.path_to_root(one)[0].id
            other = editor.reply(parent, "assistant", "other").id
            editor.name_branch(other, "attempt")
        told = call(place.agent, "thread_read", thread_id=thread_id)
        assert said(told) == ["question", "other"]
        assert [branch["message_id"] for branch in told["branches"]] == [one]
        assert said(call(place.agent, "thread_read", thread_id=thread_id, message_id=one)) == [
            "question",
            "one",
        ]
        back = call(place.agent, "thread_read", thread_id=thread_id, branch=one)
        assert back["branches"] == [{"message_id": other, "name": "attempt", "at": back["branches"][0]["at"]}]
        named = call(place.agent, "thread_read", thread_id=thread_id, branch="attempt")
        assert said(named) == ["question", "other"]
        with place.agent.stores() as stores:
            stores.active.set(thread_id, one)
        assert said(call(place.agent, "thread_read", thread_id=thread_id)) == ["question", "one"]
        for wrong in ({"branch": "nope"}, {"message_id": "nope"}):
            with pytest.raises(NotFound):
                call(place.agent, "thread_read", thread_id=thread_id, **wrong)
        for cursor in ("nope", "before:nope", f"after:{one}@{other}"):
            with pytest.raises(InvalidInput):
                call(place.agent, "thread_read", thread_id=thread_id, cursor=cursor)

    def test_a_long_output_is_shortened_and_had_whole_by_its_offset(self, place: Place) -> None:
        thread_id = place.start("look")
        arguments = {"path": "x" * 5000}
        place.say(
            thread_id,
            "assistant",
            "",
            tool_calls=(ToolCall(id="c1", tool_name="Read", arguments_json=arguments),),
        )
        output = "".join(f"line {number}\n" for number in range(3000))
        result = place.say(thread_id, "tool", output, tool_call_id="c1", tool_name="Read")
        told = call(place.agent, "thread_read", thread_id=thread_id, tokens=4000)
        assert len(json.dumps(told)) < 5000
        asked, shown = told["messages"][1:]
        assert asked["tool_calls"][0]["tool"] == "Read"
        assert shown["text"].startswith("line 0\n")
        assert shown["text"].endswith("line 2999\n")
        assert shown["cut"] == len(output) - 1200
        assert "offset" in told["note"]
        whole = ""
        offset: int | None = 0
        while offset is not None:
            part = call(
                place.agent,
                "thread_read",
                thread_id=thread_id,
                message_id=result,
                offset=offset,
                tokens=2000,
            )["message"]
            whole += part["text"]
            offset = part.get("next_offset")
        assert whole == output
        for wrong in ({"offset": 0}, {"message_id": result, "offset": len(output)}):
            with pytest.raises(InvalidInput):
                call(place.agent, "thread_read", thread_id=thread_id, **wrong)

    def test_a_turn_longer_than_the_room_is_shown_in_part(self, place: Place) -> None:
        thread_id = place.start("word " * 100_000)
        told = call(place.agent, "thread_read", thread_id=thread_id, tokens=200)
        assert len(json.dumps(told)) < 2500
        assert told["messages"][0]["cut"] > 490_000

    def test_attachments_are_named_and_thoughts_are_shown_where_they_were_asked_for(
        self, place: Place
    ) -> None:
        picture = Attachment(sha256="0" * 64, media_type="image/png", name="kiln.png", size=9)
        thread_id = place.start("look")
        place.say(thread_id, "user", "this", attachments=(picture,))
        thought = place.say(thread_id, "assistant", "I see", thinking="a kiln, surely")
        told = call(place.agent, "thread_read", thread_id=thread_id)
        assert told["messages"][1]["attachments"] == [
            {"name": "kiln.png", "media_type": "image/png", "size": 9}
        ]
        assert "thinking" not in told["messages"][2]
        told = call(place.agent, "thread_read", thread_id=thread_id, message_id=thought)
        assert told["messages"][2]["thinking"] == "a kiln, surely"

    def test_what_raddle_once_answered_is_not_told_again(self, place: Place) -> None:
        thread_id = place.start("ask")
        answer = json.dumps(call(place.agent, "thread_search", query="ask"))
        place.say(thread_id, "tool", answer, tool_name="mcp__raddle__thread_search")
        told = call(place.agent, "thread_read", thread_id=thread_id)
        assert told["messages"][1]["text"].startswith("(an answer of raddle's")

    def test_an_empty_branch_is_an_empty_window(self, place: Place) -> None:
        thread_id = place.start("only")
        with place.agent.stores() as stores, stores.threads.edit(thread_id) as editor:
            editor.undo(1)
        assert call(place.agent, "thread_read", thread_id=thread_id)["messages"] == []
