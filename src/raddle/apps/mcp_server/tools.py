"""What a tool is: a plain function with the shape of its arguments, and what a client is told of it.

The one shape that every family of tools fills in; `serving.py` turns it into the protocol's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from raddle.apps.mcp_server.session import Session
from raddle.model.errors import InvalidInput

Progress: TypeAlias = Callable[[float, float | None, str], None]
"""Told how far a call is: done, of how many (None: not known), and in words."""


class Hints(Struct, frozen=True, kw_only=True):
    """What a client may assume of a tool, in the protocol's words. `open_world`: it may reach a network."""

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False


READS = Hints(read_only=True, idempotent=True)
ADDS = Hints()
SETS = Hints(idempotent=True)
_OF_CLIENTS = frozenset({"wait_for_previous"})
"""What a client puts into the schema of every tool for itself, and sends along all the same: Gemini CLI."""


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every tool takes. `workspace`: the folder of the project, where the client's is another one."""

    workspace: str | None = None


class Call(Struct, frozen=True, kw_only=True):
    """One call under way. `is_over` says that nobody waits for its answer any more: a long call looks now and then."""

    progress: Progress
    is_over: Callable[[], bool]


class Tool(Struct, frozen=True, kw_only=True):
    """One tool. `run` takes the session, the arguments and the call; what it gives is told as JSON: an object, of the
    fields in `gives` and no others, each left out where it is empty.

    It raises a RaddleError for what a caller can mend.
    """

    name: str
    summary: str
    arguments: type[Arguments]
    run: Callable[[Session, Any, Call], dict[str, Any]]
    hints: Hints
    gives: tuple[str, ...] = ()


def arguments_of(tool: Tool, given: dict[str, Any] | None) -> Arguments:
    """The arguments as their type; InvalidInput names the one that is wrong, and what the tool takes.

    A number may come as its text: agents do that. An argument of None counts as not given.
    """
    present = {
        name: value for name, value in (given or {}).items() if value is not None and name not in _OF_CLIENTS
    }
    taken = _names(tool.arguments)
    strangers = [name for name in present if name not in taken]
    if strangers:
        raise InvalidInput(
            f"{tool.name} takes no argument {strangers[0][:60]!r}", f"it takes {', '.join(taken)}"
        )
    try:
        return msgspec.convert(present, tool.arguments, strict=False)
    except (msgspec.ValidationError, RecursionError, OverflowError) as error:
        raise InvalidInput(
            f"{tool.name}: {_in_words(error)}", f"it takes {_shape(tool.arguments)}"
        ) from error


def _names(arguments: type[Arguments]) -> list[str]:
    return [field.name for field in msgspec.structs.fields(arguments)]


def _shape(arguments: type[Arguments]) -> str:
    """The arguments by name, those that have to be there marked."""
    return ", ".join(
        f"{field.name} (required)" if field.required else field.name
        for field in msgspec.structs.fields(arguments)
    )


def _in_words(error: Exception) -> str:
    """The sentence of msgspec with the name of the argument first: `limit: expected int, got str`."""
    if not isinstance(error, msgspec.ValidationError):
        return "an argument is nested too deep, or a number too large"
    text, _, where = str(error).partition(" - at ")
    name = where.strip("`").removeprefix("$").lstrip(".")
    text = text.replace("Object missing required field", "missing argument").replace("`", "'")
    return f"{name}: {text[:1].lower()}{text[1:]}" if name else f"{text[:1].lower()}{text[1:]}"
