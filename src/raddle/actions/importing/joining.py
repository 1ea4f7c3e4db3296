"""What a reading of a session adds to the thread that is there.

Owns which of two forms of an imported message stands, beyond what any join decides: a sub-agent's message that
was read before its place was known moves to its place. Pure, so that a delta holds news and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from raddle.actions.importing.importer import Write
from raddle.actions.importing.privacy import private_writes, tells_of_private
from raddle.model.threads.delta import Delta
from raddle.model.threads.edits import imported_registers
from raddle.model.threads.message import Message, changed
from raddle.model.threads.thread import Thread, join_messages


class News(NamedTuple):
    """What a reading adds to a thread. `new`: messages that were not there; `shown`: attachments that are shown."""

    delta: Delta
    new: int
    shown: set[str]
    is_first: bool


def news_of(
    thread: Thread | None, messages: Iterable[Message], writes: Iterable[Write], moved: AbstractSet[str]
) -> News:
    """`moved`: ids of messages that are read anew, since their place became known."""
    known = Thread("") if thread is None else thread
    news: list[Message] = []
    shown: set[str] = set()
    new = 0
    for message in messages:
        before = known.tree.get(message.id)
        stands = message if before is None else join_messages(before, message)
        if before is not None and stands is before and message.id in moved:
            stands = _moved(before, message)
        if stands is not before:
            news.append(stands)
            new += before is None
        shown.update(attachment.sha256 for attachment in stands.attachments)
    if any(map(tells_of_private, news)):
        writes = (*writes, *private_writes(0))
    registers = imported_registers(known.registers, writes)
    delta = Delta(
        version=max(known.version, 1),
        messages=tuple(news),
        registers={
            path: register
            for path, register in registers.items()
            if register is not known.registers.get(path)
        },
    )
    return News(delta, new, shown, is_first=thread is None)


def turns_before(messages: Mapping[str, Message], thread: Thread) -> list[Message]:
    """The turns of another session's thread that `messages` (by id) hang on, the oldest first."""
    above = {message.parent_id for message in messages.values()} - messages.keys()
    found = {
        turn.id: turn
        for parent_id in above
        if parent_id in thread.tree
        for turn in thread.tree.path_to_root(parent_id)
    }
    return sorted(found.values(), key=lambda turn: (turn.order, turn.id))


def _moved(before: Message, message: Message) -> Message:
    """A sub-agent's message whose place became known; its earlier form would win by its earlier order."""
    if before.is_purged or (before.parent_id, before.order) == (message.parent_id, message.order):
        return before
    return changed(message, rev=before.rev + 1)
