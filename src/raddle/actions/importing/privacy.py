"""What makes an imported thread private, and when its own words do.

An agent that raddle told of a private thread has that in its transcript; were the transcript public, a private thread's
words would go wherever it goes.
"""

from __future__ import annotations

from raddle.actions.importing.importer import Write
from raddle.model.threads.message import Message
from raddle.model.threads.recalled import holds_private


def private_writes(n: int) -> tuple[Write, Write]:
    """What makes a thread private; `n` in microseconds."""
    return ("is_private", n, True), ("visibility", n, "private")


def tells_of_private(message: Message) -> bool:
    """Does it hold what raddle told an agent of a private thread? Its own thread is private then, as an answer's copy
    must not go where the thread itself may not."""
    return message.role == "tool" and holds_private(message.content)
