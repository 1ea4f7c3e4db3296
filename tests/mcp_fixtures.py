"""A project with a memory, and an agent that works in it: fixtures for the tests of the server for agents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from raddle.apps.mcp_server.session import Session
from tests.mcp_sessions import call, session_in
from tests.memory_hosts import make_code


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A repository of code."""
    return make_code(tmp_path / "code")


@pytest.fixture
def agent(tmp_path: Path, code: Path) -> Iterator[Session]:
    """An agent in a project that has a memory, with a run."""
    session = session_in(code, tmp_path / "home")
    call(session, "store_init", project_id="kiln", phases=["build", "test"])
    call(session, "run_start")
    yield session
    session.freshness.close()
