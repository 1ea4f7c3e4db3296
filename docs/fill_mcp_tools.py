# ruff: noqa: INP001  a script
"""Writes the tables of docs/reference/mcp-tools.md from the tools; what stands around them is written by hand.

python docs/fill_mcp_tools.py
"""

from __future__ import annotations

import re
from pathlib import Path

from raddle.apps.mcp_server import memory_tools, phase_tools, project_tools, run_tools, thread_tools
from raddle.apps.mcp_server.schemas import schema_of
from raddle.apps.mcp_server.tools import Hints, Tool

PAGE = Path(__file__).parent / "reference" / "mcp-tools.md"
_FAMILIES = {
    "runs": run_tools.TOOLS,
    "memory": memory_tools.TOOLS,
    "phases": phase_tools.TOOLS,
    "threads": thread_tools.TOOLS,
    "project": project_tools.TOOLS,
}
_TABLE = re.compile(r"(<!-- tools: (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def page() -> str:
    """The page with its tables as they have to be."""
    text = PAGE.read_text(encoding="utf-8")
    return _TABLE.sub(lambda found: f"{found[1]}{_table(_FAMILIES[found[2]])}", text)


def _table(tools: tuple[Tool, ...]) -> str:
    rows = "\n".join(_row(tool) for tool in tools)
    return f"| tool | does | arguments | kind |\n|---|---|---|---|\n{rows}\n"


def _row(tool: Tool) -> str:
    schema = schema_of(tool.arguments)
    required = set(schema.get("required", ()))
    arguments = [
        _argument(name, value, is_required=name in required)
        for name, value in schema["properties"].items()
        if name != "workspace"
    ]
    return f"| `{tool.name}` | {tool.summary} | {'<br>'.join(arguments) or '–'} | {_kind(tool.hints)} |"


def _argument(name: str, value: dict[str, object], *, is_required: bool) -> str:
    told = str(value.get("description", "")).replace("|", r"\|")
    values = value.get("enum")
    if isinstance(values, list):
        told = " or ".join(map(str, values))
    return f"{'**' if is_required else ''}`{name}`{'**' if is_required else ''}{f': {told}' if told else ''}"


def _kind(hints: Hints) -> str:
    kind = (
        "reads"
        if hints.read_only
        else "replaces"
        if hints.destructive
        else "sets"
        if hints.idempotent
        else "adds"
    )
    return f"{kind}, network" if hints.open_world else kind


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
