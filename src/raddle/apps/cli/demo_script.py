"""The words a demo conversation is written in: who says what, which tool runs, where a person went back.

Owns the vocabulary of the stories; `demo_home` turns them into the records of a session file.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct


class User(Struct, frozen=True):
    """What a person typed, `after` so many minutes of looking at the answer before."""

    text: str
    after: float = 2.0


class Think(Struct, frozen=True):
    """What the agent thought and did not say."""

    text: str


class Say(Struct, frozen=True):
    """What the agent said."""

    text: str


class Bash(Struct, frozen=True):
    """A command and what it printed."""

    command: str
    output: str
    failed: bool = False


class Read(Struct, frozen=True):
    """A file and the lines of it that the agent saw, from line `start`."""

    path: str
    text: str
    start: int = 1


class Edit(Struct, frozen=True):
    """A change of one place in a file."""

    path: str
    old: str
    new: str


class Together(Struct, frozen=True):
    """Calls the agent made in one breath."""

    calls: tuple[Bash | Read | Edit, ...]


class Agent(Struct, frozen=True):
    """A sub-agent: what it was asked, what it did, what it answered."""

    description: str
    prompt: str
    steps: tuple[Think | Say | Bash | Read, ...]
    answer: str


class Rewind(Struct, frozen=True):
    """The person goes back to before the `to`-th thing they typed (from 0) and types something else."""

    to: int


class Compact(Struct, frozen=True):
    """The conversation grew too long and goes on from a summary."""

    summary: str


Step: TypeAlias = User | Think | Say | Bash | Read | Edit | Together | Agent | Rewind | Compact


class Story(Struct, frozen=True, kw_only=True):
    """One session. `hours_ago`: when it began. `goes_on_from`: the title of the story it resumes.

    `is_damaged`: a crash left a block of NULs in the file and tore the last line.
    """

    title: str
    project: str
    branch: str
    hours_ago: float
    steps: tuple[Step, ...]
    goes_on_from: str = ""
    is_damaged: bool = False
