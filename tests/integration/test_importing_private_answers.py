"""What raddle told an agent of a private thread stays private in the agent's own transcript."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from raddle.apps.mcp_server.recalled import recalled
from raddle.model.threads.thread import Thread
from tests.builders_claude_code import ClaudeSession, calls
from tests.builders_import import Machine, add

SECRET = "the vault opens at nine"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def only(machine: Machine) -> Thread:
    (thread,) = machine.threads()
    return thread


def told(talk: ClaudeSession, *, is_private: bool, is_wrapped: bool = False) -> None:
    """An agent asks raddle, and has its answer."""
    answer = json.dumps(
        recalled({"messages": [{"text": SECRET}]}, is_private=is_private), separators=(",", ":")
    )
    content = [{"type": "text", "text": answer}] if is_wrapped else answer
    talk.says(calls("call_9", "mcp__raddle__thread_read", thread_id="T-1"))
    talk.result("call_9", content)


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_a_transcript_with_words_of_a_private_thread_is_private(machine: Machine, is_wrapped: bool) -> None:
    talk = ClaudeSession()
    talk.user("what did we say?")
    told(talk, is_private=True, is_wrapped=is_wrapped)
    machine.keep(talk)
    machine.bring_in()
    assert only(machine).is_private


def test_a_transcript_becomes_private_with_the_answer_that_comes_later(machine: Machine) -> None:
    talk = ClaudeSession()
    talk.user("what did we say?")
    told(talk, is_private=False)
    path = machine.keep(talk)
    machine.bring_in()
    assert not only(machine).is_private
    before = len(talk.data)
    told(talk, is_private=True)
    add(path, talk.data[before:])
    machine.bring_in()
    assert only(machine).is_private


def test_a_person_who_says_otherwise_is_obeyed(machine: Machine) -> None:
    talk = ClaudeSession()
    talk.user("what did we say?")
    told(talk, is_private=True)
    path = machine.keep(talk)
    machine.bring_in()
    with machine.stores() as stores, stores.threads.edit(only(machine).id) as editor:
        editor.set_private(is_private=False)
    before = len(talk.data)
    told(talk, is_private=True)
    add(path, talk.data[before:])
    machine.bring_in()
    assert not only(machine).is_private
