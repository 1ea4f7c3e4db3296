"""What a collection is: one file, or folder, of an agent that holds many sessions, such as a database or an export.

Owns the shape in which such a store is looked at. The pipeline knows sessions and lines only, so a collection
lists its sessions and gives each as lines of JSON; a second shape would be a second pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct

from raddle.actions.importing.run_plan import FileProblem
from raddle.actions.importing.source_reading import OpenSource

SEPARATOR = "#"
"""Between the path of a collection and the id of a session in it: so the ledger and a report name it."""


class Member(Struct, frozen=True, kw_only=True):
    """A session in a collection, as its listing shows it: nothing of it is read yet."""

    session: str
    """Its id, as the agent knows it."""
    size: int
    """About how many bytes there are to read."""
    changed_ns: int
    """When it last changed, nanoseconds since 1970. Where this and `size` are as they were, it is not read."""
    workspace: str = ""
    """The folder that it names."""
    where: str = ""
    """Where it is found, for the `open` of its collection."""


class Stat(Struct, frozen=True, kw_only=True):
    """A collection as `stat` shows it, with the files that belong to it (a database's log): unchanged where equal."""

    size: int
    mtime_ns: int
    inode: int


class Collection(Protocol):
    """One collection of one agent. Nothing of it is ever written; SourceError where it cannot be read."""

    def stat(self) -> Stat:
        """How it looks from outside, without opening it."""

    def members(self) -> Iterator[Member | FileProblem]:
        """Its sessions, at one moment, and what of it cannot be read."""

    def open(self, member: Member) -> OpenSource:
        """A session as lines of JSON, as it is at this moment."""
