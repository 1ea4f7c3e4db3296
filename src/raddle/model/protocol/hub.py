"""What a hub says of threads: answers, pushes, the feed. Client, server and every fake speak these and no others.

A hub is whatever holds threads for several devices (`merge.md`, rules 10 to 13): the sync server today. If one
side had values of its own for this, a field that the other side added would be lost on the way.
"""

from __future__ import annotations

from msgspec import Struct

from raddle.model.threads.delta import Delta

PUT, GONE = "put", "gone"
"""Kinds of change in the feed: the thread is there in a newer form; it left the space, or its words were purged."""


class Answer(Struct, frozen=True, kw_only=True):
    """What the hub says about a thread: a piece, or a whole state where the delta's `base_version` is 0.

    `has_more`: it was cut at a limit; the rest is asked for with `since` = the delta's `version`.
    """

    delta: Delta
    hub_epoch: str
    has_more: bool = False


class Pushed(Struct, frozen=True, kw_only=True):
    """How a push went. `answer`: what the pusher lacked; None where the push was accepted."""

    version: int
    hub_epoch: str
    answer: Answer | None = None

    @property
    def is_accepted(self) -> bool:
        """Did the hub take it?"""
        return self.answer is None


class Change(Struct, frozen=True, kw_only=True):
    """One line of the feed. `version`: the hub's newest of that thread. `space`: where it lies or lay."""

    thread_id: str
    version: int
    kind: str = PUT
    space: str = ""
    is_deleted: bool = False
    """Is it deleted there now? So that a plan knows how much it would delete."""


class Changes(Struct, frozen=True, kw_only=True):
    """A page of the feed, in commit order. `cursor`: where the next page starts (opaque)."""

    changes: tuple[Change, ...]
    cursor: str
    hub_epoch: str
    has_more: bool = False
