"""Projects with a memory and the sessions of agents that work in them, for the tests of the server for agents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raddle.apps.mcp_server.catalogue import TOOLS
from raddle.apps.mcp_server.session import Access, Session
from raddle.apps.mcp_server.tools import Call, arguments_of
from raddle.config import load_config
from raddle.model.threads.recalled import PRIVATE_KEY, RECALLED_KEY

QUIET = Call(progress=lambda done, of, what: None, is_over=lambda: False)
BY_NAME = {tool.name: tool for tool in TOOLS}


def session_in(
    workspace: Path, home: Path, *, env: Mapping[str, str] | None = None, access: Access | None = None
) -> Session:
    """An agent that works in `workspace`, on the machine whose home is `home`."""
    home.mkdir(parents=True, exist_ok=True)
    seen = {"HOME": str(home), "RADDLE_WORKSPACE": str(workspace), **(env or {})}
    session = Session(load_config(seen), access=access)
    session.agent = "tester"
    return session


def call(session: Session, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool gives, as if a client had called it."""
    one = BY_NAME[tool]
    told = one.run(session, arguments_of(one, arguments), QUIET)
    assert told.keys() <= {*one.gives, RECALLED_KEY, PRIVATE_KEY}, f"{tool} gives {sorted(told)}"
    return told
