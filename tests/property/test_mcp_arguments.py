"""Whatever a client sends as arguments, each tool answers, and nothing outside the project is touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from raddle.apps.mcp_server.catalogue import TOOLS
from raddle.apps.mcp_server.schemas import schema_of
from raddle.apps.mcp_server.session import Session
from raddle.apps.mcp_server.tools import Arguments
from raddle.model.errors import RaddleError
from tests.mcp_sessions import call

pytest_plugins = ["tests.mcp_fixtures"]

HOSTILE = (
    *(
        "",
        " ",
        "..",
        "../..",
        "/",
        "/etc/passwd",
        "~",
        ".git",
        ".git/hooks/post-commit",
        "a\0b",
        "a\nb",
        "\ud800",
    ),
    *(
        "é" * 300,
        "con",
        "a/" * 200,
        "${HOME}",
        "`id`",
        "-rf",
        "--help",
        "T-0",
        "raddle://x",
        "%2e%2e",
        "x" * 70_000,
    ),
    *("9" * 40, "[", '{"a":1}', "project.yaml", "runs/x", "memory/a", "../../.bashrc"),
)
TEXTS = st.sampled_from(HOSTILE) | st.text(max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)


def _names(arguments: type[Arguments]) -> list[str]:
    return list(schema_of(arguments)["properties"])


def _fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values of the right form, with hostile contents."""
    match schema.get("type"):
        case "string":
            return TEXTS
        case "integer":
            return st.integers(-5, 2000)
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(TEXTS, max_size=3)
        case _:
            return st.dictionaries(TEXTS, VALUES, max_size=3)


def _answered(agent: Session, tool: str, arguments: dict[str, Any]) -> str:
    """What the tool gives as JSON, or what it says is wrong."""
    try:
        return json.dumps(call(agent, tool, **arguments), default=str)
    except RaddleError as error:
        return error.message


@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=12)
@given(data=st.data())
def test_any_arguments_get_an_answer(
    agent: Session, code: Path, tmp_path: Path, tool: str, data: Any
) -> None:
    one = next(one for one in TOOLS if one.name == tool)
    schema = schema_of(one.arguments)
    arguments = {
        name: data.draw(_fitting(schema["properties"][name]) | VALUES, label=name)
        for name in _names(one.arguments)
        if name != "workspace" and (name in schema.get("required", []) or data.draw(st.booleans()))
    }
    if data.draw(st.integers(0, 9)) == 0:
        arguments[data.draw(TEXTS)] = data.draw(VALUES)
    answer = _answered(agent, tool, arguments)
    assert answer
    assert "\n" not in answer
    outside = {path.name for path in tmp_path.iterdir()}
    assert outside <= {"code", "home"}, outside
    assert not (code / ".git" / "hooks" / "post-commit").exists()


def test_what_a_client_adds_to_every_tool_for_itself_is_left_unread(agent: Session) -> None:
    given = {"namespace": "team", "key": "glaze", "content": "cobalt"}
    assert call(agent, "memory_write", **given, wait_for_previous=True)["state"] == "created"
