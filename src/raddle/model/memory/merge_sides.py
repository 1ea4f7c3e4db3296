"""The two sides of a merge, which of them is the later one, and what is done where both changed one thing.

The later side is told by nothing but what both nodes know, so that whoever merges comes to the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from raddle.model.clock import parse_time
from raddle.model.memory.documents import plain_of
from raddle.model.three_way import MISSING, Settle, same

SideName = Literal["local", "remote"]
Value = TypeVar("Value")


class Side(Struct, frozen=True, kw_only=True):
    """A node, and when it committed what it has (microseconds since 1970)."""

    node_id: str
    at: int


class Sides(Struct, frozen=True, kw_only=True):
    """Who has what."""

    local: Side
    remote: Side

    def of(self, name: SideName) -> Side:
        """The side of that name."""
        return self.local if name == "local" else self.remote


class Version(Struct, frozen=True, order=True):
    """What orders two versions of a file: microseconds, then the node, then the bytes."""

    at: int
    node_id: str
    content: bytes


class Settled(Struct, kw_only=True):
    """Takes the later side's value where both changed one, and remembers where: `clashes`, as dotted names."""

    later: SideName
    clashes: list[str] = []

    def __call__(self, path: tuple[str, ...], base: Any, local: Any, remote: Any) -> Any:
        """The later one of two values."""
        self.clashes.append(".".join(path))
        return local if self.later == "local" else remote


def later_side(local: Version, remote: Version) -> SideName:
    """Whose version is the later one."""
    return "local" if local > remote else "remote"


def other_side(name: SideName) -> SideName:
    """The other one of the two."""
    return "remote" if name == "local" else "local"


def pick(base: Value | None, local: Value, remote: Value, both: Callable[[Value, Value], Value]) -> Value:
    """The value of the one side that changed it; of `both` where both did, each to another one."""
    if same(plain_of(local), plain_of(remote)) or same(plain_of(remote), plain_of(base)):
        return local
    if same(plain_of(local), plain_of(base)):
        return remote
    return both(local, remote)


def settled_field(settle: Settle, name: str, base: Value | None, local: Value, remote: Value) -> Value:
    """`pick`, with `settle` for both."""
    return pick(
        base, local, remote, lambda one, other: settle((name,), MISSING if base is None else base, one, other)
    )


def earliest(one: str, other: str) -> str:
    """The earlier one of two RFC 3339 times; one that is none counts for nothing."""
    return min(one, other, key=lambda text: (_moment(text) is None, _moment(text) or 0, text))


def latest(one: str, other: str) -> str:
    """The later one of two RFC 3339 times; one that is none counts for nothing."""
    return max(one, other, key=lambda text: (_moment(text) is not None, _moment(text) or 0, text))


def _moment(text: str) -> int | None:
    return parse_time(text) if text else None


def replaced(value: Value, **fields: Any) -> Value:
    """`value` (a Struct) with `fields` in place of its own."""
    return msgspec.structs.replace(value, **fields)  # type: ignore[type-var]
