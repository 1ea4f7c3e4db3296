"""The page on the tools for agents says what the tools are now."""

from __future__ import annotations

import re

from docs import fill_mcp_tools
from raddle.apps.mcp_server.catalogue import TOOLS
from raddle.apps.mcp_server.prompts import PROMPTS
from raddle.apps.mcp_server.resources import RESOURCES, TEMPLATES
from raddle.apps.mcp_server.schemas import schema_of
from raddle.model.threads.recalled import RECALLED_KEY


def test_the_tables_are_those_of_the_tools() -> None:
    text = fill_mcp_tools.PAGE.read_text(encoding="utf-8")
    assert fill_mcp_tools.page() == text, "run `python docs/fill_mcp_tools.py`"


def test_every_tool_and_argument_is_named() -> None:
    rows = {
        found[1]: found[0] for found in re.finditer(r"^\| `(\w+)` \|.*$", fill_mcp_tools.page(), re.MULTILINE)
    }
    assert rows.keys() == {tool.name for tool in TOOLS}
    for tool in TOOLS:
        missing = [
            name for name in schema_of(tool.arguments)["properties"] if f"`{name}`" not in rows[tool.name]
        ]
        assert missing == ["workspace"], tool.name


def test_every_resource_and_prompt_is_named() -> None:
    text = fill_mcp_tools.page()
    names = [one["uri"] for one in RESOURCES] + [one["uri_template"] for one in TEMPLATES]
    names += [one.name for one in PROMPTS] + [RECALLED_KEY]
    assert [name for name in names if f"`{name}`" not in text] == []
