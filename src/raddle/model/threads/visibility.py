"""Who may read a thread: one function that client and server both ask.

The server's SQL predicate is its twin and is proved equal to it; a third answer anywhere would be a leak.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from raddle.model.errors import InvalidInput

PRIVATE, ORGANIZATION, PUBLIC = "private", "organization", "public"
VISIBILITIES = (PRIVATE, ORGANIZATION, PUBLIC)
"""Narrowest first."""


class Viewer(Struct, frozen=True, kw_only=True):
    """Who asks for a thread, and how they stand to it. Who is not signed in is nobody's owner or member."""

    is_signed_in: bool = False
    is_owner: bool = False
    is_member: bool = False
    """Of the organization whose space the thread lies in; a personal space has its owner alone."""
    is_support: bool = False
    """Of the staff that reads what it was given."""


def may_read(
    visibility: str, *, is_private: bool, is_shared_with_support: bool, is_deleted: bool, viewer: Viewer
) -> bool:
    """May `viewer` read the thread? A `visibility` that is none of ours (of a newer raddle) is private.

    A private thread and a deleted one are their owner's alone, whatever else is set.
    `is_shared_with_support`: a grant that runs now.
    """
    if viewer.is_signed_in and viewer.is_owner:
        return True
    if is_private or is_deleted:
        return False
    if viewer.is_signed_in and viewer.is_support and is_shared_with_support:
        return True
    rank = _rank(visibility)
    return rank == _rank(PUBLIC) or (rank == _rank(ORGANIZATION) and viewer.is_signed_in and viewer.is_member)


def parse_visibility(text: str) -> str:
    """The visibility that `text` names, in any case, `organisation` too; InvalidInput where it names none."""
    name = _canonical(text)
    if name not in VISIBILITIES:
        raise InvalidInput(f"{text[:40]!r} is not a visibility", f"it is one of {', '.join(VISIBILITIES)}")
    return name


def narrowest(values: Iterable[Any]) -> str:
    """The narrowest of several; a value that is none of ours counts as the narrowest, `private`."""
    ranks = [_rank(value) for value in values]
    return VISIBILITIES[min(ranks)] if ranks else ORGANIZATION


def _rank(value: Any) -> int:
    """The place in VISIBILITIES; 0 for what is none of ours."""
    name = _canonical(value) if isinstance(value, str) else ""
    return VISIBILITIES.index(name) if name in VISIBILITIES else 0


def _canonical(text: str) -> str:
    name = text.strip().lower()
    return ORGANIZATION if name == "organisation" else name
