"""What a session is that raddle writes for an agent: its facts, its form, and how its own lines are moved.

Owns the values that a writer of each format takes and gives. Where files lie, and whether one is there, is known
elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from raddle.actions.resuming.told import Turn
from raddle.model.threads.carried import FIELD, form_as_copy


class Header(Struct, frozen=True, kw_only=True):
    """What a session says of itself. `workspace`: the folder on this machine. `began`, `ends`: microseconds."""

    session_id: str
    workspace: str
    title: str = ""
    git_branch: str = ""
    began: int = 0
    ends: int = 0
    now: int = 0
    model: str = ""
    """`provider/model` of the agent's own, where its format wants one."""


class Move(Struct, frozen=True, kw_only=True):
    """From where to where a session's own lines go. `session`: its id so far; `to_session`: the one that it gets.

    `at`: when it goes on, in microseconds: what is later is its own.
    """

    workspace: str
    to_workspace: str
    session: str
    to_session: str
    at: int = 0

    @property
    def is_new_session(self) -> bool:
        """Does it become another session?"""
        return self.session != self.to_session

    def folder(self, there: str) -> str:
        """Where on this machine a folder of the session is: below the workspace the same one, else the workspace."""
        if self.workspace == self.to_workspace:
            return there
        root = self.workspace.rstrip("/")
        inside = there.removeprefix(root)
        if root and inside != there and inside[:1] in ("", "/"):
            return self.to_workspace.rstrip("/") + inside if inside else self.to_workspace
        return self.to_workspace


Write = Callable[[Header, Sequence[Turn]], Iterator[bytes]]
"""The lines of a session that tells these turns, each without its end."""
MoveLine = Callable[[bytes, Move], bytes]
"""A line of a session as it stands after a move: the same bytes wherever nothing that the agent looks for changes."""


class ResumedForm(Struct, frozen=True, kw_only=True):
    """One agent: how a session is written for it, how its own lines are moved, and what is run to go on with it.

    `folder_in`: the folder that a line tells. `argv`: by the session's id. `stubs`: lines behind the session's own that
    answer those calls of the last turn that nothing answered; None where the program sees to all such calls itself.
    """

    agent: str
    label: str
    write: Write
    move_line: MoveLine
    folder_in: Callable[[bytes], str]
    argv: Callable[[str], tuple[str, ...]]
    stubs: Callable[[Turn], list[bytes]] | None = None


_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode


def fields_of(line: bytes | Raw) -> dict[str, Raw] | None:
    """A line's fields, each as its bytes stand; None where it is no JSON object."""
    try:
        return _decode_object(line)
    except (msgspec.DecodeError, RecursionError):
        return None


def text_in(fields: dict[str, Raw], name: str) -> str | None:
    """A field that is a text; None where it is none."""
    try:
        return _decode_text(fields[name])
    except (KeyError, msgspec.DecodeError):
        return None


def put_text(fields: dict[str, Raw], name: str, value: str) -> bool:
    """Give a field another text; False where it has this one already."""
    if text_in(fields, name) == value:
        return False
    fields[name] = Raw(msgspec.json.encode(value))
    return True


def as_copied(line: bytes, thread_id: str) -> bytes:
    """A line as it goes into a session of another thread: a message that it carries says where it was said."""
    if FIELD.encode() not in line:
        return line
    fields = fields_of(line)
    if fields is None or FIELD not in fields:
        return line
    form = form_as_copy(msgspec.json.decode(fields[FIELD]), thread_id)
    return line if form is None else as_line(fields | {FIELD: Raw(as_line(form))})


def as_line(value: Any) -> bytes:
    """A value as one line of JSON."""
    return msgspec.json.encode(value)
