"""JSON schemas of arguments, as small as they can be: agents read all of them with each conversation.

The one place that words a schema. Every byte here is paid for in each context window that the server is used from.
"""

from __future__ import annotations

from typing import Any

import msgspec

from raddle.apps.mcp_server.tools import Arguments, Tool

_KEPT = ("type", "enum", "items", "minimum", "maximum", "description", "additionalProperties")


def schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    """The schema of a tool's arguments: one level, no titles, no references, defaults left to the description."""
    made = msgspec.json.schema(arguments)
    body = made["$defs"][arguments.__name__]
    properties = {name: _small(value) for name, value in body["properties"].items()}
    small: dict[str, Any] = {"type": "object", "properties": properties}
    if body.get("required"):
        small["required"] = body["required"]
    small["additionalProperties"] = False
    return small


def answer_schema(tool: Tool) -> dict[str, Any]:
    """The schema of what a tool gives: the names of its fields."""
    return {"type": "object", "properties": {name: {} for name in tool.gives}}


def _small(value: dict[str, Any]) -> dict[str, Any]:
    """A schema of one argument. What may be None, or come as a single text where a list is meant, is told by the form
    that is meant: its first."""
    described = {"description": value["description"]} if "description" in value else {}
    if "anyOf" in value:
        value = {**value["anyOf"][0], **described}
    small = {key: value[key] for key in _KEPT if key in value}
    if isinstance(small.get("items"), dict):
        small["items"] = _small(small["items"])
    if small.get("additionalProperties") == {}:
        del small["additionalProperties"]
    return small
