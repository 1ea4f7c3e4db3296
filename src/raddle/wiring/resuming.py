"""A thread made into a session that an agent on this machine goes on with, and that agent run.

Owns which agents there are, and what is refused before anything is looked for. Files of lines: `resuming_files.py`;
OpenCode, by its own program: `resuming_opencode.py`.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

from raddle.actions.resuming.registry import AGENTS, FORMS, OPENCODE, name_of
from raddle.actions.resuming.told import told_path
from raddle.adapters.programs import run_here
from raddle.model.errors import InvalidInput, NotFound
from raddle.model.threads.thread import Thread
from raddle.wiring import Stores
from raddle.wiring.attaching import bytes_of_blob
from raddle.wiring.resumed import Resumed
from raddle.wiring.resuming_files import prepare_file
from raddle.wiring.resuming_opencode import prepare_opencode

__all__ = ["Resumed", "prepare_session", "run_agent"]


def prepare_session(
    stores: Stores, thread: Thread, agent: str, *, leaf: str | None, workspace: Path
) -> Resumed:
    """Write what the agent needs to go on from `leaf` (None: the tip) in the folder `workspace`.

    NotFound for an agent or a message that is not known, InvalidInput where there is nothing to go on from or the
    folder is none; StorageError where it cannot be written.
    """
    name = name_of(agent)
    if not name:
        raise NotFound("agent to go on in", agent, f"it is one of {', '.join(AGENTS)}")
    folder = _folder(workspace)
    told = told_path(
        thread, _leaf_of(thread, leaf), functools.partial(bytes_of_blob, stores, is_private=thread.is_private)
    )
    if name == OPENCODE:
        return prepare_opencode(stores, thread, told, folder)
    return prepare_file(stores, thread, told, FORMS[name], folder)


def run_agent(session: Resumed) -> int:
    """Run what goes on with the session, at the person's terminal; its exit code."""
    return run_here(session.argv, cwd=session.cwd)


def _folder(workspace: Path) -> str:
    """The folder as a program that is started in it sees it."""
    found = os.path.realpath(workspace)
    if not os.path.isdir(found):  # noqa: PTH112
        raise InvalidInput(f"{workspace} is no folder on this machine", "name the one to go on in")
    return found


def _leaf_of(thread: Thread, leaf: str | None) -> str:
    if leaf is not None:
        return leaf
    tip = thread.tree.tip()
    if tip is None:
        raise InvalidInput("this thread has no messages to go on from", "`raddle list` shows others")
    return tip.id
