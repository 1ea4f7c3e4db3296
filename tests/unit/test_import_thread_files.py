"""Whole threads of other programs: known by what they hold; what their program changed, and nothing else, is new."""

from __future__ import annotations

import json
from typing import Any

import pytest

from raddle.actions.importing.importer import Place, SourceName
from raddle.actions.importing.thread_files import THREAD_FILES, ThreadDelta
from raddle.model.errors import FormatError
from raddle.model.threads.edits import Editor
from raddle.model.threads.thread import Thread
from tests.builders import THREAD_ID, an_author

LOOM, QUORUM = THREAD_FILES
NAME = SourceName(name="one.json", folders=("threads",))


def a_loom_file(*turns: str, **fields: Any) -> bytes:
    messages = [{"role": "user", "content": turn} for turn in turns]
    return json.dumps(
        {"id": THREAD_ID, "metadata": {"title": "Kiln"}, "conversation": {"messages": messages}, **fields}
    ).encode()


def read(data: bytes, known: Thread | None = None, said_before: bytes | None = None) -> ThreadDelta:
    return LOOM.read(data, lambda _: known, an_author("bbbbbbbb"), said_before)


def stored(data: bytes) -> Thread:
    thread = Thread(THREAD_ID)
    thread.join(read(data).delta)
    return thread


@pytest.mark.parametrize(
    ("head", "agent"),
    [
        (b'{"id": "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c", "version": 1', "loom"),
        (b'{\n  "conversation": {"messages"', "loom"),
        (b'{"id": "one", "subject": "x", "created": 1', "quorum"),
        (b'{"id": "T-018e2b3c-4d5e-7f8a-9b0c-1d2e3f4a5b6c", "subject": "x", "conversation": {}', "loom"),
        (b'{"sessionId": "x", "messages": [{"thoughts": [{"subject": "x"}]}]}', ""),
        (b'{"name": "package"}', ""),
        (b"", ""),
    ],
)
def test_a_file_is_its_programs_by_what_it_holds(head: bytes, agent: str) -> None:
    placed = {one.agent: one.place(NAME, head) for one in THREAD_FILES}
    expected = Place(session="threads/one.json")
    assert placed == {one.agent: expected if one.agent == agent else None for one in THREAD_FILES}


def test_what_its_program_changed_is_an_edit_and_the_rest_is_not() -> None:
    before = a_loom_file("hello")
    thread = stored(before)
    editor = Editor(thread, an_author())
    editor.rename("Mine")
    editor.delta()
    after = a_loom_file("hello", "again", visibility="public")
    delta = read(after, thread, before).delta
    assert [message.content for message in delta.messages] == ["again"]
    assert "title" not in delta.registers
    thread.join(delta)
    assert (thread.title, thread.visibility) == ("Mine", "public")
    assert read(after, thread, after).delta.is_empty


@pytest.mark.parametrize("said_before", [None, b"{"])
def test_where_it_is_not_known_what_it_said_what_a_person_set_stays(said_before: bytes | None) -> None:
    thread = stored(a_loom_file("hello"))
    editor = Editor(thread, an_author())
    editor.rename("Mine")
    editor.delta()
    metadata = {"title": "Theirs", "tags": ["clay"]}
    thread.join(read(a_loom_file("hello", metadata=metadata), thread, said_before).delta)
    assert (thread.title, thread.tags) == ("Mine", ["clay"])


def test_a_time_alone_is_no_news() -> None:
    before = a_loom_file("hello", updated_at="2026-01-01T00:00:00Z")
    after = a_loom_file("hello", updated_at="2026-01-02T00:00:00Z")
    assert read(after, stored(before), before).delta.is_empty


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"id": "one"}', b'{"conversation": {}}'])
def test_what_holds_no_thread_is_an_error(data: bytes) -> None:
    for agent in THREAD_FILES:
        if agent is QUORUM and data == b'{"id": "one"}':
            continue  # an empty one of its
        with pytest.raises(FormatError):
            agent.read(data, lambda _: None, an_author())
