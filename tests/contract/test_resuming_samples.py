"""Real sessions go on: each in its own agent on another machine, and in every other agent."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from raddle.actions.resuming.registry import FORMS, name_of
from raddle.model.threads.message import NOTICE
from raddle.model.threads.thread import Thread
from raddle.wiring.resuming import Resumed, prepare_session
from tests.builders_import import Machine

pytestmark = pytest.mark.samples
AGENTS = ("claude-code", "codex", "gemini", "opencode")


def all_resumed(machine: Machine, agent: str, workspace: Path) -> dict[str, Resumed]:
    """By the thread's id, the sessions of every thread in which anybody said anything."""
    found = {}
    with machine.stores() as stores:
        for thread_id in stores.threads.ids():
            thread = stores.threads.load(thread_id)
            if told_ids(thread):
                found[thread_id] = prepare_session(stores, thread, agent, leaf=None, workspace=workspace)
    return found


def told_ids(thread: Thread) -> list[str]:
    tip = thread.tree.tip()
    path = thread.tree.path_to_root(tip.id if tip is not None else None)
    return [
        message.id
        for message in path
        if message.kind != NOTICE
        and (message.role == "tool" or message.content.strip() or message.tool_calls or message.attachments)
    ]


@pytest.mark.parametrize("agent", FORMS)
def test_every_session_goes_on_and_comes_back_as_it_was(samples: Path, agent: str, tmp_path: Path) -> None:
    one = Machine(tmp_path / "one")
    one.bring_in(*(str(samples / name) for name in AGENTS))
    for folder in ("data", "state"):
        shutil.copytree(one.folder / folder, tmp_path / "other" / folder)
    other = Machine(tmp_path / "other")
    workspace = tmp_path / "work"
    workspace.mkdir()
    before = {thread.id: thread for thread in other.threads()}
    resumed = all_resumed(other, agent, workspace)
    assert len(resumed) > 20
    other.bring_in()
    after = {thread.id: thread for thread in other.threads()}
    assert after.keys() == before.keys()
    shutil.copytree(other.home, tmp_path / "third" / other.home.name)
    third = Machine(tmp_path / "third")  # which has nothing of what was copied
    third.bring_in()
    by_session = {thread.source.session_id: thread for thread in third.threads() if thread.source is not None}
    for thread_id, session in resumed.items():
        old = before[thread_id]
        assert old.source is not None
        if name_of(old.source.agent) == agent:
            assert session.is_own, (thread_id, session.warnings)
            assert {message.id for message in after[thread_id].messages} == {m.id for m in old.messages}
            continue
        told = by_session[session.session_id]
        path = told_ids(old)
        news = [message for message in told.messages if message.id not in path]
        assert [message.id for message in told.messages if message.id in path] == path
        assert {message.content for message in news} <= {"no result recorded"}
